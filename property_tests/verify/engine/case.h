// SPDX-License-Identifier: Apache-2.0
//
// case.h - a case is a text that determines everything: the operation, the
// implementation that runs it, and the data.
//
//   op=lapsum impl=cpu:v4 dtype=f32 fill=near_ties:3 rows=7 num_experts=33
//   mean_active=1.375 temperature=1.7 spread=1 seed=0x5eed case=417
//
// Data is a pure function of this text (fill.h). A size may be a window:
// "rows=1@5" is one row, namely the sixth, so that a shrunk case keeps the
// values of the elements that remain. "simplify=scores:bits3,d_weights:only5"
// records how shrinking then changed the values. ParseCase(CaseText(c)) == c.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CASE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CASE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

class Operation;

// `count` indices of a dimension, starting at `first`.
struct Window {
  int64_t count = 1;
  int64_t first = 0;
  bool operator==(const Window&) const = default;
};

// A named way to make data; `argument` is set only if the fill takes one.
struct FillName {
  std::string name = "generic";
  int64_t argument = 0;
  bool operator==(const FillName&) const = default;
};

// A change of one input tensor that makes it easier to read.
struct Simplification {
  enum class How {
    kZero,  // all zeros
    kOne,   // all ones
    kBits,  // rounded to `argument` significant bits
    kOnly,  // zero except for the element at flat index `argument`
  };
  std::string tensor;
  How how = How::kZero;
  int64_t argument = 0;
  bool operator==(const Simplification&) const = default;
};

struct Case {
  std::string op, impl;
  Dtype dtype = Dtype::kF32;
  FillName fill;
  // One entry for every parameter of the operation.
  std::map<std::string, Window> sizes;
  std::map<std::string, double> reals;
  std::map<std::string, std::string> choices;
  std::vector<Simplification> simplify;
  uint64_t seed = 0;
  uint32_t number = 0;  // "case=": which draw of this seed

  // Throws InternalError for a parameter that the operation does not have.
  int64_t Size(const std::string& name) const;
  double Real(const std::string& name) const;
  const std::string& Choice(const std::string& name) const;

  bool operator==(const Case&) const = default;
};

// The canonical text, with every field.
std::string CaseText(const Case& c);

// A case of the same shape with other data, not simplified.
Case OtherData(const Case& c);

// Whether the case is checked after a call with OtherData: odd numbers are, and
// even ones are not, so that first calls are judged, too.
inline bool IsCheckedAfterAnother(const Case& c) { return c.number % 2 == 1; }

// "near_ties:3", "generic".
std::string FillText(const FillName& fill);
FillName ParseFill(const std::string& text);

// The keys and values of a text of KEY=VALUE words. A case may leave out any of
// them; missing ones are drawn (draw.h). Throws ConfigError for a word that is
// not KEY=VALUE and for a key given twice.
using CasePattern = std::map<std::string, std::string>;
CasePattern ParseWords(const std::string& text);

// `text` as a whole number or as a decimal. Throws ConfigError, naming `key`.
int64_t ParseWhole(const std::string& key, const std::string& text);
uint64_t ParseSeed(const std::string& key, const std::string& text);
uint32_t ParseCaseNumber(const std::string& text);  // of "case="
double ParseDecimal(const std::string& key, const std::string& text);
Window ParseWindow(const std::string& key, const std::string& text);
std::vector<Simplification> ParseSimplify(const std::string& text);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CASE_H_

// SPDX-License-Identifier: Apache-2.0
//
// operation.h - what is verified: an operation of the method, its parameters,
// its data, and for every element of every output the value it should have and
// how far a correct implementation may be from it.
//
// An operation knows the reference and the error analysis, never who computes.
// It speaks in named tensors only. By convention output "d_x" is the gradient
// of input "x" for the cotangents "d_y" among the inputs, one per output "y"
// that a gradient flows from.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_OPERATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_OPERATION_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/comparator.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

struct Parameter {
  enum class Kind { kSize, kReal, kChoice };
  std::string name = {};
  Kind kind = Kind::kSize;
  std::string text = {};  // one line: meaning and unit
  // Sizes and reals: the range that is valid, both ends included.
  double low = 1, high = 1;
  // Sizes and reals: at most this other parameter (a size, declared before),
  // or `below`: less than it by 1/64 at least.
  std::string at_most = {};
  bool below = false;
  // Reals: what is drawn; empty: any multiple of 1/64 in the range.
  std::vector<double> typical = {};
  int64_t step = 1;  // sizes: a multiple of this
  std::vector<std::string> choices = {};
  // What shrinking tries first; sizes shrink towards `low`.
  double simple = 1;
};

struct OutputSpec {
  std::string name;
  // An implementation may leave it out; that is reported, not failed.
  bool optional = false;
  // Computed and returned in double, whatever the dtype of the data.
  bool in_double = false;
};

// How a bound was found: text that `verify explain` prints. A change of the
// text's claim changes the id.
struct Derivation {
  std::string id, text;
};

struct ExpectedOutput {
  Tensor values;               // f64, or i32 where equality is asked for
  std::vector<double> bounds;  // |got - value| <= bound, element by element
  std::string derivation;      // id
  Expectations expectations;
  // What `values` themselves may be wrong by, where that is not 2^-29 of the
  // bounds: the same formula in double instead of float.
  std::vector<double> own_errors = {};

  double OwnError(int64_t i) const {
    return own_errors.empty() ? 0x1p-29 * bounds[i] : own_errors[i];
  }
};

struct Expected {
  std::map<std::string, ExpectedOutput> outputs;
  // What is wrong with an output beyond any bound (a selection without
  // excuse): output -> one sentence.
  std::map<std::string, std::string> defects;
  int64_t decisions = 0;  // discrete choices compared
  int64_t ambiguous = 0;  // of them, decided otherwise within their margin
};

class Operation {
 public:
  virtual ~Operation() = default;
  virtual std::string name() const = 0;
  virtual std::string text() const = 0;  // one line: the formula
  virtual const std::vector<Parameter>& parameters() const = 0;
  virtual std::vector<std::string> fills() const = 0;  // names, fill.h
  virtual std::vector<Dtype> dtypes() const { return {Dtype::kF32}; }
  virtual std::vector<OutputSpec> outputs() const = 0;
  virtual const std::vector<Derivation>& derivations() const = 0;

  // The inputs, cotangents included, before any simplification.
  virtual TensorMap Inputs(const Case& c) const = 0;
  // The outputs that a gradient flows from, in double, at any inputs, and i32
  // outputs: discrete choices. `choice` is empty, or holds those of another
  // Forward, and what makes the outputs jump (a selection) is then kept; what
  // only bends them (a score that crosses LapSum's root) is told as it is.
  // Used by `verify grad`; every operation with differentiable() inputs has it.
  virtual TensorMap Forward(const Case& c, const TensorMap& inputs,
                            const TensorMap& choice) const {
    (void)c, (void)inputs, (void)choice;
    return {};
  }
  // The cotangents of what Forward returned: the inputs "d_<output>".
  virtual TensorMap Cotangents(const TensorMap& inputs,
                               const TensorMap& outputs) const;
  // The inputs that have a gradient output "d_NAME".
  virtual std::vector<std::string> differentiable() const { return {}; }
  // The i32 outputs that follow from `outputs` as they are stored: whoever
  // decides by what it returns decides so. {} without discrete choices.
  virtual TensorMap Decide(const Case& c, const TensorMap& inputs,
                           const TensorMap& outputs) const {
    (void)c, (void)inputs, (void)outputs;
    return {};
  }
  // Why the inputs, changed by a simplification, are no case of this operation
  // any more; "" if they are one.
  virtual std::string WhyInvalid(const Case& c, const TensorMap& inputs) const {
    (void)c, (void)inputs;
    return "";
  }

  const Parameter* FindParameter(const std::string& name) const;
  const Derivation* FindDerivation(const std::string& id) const;

 private:
  // What every output should be, with the bounds of float at f64. `got` is what
  // the implementation computed: an operation that makes discrete choices
  // checks them against their margin and then expects what follows from got's
  // own choice (routing replay); others ignore it. Missing or misshapen tensors
  // in `got` must not throw. Private: bounds are asked for by ExpectOf, by
  // whoever judges and whoever exports.
  virtual Expected Expect(const Case& c, const TensorMap& inputs,
                          const TensorMap& got) const = 0;
  friend Expected ExpectOf(const Operation& op, const Case& c,
                           const TensorMap& inputs, const TensorMap& got);
};

// Op.Inputs(c) with c.simplify applied. Throws ConfigError if that names a
// tensor or element that is not there, or leaves invalid data.
TensorMap InputsOf(const Operation& op, const Case& c);

// What every output should be, with the bounds that hold at c.dtype: at f64
// they are 2^-28 of those of float (AtF64Derivation). `got` as for
// Operation::Expect; {} for the reference's own choices.
Expected ExpectOf(const Operation& op, const Case& c, const TensorMap& inputs,
                  const TensorMap& got);
const Derivation& AtF64Derivation();

// Every operation, in the order of the model. What lists them sits above all
// that uses them (operation_list.cc, linked with every program of the engine).
const std::vector<const Operation*>& Operations();
// Throws ConfigError with a suggestion.
const Operation& FindOperation(const std::string& name);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_OPERATION_H_

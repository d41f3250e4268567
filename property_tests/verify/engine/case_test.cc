// SPDX-License-Identifier: Apache-2.0
//
// Tests cases: text and back, windows of data, drawing, unknown names.
#include "property_tests/verify/engine/case.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {
namespace {

const Operation& AnyOperation() {
  const auto& all = Operations();
  return *all[*rc::gen::inRange<size_t>(0, all.size())];
}

// A case with windows and simplifications, as shrinking makes them.
Case AnyCase() {
  const Operation& op = AnyOperation();
  Case c = DrawCase(op, {{"impl", "cpu:v3"}}, *rc::gen::arbitrary<uint64_t>(),
                    *rc::gen::arbitrary<uint32_t>());
  for (auto& [name, window] : c.sizes) {
    const int64_t most = std::max<int64_t>(kMaxIndex - window.count, 0);
    window.first = std::min(*rc::gen::inRange<int64_t>(0, 1000), most);
  }
  for (auto& [name, value] : c.reals) {
    const Range range = RangeOf(op, *op.FindParameter(name), c);
    value = range.low + (range.high - range.low) *
                            (*rc::gen::inRange(0, 1 << 20) * 0x1p-20);
  }
  return c;
}

RC_GTEST_PROP(Case, ReadsBackFromItsText, ()) {
  Case c = AnyCase();
  const std::string tensor = InputsOf(FindOperation(c.op), c).begin()->first;
  using How = Simplification::How;
  if (*rc::gen::arbitrary<bool>()) {
    c.simplify = {{tensor, How::kBits, 20}};
    // Some data cannot be simplified; such a case does not exist.
    try {
      InputsOf(FindOperation(c.op), c);
    } catch (const ConfigError&) {
      c.simplify.clear();
    }
  }
  RC_ASSERT(ParseCase(CaseText(c)) == c);
}

// A window shows the values that the whole tensor has at its place.
RC_GTEST_PROP(Case, WindowsKeepTheValuesThatTheyShow, ()) {
  Case whole =
      DrawCase(FindOperation("lapsum"), {{"rows", "9"}, {"num_experts", "11"}},
               *rc::gen::arbitrary<uint64_t>(), 3);
  // The effect of these fills depends on the window.
  if (whole.fill.name == "dominant") whole.fill = {};
  if (whole.fill.name == "wide_gap") whole.fill = {};
  if (whole.fill.name == "wide_gap_beside") whole.fill = {};
  if (whole.fill.name == "breakpoint") whole.fill = {};
  const int64_t row = *rc::gen::inRange<int64_t>(0, 9);
  const int64_t first = *rc::gen::inRange<int64_t>(0, 11);
  const int64_t count = *rc::gen::inRange<int64_t>(1, 12 - first);
  Case part = whole;
  part.sizes["rows"] = {1, row};
  part.sizes["num_experts"] = {count, first};
  for (const char* name : {"scores", "d_weights"}) {
    const Tensor all = InputsOf(FindOperation("lapsum"), whole).at(name);
    const Tensor shown = InputsOf(FindOperation("lapsum"), part).at(name);
    for (int64_t j = 0; j < count; ++j) {
      RC_ASSERT(shown.values[j] == all.values[row * 11 + first + j]);
    }
  }
}

RC_GTEST_PROP(Case, DataIsExactInItsDtype, ()) {
  const Case c = AnyCase();
  for (const auto& [name, tensor] : InputsOf(FindOperation(c.op), c)) {
    RC_ASSERT(tensor.size() == NumElements(tensor.shape));
    for (const double x : tensor.values) {
      RC_ASSERT(std::isfinite(x));
      RC_ASSERT(RoundTo(tensor.dtype, x) == x);
    }
  }
}

TEST(Case, FixingAParameterLeavesTheOthers) {
  const Operation& op = FindOperation("lapsum");
  const Case free = DrawCase(op, {}, 7, 1);
  const Case fixed = DrawCase(op, {{"temperature", "2.5"}}, 7, 1);
  EXPECT_EQ(free.sizes, fixed.sizes);
  EXPECT_EQ(free.fill, fixed.fill);
  EXPECT_EQ(fixed.Real("temperature"), 2.5);
}

void ExpectRefused(const std::string& text, const std::string& part) {
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { ParseCase(text); }), part))
      << text;
}

TEST(Case, AFillThatAGivenParameterDoesNotFitIsNotDrawn) {
  const Operation& op = FindOperation("adamw");
  int first = 0;
  for (uint32_t number = 0; number < 50; ++number) {
    EXPECT_EQ(DrawCase(op, {{"completed", "7"}}, 1, number).Size("completed"),
              7);
    const Case c = DrawCase(op, {}, 1, number);
    if (c.fill.name != "first_update") continue;
    ++first;
    EXPECT_EQ(c.Size("completed"), 0);
  }
  EXPECT_GT(first, 0);
}

// A given value is kept, whatever is drawn with it, and a size that already
// allows it is drawn as if it were not given.
TEST(Case, ASizeIsDrawnLargeEnoughForWhatItLimits) {
  const std::pair<const char*, const char*> kGiven[] = {
      {"max_active", "8"},         {"max_active", "100"},
      {"max_active", "200"},       {"mean_active", "31.984375"},
      {"mean_active", "31.99998"}, {"mean_active", "32"}};
  const Operation& op = FindOperation("router");
  for (const auto& [name, text] : kGiven) {
    const double value = std::stod(text);
    for (uint32_t number = 0; number < 200; ++number) {
      const Case free = DrawCase(op, {}, 3, number);
      const CasePattern fixed = {{name, text}, {"impl", "cpu:v3"}};
      const Case c = DrawCase(op, fixed, 3, number);
      const Case edge = DrawEdge(op, fixed, 3, number);
      const bool is_size = name == std::string("max_active");
      for (const Case& each : {c, edge}) {
        EXPECT_EQ(
            is_size ? static_cast<double>(each.Size(name)) : each.Real(name),
            value);
        EXPECT_GE(static_cast<double>(each.Size("num_experts")),
                  is_size ? value : value + 0x1p-16);
        EXPECT_EQ(ParseCase(CaseText(each)), each);
      }
      if (static_cast<double>(free.Size("num_experts")) >= value + 1) {
        EXPECT_EQ(c.sizes.at("num_experts"), free.sizes.at("num_experts"));
      }
    }
  }
  // An edge loses the word that needs a larger size.
  for (uint32_t number = 0; number < 8; ++number) {
    const Case c = DrawEdge(op, {{"num_experts", "8"}}, 3, number);
    EXPECT_EQ(c.Size("num_experts"), 8);
  }
}

// "1e-06" and "0.000001" are one value.
bool IsOneValue(const std::string& a, const std::string& b) {
  const double number = std::strtod(a.c_str(), nullptr);
  return a == b || (number != 0 && number == std::strtod(b.c_str(), nullptr));
}

// In two rounds, every edge is run alone and after another call.
TEST(Case, EveryEdgeHasAnEvenAndAnOddNumber) {
  for (const Operation* op : Operations()) {
    const std::vector<std::string>& edges = op->edges();
    for (const std::string& edge : edges) {
      const CasePattern words = ParseWords(edge);
      int parities[2] = {0, 0};
      for (uint32_t number = 0; number < 2 * edges.size(); ++number) {
        const Case c = DrawEdge(*op, {{"impl", "none"}}, 5, number);
        const CasePattern drawn = ParseWords(CaseText(c));
        parities[number % 2] +=
            std::ranges::all_of(words, [&](const auto& word) {
              return IsOneValue(drawn.at(word.first), word.second);
            });
      }
      EXPECT_GT(parities[0], 0) << op->name() << " " << edge;
      EXPECT_GT(parities[1], 0) << op->name() << " " << edge;
    }
  }
}

TEST(Case, RefusesWhatItDoesNotKnow) {
  ExpectRefused("rows=3", "op=NAME is missing");
  ExpectRefused("op=lapsun", "did you mean 'lapsum'");
  ExpectRefused("op=lapsum row=3", "did you mean 'rows'");
  ExpectRefused("op=lapsum fallback=top1", "it is one of op=router");
  ExpectRefused("op=lapsum rows=3 rows=4", "given twice");
  ExpectRefused("op=lapsum rows=", "KEY=VALUE");
  ExpectRefused("op=lapsum rows", "KEY=VALUE");
  ExpectRefused("op=lapsum =3", "KEY=VALUE");
  ExpectRefused("op=lapsum rows=three", "whole number");
  ExpectRefused("op=lapsum rows=1e3", "whole number");
  ExpectRefused("op=lapsum rows=99999999999999999999", "whole number");
  ExpectRefused("op=lapsum rows=-1", "between 0 and 1089");
  ExpectRefused("op=lapsum num_experts=0", "between 1 and");
  ExpectRefused("op=lapsum rows=3@-1", "must begin at 0");
  for (const std::string window : {"3@", "@3", "3@1@2", "3@1e3"}) {
    ExpectRefused("op=lapsum rows=" + window,
                  "rows=" + window + ": a window COUNT@FIRST has two whole");
  }
  ExpectRefused("op=lapsum rows=3@65535", "window must end");
  ExpectRefused("op=lapsum rows=3@9223372036854775807", "window must end");
  ExpectRefused("op=lapsum num_experts=4 mean_active=4", "by num_experts");
  ExpectRefused("op=lapsum mean_active=nan num_experts=9", "mean_active");
  ExpectRefused("op=lapsum mean_active=inf num_experts=9", "mean_active");
  ExpectRefused("op=adamw fill=first_update completed=7",
                "completed must be between 0 and 0 here, as limited by "
                "fill=first_update");
  ExpectRefused("op=lapsum dtype=f31", "did you mean 'f32'");
  ExpectRefused("op=lapsum dtype=i32", "no bounds for i32");
  ExpectRefused("op=lapsum dtype=bf16", "no bounds for bf16; it has f32, f64");
  ExpectRefused("op=lapsum fill=tie", "did you mean 'ties'");
  ExpectRefused("op=lapsum fill=ties:3", "takes no number");
  for (const std::string fill : {"near_ties:", "near_ties:0", "ties:0"}) {
    ExpectRefused("op=lapsum fill=" + fill,
                  "fill=" + fill + ": a whole number above 0 is needed");
  }
  ExpectRefused("op=lapsum fill=near_ties:-1", "must be between 1 and 1048576");
  ExpectRefused("op=lapsum fill=near_ties:4611686018427387904",
                "must be between 1 and");
  ExpectRefused("op=lapsum simplify=score:zero", "did you mean 'scores'");
  ExpectRefused("op=lapsum simplify=scores", "TENSOR:bitsN");
  ExpectRefused("op=lapsum simplify=scores:bits0", "TENSOR:bitsN");
  ExpectRefused("op=lapsum rows=1 num_experts=2 simplify=scores:only2",
                "beyond the last of 2");
  ExpectRefused("op=lapsum simplify=temperature:zero", "temperature");
  ExpectRefused("op=lapsum seed=0xg", "hexadecimal");
  ExpectRefused("op=lapsum seed=0x", "hexadecimal");
  ExpectRefused("op=lapsum case=-1", "32 bits");
  ExpectRefused("op=lapsum case=4294967296", "32 bits");
}

}  // namespace
}  // namespace softmoe::verify

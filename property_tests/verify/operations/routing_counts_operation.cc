// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/operations/expert_selection.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;

bool HasCutoff(const Case& c) { return c.Choice("router") == "soft"; }

// The number of active gates of a token, and of those above the cutoff.
struct TokenGates {
  int64_t active = 0, above = 0;

  TokenGates(const TensorMap& inputs, int64_t token) {
    const Tensor& set = At(inputs, "active");
    const double cutoff = ScalarOf(inputs, "cutoff");
    for (int64_t i = token * set.shape[1]; i < (token + 1) * set.shape[1];
         ++i) {
      active += set.values[i] == 1;
      above += set.values[i] == 1 && At(inputs, "gates").values[i] > cutoff;
    }
  }
};

// How many experts the tokens have (SPEC.md 5.2).
// inputs   active (i32), gates, scores: [rows, num_experts]; cutoff [];
//          bad_score (i32) [], an element of scores, or -1
// outputs  active_histogram (i32) [num_experts + 1], below_cutoff (i32) [],
//          bad_value [], in double
class RoutingCountsOp : public Operation {
 public:
  RoutingCountsOp() {
    name_ = "routing_counts";
    text_ =
        "tokens by how many experts they have; those with no weight above "
        "the cutoff; the first score that is not finite";
    parameters_ = {
        {.name = "rows", .text = "tokens", .high = 700},
        {.name = "num_experts", .text = "experts", .high = 40},
        {.name = "max_active",
         .text = "most experts of a token",
         .high = 12,
         .at_most = "num_experts"},
        {.name = "router",
         .kind = Kind::kChoice,
         .text = "only a soft one has a cutoff",
         .choices = {"soft", "sparse"}},
        {.name = "cutoff",
         .kind = Kind::kReal,
         .text = "tau k_l / num_experts",
         .low = 0,
         .high = 4,
         .typical = {0, 0.0625, 0.3},
         .simple = 0.5},
    };
    edges_ = {"rows=0", "rows=8449", "num_experts=256 max_active=256"};
    fills_ = {"generic", "one_expert_all", "empty"};
    outputs_ = {{"active_histogram"},
                {"below_cutoff"},
                {.name = "bad_value", .in_double = true}};
    derivations_ = {{kDerivation, RawLines(R"(
Whole numbers, and a score that is copied: equality. (Which score is not
finite the router says; here it is any, since data is finite.))")}};
  }

  // A token's gates all exceed the cutoff, except that a single gate may come
  // from the fallback: it is often the cutoff itself.
  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const std::vector<Window> axes = {filler.Axis("rows"),
                                      filler.Axis("num_experts")};
    TensorMap inputs = {{"active", Selection(c, filler)},
                        {"gates", filler.Plain("gates", axes)},
                        {"scores", filler.Plain("scores", axes)},
                        {"cutoff", filler.Scalar(c.Real("cutoff"))}};
    const double cutoff = ScalarOf(inputs, "cutoff");
    for (double& gate : inputs["gates"].values) {
      gate = RoundTo(Dtype::kF32, cutoff + 0.01 + std::abs(gate));
    }
    KeepActive(inputs["active"], &inputs["gates"]);
    for (int64_t t = 0; t < axes[0].count; ++t) {
      const auto words = filler.Words("fallback", {axes[0].first + t});
      if (TokenGates(inputs, t).active != 1 || words[0] % 2 == 0) continue;
      for (int64_t i = t * axes[1].count; i < (t + 1) * axes[1].count; ++i) {
        if (inputs["active"].values[i] == 0) continue;
        inputs["gates"].values[i] =
            words[1] % 2 == 0 ? cutoff : RoundTo(Dtype::kF32, cutoff / 2);
      }
    }
    inputs["bad_score"] =
        filler.Ids("bad_score", {}, axes[0].count * axes[1].count + 1);
    inputs["bad_score"].values[0] -= 1;
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    const std::string no_selection = WhyNoSelection(c, inputs);
    if (!no_selection.empty()) return no_selection;
    for (int64_t t = 0; t < c.Size("rows"); ++t) {
      const TokenGates token(inputs, t);
      if (token.active > 1 && token.above < token.active) {
        return "several gates of a token must stay above the cutoff";
      }
    }
    const double bad = ScalarOf(inputs, "bad_score");
    return bad >= -1 && bad < static_cast<double>(At(inputs, "scores").size())
               ? ""
               : "bad_score must stay an element of scores, or -1";
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    Tensor histogram(Dtype::kI32, {c.Size("num_experts") + 1});
    Tensor below(Dtype::kI32, {}), bad_value(Dtype::kF64, {});
    for (int64_t t = 0; t < c.Size("rows"); ++t) {
      const TokenGates token(inputs, t);
      ++histogram.values[token.active];
      below.values[0] += HasCutoff(c) && token.above == 0;
    }
    const double bad = ScalarOf(inputs, "bad_score");
    if (bad >= 0) {
      bad_value.values[0] =
          At(inputs, "scores").values[static_cast<int64_t>(bad)];
    }
    Expected expected;
    expected.outputs["active_histogram"] = Exactly(histogram, kDerivation);
    expected.outputs["below_cutoff"] = Exactly(below, kDerivation);
    expected.outputs["bad_value"] = Exactly(bad_value, kDerivation);
    return expected;
  }

 private:
  static constexpr char kDerivation[] = "routing-counts/1";
};

}  // namespace

const Operation& RoutingCountsOperation() {
  static const RoutingCountsOp operation;
  return operation;
}

}  // namespace softmoe::verify

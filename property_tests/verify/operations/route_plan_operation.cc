// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/operations/expert_selection.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

// The values as an output, padded to the number of slots.
template <typename T>
Tensor Padded(Dtype dtype, std::vector<T> values, int64_t slots, T padding) {
  values.resize(static_cast<size_t>(slots), padding);
  return FromVector(dtype, {slots}, values);
}

// The rows of the experts, from the selection of the router, and gradients back
// from these rows.
// inputs   active (i32), gates, d_row_gate: [rows, num_experts]; d_row_gate by
//          the (token, expert) to which the row belongs
// outputs  expert_offsets (i32) [num_experts + 1]; row_token (i32), row_gate
//          [rows * max_active], -1 and 0 after the last row; token_rows (i32)
//          [rows, max_active]; d_gates [rows, num_experts]
class RoutePlanOp : public Operation {
 public:
  RoutePlanOp() {
    name_ = "route_plan";
    text_ =
        "(token, expert) pairs in order of expert, then token; gradients of "
        "their gates back in order of tokens";
    parameters_ = {
        {.name = "rows", .text = "tokens", .high = 700},
        {.name = "num_experts", .text = "experts", .high = 40},
        {.name = "max_active",
         .text = "most experts of a token",
         .high = 12,
         .at_most = "num_experts"},
    };
    edges_ = {"rows=0", "rows=8449 num_experts=33",
              "num_experts=256 max_active=256",
              // More rows of experts than 16 bits count.
              "rows=600 num_experts=256 max_active=256 fill=generic"};
    fills_ = {"generic", "one_expert_all", "expert_0_and_1", "uneven_ranks",
              "empty"};
    outputs_ = {{"expert_offsets"},
                {"row_token"},
                {"row_gate"},
                {"token_rows"},
                {"d_gates"}};
    derivations_ = {
        {kDerivation,
         "A sort has one result; gates and gradients are copied: equality."}};
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const std::vector<Window> axes = {filler.Axis("rows"),
                                      filler.Axis("num_experts")};
    TensorMap inputs = {{"active", Selection(c, filler)},
                        {"gates", filler.Plain("gates", axes)},
                        {"d_row_gate", filler.Cotangent("d_row_gate", axes)}};
    KeepActive(inputs["active"], &inputs["gates"]);
    ZeroSomeGates(filler, &inputs["gates"]);
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    return WhyNoSelection(c, inputs);
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const SelectedExperts plan(c, inputs);
    Tensor d_gates = At(inputs, "d_row_gate");
    KeepActive(At(inputs, "active"), &d_gates);
    d_gates.dtype = Dtype::kF64;
    TensorMap outputs;
    outputs["expert_offsets"] =
        FromVector(Dtype::kI32, {plan.num_experts + 1}, plan.expert_offsets);
    outputs["row_token"] =
        Padded<int32_t>(Dtype::kI32, plan.row_token, plan.num_slots(), -1);
    outputs["row_gate"] =
        Padded<float>(Dtype::kF64, plan.row_gate, plan.num_slots(), 0);
    outputs["token_rows"] =
        FromVector(Dtype::kI32, {plan.rows, plan.max_active}, plan.token_rows);
    outputs["d_gates"] = std::move(d_gates);
    Expected expected;
    for (auto& [name, values] : outputs) {
      expected.outputs[name] = Exactly(std::move(values), kDerivation);
    }
    return expected;
  }

 private:
  static constexpr char kDerivation[] = "route-plan/1";
};

}  // namespace

const Operation& RoutePlanOperation() {
  static const RoutePlanOp operation;
  return operation;
}

}  // namespace softmoe::verify

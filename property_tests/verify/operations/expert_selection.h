// SPDX-License-Identifier: Apache-2.0
//
// expert_selection.h - which experts each token has, as the input "active" of
// operations that follow the router, and as the lists that kernels take.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EXPERT_SELECTION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EXPERT_SELECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

// The selection, i32 [rows, num_experts], 0 or 1, for the case's parameters
// rows, num_experts and max_active. Some tokens have no expert, and often some
// experts have no token; no token has more than max_active experts. Fills that
// decide the selection: one_expert_all, expert_0_and_1, uneven_ranks, empty.
Tensor Selection(const Case& c, const Filler& filler);

// Sets inactive elements to 0.
void KeepActive(const Tensor& active, Tensor* values);

// Sets about every fourth of the gates [rows, num_experts] to 0: an expert that
// the fallback chose is active even where float flushes its soft weight to 0.
void ZeroSomeGates(const Filler& filler, Tensor* gates);

// Why the inputs "active" and "gates" cannot come from a router with this cap:
// an element of active that is not 0 or 1, a gate where nothing is active, more
// experts than the cap; "" if they can.
std::string WhyNoSelection(const Case& c, const TensorMap& inputs);

// The selection as lists of max_active slots per token, in ascending order of
// experts, and the plan of rows that follows from them (kernels/route_plan.h).
struct SelectedExperts {
  int64_t rows, num_experts, max_active;
  std::vector<int32_t> num_active;  // [rows]
  std::vector<int32_t> selected;    // [rows, max_active], -1 from there on
  std::vector<float> gates;         // [rows, max_active], 0 from there on

  std::vector<int32_t> expert_offsets;  // [num_experts + 1]
  std::vector<int32_t> row_token;       // [num_routed]
  std::vector<float> row_gate;          // [num_routed]
  std::vector<int32_t> token_rows;      // [rows, max_active], as selected

  SelectedExperts(const Case& c, const TensorMap& inputs);

  int64_t num_slots() const { return rows * max_active; }
  int64_t num_routed() const { return expert_offsets.back(); }

  // Converts values per slot to f32 [rows, num_experts], by token and expert, 0
  // where inactive.
  Tensor ByExpert(const std::vector<float>& of_slots) const;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_EXPERT_SELECTION_H_

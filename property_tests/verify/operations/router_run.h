// SPDX-License-Identifier: Apache-2.0
//
// router_run.h - runs LapSum, the routers and the load balance on the kernels,
// which compute them together: takes named tensors, and hides the slots and
// shapes of the kernels.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTER_RUN_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTER_RUN_H_

#include <cstdint>
#include <vector>

#include "kernels/router.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

// Forward and backward of one batch. Cotangents are dense; the kernel reads
// only those of the experts that it selected.
struct RouterRun {
  const kernels::RouterShape& shape;
  std::vector<float> scores;
  std::vector<float> d_gates;        // [rows, experts]
  std::vector<float> d_probability;  // [experts], or empty
  float z_scale = 0;

  // Filled by Execute.
  std::vector<float> soft_weights{}, gates{}, d_scores{};
  std::vector<int32_t> selected{}, num_active{};
  std::vector<double> probability_sums{};
  std::vector<int64_t> balance_counts{}, active_counts{};
  double z_sum = 0, d_mean_active = 0;

  int64_t rows() const { return shape.num_tokens; }
  int64_t experts() const { return shape.num_experts; }
  int64_t slots() const { return rows() * shape.max_active; }

  void Execute(const RowKernels& run);
  // Values per slot as [rows, experts], 0 elsewhere.
  std::vector<double> Dense(const std::vector<float>& per_slot) const;

 private:
  void CheckSelection() const;
  std::vector<float> DGatesPerSlot() const;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROUTER_RUN_H_

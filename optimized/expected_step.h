// SPDX-License-Identifier: Apache-2.0
//
// expected_step.h - how long a training step should take on an H100, operation
// by operation: a forecast for those without one, and a yardstick for a
// measured step.
//
// An operation computes products and moves bytes, one after the other:
// seconds = flops / (share of the multipliers' peak) + bytes / (share of the
// memory's). Bytes are those of kernels that only move data; what products read
// and write is hidden behind them. The shares are ASSUMED: 65 and 75 %, which
// good kernels reach; for attention, those that ours reached on the H100 of
// record 8b789830. Launch overhead, waits and, between ranks, the exchange are
// not counted: that device needed 166 ms for a pass of the paper's model with
// two experts a token, where this table says 160.
#ifndef SOFTMOE_OPTIMIZED_EXPECTED_STEP_H_
#define SOFTMOE_OPTIMIZED_EXPECTED_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/profile.h"

namespace softmoe::optimized {

// FLOP/s of an NVIDIA H100 SXM5 in fp32, data sheet.
inline constexpr double kH100Fp32Flops = 66.9e12;

struct ExpectedOperation {
  std::string name;          // as in core/profile.h
  int64_t calls = 0;         // in a step
  OperationWork work = {};   // of all calls
  double product_share = 0;  // of the multipliers' peak; 0: no products
  double seconds = 0;
};

// Returns the operations, by their first calls, of the first step of one of
// `ranks` ranks with equal parts of the batch; every token has as many experts
// as its router may give it.
std::vector<ExpectedOperation> ExpectedStep(const Config& config,
                                            Recompute recompute, int ranks = 1);

// A table of the operations, their shares of the step, and tokens per second.
std::string ExpectedStepText(const Config& config, Recompute recompute,
                             int ranks = 1);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_EXPECTED_STEP_H_

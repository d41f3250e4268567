// SPDX-License-Identifier: Apache-2.0
//
// pass.h - what all blocks of one forward and backward pass share.
#ifndef SOFTMOE_OPTIMIZED_PASS_H_
#define SOFTMOE_OPTIMIZED_PASS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "core/parallel_for.h"
#include "core/profile.h"
#include "optimized/step.h"
#include "optimized/workspace.h"

namespace softmoe::optimized {

struct Pass {
  const Config& config;
  const ParameterLayout& layout;
  Workspace& work;
  ThreadPool& pool;
  const RoutingState& routing;
  const float* parameters;  // [layout.total]
  double group_scale;       // of the load-balance and z loss; see model.h
  int64_t num_sequences;
  int64_t num_tokens;   // num_sequences * sequence_length
  int64_t first_token;  // global index of the first token
};

// The work of `count` products of an [m, k] and a [k, n] matrix.
inline OperationWork ProductWork(int64_t count, int64_t m, int64_t n,
                                 int64_t k) {
  return {.flops = 2.0 * static_cast<double>(count * m * n * k)};
}

// The work of reading or writing `size` floats `times` times.
inline OperationWork MoveWork(int64_t times, int64_t size) {
  return {.bytes = 4.0 * static_cast<double>(times * size)};
}

// The work of `count` products with half of a [length, length] matrix for every
// head, as causal attention has them.
inline OperationWork HeadsWork(int64_t count, const Pass& pass) {
  const ModelConfig& m = pass.config.model;
  return {.flops = static_cast<double>(count * pass.num_tokens * m.d_model *
                                       (m.sequence_length + 1))};
}

// target = source over [size], by all threads.
inline void ParallelCopy(ThreadPool& pool, int64_t size, const float* source,
                         float* target) {
  BeginOperation("copy", MoveWork(2, size));
  constexpr int64_t kBlock = 16384;
  pool.ParallelForBlocks(size, kBlock, [&](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin,
                static_cast<size_t>(end - begin) * sizeof(float));
  });
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_PASS_H_

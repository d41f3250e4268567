// SPDX-License-Identifier: Apache-2.0
//
// pass.h - what all blocks of one forward and backward pass share: its arrays,
// the work that operations report, and the operations that several blocks have.
#ifndef SOFTMOE_OPTIMIZED_PASS_H_
#define SOFTMOE_OPTIMIZED_PASS_H_

#include <cstdint>
#include <span>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "core/profile.h"
#include "kernels/rmsnorm.h"
#include "optimized/backend.h"
#include "optimized/product.h"
#include "optimized/step.h"
#include "optimized/workspace.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

struct Pass {
  const Config& config;
  const ParameterLayout& layout;
  Workspace& work;
  Queue& queue;
  const RoutingState& routing;
  const Activation* weights;  // [layout.total] as products read them
  const float* fp32;          // what embedding, norms and routers read, at the
                              // offsets of fp32_layout
  const ParameterLayout& fp32_layout;
  const int32_t* inputs;   // [num_tokens]
  const int32_t* targets;  // [num_tokens]
  double group_scale;      // of the load-balance and z loss; see model.h
  int64_t num_sequences;
  int64_t sequence_length;  // of the batch
  int64_t num_tokens;       // num_sequences * sequence_length
  int64_t first_token;      // global index of the first token
  int64_t report;           // this pass's index in work.report
};

// The work of `count` products of an [m, k] and a [k, n] matrix.
inline OperationWork ProductWork(int64_t count, int64_t m, int64_t n,
                                 int64_t k) {
  return {.flops = 2.0 * static_cast<double>(count * m * n * k)};
}

// The work of reading or writing `size` numbers `times` times.
template <typename Number = Activation>
OperationWork MoveWork(int64_t times, int64_t size) {
  return {.bytes = static_cast<double>(sizeof(Number)) *
                   static_cast<double>(times * size)};
}
// Adds work on numbers of two types.
inline OperationWork operator+(const OperationWork& a, const OperationWork& b) {
  return {.flops = a.flops + b.flops, .bytes = a.bytes + b.bytes};
}

// The work of `count` products with half of a [length, length] matrix for every
// head, as causal attention has them.
inline OperationWork HeadsWork(int64_t count, const Pass& pass) {
  const ModelConfig& m = pass.config.model;
  return {.flops = static_cast<double>(count * pass.num_tokens * m.d_model *
                                       (pass.sequence_length + 1))};
}

inline void CopyResidual(const Pass& pass, const Activation* source,
                         Activation* target) {
  const int64_t size = pass.num_tokens * pass.config.model.d_model;
  BeginOperation("copy", MoveWork(2, size));
  CopyArray(pass.queue, size, source, target);
}

// c = op(a) op(b), see DenseProduct.
template <typename Operand, typename Result>
void Multiply(const Pass& pass, const Operand* a, const Operand* b, Result* c,
              const ProductShape& shape) {
  ops::Gemm(DenseProduct(a, b, c, shape), pass.queue);
}

// y = RMSNorm(x); the backward pass needs `rstd`.
//
//   weight   [d_model]
//   x, y     [num_tokens, d_model]
//   rstd     [num_tokens]
inline void NormForward(const Pass& pass, const float* weight,
                        std::span<const Activation> x, std::span<Activation> y,
                        std::span<float> rstd) {
  const ModelConfig& m = pass.config.model;
  BeginOperation("norm", MoveWork(2, pass.num_tokens * m.d_model));
  ops::RmsNormForward({.num_tokens = pass.num_tokens,
                       .d_model = m.d_model,
                       .epsilon = static_cast<float>(m.norm_epsilon),
                       .x = x.data(),
                       .weight = weight,
                       .y = y.data(),
                       .rstd = rstd.data()},
                      pass.queue);
}

// Given the gradient with respect to y in work.d_normed, adds that with respect
// to x to work.d_residual and overwrites `d_weight` [d_model].
inline void NormBackward(const Pass& pass, const float* weight,
                         std::span<const Activation> x,
                         std::span<const float> rstd, float* d_weight) {
  const Workspace& work = pass.work;
  const ModelConfig& m = pass.config.model;
  BeginOperation("norm, backward", MoveWork(4, pass.num_tokens * m.d_model));
  ops::RmsNormBackward({.num_tokens = pass.num_tokens,
                        .d_model = m.d_model,
                        .x = x.data(),
                        .weight = weight,
                        .rstd = rstd.data(),
                        .d_y = work.d_normed.data(),
                        .d_x = work.d_residual.data(),
                        .d_weight = d_weight,
                        .scratch = work.norm_scratch.data()},
                       pass.queue);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_PASS_H_

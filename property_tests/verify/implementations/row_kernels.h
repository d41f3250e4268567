// SPDX-License-Identifier: Apache-2.0
//
// row_kernels.h - the table of the kernels that exist both for the CPU and as
// CUDA source. The lists of the CPU, the simulator and the device follow from
// it.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ROW_KERNELS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ROW_KERNELS_H_

#include <functional>

#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/balance_loss.h"
#include "kernels/budget_gradient.h"
#include "kernels/cross_entropy.h"
#include "kernels/cuda/flat_kernels.h"
#include "kernels/embedding.h"
#include "kernels/expert_mlp.h"
#include "kernels/gemm.h"
#include "kernels/noise.h"
#include "kernels/rmsnorm.h"
#include "kernels/route_plan.h"
#include "kernels/router.h"
#include "kernels/routing_counts.h"
#include "kernels/simt/bf16.h"

namespace softmoe::verify {

// A kernel is Line(_, name, Name, where, arguments): RowKernelsOf::name is
// Name(arguments, ...) of namespace kernels, and of kernels::isa_cuda and
// isa_shim. `where` says what else it takes:
//   OnStream    a pool of threads on the CPU, a stream on a device
//   OnQueue     a pool of threads on the CPU, a queue on a device
//   DeviceOnly  a stream of a device; nothing is bf16 on the CPU
// Activation is float, or on a device Bf16. Jitter goes to the router's input
// (forward), or comes from its gradient. `_` is whatever Line wants to be
// given.
// clang-format off
#define SOFTMOE_KERNELS(Line, _)                                               \
  Line(_, router_forward, RouterForward, OnStream, RouterForwardArgs)          \
  Line(_, router_backward, RouterBackward, OnStream, RouterBackwardArgs)       \
  Line(_, rmsnorm_forward, RmsNormForward, OnStream,                           \
       RmsNormForwardArgsOf<Activation>)                                       \
  Line(_, rmsnorm_backward, RmsNormBackward, OnStream,                         \
       RmsNormBackwardArgsOf<Activation>)                                      \
  Line(_, adamw, AdamW, OnStream, AdamWArgs)                                   \
  Line(_, gemm, Gemm, OnQueue, GemmArgsOf<Activation, Activation>)             \
  Line(_, expert_forward, ExpertForward, OnQueue,                              \
       ExpertForwardArgsOf<Activation>)                                        \
  Line(_, expert_backward, ExpertBackward, OnQueue,                            \
       ExpertBackwardArgsOf<Activation>)                                       \
  Line(_, attention_forward, AttentionForward, OnQueue,                        \
       AttentionForwardArgsOf<Activation>)                                     \
  Line(_, attention_backward, AttentionBackward, OnQueue,                      \
       AttentionBackwardArgsOf<Activation>)                                    \
  Line(_, head_cross_entropy, HeadCrossEntropy, OnQueue,                       \
       HeadCrossEntropyArgsOf<Activation>)                                     \
  Line(_, sum_of_squares, SumOfSquares, OnStream, SumOfSquaresArgs)            \
  Line(_, embedding_forward, EmbeddingForward, OnStream,                       \
       EmbeddingForwardArgsOf<Activation>)                                     \
  Line(_, embedding_backward, EmbeddingBackward, OnStream,                     \
       EmbeddingBackwardArgsOf<Activation>)                                    \
  Line(_, add, Add, OnStream, AddArgsOf<float, Activation>)                    \
  Line(_, rope, Rope, OnStream, RopeArgsOf<Activation>)                        \
  Line(_, input_jitter, InputJitter, OnStream,                                 \
       InputJitterArgsOf<Activation, float>)                                   \
  Line(_, input_jitter_backward, InputJitter, OnStream,                        \
       InputJitterArgsOf<float, Activation>)                                   \
  Line(_, logit_noise, LogitNoise, OnStream, LogitNoiseArgs)                   \
  Line(_, build_route_plan, BuildRoutePlan, OnStream, BuildRoutePlanArgs)      \
  Line(_, gather_gate_gradients, GatherGateGradients, OnStream,                \
       GatherGateGradientsArgs)                                                \
  Line(_, routing_counts, RoutingCounts, OnStream, RoutingCountsArgs)          \
  Line(_, balance_loss, BalanceLoss, OnStream, BalanceLossArgs)                \
  Line(_, budget_gradient, BudgetGradient, OnStream, BudgetGradientArgs)       \
  Line(_, cast_to_bf16, CastToBf16, DeviceOnly, CastToBf16Args)                \
  Line(_, cast_to_float, CastToFloat, DeviceOnly, CastToFloatArgs)
// clang-format on

template <typename Activation>
struct RowKernelsOf {
#define SOFTMOE_KERNEL_MEMBER(_, name, Name, where, ...) \
  std::function<void(const kernels::__VA_ARGS__&)> name;
  SOFTMOE_KERNELS(SOFTMOE_KERNEL_MEMBER, )
#undef SOFTMOE_KERNEL_MEMBER
};
using RowKernels = RowKernelsOf<float>;
using Bf16Kernels = RowKernelsOf<kernels::Bf16>;

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ROW_KERNELS_H_

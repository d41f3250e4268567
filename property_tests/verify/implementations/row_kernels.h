// SPDX-License-Identifier: Apache-2.0
//
// row_kernels.h - the kernels that exist both for the CPU and as CUDA source,
// wherever they run.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ROW_KERNELS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ROW_KERNELS_H_

#include <functional>

#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/balance_loss.h"
#include "kernels/budget_gradient.h"
#include "kernels/casts.h"
#include "kernels/cross_entropy.h"
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

// Activation is float, or on a device Bf16.
template <typename Activation>
struct RowKernelsOf {
  std::function<void(const kernels::RouterForwardArgs&)> router_forward;
  std::function<void(const kernels::RouterBackwardArgs&)> router_backward;
  std::function<void(const kernels::RmsNormForwardArgsOf<Activation>&)>
      rmsnorm_forward;
  std::function<void(const kernels::RmsNormBackwardArgsOf<Activation>&)>
      rmsnorm_backward;
  std::function<void(const kernels::AdamWArgs&)> adamw;
  std::function<void(const kernels::GemmArgsOf<Activation, Activation>&)> gemm;
  std::function<void(const kernels::ExpertForwardArgsOf<Activation>&)>
      expert_forward;
  std::function<void(const kernels::ExpertBackwardArgsOf<Activation>&)>
      expert_backward;
  std::function<void(const kernels::AttentionForwardArgsOf<Activation>&)>
      attention_forward;
  std::function<void(const kernels::AttentionBackwardArgsOf<Activation>&)>
      attention_backward;
  std::function<void(const kernels::HeadCrossEntropyArgsOf<Activation>&)>
      head_cross_entropy;
  std::function<void(const kernels::SumOfSquaresArgs&)> sum_of_squares;
  std::function<void(const kernels::EmbeddingForwardArgsOf<Activation>&)>
      embedding_forward;
  std::function<void(const kernels::EmbeddingBackwardArgsOf<Activation>&)>
      embedding_backward;
  std::function<void(const kernels::AddArgsOf<float, Activation>&)> add;
  std::function<void(const kernels::RopeArgsOf<Activation>&)> rope;
  // Applied to the router's input, and to its gradient.
  std::function<void(const kernels::InputJitterArgsOf<Activation, float>&)>
      input_jitter;
  std::function<void(const kernels::InputJitterArgsOf<float, Activation>&)>
      input_jitter_backward;
  std::function<void(const kernels::LogitNoiseArgs&)> logit_noise;
  std::function<void(const kernels::BuildRoutePlanArgs&)> build_route_plan;
  std::function<void(const kernels::GatherGateGradientsArgs&)>
      gather_gate_gradients;
  std::function<void(const kernels::RoutingCountsArgs&)> routing_counts;
  std::function<void(const kernels::BalanceLossArgs&)> balance_loss;
  std::function<void(const kernels::BudgetGradientArgs&)> budget_gradient;
  // On a device only: nothing is bf16 on the CPU.
  std::function<void(const kernels::CastToBf16Args&)> cast_to_bf16 = {};
  std::function<void(const kernels::CastToFloatArgs&)> cast_to_float = {};
};
using RowKernels = RowKernelsOf<float>;
using Bf16Kernels = RowKernelsOf<kernels::Bf16>;

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ROW_KERNELS_H_

// SPDX-License-Identifier: Apache-2.0
//
// routing_kernels.h - from gates to the plan of rows, counts and losses, on a
// CUDA device: route_plan.h, routing_counts.h, balance_loss.h,
// budget_gradient.h.
//
// As in row_kernels.h: device pointers, nothing synchronised. Every element of
// a plan, every count and every bit of a loss is the CPU's.
#ifndef SOFTMOE_KERNELS_CUDA_ROUTING_KERNELS_H_
#define SOFTMOE_KERNELS_CUDA_ROUTING_KERNELS_H_

#include "kernels/balance_loss.h"
#include "kernels/budget_gradient.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/route_plan.h"
#include "kernels/routing_counts.h"

namespace softmoe::kernels {

SOFTMOE_DECLARE_CUDA_KERNEL(BuildRoutePlan);
SOFTMOE_DECLARE_CUDA_KERNEL(GatherGateGradients);
SOFTMOE_DECLARE_CUDA_KERNEL(RoutingCounts);
SOFTMOE_DECLARE_CUDA_KERNEL(BalanceLoss);
SOFTMOE_DECLARE_CUDA_KERNEL(BudgetGradient);

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_CUDA_ROUTING_KERNELS_H_

// SPDX-License-Identifier: Apache-2.0
//
// router_row.h - what the router's bodies know of one row: the constants that
// all rows share, and the memory that a row works in.
#ifndef SOFTMOE_KERNELS_ROUTER_ROW_H_
#define SOFTMOE_KERNELS_ROUTER_ROW_H_

#include "kernels/simt/group.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// Constants that all rows share, from MakeRouterConstants (router_block.h).
template <typename Scalar>
struct RouterConstants {
  int num_experts;
  int top;          // largest scores to select: max of what needs them
  int max_active;   // cap
  int balance_top;  // experts counted by kScoresSoftmax; 0: not wanted
  Scalar mean_active, inverse_temperature, cutoff;
  bool fallback_top1;
  bool want_log_sum_exp;
};

// Memory that a row works in, in units of the group's Real.
template <typename Group>
struct RouterRow {
  using Real = typename Group::Real;
  const Real* scores;            // [num_experts]
  Real* weights;                 // [num_experts]  p, or softmax(scores)
  Real* softmax;                 // [num_experts]  softmax(scores) beside p;
                                 // null: not wanted
  Real* top;                     // [2 * top]  where kTop = 0
  typename Group::Set* active;   // [ceil(num_experts/32)]  bit e%32: kept
  typename Group::Set* balance;  // like active: the balance_top largest
  Real anchor, offset;           // soft
  Real log_sum_exp;              // if wanted, or sparse
};

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_ROUTER_ROW_H_

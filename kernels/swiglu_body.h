// SPDX-License-Identifier: Apache-2.0
//
// swiglu_body.h - the activation of routed rows, for every group along the row
// (simt/group.h); the formulas are those of swiglu.h. (The CPU applies them
// inside its matrix products, expert_mlp.cc.)
#ifndef SOFTMOE_KERNELS_SWIGLU_BODY_H_
#define SOFTMOE_KERNELS_SWIGLU_BODY_H_

#include "kernels/simt/group.h"
#include "kernels/swiglu.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// Activations and their gradients are stored as T.
template <typename Group, typename T, typename R = typename Group::Scalar>
SOFTMOE_INLINE void SwigluForwardRow(Group group, int64_t d_ffn,
                                     const T* gate_up,  // [2*d_ffn]
                                     R row_gate,
                                     T* activation) {  // [d_ffn]
  using Real = typename Group::Real;
  group.ForEachColumn(d_ffn, [&](Columns at) {
    group.Store(activation, at,
                SwigluForward(group.Load(gate_up, at),
                              group.Load(gate_up + d_ffn, at), Real(row_gate)));
  });
}

// d_row_gate = <activation without row_gate, d_activation>.
template <typename Group, typename T, typename R = typename Group::Scalar>
SOFTMOE_INLINE void SwigluBackwardRow(Group group, int64_t d_ffn,
                                      const T* gate_up,  // [2*d_ffn]
                                      R row_gate,
                                      const T* d_activation,  // [d_ffn]
                                      T* d_gate_up,           // [2*d_ffn]
                                      T* activation,          // [d_ffn]
                                      R* d_row_gate) {        // [1]
  using Real = typename Group::Real;
  const R sum = group.RowSum(d_ffn, [&](Columns at) {
    const Real d_hidden = group.Load(d_activation, at);
    const auto g =
        SwigluBackward(group.Load(gate_up, at), group.Load(gate_up + d_ffn, at),
                       Real(row_gate), d_hidden);
    group.Store(d_gate_up, at, g.d_gate);
    group.Store(d_gate_up + d_ffn, at, g.d_up);
    group.Store(activation, at, g.activation);
    return g.unscaled * d_hidden;
  });
  if (group.IsFirst()) *d_row_gate = sum;
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SWIGLU_BODY_H_

// SPDX-License-Identifier: Apache-2.0
//
// rmsnorm_body.h - RMSNorm of rows, written once for every group along the row
// (simt/group.h).
//
//   rstd = 1 / sqrt(sum_c x_c^2 / d + epsilon),  y_c = x_c * rstd * w_c
//   d_x_c = rstd * (g_c - x_c * rstd^2/d * sum_j g_j x_j),   g_c = d_y_c * w_c
//   d_w_c = sum over tokens of d_y_c * x_c * rstd
#ifndef SOFTMOE_KERNELS_RMSNORM_BODY_H_
#define SOFTMOE_KERNELS_RMSNORM_BODY_H_

#include "kernels/simt/group.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// Activations and their gradients are stored as T.
template <typename Group, typename T, typename R = typename Group::Scalar>
SOFTMOE_INLINE void RmsNormForwardRow(Group group, int64_t d_model, R epsilon,
                                      const T* x,       // [d_model]
                                      const R* weight,  // [d_model]
                                      T* y,             // [d_model]
                                      R* rstd) {        // [1]
  using Real = typename Group::Real;
  const R sum = group.RowSum(d_model, [&](Columns at) {
    const Real value = group.Load(x, at);
    return value * value;
  });
  const R scale = R(1) / Sqrt(sum / R(d_model) + epsilon);
  group.ForEachColumn(d_model, [&](Columns at) {
    group.Store(y, at,
                group.Load(x, at) * Real(scale) * group.Load(weight, at));
  });
  if (group.IsFirst()) *rstd = scale;
}

// Rows [begin, end): adds to d_x, and writes their share of d_weight.
template <typename Group, typename T, typename R = typename Group::Scalar>
SOFTMOE_INLINE void RmsNormBackwardRows(Group group, int64_t begin, int64_t end,
                                        int64_t d_model,
                                        const T* x,          // [*, d_model]
                                        const R* weight,     // [d_model]
                                        const R* rstd,       // [*]
                                        const T* d_y,        // [*, d_model]
                                        T* d_x,              // [*, d_model], +=
                                        R* d_weight_part) {  // [d_model], =
  using Real = typename Group::Real;
  group.ForEachColumn(
      d_model, [&](Columns at) { group.Store(d_weight_part, at, Real(0)); });
  for (int64_t row = begin; row < end; ++row) {
    const T* x_row = x + row * d_model;
    const T* d_y_row = d_y + row * d_model;
    T* d_x_row = d_x + row * d_model;
    const R scale = rstd[row];
    const R dot = group.RowSum(d_model, [&](Columns at) {
      return group.Load(d_y_row, at) * group.Load(weight, at) *
             group.Load(x_row, at);
    });
    const R projection = dot * scale * scale / R(d_model);
    group.ForEachColumn(d_model, [&](Columns at) {
      const Real value = group.Load(x_row, at);
      const Real gradient = group.Load(d_y_row, at);
      const Real centred =
          Fma(value, Real(-projection), gradient * group.Load(weight, at));
      group.Store(d_x_row, at,
                  Fma(centred, Real(scale), group.Load(d_x_row, at)));
      group.Store(
          d_weight_part, at,
          Fma(gradient * value, Real(scale), group.Load(d_weight_part, at)));
    });
  }
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_RMSNORM_BODY_H_

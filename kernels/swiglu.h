// SPDX-License-Identifier: Apache-2.0
//
// swiglu.h - the activation of an expert and its derivative, element by element
// (SPEC.md 3.2); written once for a vector of the CPU, a scalar, a CUDA thread.
//
//   activation = row_gate * SiLU(gate) * up,   SiLU(z) = z / (1 + e^-z)
#ifndef SOFTMOE_KERNELS_SWIGLU_H_
#define SOFTMOE_KERNELS_SWIGLU_H_

#include "kernels/vector_math.h"

namespace softmoe::kernels::SOFTMOE_ISA {

// 1 / (1 + e^-z), to about 2 ulp; 0 where e^-z overflows.
template <typename V>
SOFTMOE_INLINE V Sigmoid(V z) {
  return V(1.0f) / (V(1.0f) + Exp(V(0.0f) - z));
}

template <typename V>
SOFTMOE_INLINE V SwigluForward(V gate, V up, V row_gate) {
  return gate * Sigmoid(gate) * up * row_gate;
}

template <typename V>
struct SwigluGradients {
  V d_gate, d_up;
  V activation;  // as the forward pass had it: with row_gate
  V unscaled;    // without: <unscaled, d_hidden> is the gradient of row_gate
};

// d_hidden = d loss / d (row_gate-scaled activation).
template <typename V>
SOFTMOE_INLINE SwigluGradients<V> SwigluBackward(V gate, V up, V row_gate,
                                                 V d_hidden) {
  const V one(1.0f);
  const V sigmoid = Sigmoid(gate);
  const V silu = gate * sigmoid;
  const V d_unscaled = d_hidden * row_gate;
  SwigluGradients<V> result;
  result.unscaled = silu * up;
  result.activation = result.unscaled * row_gate;
  result.d_up = d_unscaled * silu;
  // SiLU'(z) = s (1 + z (1 - s))
  result.d_gate = d_unscaled * up * (sigmoid * Fma(gate, one - sigmoid, one));
  return result;
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

#endif  // SOFTMOE_KERNELS_SWIGLU_H_

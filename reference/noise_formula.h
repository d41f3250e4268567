// SPDX-License-Identifier: Apache-2.0
//
// noise_formula.h - noise.h over any scalar (scalar.h); the draws are doubles.
#ifndef SOFTMOE_REFERENCE_NOISE_FORMULA_H_
#define SOFTMOE_REFERENCE_NOISE_FORMULA_H_

#include "reference/matrix.h"
#include "reference/noise.h"

namespace softmoe::reference::formula {

// x_tj (1 - eps + 2 eps u_tj), if the noise is of that kind.
template <typename N>
MatrixOf<N> NoisyRouterInput(const RouterNoise& noise, int64_t first_token,
                             const MatrixOf<N>& hidden) {
  if (noise.kind != NoiseKind::kInputJitter) return hidden;
  const Matrix factors =
      JitterFactors(noise, first_token, hidden.rows(), hidden.cols());
  MatrixOf<N> noisy = hidden;
  for (int64_t i = 0; i < noisy.size(); ++i) {
    noisy.data()[i] = noisy.data()[i] * factors.data()[i];
  }
  return noisy;
}

// r_te + sigma z_te, if the noise is of that kind.
template <typename N>
MatrixOf<N> NoisyScores(const RouterNoise& noise, int64_t first_token,
                        const MatrixOf<N>& scores) {
  if (noise.kind != NoiseKind::kLogitGauss) return scores;
  const Matrix draws =
      GaussDraws(noise, first_token, scores.rows(), scores.cols());
  MatrixOf<N> noisy = scores;
  for (int64_t i = 0; i < noisy.size(); ++i) {
    noisy.data()[i] = noisy.data()[i] + noise.amplitude * draws.data()[i];
  }
  return noisy;
}

}  // namespace softmoe::reference::formula

#endif  // SOFTMOE_REFERENCE_NOISE_FORMULA_H_

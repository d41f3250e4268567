// SPDX-License-Identifier: Apache-2.0
//
// noise.h - the two kinds of router noise of training (SPEC.md 2.4); evaluation
// and calibration have none.
//
//   input_jitter  x_tj <- x_tj (1 - eps + 2 eps u_tj)   router input only
//   logit_gauss   r_te <- r_te + sigma z_te
//
// u and z are pure functions of (seed, step, layer, token, column), by Philox
// stream kRouterNoise: the four words at index token*ceil(width/4) + column/4
// serve the columns 4m .. 4m+3. So they depend on neither batch nor thread.
#ifndef SOFTMOE_REFERENCE_NOISE_H_
#define SOFTMOE_REFERENCE_NOISE_H_

#include <cstdint>

#include "core/config/config.h"
#include "reference/matrix.h"

namespace softmoe::reference {

struct RouterNoise {
  NoiseKind kind = NoiseKind::kNone;
  double amplitude = 0;  // jitter: eps in [0, 1); logits: sigma >= 0
  uint64_t seed = 0;
  uint32_t step = 0;   // completed updates
  uint32_t layer = 0;  // < 2^24
};

// Returns 1 - eps + 2 eps u [num_tokens, d_model], each in [1-eps, 1+eps), u a
// multiple of 2^-24. `first_token` is the index of row 0 in the whole global
// batch, here and below. Errors: ConfigError for eps outside its kind's range.
Matrix JitterFactors(const RouterNoise& noise, int64_t first_token,
                     int64_t num_tokens, int64_t d_model);

// Returns standard normals z [num_tokens, num_experts].
Matrix GaussDraws(const RouterNoise& noise, int64_t first_token,
                  int64_t num_tokens, int64_t num_experts);

// Returns the router's input: `hidden` [tokens, d_model], jittered if `noise`
// is of that kind. Errors: ConfigError for an amplitude outside its range.
Matrix NoisyRouterInput(const RouterNoise& noise, int64_t first_token,
                        const Matrix& hidden);

// Returns d_hidden for the gradient with respect to NoisyRouterInput's result:
// the same factors, elementwise.
Matrix NoisyRouterInputVjp(const RouterNoise& noise, int64_t first_token,
                           const Matrix& d_router_input);

// Returns the scores [tokens, experts] that are routed: with Gaussian noise
// added if `noise` is of that kind. Its gradient with respect to `scores` is
// the identity. Errors: ConfigError for an amplitude outside its range.
Matrix NoisyScores(const RouterNoise& noise, int64_t first_token,
                   const Matrix& scores);

// The formulas, over any scalar (scalar.h); the draws are doubles.
namespace formula {

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

}  // namespace formula
}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_NOISE_H_

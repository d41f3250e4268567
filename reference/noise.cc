// SPDX-License-Identifier: Apache-2.0
#include "reference/noise.h"

#include <fmt/core.h>

#include <array>

#include "core/errors.h"
#include "core/philox.h"

namespace softmoe::reference {
namespace {

// The words that serve columns 4*(column/4) .. +3 of one token.
std::array<uint32_t, 4> Words(const RouterNoise& noise, int64_t token,
                              int64_t column, int64_t width) {
  const RandomKey key{noise.seed, RandomStream::kRouterNoise, noise.step,
                      noise.layer};
  const int64_t groups = (width + 3) / 4;
  return PhiloxWords(key, static_cast<uint64_t>(token * groups + column / 4));
}

void CheckAmplitude(const RouterNoise& noise) {
  const bool jitter = noise.kind == NoiseKind::kInputJitter;
  if (!(noise.amplitude >= 0) || (jitter && !(noise.amplitude < 1))) {
    throw ConfigError(fmt::format(
        "router.noise_amplitude is {}; it must be {}", noise.amplitude,
        jitter ? "in [0, 1) for input_jitter" : "at least 0"));
  }
}

}  // namespace

Matrix JitterFactors(const RouterNoise& noise, int64_t first_token,
                     int64_t num_tokens, int64_t d_model) {
  CheckAmplitude(noise);
  Matrix factors(num_tokens, d_model);
  for (int64_t t = 0; t < num_tokens; ++t) {
    for (int64_t j = 0; j < d_model; ++j) {
      const double u =
          UniformFromWord(Words(noise, first_token + t, j, d_model)[j % 4]);
      factors(t, j) = 1 - noise.amplitude + 2 * noise.amplitude * u;
    }
  }
  return factors;
}

Matrix GaussDraws(const RouterNoise& noise, int64_t first_token,
                  int64_t num_tokens, int64_t num_experts) {
  Matrix draws(num_tokens, num_experts);
  for (int64_t t = 0; t < num_tokens; ++t) {
    for (int64_t e = 0; e < num_experts; ++e) {
      const auto words = Words(noise, first_token + t, e, num_experts);
      const auto pair = e % 4 < 2 ? NormalsFromWords(words[0], words[1])
                                  : NormalsFromWords(words[2], words[3]);
      draws(t, e) = pair[e % 2];
    }
  }
  return draws;
}

Matrix NoisyRouterInput(const RouterNoise& noise, int64_t first_token,
                        const Matrix& hidden) {
  return formula::NoisyRouterInput<double>(noise, first_token, hidden);
}

Matrix NoisyRouterInputVjp(const RouterNoise& noise, int64_t first_token,
                           const Matrix& d_router_input) {
  // The map is linear and diagonal, so it is its own transpose.
  return NoisyRouterInput(noise, first_token, d_router_input);
}

Matrix NoisyScores(const RouterNoise& noise, int64_t first_token,
                   const Matrix& scores) {
  if (noise.kind == NoiseKind::kLogitGauss) CheckAmplitude(noise);
  return formula::NoisyScores<double>(noise, first_token, scores);
}

}  // namespace softmoe::reference

// SPDX-License-Identifier: Apache-2.0
#include "kernels/noise.h"

namespace softmoe::kernels {
namespace {

constexpr int64_t kTokenBlock = 16;

// Calls body(token, column of the first word, words) for all groups of four
// columns of all tokens.
template <typename Body>
void ForEachDraw(int64_t num_tokens, int64_t width, int64_t first_token,
                 const RandomKey& key, ThreadPool& pool, const Body& body) {
  const int64_t draws = (width + 3) / 4;
  pool.ParallelForBlocks(
      num_tokens, kTokenBlock, [&](int64_t begin, int64_t end) {
        for (int64_t token = begin; token < end; ++token) {
          const uint64_t first = static_cast<uint64_t>(first_token + token) *
                                 static_cast<uint64_t>(draws);
          for (int64_t draw = 0; draw < draws; ++draw) {
            body(token, 4 * draw, PhiloxWords(key, first + draw));
          }
        }
      });
}

}  // namespace

void InputJitter(const InputJitterArgs& args, ThreadPool& pool) {
  const double low = 1.0 - args.amplitude;
  const double range = 2.0 * args.amplitude;
  ForEachDraw(args.num_tokens, args.d_model, args.first_token, args.key, pool,
              [&](int64_t token, int64_t column, const auto& words) {
                const float* x = args.x + token * args.d_model;
                float* y = args.y + token * args.d_model;
                for (int64_t i = 0; i < 4 && column + i < args.d_model; ++i) {
                  const double factor = low + range * UniformFromWord(words[i]);
                  const double value = factor * x[column + i];
                  y[column + i] = static_cast<float>(
                      args.accumulate ? y[column + i] + value : value);
                }
              });
}

void LogitNoise(const LogitNoiseArgs& args, ThreadPool& pool) {
  ForEachDraw(
      args.num_tokens, args.num_experts, args.first_token, args.key, pool,
      [&](int64_t token, int64_t column, const auto& words) {
        const auto first = NormalsFromWords(words[0], words[1]);
        const auto second = NormalsFromWords(words[2], words[3]);
        const double normals[4] = {first[0], first[1], second[0], second[1]};
        float* scores = args.scores + token * args.num_experts;
        for (int64_t i = 0; i < 4 && column + i < args.num_experts; ++i) {
          scores[column + i] =
              static_cast<float>(scores[column + i] + args.sigma * normals[i]);
        }
      });
}

}  // namespace softmoe::kernels

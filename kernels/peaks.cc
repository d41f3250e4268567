// SPDX-License-Identifier: Apache-2.0
#include "kernels/peaks.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace softmoe::kernels {
namespace {

// Seconds of the quickest of `bursts` calls.
template <class Body>
double Best(int bursts, Body body) {
  double best = HUGE_VAL;
  for (int burst = 0; burst < bursts; ++burst) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double> seconds =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, seconds.count());
  }
  return best;
}

}  // namespace

double PeakGflops(ThreadPool& pool) {
  static std::map<int, double> known;
  const auto [found, is_new] = known.emplace(pool.threads(), 0);
  if (is_new) {
    constexpr int64_t kSteps = 20000;
    std::vector<float> sink(pool.threads());
    const double best = Best(50, [&] { FmaPeak({kSteps, sink.data()}, pool); });
    found->second = 1e-9 * FmaPeakFlops(kSteps) * pool.threads() / best;
  }
  return found->second;
}

double CopyGigabytes(ThreadPool& pool) {
  static std::map<int, double> known;
  const auto [found, is_new] = known.emplace(pool.threads(), 0);
  if (is_new) {
    constexpr int64_t kSize = int64_t{128} << 20, kBlock = int64_t{1} << 20;
    std::vector<char> from(kSize, 1), to(kSize);
    const double best = Best(8, [&] {
      pool.ParallelForBlocks(kSize, kBlock, [&](int64_t begin, int64_t end) {
        std::memcpy(to.data() + begin, from.data() + begin, end - begin);
      });
    });
    found->second = 1e-9 * 2 * static_cast<double>(kSize) / best;
  }
  return found->second;
}

}  // namespace softmoe::kernels

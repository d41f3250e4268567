// SPDX-License-Identifier: Apache-2.0
//
// shim_test_support.h - what the simulator tests of kernels share: buffers and
// the check that each of three schedules writes all outputs, with equal bits.
//
// These programs run under each sanitizer and see only the kernels; that the
// results are right is for property_tests/. No iostream: MSan knows nothing of
// the library's compiled half.
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_SHIM_TEST_SUPPORT_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_SHIM_TEST_SUPPORT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/simt/shim/sanitizer_hooks.h"
#include "kernels/simt/shim/simulator.h"
#include "kernels/simt/shim/variant.h"

namespace softmoe::kernels {

// Numbers in [-1, 1), the same for the same seed.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed * 2 + 1) {}
  float Signed() {
    return static_cast<float>(static_cast<double>(Next()) * 0x1p-31 - 1);
  }
  int64_t Below(int64_t limit) { return Next() % limit; }

 private:
  int64_t Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>(state_ >> 32);
  }
  uint64_t state_;
};

inline std::vector<float> RandomFloats(int64_t size, uint64_t seed,
                                       float scale = 1) {
  Draws draws(seed);
  std::vector<float> x(static_cast<size_t>(size));
  for (float& value : x) value = scale * draws.Signed();
  return x;
}

// The outputs of one run, of exactly the size that the kernel may write, so
// that ASan sees the end, with contents that differ from run to run; to MSan
// they are uninitialised.
class Outputs {
 public:
  explicit Outputs(int filler) : filler_(filler) {}

  template <typename T>
  T* Add(int64_t size) {
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    buffers_.emplace_back(std::unique_ptr<char[]>(new char[bytes]), bytes);
    char* memory = buffers_.back().first.get();
    if (simt::kVariant != simt::kMsan) memset(memory, filler_, bytes);
    return reinterpret_cast<T*>(memory);
  }
  // An output that the kernel adds to.
  float* AddCopy(const std::vector<float>& x) {
    float* copy = Add<float>(static_cast<int64_t>(x.size()));
    std::copy(x.begin(), x.end(), copy);
    return copy;
  }

  void RequireWritten() const {
    for (const auto& [memory, bytes] : buffers_) {
      simt::RequireInitialized(memory.get(), bytes);
    }
  }
  bool operator==(const Outputs& other) const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (memcmp(buffers_[i].first.get(), other.buffers_[i].first.get(),
                 buffers_[i].second) != 0) {
        return false;
      }
    }
    return buffers_.size() == other.buffers_.size();
  }

 private:
  int filler_;
  std::vector<std::pair<std::unique_ptr<char[]>, size_t>> buffers_;
};

inline int& Failures() {
  static int failures = 0;
  return failures;
}
inline int& Cases() {
  static int cases = 0;
  return cases;
}

// run(outputs) adds its outputs and launches. `what` names the case.
template <typename Run>
void CheckSchedules(const char* what, const Run& run) {
  ++Cases();
  constexpr std::pair<simt::Schedule, int> kSchedules[] = {
      {simt::Schedule::kAscending, 0x7f},   // fillers, as floats: large,
      {simt::Schedule::kDescending, 0xff},  // NaN,
      {simt::Schedule::kRandom, 0x00},      // zero
  };
  std::vector<Outputs> results;
  for (const auto& [schedule, filler] : kSchedules) {
    simt::SetSchedule(schedule, 11);
    results.emplace_back(filler);
    run(results.back());
    results.back().RequireWritten();
    if (results.back() == results.front()) continue;
    ++Failures();
    fprintf(stderr, "%s: schedule %d gives other bits than the first\n", what,
            static_cast<int>(schedule));
  }
}

// The exit code of main().
inline int Summary() {
  printf("%d cases in 3 schedules, %d failures\n", Cases(), Failures());
  return Failures() == 0 && Cases() > 0 ? 0 : 1;
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_SHIM_TEST_SUPPORT_H_

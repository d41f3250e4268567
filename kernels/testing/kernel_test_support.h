// SPDX-License-Identifier: Apache-2.0
//
// kernel_test_support.h - what the tests of the matrix kernels share: data,
// guarded buffers, comparisons with bounds.
#ifndef SOFTMOE_KERNELS_TESTING_KERNEL_TEST_SUPPORT_H_
#define SOFTMOE_KERNELS_TESTING_KERNEL_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/philox.h"
#include "kernels/isa.h"
#include "kernels/testing/bounded.h"

namespace softmoe::kernels {

// Uniform in [-1, 1), by address; `stream` keeps tensors apart.
inline std::vector<float> RandomFloats(int64_t size, uint32_t stream) {
  const RandomKey key{20260120, RandomStream::kTestData, stream, 0};
  std::vector<float> x(size);
  for (int64_t i = 0; i < size; ++i) {
    x[i] = static_cast<float>(
        2 * UniformFromWord(PhiloxWords(key, i / 4)[i % 4]) - 1);
  }
  return x;
}

// Integers in [-3, 3]: sums of few enough products are exact in any order.
inline std::vector<float> SmallIntegers(int64_t size, uint32_t stream) {
  std::vector<float> x = RandomFloats(size, stream);
  for (float& value : x) value = std::floor(3.5f * value);
  return x;
}

// An output between canaries, filled with NaN so that an element that is never
// written shows.
class Guarded {
 public:
  explicit Guarded(int64_t size)
      : Guarded(std::vector<float>(size, std::nanf(""))) {}
  explicit Guarded(const std::vector<float>& content)
      : all_(content.size() + 2 * kGuard, Canary()) {
    std::copy(content.begin(), content.end(), all_.begin() + kGuard);
  }
  float* data() { return all_.data() + kGuard; }
  // The content; fails the test if a canary has changed.
  std::vector<float> Take() const {
    for (int64_t i = 0; i < kGuard; ++i) {
      EXPECT_TRUE(IsCanary(all_[i]))
          << "written " << kGuard - i << " before the beginning";
      EXPECT_TRUE(IsCanary(all_[all_.size() - 1 - i]))
          << "written " << kGuard - i << " past the end";
    }
    return {all_.begin() + kGuard, all_.end() - kGuard};
  }

 private:
  static constexpr int64_t kGuard = 64;
  static float Canary() {
    const uint32_t bits = 0xffc0dead;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  static bool IsCanary(float value) {
    const float canary = Canary();
    return std::memcmp(&value, &canary, sizeof(value)) == 0;
  }
  std::vector<float> all_;
};

// Every element within its bound; a NaN is outside every bound.
inline void ExpectWithin(const std::vector<float>& got,
                         const std::vector<Bounded>& want,
                         const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  int64_t bad = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(got[i] - want[i].value) <= want[i].error)) {
      if (++bad <= 3) {
        ADD_FAILURE() << what << "[" << i << "] = " << got[i] << ", expected "
                      << want[i].value << " +- " << want[i].error;
      }
    }
  }
  EXPECT_EQ(bad, 0) << what << ": elements outside their bounds, of "
                    << got.size();
}

// How far <w, J v> and <J^T w, v> may be apart where naive loops compute both
// in double. `error` is the sum of |v| times what Bounded says of J^T w: either
// side adds up the same products along the same paths from inputs to outputs,
// and so errs by that, but with the unit of double. `rounding` is what their
// own sums round: the number of terms times the sum of their sizes.
inline double AdjointBound(double error, double rounding) {
  return 0x1p-53 * (2 * error / kFloatUnit + rounding);
}

// Calls body(pool) for every ISA level of this machine with 1, 3 and 4 threads,
// and checks that all return the same bits; returns them.
template <typename Body>
std::vector<std::vector<float>> SameForAllIsasAndThreads(Body body) {
  std::vector<std::vector<float>> first;
  for (const Isa isa : {Isa::kV3, Isa::kV4}) {
    if (!IsaAvailable(isa)) continue;
    SelectIsa(IsaName(isa));
    for (const int threads : {1, 3, 4}) {
      ThreadPool pool(threads);
      const std::vector<std::vector<float>> results = body(pool);
      if (first.empty()) {
        first = results;
        continue;
      }
      for (size_t i = 0; i < results.size(); ++i) {
        // (memcmp may not have the null pointer of an empty vector.)
        EXPECT_TRUE(results[i].size() == first[i].size() &&
                    (results[i].empty() ||
                     std::memcmp(results[i].data(), first[i].data(),
                                 4 * results[i].size()) == 0))
            << "output " << i << " at " << IsaName(isa) << " with " << threads
            << " threads differs";
      }
    }
  }
  SelectIsa("");
  return first;
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_TESTING_KERNEL_TEST_SUPPORT_H_

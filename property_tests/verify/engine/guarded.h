// SPDX-License-Identifier: Apache-2.0
//
// guarded.h - an output array between canaries, filled with NaN or the smallest
// integer, so that an element that is not written shows.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_GUARDED_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_GUARDED_H_

#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/errors.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

// T is float, double, int32_t, int64_t, or a struct that is NaN where all its
// bits are set.
template <typename T>
class Guarded {
 public:
  Guarded(std::string name, int64_t size)
      : Guarded(std::move(name), std::vector<T>(size, Unwritten())) {}
  Guarded(std::string name, const std::vector<T>& content)
      : name_(std::move(name)), all_(content.size() + 2 * kGuard) {
    std::memset(all_.data(), kCanary, all_.size() * sizeof(T));
    for (size_t i = 0; i < content.size(); ++i) all_[kGuard + i] = content[i];
  }
  T* data() { return all_.data() + kGuard; }
  int64_t size() const {
    return static_cast<int64_t>(all_.size()) - 2 * kGuard;
  }

  // The content. Throws NumericsError if a canary has changed.
  std::vector<T> Take() const {
    for (int64_t i = 0; i < kGuard; ++i) {
      if (!IsCanary(kGuard - 1 - i)) Fail(i + 1, "before the beginning");
      if (!IsCanary(kGuard + size() + i)) Fail(i + 1, "past the end");
    }
    return {all_.begin() + kGuard, all_.end() - kGuard};
  }
  Tensor TakeTensor(Dtype dtype, std::vector<int64_t> shape) const {
    return FromVector(dtype, std::move(shape), Take());
  }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr unsigned char kCanary = 0xad;
  static T Unwritten() {
    if constexpr (!std::numeric_limits<T>::is_specialized) {
      T unwritten;
      std::memset(&unwritten, 0xff, sizeof(T));
      return unwritten;
    } else if constexpr (std::numeric_limits<T>::has_quiet_NaN) {
      return std::numeric_limits<T>::quiet_NaN();
    } else {
      return std::numeric_limits<T>::min();
    }
  }
  bool IsCanary(int64_t at) const {
    T canary;
    std::memset(&canary, kCanary, sizeof(T));
    return std::memcmp(&all_[at], &canary, sizeof(T)) == 0;
  }
  [[noreturn]] void Fail(int64_t distance, const char* where) const {
    throw NumericsError(
        fmt::format("{}: written {} {}", name_, distance, where));
  }

  std::string name_;
  std::vector<T> all_;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_GUARDED_H_

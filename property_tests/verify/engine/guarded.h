// SPDX-License-Identifier: Apache-2.0
//
// guarded.h - an output array between canaries, filled with NaN or the smallest
// integer, so that an element that is not written shows.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_GUARDED_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_GUARDED_H_

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/errors.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

// T is float, double, int32_t, int64_t, or a struct that is NaN when all its
// bits are set; with content, T may also be uint16_t.
template <typename T>
class Guarded {
 public:
  Guarded(std::string name, int64_t size)
      : Guarded(std::move(name), std::vector<T>(size, Unwritten())) {}
  // The first element is `shift` bytes, a multiple of 16, past a multiple of
  // 64: our kernels must not need an alignment that other libraries may need.
  Guarded(std::string name, const std::vector<T>& content, int64_t shift = 16)
      : name_(std::move(name)),
        size_(static_cast<int64_t>(content.size())),
        first_(kGuard + shift / static_cast<int64_t>(sizeof(T))),
        all_((content.size() + 2 * kGuard) * sizeof(T) / sizeof(Line) + 2) {
    std::memset(all_.data(), kCanary, all_.size() * sizeof(Line));
    std::ranges::copy(content, data());
  }
  T* data() { return reinterpret_cast<T*>(all_.data()) + first_; }
  int64_t size() const { return size_; }

  // The content. Throws NumericsError if a canary has changed.
  std::vector<T> Take() const {
    const T* first = reinterpret_cast<const T*>(all_.data()) + first_;
    for (int64_t i = 0; i < kGuard; ++i) {
      if (!IsCanary(first[-1 - i])) Fail(i + 1, "before the beginning");
      if (!IsCanary(first[size_ + i])) Fail(i + 1, "past the end");
    }
    return {first, first + size_};
  }
  Tensor TakeTensor(Dtype dtype, std::vector<int64_t> shape) const {
    return FromVector(dtype, std::move(shape), Take());
  }

 private:
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
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
  static bool IsCanary(const T& element) {
    T canary;
    std::memset(&canary, kCanary, sizeof(T));
    return std::memcmp(&element, &canary, sizeof(T)) == 0;
  }
  [[noreturn]] void Fail(int64_t distance, const char* where) const {
    throw NumericsError(
        fmt::format("{}: written {} {}", name_, distance, where));
  }

  std::string name_;
  int64_t size_;
  int64_t first_;  // element of `all_`
  std::vector<Line> all_;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_GUARDED_H_

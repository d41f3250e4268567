// SPDX-License-Identifier: Apache-2.0
//
// buffer.h - memory of the backend for one array, taken once and never grown.
#ifndef SOFTMOE_OPTIMIZED_BUFFER_H_
#define SOFTMOE_OPTIMIZED_BUFFER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "optimized/backend.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

// The elements are not initialised, and the host may not touch them.
template <typename T>
class Buffer {
  static_assert(std::is_trivial_v<T>);

 public:
  Buffer() = default;
  // Errors: as AllocateArray.
  explicit Buffer(int64_t size)
      : data_(static_cast<T*>(
            AllocateArray(static_cast<size_t>(size) * sizeof(T)))),
        size_(size) {}

  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * static_cast<int64_t>(sizeof(T)); }
  T* data() const { return data_.get(); }
  std::span<T> span() const {
    return {data_.get(), static_cast<size_t>(size_)};
  }

 private:
  struct Free {
    void operator()(T* data) const { FreeArray(data); }
  };
  std::unique_ptr<T[], Free> data_;
  int64_t size_ = 0;
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_BUFFER_H_

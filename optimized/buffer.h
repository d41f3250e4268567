// SPDX-License-Identifier: Apache-2.0
//
// buffer.h - aligned memory for one array, taken once and never grown.
//
// The elements are not initialised. Large buffers come from fresh pages of the
// kernel, so what is never written costs address space only: activations are
// sized for the worst routing, and take what the actual routing needs.
#ifndef SOFTMOE_OPTIMIZED_BUFFER_H_
#define SOFTMOE_OPTIMIZED_BUFFER_H_

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "optimized/backend.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

template <typename T>
class Buffer {
  static_assert(std::is_trivial_v<T>);

 public:
  Buffer() = default;
  // Throws std::bad_alloc.
  explicit Buffer(int64_t size) : size_(size) {
    constexpr size_t kCacheLine = 64, kHugePage = size_t{2} << 20;
    size_t bytes = static_cast<size_t>(size) * sizeof(T);
    const size_t alignment = bytes >= kHugePage ? kHugePage : kCacheLine;
    bytes = (bytes + alignment - 1) / alignment * alignment;
    data_.reset(static_cast<T*>(std::aligned_alloc(alignment, bytes)));
    if (bytes > 0 && !data_) throw std::bad_alloc();
    // Fewer page faults and TLB misses; a refusal changes nothing else.
    if (alignment == kHugePage) madvise(data_.get(), bytes, MADV_HUGEPAGE);
  }

  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * static_cast<int64_t>(sizeof(T)); }
  T* data() const { return data_.get(); }
  std::span<T> span() const {
    return {data_.get(), static_cast<size_t>(size_)};
  }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T[], Free> data_;
  int64_t size_ = 0;
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_BUFFER_H_

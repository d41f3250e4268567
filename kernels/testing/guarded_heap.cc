// SPDX-License-Identifier: Apache-2.0
//
// guarded_heap.cc - a heap for tests on which every array ends where memory
// ends: the page after it cannot be touched, and neither can freed memory. A
// kernel that reads or writes past its operands ends the program at once,
// without a sanitizer. (Up to 15 bytes may lie between, since new gives
// addresses that are multiples of 16.) Memory that nobody has written yet is
// NaN, so that reading it shows as well. Where the system maps no more, on
// Linux beyond some 32,000 arrays at a time, arrays have no guards.
//
// It replaces new and delete of the programs that it is linked into; under a
// sanitizer, which has a heap of its own, it does nothing.
#include "kernels/testing/guarded_heap.h"

#include <atomic>

namespace softmoe {
namespace {

std::atomic<bool> guards_arrays{true};

}  // namespace

void GuardHeap(bool on) { guards_arrays = on; }

}  // namespace softmoe

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

constexpr std::size_t kPage = 4096;

std::size_t RoundUp(std::size_t size, std::size_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// The header in front of an array: the pages that hold both.
struct Pages {
  void* begin;
  std::size_t mapped;  // 0 if they are malloc's
};
static_assert(sizeof(Pages) == __STDCPP_DEFAULT_NEW_ALIGNMENT__);

// Maps `size` bytes, and after them the page that guards them. nullptr if the
// system allows no more mappings (65,530 by default; an array needs two).
void* MapGuarded(std::size_t size) {
  void* begin = ::mmap(nullptr, size + kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  if (::mprotect(static_cast<char*>(begin) + size, kPage, PROT_NONE) != 0) {
    ::munmap(begin, size + kPage);
    return nullptr;
  }
  return begin;
}

void* Allocate(std::size_t size, std::size_t alignment) {
  alignment = std::max(alignment, sizeof(Pages));
  // The array and its header.
  std::size_t used = RoundUp(RoundUp(size, alignment) + alignment, kPage);
  Pages pages{nullptr, used + kPage};
  if (softmoe::guards_arrays) pages.begin = MapGuarded(used);
  // A test that fails ten thousand times keeps as many messages. It goes on
  // without guards, so that it can print them.
  if (pages.begin == nullptr) {
    used = RoundUp(size, alignment) + alignment;
    pages = {std::aligned_alloc(alignment, used), 0};
  }
  if (pages.begin == nullptr) throw std::bad_alloc();
  char* array =
      static_cast<char*>(pages.begin) + used - RoundUp(size, alignment);
  reinterpret_cast<Pages*>(array)[-1] = pages;
  std::memset(array, 0xff, size);
  return array;
}

void Free(void* array) noexcept {
  if (array == nullptr) return;
  const Pages pages = static_cast<Pages*>(array)[-1];
  if (pages.mapped == 0) {
    std::free(pages.begin);
  } else {
    ::munmap(pages.begin, pages.mapped);
  }
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* array) noexcept { Free(array); }
void operator delete(void* array, std::size_t) noexcept { Free(array); }
void operator delete(void* array, std::align_val_t) noexcept { Free(array); }
void operator delete(void* array, std::size_t, std::align_val_t) noexcept {
  Free(array);
}

#endif

// SPDX-License-Identifier: Apache-2.0
//
// sanitizer_hooks.h - what the simulator tells the sanitizers, whichever the
// program is linked with.
//
// The simulator itself is compiled without any: it only annotates. The
// runtimes' functions are weak references, null where the runtime is not
// linked, so one object file serves the plain, ASan, TSan and MSan programs.
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_SANITIZER_HOOKS_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_SANITIZER_HOOKS_H_

#include <cstddef>

// NOLINTBEGIN(bugprone-reserved-identifier): the runtimes' names
extern "C" {
// ThreadSanitizer (<sanitizer/tsan_interface.h>).
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void __tsan_acquire(void* tag);
[[gnu::weak]] void __tsan_release(void* tag);
[[gnu::weak]] void __tsan_read_range(void* at, unsigned long size);
[[gnu::weak]] void __tsan_write_range(void* at, unsigned long size);
[[gnu::weak]] void __tsan_ignore_thread_begin();
[[gnu::weak]] void __tsan_ignore_thread_end();
// AddressSanitizer (<sanitizer/common_interface_defs.h> and
// <sanitizer/asan_interface.h>).
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack_save,
                                                  const void* bottom,
                                                  size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack_save,
                                                   const void** bottom_old,
                                                   size_t* size_old);
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* at,
                                               size_t size);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* at,
                                                 size_t size);
[[gnu::weak]] void* __asan_region_is_poisoned(void* at, size_t size);
// MemorySanitizer (<sanitizer/msan_interface.h>).
[[gnu::weak]] void __msan_check_mem_is_initialized(const volatile void* at,
                                                   size_t size);
[[gnu::weak]] void __msan_poison(const volatile void* at, size_t size);
[[gnu::weak]] void __msan_unpoison(const volatile void* at, size_t size);
[[gnu::weak]] void __msan_copy_shadow(const volatile void* to,
                                      const volatile void* from, size_t size);
[[gnu::weak]] ptrdiff_t __msan_test_shadow(const volatile void* at,
                                           size_t size);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace softmoe::simt {

inline bool HasTsan() { return __tsan_create_fiber != nullptr; }
inline bool HasMsan() { return __msan_poison != nullptr; }
inline bool HasSanitizer() {
  return HasTsan() || HasMsan() || __asan_poison_memory_region != nullptr;
}

// Everything that this thread did before Release(tag) happens before what any
// thread does after a later Acquire(tag).
inline void Release(char* tag) {
  if (__tsan_release != nullptr) __tsan_release(tag);
}
inline void Acquire(char* tag) {
  if (__tsan_acquire != nullptr) __tsan_acquire(tag);
}

// TSan: the running fiber has read, or written, [at, at + size).
inline void NoteRead(const void* at, size_t size) {
  if (__tsan_read_range != nullptr) {
    __tsan_read_range(const_cast<void*>(at), size);
  }
}
inline void NoteWrite(void* at, size_t size) {
  if (__tsan_write_range != nullptr) __tsan_write_range(at, size);
}

// TSan: what the running fiber accesses in between does not count; nor does
// what it allocates or frees.
inline void IgnoreThreadBegin() {
  if (__tsan_ignore_thread_begin != nullptr) __tsan_ignore_thread_begin();
}
inline void IgnoreThreadEnd() {
  if (__tsan_ignore_thread_end != nullptr) __tsan_ignore_thread_end();
}

// ASan: whether some byte of [at, at + size) must not be touched.
inline bool IsForbidden(const void* at, size_t size) {
  return __asan_region_is_poisoned != nullptr &&
         __asan_region_is_poisoned(const_cast<void*>(at), size) != nullptr;
}

// ASan: [at, at + size) must not, or may, be touched.
inline void Forbid(const void* at, size_t size) {
  if (__asan_poison_memory_region != nullptr) {
    __asan_poison_memory_region(at, size);
  }
}
inline void Permit(const void* at, size_t size) {
  if (__asan_unpoison_memory_region != nullptr) {
    __asan_unpoison_memory_region(at, size);
  }
}

// MSan: the bytes have no value yet; have one; must have one, else it reports.
inline void MarkUninitialized(const void* at, size_t size) {
  if (__msan_poison != nullptr) __msan_poison(at, size);
}
inline void MarkInitialized(const void* at, size_t size) {
  if (__msan_unpoison != nullptr) __msan_unpoison(at, size);
}
template <typename T>
void MarkInitialized(const T* at) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): of the pointer, where T is one
  MarkInitialized(at, sizeof(T));
}
// Bytes of `to` get a value where those of `from` have one, else none.
inline void CopyInitialization(void* to, const void* from, size_t size) {
  if (__msan_copy_shadow != nullptr) __msan_copy_shadow(to, from, size);
}
// MSan: false if some byte has no value.
inline bool IsInitialized(const void* at, size_t size) {
  return __msan_test_shadow == nullptr || __msan_test_shadow(at, size) < 0;
}
inline void RequireInitialized(const void* at, size_t size) {
  if (__msan_check_mem_is_initialized != nullptr) {
    __msan_check_mem_is_initialized(at, size);
  }
}

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_SANITIZER_HOOKS_H_

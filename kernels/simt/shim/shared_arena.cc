// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/shim/shared_arena.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "kernels/simt/shim/sanitizer_hooks.h"

namespace softmoe::simt {

void SharedArena::Clear() {
  // Mapping it again makes TSan forget the last block's accesses.
  if (memory_ == nullptr || HasTsan()) {
    const int fixed = memory_ == nullptr ? 0 : MAP_FIXED;
    void* mapped = mmap(memory_, kMemory, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<char*>(mapped);
  }
  next_ = kRedZone;
  used_ = 0;
  num_variables_ = 0;
  Forbid(memory_, kMemory);
  MarkUninitialized(memory_, kMemory);
}

void* SharedArena::Find(const void* identity, size_t size) {
  for (int i = 0; i < num_variables_; ++i) {
    if (variables_[i].identity == identity) return variables_[i].memory;
  }
  used_ += size;
  const size_t end = (next_ + size + 2 * kRedZone - 1) / kRedZone * kRedZone;
  if (num_variables_ == kMaxVariables || end > kMemory) return nullptr;
  char* memory = memory_ + next_;
  next_ = end;
  variables_[num_variables_++] = {identity, memory};
  Permit(memory, size);
  // Not memset: a sanitizer would take the writes for the thread's own. Whole
  // words, into the red zone if need be.
  for (size_t i = 0; i < size; i += sizeof(uint64_t)) {
    *reinterpret_cast<volatile uint64_t*>(memory + i) = ~uint64_t{0};
  }
  return memory;
}

}  // namespace softmoe::simt

// SPDX-License-Identifier: Apache-2.0
//
// shared_arena.h - the shared memory of the block that is running.
//
// Every variable begins without a value (all bits one: NaN; for MSan,
// uninitialised), with a zone around it that ASan reports when it is touched.
// Each block gets memory that no other block has touched, as far as TSan knows.
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_SHARED_ARENA_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_SHARED_ARENA_H_

#include <array>
#include <cstddef>

namespace softmoe::simt {

class SharedArena {
 public:
  // The limit of sm_80, the smallest of the devices that we compile for.
  static constexpr size_t kLargest = size_t{163} * 1024;
  static constexpr int kMaxVariables = 64;

  // Forgets all variables: the next block begins.
  void Clear();

  // The variable that `identity` stands for, made by the first thread of the
  // block that asks. Null if there is no room.
  void* Find(const void* identity, size_t size);

  // Whether a variable may lie at `at`.
  bool Holds(const void* at) const {
    return at >= memory_ && at < memory_ + next_;
  }

  // Bytes of all variables of this block, including those that found no room,
  // but not the red zones.
  size_t used() const { return used_; }

 private:
  static constexpr size_t kMemory = size_t{1024} * 1024;
  static constexpr size_t kRedZone = 256;  // also the alignment

  struct Variable {
    const void* identity;
    char* memory;
  };

  char* memory_ = nullptr;
  size_t next_ = 0;
  size_t used_ = 0;
  std::array<Variable, kMaxVariables> variables_;
  int num_variables_ = 0;
};

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_SHARED_ARENA_H_

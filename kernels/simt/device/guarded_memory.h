// SPDX-License-Identifier: Apache-2.0
//
// guarded_memory.h - memory in which every misuse shows: the simulated
// device's, and the page-locked memory of the host.
//
// An allocation begins without values (all bits one: NaN; for MSan,
// uninitialised). It ends within 256 bytes of an inaccessible page; the bytes
// in between, and those before it, hold a pattern that is checked (ASan and
// MSan also report touches). At least as many bytes as it has, up to 1 GiB, are
// inaccessible on either side. Freed memory becomes inaccessible, and until
// ForgetFreed no address is used twice.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_GUARDED_MEMORY_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_GUARDED_MEMORY_H_

#include <cstddef>
#include <vector>

namespace softmoe::simt {

struct Allocation {
  // Memory is opened, and filled with its first pattern, a piece at a time: a
  // workspace may be far larger than the part of it that is ever used.
  struct Piece {
    bool filled = false;
    bool open = false;
  };
  static constexpr size_t kPiece = size_t{1} << 20;

  int number;  // in order of allocation, from 1
  char* begin;
  size_t size;
  char* pages;  // the pages that hold it
  size_t pages_size;
  bool live;
  int device;                 // the owner of device memory
  std::vector<Piece> pieces;  // of kPiece bytes from `pages` on
};

class GuardedMemory {
 public:
  static constexpr size_t kAlignment = 256;  // as cudaMalloc's
  static constexpr int kMaxDevices = 16;

  // `what` names the memory in messages: "device memory". `hidden` memory is
  // inaccessible except for what is opened, or touched, between Open and Close.
  GuardedMemory(const char* what, bool hidden) : what_(what), hidden_(hidden) {}

  // Returns null if no addresses are left.
  char* Allocate(size_t size, int device = 0);
  void Free(Allocation* allocation);
  // If no allocation is live, forgets the freed ones: their addresses are free.
  void ForgetFreed();

  void Open() { open_ = true; }
  void Close();
  bool is_open() const { return open_; }
  // Opens one allocation ahead of its use, unless it is large.
  void OpenNumber(int number);
  // To be called when a touch of `at` faulted. Returns whether to go on.
  bool OpenAt(const void* at);

  // Whether `at` may belong to an allocation: past, present or future.
  bool Holds(const void* at) const;

  // Makes memory of an allocation valueless, as when it was allocated.
  void Spoil(void* at, size_t size);

  // The allocation with `at` in [begin, begin + size], live or freed; or null.
  Allocation* Find(const void* at);

  // The live allocation that holds all of [at, at + size), or null.
  Allocation* FindLive(const void* at, size_t size);

  // False if the fence beside something open was written to; `text` says where.
  bool FencesHold(char* text, size_t text_size) const;

  // Writes text such as "4 bytes past the end of device memory 3 (400 bytes)".
  void Describe(const void* at, char* text, size_t text_size) const;

  size_t live_bytes() const { return live_bytes_; }
  size_t live_bytes_of(int device) const { return live_bytes_of_[device]; }
  int num_live() const { return num_live_; }

  // Rounds `size` up to what a device allocates for it; for live_bytes.
  static size_t Rounded(size_t size);

 private:
  void OpenPiece(Allocation* allocation, size_t piece);

  const char* what_;
  bool hidden_;
  bool open_ = false;
  char* arena_ = nullptr;
  size_t used_ = 0;
  size_t live_bytes_ = 0;
  size_t live_bytes_of_[kMaxDevices] = {};
  int num_live_ = 0;
  std::vector<Allocation> allocations_;  // by address
};

// Neither is ever destroyed.
GuardedMemory& DeviceMemory();
GuardedMemory& PinnedMemory();

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_GUARDED_MEMORY_H_

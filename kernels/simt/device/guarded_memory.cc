// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/device/guarded_memory.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "kernels/simt/device/host_call.h"
#include "kernels/simt/device/raw_bytes.h"
#include "kernels/simt/shim/sanitizer_hooks.h"
#include "kernels/simt/shim/simulator.h"

namespace softmoe::simt {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kArena = size_t{512} << 30;  // TSan allows 1.5 TiB in all
constexpr size_t kSmallestGuard = size_t{64} << 10;
constexpr size_t kLargestGuard = size_t{1} << 30;

// NaN as float and as bfloat16, out of range as an index.
constexpr uint16_t kFence = 0xffa5;
constexpr uint16_t kFresh = 0xffff;

size_t RoundUp(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

// Returns where piece `i` of an allocation begins; one past the last, its end.
char* PieceBegin(const Allocation& a, size_t i) {
  return a.pages + std::min(i * Allocation::kPiece, a.pages_size);
}

// The bytes that are fenced on either side.
struct Fences {
  char* before;
  size_t before_size;
  char* after;
  size_t after_size;
  explicit Fences(const Allocation& a)
      : before(a.pages),
        before_size(static_cast<size_t>(a.begin - a.pages)),
        after(a.begin + a.size),
        after_size(a.pages_size - before_size - a.size) {}
};

// ---- Touches of forbidden memory

struct sigaction previous_action;

// Handles a touch of forbidden memory: a kernel fails, as on a device. With a
// sanitizer, and for the host, this says what was touched and leaves the rest
// (the place, the end of the process) to the previous handler.
void OnFault(int signal_number, siginfo_t* info, void*) {
  const void* at = info->si_addr;
  char where[300];
  GuardedMemory& device = DeviceMemory();
  GuardedMemory& memory = device.Holds(at) ? device : PinnedMemory();
  // Another host thread may be making the device work at this moment.
  const bool host = !IsInHostCall() || !device.is_open();
  if (!host && memory.OpenAt(at)) return;
  if (memory.Holds(at)) {
    memory.Describe(at, where, sizeof(where));
    if (!host && InKernel() && !HasSanitizer()) FailKernel(where);
    char text[400];
    const int size =
        snprintf(text, sizeof(text), "simulated device: %s touches %s\n",
                 host ? "the host" : "a kernel", where);
    (void)!write(STDERR_FILENO, text, static_cast<size_t>(size));
  }
  sigaction(signal_number, &previous_action, nullptr);
}

void InstallHandler() {
  static bool installed = false;
  if (installed) return;
  installed = true;
  DeviceMemory();  // must exist before the handler runs
  PinnedMemory();
  struct sigaction action = {};
  action.sa_sigaction = &OnFault;
  // A failing kernel never returns from the handler: nothing may stay blocked.
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  MarkInitialized(&action, sizeof(action));  // set by uninstrumented code
  sigaction(SIGSEGV, &action, &previous_action);
}

}  // namespace

GuardedMemory& DeviceMemory() {
  static GuardedMemory& memory = *new GuardedMemory("device memory", true);
  return memory;
}
GuardedMemory& PinnedMemory() {
  static GuardedMemory& memory =
      *new GuardedMemory("page-locked memory", false);
  return memory;
}

size_t GuardedMemory::Rounded(size_t size) { return RoundUp(size, 512); }

char* GuardedMemory::Allocate(size_t size, int device) {
  InstallHandler();
  if (arena_ == nullptr) {
    void* mapped = mmap(nullptr, kArena, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    arena_ = static_cast<char*>(mapped);
    used_ = kLargestGuard;
  }
  if (size > kArena) return nullptr;
  const size_t aligned = RoundUp(size, kAlignment);
  const size_t pages_size = RoundUp(aligned, kPage);
  // A guard precedes it, too: the last allocation's may be smaller.
  size_t guard = RoundUp(size, kPage);
  if (guard < kSmallestGuard) guard = kSmallestGuard;
  if (guard > kLargestGuard) guard = kLargestGuard;
  if (used_ + pages_size + 2 * guard > kArena) return nullptr;
  char* pages = arena_ + used_ + guard;
  used_ += pages_size + 2 * guard;

  // Lies as near to the end of its pages as its alignment allows.
  const size_t pieces =
      (pages_size + Allocation::kPiece - 1) / Allocation::kPiece;
  Allocation a = {static_cast<int>(allocations_.size()) + 1,
                  pages + pages_size - aligned,
                  size,
                  pages,
                  pages_size,
                  true,
                  device,
                  std::vector<Allocation::Piece>(pieces)};
  if (!hidden_) {
    for (size_t i = 0; i < pieces; ++i) OpenPiece(&a, i);
  }
  MarkUninitialized(pages, pages_size);
  const Fences fences(a);
  Forbid(fences.before, fences.before_size);
  Forbid(fences.after, fences.after_size);
  allocations_.push_back(std::move(a));
  live_bytes_ += Rounded(size);
  live_bytes_of_[device] += Rounded(size);
  ++num_live_;
  return allocations_.back().begin;
}

void GuardedMemory::Spoil(void* at, size_t size) {
  const bool was_open = open_;
  open_ = true;
  FillRaw(at, kFresh, size);
  MarkUninitialized(at, size);
  if (!was_open) Close();
}

void GuardedMemory::Free(Allocation* allocation) {
  allocation->live = false;
  live_bytes_ -= Rounded(allocation->size);
  live_bytes_of_[allocation->device] -= Rounded(allocation->size);
  --num_live_;
  // Gives the pages back.
  const void* mapped =
      mmap(allocation->pages, allocation->pages_size, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) abort();  // other memory may lie there from now on
  Forbid(allocation->pages, allocation->pages_size);
}

void GuardedMemory::ForgetFreed() {
  if (num_live_ > 0) return;
  for (const Allocation& a : allocations_) Permit(a.pages, a.pages_size);
  allocations_.clear();
  used_ = kLargestGuard;
}

// Also runs in the fault handler, so it must not allocate.
void GuardedMemory::OpenPiece(Allocation* a, size_t i) {
  Allocation::Piece& piece = a->pieces[i];
  char* const from = PieceBegin(*a, i);
  char* const to = PieceBegin(*a, i + 1);
  if (mprotect(from, static_cast<size_t>(to - from), PROT_READ | PROT_WRITE) !=
      0) {
    abort();  // the system has no memory for its tables
  }
  piece.open = true;
  if (piece.filled) return;
  piece.filled = true;
  const Fences fences(*a);
  char* const begin = std::max(from, a->begin);
  char* const end = std::min(to, fences.after);
  if (from < begin) {
    FillRaw(from, kFence, static_cast<size_t>(std::min(begin, to) - from));
  }
  if (begin < end) FillRaw(begin, kFresh, static_cast<size_t>(end - begin));
  if (end < to) {
    char* const after = std::max(end, from);
    FillRaw(after, kFence, static_cast<size_t>(to - after));
  }
}

// Opens only this allocation: a system call for each of hundreds would be slow.
// In a large one, the first touch of a piece opens that piece.
void GuardedMemory::OpenNumber(int number) {
  Allocation* a = &allocations_[static_cast<size_t>(number) - 1];
  if (a->live && a->pieces.size() == 1 && !a->pieces[0].open) OpenPiece(a, 0);
}

bool GuardedMemory::OpenAt(const void* at) {
  if (!open_ || !Holds(at)) return false;
  Allocation* a = Find(at);
  if (a == nullptr || !a->live) return false;
  const auto offset =
      static_cast<size_t>(static_cast<const char*>(at) - a->pages);
  if (offset >= a->pages_size) return false;
  const size_t i = offset / Allocation::kPiece;
  if (a->pieces[i].open) return false;
  OpenPiece(a, i);
  return true;
}

void GuardedMemory::Close() {
  open_ = false;
  for (Allocation& a : allocations_) {
    if (!a.live) continue;
    for (size_t i = 0; i < a.pieces.size(); ++i) {
      // Closes neighbouring pieces by one call.
      const size_t first = i;
      for (; i < a.pieces.size() && a.pieces[i].open; ++i) {
        a.pieces[i].open = false;
      }
      if (i == first) continue;
      char* const from = PieceBegin(a, first);
      mprotect(from, static_cast<size_t>(PieceBegin(a, i) - from), PROT_NONE);
    }
  }
}

bool GuardedMemory::Holds(const void* at) const {
  return arena_ != nullptr && at >= arena_ && at < arena_ + kArena;
}

Allocation* GuardedMemory::Find(const void* at) {
  size_t low = 0, high = allocations_.size();
  while (low < high) {  // finds the first that does not end before `at`
    const size_t middle = (low + high) / 2;
    const Allocation& a = allocations_[middle];
    if (a.begin + a.size < at) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == allocations_.size() || allocations_[low].begin > at) {
    return nullptr;
  }
  return &allocations_[low];
}

Allocation* GuardedMemory::FindLive(const void* at, size_t size) {
  Allocation* a = Find(at);
  const bool all =
      a != nullptr && a->live &&
      size <= a->size -
                  static_cast<size_t>(static_cast<const char*>(at) - a->begin);
  return all ? a : nullptr;
}

bool GuardedMemory::FencesHold(char* text, size_t text_size) const {
  for (const Allocation& a : allocations_) {
    if (!a.live || a.pieces.empty()) continue;
    const Fences fences(a);
    const char* changed = nullptr;
    if (a.pieces.front().open) {
      changed = FindChanged(fences.before, kFence, fences.before_size);
    }
    if (changed == nullptr && a.pieces.back().open) {
      changed = FindChanged(fences.after, kFence, fences.after_size);
    }
    if (changed == nullptr) continue;
    Describe(changed, text, text_size);
    return false;
  }
  return true;
}

void GuardedMemory::Describe(const void* at, char* text,
                             size_t text_size) const {
  const char* address = static_cast<const char*>(at);
  const Allocation* nearest = nullptr;
  size_t distance = 0;
  for (const Allocation& a : allocations_) {
    const char* end = a.begin + a.size;
    const size_t d = static_cast<size_t>(address < a.begin ? a.begin - address
                                         : address >= end  ? address - end + 1
                                                           : 0);
    if (nearest != nullptr && d >= distance) continue;
    nearest = &a;
    distance = d;
  }
  if (nearest == nullptr) {
    snprintf(text, text_size, "%s that was never allocated", what_);
    return;
  }
  const Allocation& a = *nearest;
  const char* side =
      address < a.begin ? "before the beginning" : "past the end";
  char place[100] = "";
  if (distance == 0) {
    snprintf(place, sizeof(place), "byte %zu",
             static_cast<size_t>(address - a.begin));
  } else {
    snprintf(place, sizeof(place), "%zu bytes %s", distance, side);
  }
  snprintf(text, text_size, "%s of %s %d (%zu bytes%s)", place, what_, a.number,
           a.size, a.live ? "" : ", freed");
}

}  // namespace softmoe::simt

// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/shim/block.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "kernels/simt/shim/sanitizer_hooks.h"

namespace softmoe::simt {
namespace {

// "file:line, thread 37 (lane 5 of warp 1)"
struct Place {
  char text[320];
  explicit Place(const Thread& thread) {
    snprintf(text, sizeof(text), "%s:%d, thread %d (lane %d of warp %d)",
             thread.file, thread.line, thread.number, thread.lane(),
             thread.warp());
  }
};

// Shared memory of a block for which cudaFuncSetAttribute was not called.
constexpr size_t kDefaultSharedLimit = size_t{48} * 1024;

float FloatOfBf16(uint32_t pair, int i) {
  return std::bit_cast<float>(i == 0 ? pair << 16 : pair & 0xffff0000u);
}

// Returns the sum of c and sixteen exact products, as tensor cores add: all
// terms are cut off 24 bits below the first bit of the largest, and the result
// is cut off to a float, unless it is too large for one.
float SumOfProducts(const float* a, const float* b, float c) {
  double terms[17], largest = 0, sum = 0;
  for (int k = 0; k < 16; ++k) terms[k] = double{a[k]} * double{b[k]};
  terms[16] = c;
  for (const double term : terms) {
    largest = std::max(largest, std::abs(term));
    sum += term;
  }
  if (largest == 0 || !std::isfinite(sum)) return static_cast<float>(sum);
  constexpr int kFraction = 52, kKept = 24;
  const uint64_t exponent = std::bit_cast<uint64_t>(largest) >> kFraction;
  const double unit = std::bit_cast<double>((exponent - kKept) << kFraction);
  int64_t units = 0;
  for (const double term : terms) units += static_cast<int64_t>(term / unit);
  const double exact = static_cast<double>(units) * unit;
  const float rounded = static_cast<float>(exact);
  return std::isfinite(rounded) && std::abs(rounded) > std::abs(exact)
             ? std::nextafter(rounded, 0.0f)
             : rounded;
}

// A B + C of a warp whose lanes each have MatrixOperands. Lane 4 g + t has
// pairs of neighbours: of A, in rows g, g + 8, g, g + 8 at columns 2 t and,
// from the third pair on, 8 + 2 t; of B, in column g at rows 2 t and 8 + 2 t;
// of C, in rows g and g + 8 at columns 2 t.
void Multiply(const MatrixOperands* const (&lanes)[kWarpSize],
              float* const (&results)[kWarpSize]) {
  float a[16][16], b[8][16], c[16][8];  // b: its columns
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int g = lane / 4, t = lane % 4 * 2;
    const MatrixOperands& own = *lanes[lane];
    for (int i = 0; i < 2; ++i) {
      for (int pair = 0; pair < 4; ++pair) {
        a[g + pair % 2 * 8][t + i + pair / 2 * 8] = FloatOfBf16(own.a[pair], i);
      }
      for (int pair = 0; pair < 2; ++pair) {
        b[g][t + i + pair * 8] = FloatOfBf16(own.b[pair], i);
        c[g + pair * 8][t + i] = own.c[2 * pair + i];
      }
    }
  }
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) c[m][n] = SumOfProducts(a[m], b[n], c[m][n]);
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int i = 0; i < 4; ++i) {
      results[lane][i] = c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
    }
  }
}

}  // namespace

Block& TheBlock() {
  static Block& block = *new Block;
  return block;
}

void Block::Fail(const char* format, ...) {
  if (failed_) return;  // the first failure says most
  failed_ = true;
  const int size =
      snprintf(message_, sizeof(message_), "block (%u,%u,%u): ", blockIdx.x,
               blockIdx.y, blockIdx.z);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message_ + size, sizeof(message_) - static_cast<size_t>(size),
            format, arguments);
  va_end(arguments);
}

void Block::BeginGrid(const Grid& grid, void (*kernel)(), Schedule schedule,
                      uint64_t seed) {
  grid_ = grid;
  kernel_ = kernel;
  schedule_ = schedule;
  random_ = Random(seed);
  num_threads_ =
      static_cast<int>(grid.threads.x * grid.threads.y * grid.threads.z);
  failed_ = false;
  blockIdx = {};
  blockDim = grid.threads;
  gridDim = grid.blocks;
}

void Block::AcquireAll() { Acquire(&ended_->ended); }

bool Block::Run(Index3 index, int64_t order, BlockTags& tags, Fiber& caller) {
  blockIdx = index;
  tags_ = &tags;
  caller_ = &caller;
  arena_.Clear();
  dynamic_shared_ = nullptr;
  num_alive_ = num_threads_;
  arrived_ = 0;
  barriers_ = 0;
  for (int warp = 0; warp * kWarpSize < num_threads_; ++warp) {
    rendezvous_[warp].fill(Rendezvous());
  }
  SetAllReady();
  int fiber = FirstFiber(order);
  const int end_of_circle = fiber - fiber % num_threads_ + num_threads_;
  Index3 next;
  for (int i = 0; i < num_threads_; ++i) {
    Thread& thread = threads_[i];
    thread = Thread();
    thread.number = i;
    thread.index = next;
    if (++next.x == blockDim.x) {
      next.x = 0;
      if (++next.y == blockDim.y) {
        next.y = 0;
        ++next.z;
      }
    }
    thread.fiber = &FiberAt(fiber);
    thread.fiber->Restart(&RunThread);
    if (++fiber == end_of_circle) fiber -= num_threads_;
  }
  if (grid_.dynamic_shared > 0) {
    dynamic_shared_ = arena_.Find(&dynamic_shared_, grid_.dynamic_shared);
    if (!SharedFits(dynamic_shared_, "the launch", 0)) return false;
  }
  Release(&tags_->begin);
  Thread& first = threads_[FirstThread()];
  current_ = &first;
  threadIdx = first.index;
  first.fiber->SwitchFrom(*caller_, Fiber::Leaving::kForAWhile);
  if (!failed_) return true;
  for (int i = 0; i < num_threads_; ++i) {  // threads that will never end
    threads_[i].fiber->ReleaseAs(&ended_->ended, *caller_);
    threads_[i].fiber->DropFrames();
  }
  return false;
}

int Block::FirstThread() {
  switch (schedule_) {
    case Schedule::kAscending:
      return 0;
    case Schedule::kDescending:
      return num_threads_ - 1;
    default:
      return random_.Below(num_threads_);
  }
}

// To TSan, a fiber is one thread, which does things in order. So the blocks of
// a grid use different fibers as long as unused ones are left, and then each
// fiber for another thread of the block. Returns the fiber of the first thread;
// those of the others follow, in a circle of num_threads_.
int Block::FirstFiber(int64_t order) const {
  constexpr int64_t kRotation = 37;
  const int64_t disjoint_blocks = kMaxThreads / num_threads_;
  const int64_t set = order % disjoint_blocks;
  const int64_t turn = order / disjoint_blocks;
  return static_cast<int>(set * num_threads_ + kRotation * turn % num_threads_);
}

Fiber& Block::FiberAt(int i) {
  Fiber*& fiber = fibers_[grid_.fiber_set][i];
  if (fiber == nullptr) fiber = new Fiber(i % 21);
  return *fiber;
}

// ---- Threads

void Block::RunThread() {
  Block& block = TheBlock();
  Acquire(&block.tags_->begin);
  block.kernel_();
  Release(&block.ended_->ended);
  block.End();
}

void Block::SetAllReady() {
  for (int begin = 0; begin < num_threads_; begin += kWarpSize) {
    const int lanes = std::min(kWarpSize, num_threads_ - begin);
    ready_[begin / kWarpSize] = ~0u >> (kWarpSize - lanes);
  }
}

void Block::SetNotReady(const Thread& thread) {
  ready_[thread.warp()] &= ~(1u << thread.lane());
}

// Returns the thread that runs next; null if all wait. In ascending and
// descending order the threads of the current warp come first: they wait for
// each other most often. Lanes are taken in a circle, and so are warps.
Thread* Block::NextReady() {
  const bool random = schedule_ == Schedule::kRandom;
  const bool down = schedule_ == Schedule::kDescending;
  const auto first = [&](int warp, uint32_t lanes) {
    const int lane = down ? std::bit_width(lanes) - 1 : std::countr_zero(lanes);
    return &threads_[warp * kWarpSize + lane];
  };
  const int at = random ? random_.Below(num_threads_) : current_->number;
  const int warp = at / kWarpSize, lane = at % kWarpSize;
  const uint32_t ready = ready_[warp];
  const uint32_t ahead = ready & (down ? (1u << lane) - 1 : ~1u << lane);
  if (ahead != 0) return first(warp, ahead);
  if (ready != 0 && !random) return first(warp, ready);
  const int num_warps = (num_threads_ + kWarpSize - 1) / kWarpSize;
  for (int i = 1; i < num_warps; ++i) {
    const int other = (warp + (down ? num_warps - i : i)) % num_warps;
    if (ready_[other] != 0) return first(other, ready_[other]);
  }
  return ready != 0 ? first(warp, ready) : nullptr;
}

void Block::Continue(Thread& thread, Fiber::Leaving leaving) {
  Fiber& from = *current_->fiber;
  current_ = &thread;
  threadIdx = thread.index;
  thread.fiber->SwitchFrom(from, leaving);
}

// Lets others run until this thread is ready again.
void Block::Wait(State state, const char* file, int line) {
  SetNotReady(*current_);
  current_->state = state;
  current_->file = file;
  current_->line = line;
  Thread* next = NextReady();
  if (next == nullptr) {
    ReportStuck();
    Abandon();
  }
  Continue(*next, Fiber::Leaving::kForAWhile);
}

void Block::End() {
  if (current_->num_copies > 0) {
    const Copy& copy = copies_[current_->number][current_->first_copy];
    current_->file = copy.file;
    current_->line = copy.line;
    Fail("a thread ended without waiting for a copy that it began: %s",
         Place(*current_).text);
    Abandon();
  }
  SetNotReady(*current_);
  current_->state = State::kEnded;
  --num_alive_;
  Thread* next = num_alive_ > 0 ? NextReady() : nullptr;
  if (next != nullptr) Continue(*next, Fiber::Leaving::kForGood);
  if (num_alive_ > 0) ReportStuck();
  Abandon();
}

void Block::FailThread(const char* what) {
  Fail("thread %d (lane %d of warp %d): %s", current_->number, current_->lane(),
       current_->warp(), what);
  Abandon();
}

// Goes back to the caller of Run, never to return.
void Block::Abandon() {
  Release(&ended_->ended);
  caller_->SwitchFrom(*current_->fiber, Fiber::Leaving::kForGood);
  abort();
}

// Reports that no thread can run: what one thread of each kind waits for.
void Block::ReportStuck() {
  const Thread* at_barrier = nullptr;
  const Thread* at_warp = nullptr;
  const Thread* ended = nullptr;
  for (int i = num_threads_ - 1; i >= 0; --i) {
    const Thread& thread = threads_[i];
    (thread.state == State::kAtBlockBarrier    ? at_barrier
     : thread.state == State::kAtWarpOperation ? at_warp
                                               : ended) = &thread;
  }
  char text[900];
  int size = snprintf(text, sizeof(text), "no thread can continue:");
  const auto add = [&](const char* format, const char* what) {
    size += snprintf(text + size, sizeof(text) - static_cast<size_t>(size),
                     format, what);
  };
  if (at_barrier != nullptr) {
    add(" __syncthreads() at %s waits;", Place(*at_barrier).text);
  }
  if (at_warp != nullptr) {
    add(" a warp operation at %s waits for other lanes of its mask;",
        Place(*at_warp).text);
  }
  if (ended != nullptr) {
    char number[32];
    snprintf(number, sizeof(number), "%d", ended->number);
    add(" thread %s, among others, has ended", number);
  }
  Fail("%s", text);
}

// ---- What a thread calls

void Block::Barrier(const char* file, int line) {
  if (arrived_ == 0) {
    barrier_file_ = file;
    barrier_line_ = line;
  } else if (barrier_line_ != line || barrier_file_ != file) {
    current_->file = file;
    current_->line = line;
    Fail(
        "__syncthreads() in divergent code: %s, while other threads are at "
        "%s:%d",
        Place(*current_).text, barrier_file_, barrier_line_);
    Abandon();
  }
  char* tag = &tags_->barrier[barriers_ % 2];
  Release(tag);
  if (++arrived_ == num_threads_) {
    arrived_ = 0;
    ++barriers_;
    SetAllReady();
  } else {
    Wait(State::kAtBlockBarrier, file, line);
  }
  Acquire(tag);
}

void Block::WarpRendezvous(WarpOperation operation, uint32_t mask,
                           uint64_t operand, int source, uint64_t* result,
                           const char* file, int line) {
  Thread& me = *current_;
  me.operand = operand;
  me.source = source;
  me.file = file;
  me.line = line;
  if ((mask >> me.lane() & 1) == 0) {
    Fail("%s is not in the mask 0x%08x that it passes", Place(me).text, mask);
    Abandon();
  }
  const int slot = std::countr_zero(mask);
  Rendezvous& rendezvous = rendezvous_[me.warp()][slot];
  if (rendezvous.arrived == 0) {
    rendezvous.operation = operation;
    rendezvous.mask = mask;
  } else {
    const Thread& other =
        threads_[me.warp() * kWarpSize + std::countr_zero(rendezvous.arrived)];
    if (rendezvous.operation != operation || rendezvous.mask != mask ||
        other.line != line || other.file != file) {
      Fail(
          "a warp operation in divergent code: %s with mask 0x%08x, while %s "
          "has mask 0x%08x",
          Place(me).text, mask, Place(other).text, rendezvous.mask);
      Abandon();
    }
  }
  char* tag = &tags_->warp_barrier[me.warp()][slot][rendezvous.barriers % 2];
  if (operation == WarpOperation::kBarrier) Release(tag);
  rendezvous.arrived |= 1u << me.lane();
  if (rendezvous.arrived == mask) {
    Complete(rendezvous, me.warp());
    rendezvous.arrived = 0;
    if (operation == WarpOperation::kBarrier) ++rendezvous.barriers;
  } else {
    Wait(State::kAtWarpOperation, file, line);
  }
  if (operation == WarpOperation::kBarrier) Acquire(tag);
  *result = me.result;
}

// Gives each lane of the mask its result, and lets it go on.
void Block::Complete(const Rendezvous& rendezvous, int warp) {
  Thread* lanes = threads_.data() + warp * kWarpSize;
  if (rendezvous.operation == WarpOperation::kShareRows) {
    for (int i = 0; i < kWarpSize; ++i) {
      for (int j = 0; j < kWarpSize; ++j) {
        static_cast<const void**>(lanes[i].taken)[j] = lanes[j].given;
      }
    }
  } else if (rendezvous.operation == WarpOperation::kMultiplyMatrices) {
    const MatrixOperands* operands[kWarpSize];
    float* results[kWarpSize];
    for (int i = 0; i < kWarpSize; ++i) {
      operands[i] = static_cast<const MatrixOperands*>(lanes[i].given);
      results[i] = static_cast<float*>(lanes[i].taken);
    }
    Multiply(operands, results);
  }
  const auto for_each_lane = [&](auto&& f) {
    for (uint32_t left = rendezvous.mask; left != 0; left &= left - 1) {
      f(std::countr_zero(left));
    }
  };
  if (rendezvous.operation == WarpOperation::kBallot) {
    uint64_t ballot = 0;
    for_each_lane([&](int i) {
      if (lanes[i].operand != 0) ballot |= uint64_t{1} << i;
    });
    for_each_lane([&](int i) { lanes[i].result = ballot; });
  } else if (rendezvous.operation == WarpOperation::kShuffle) {
    for_each_lane([&](int i) {
      Thread& lane = lanes[i];
      if (lane.source >= 0 && (rendezvous.mask >> lane.source & 1) == 0) {
        Fail("%s shuffles from lane %d, which is not in the mask 0x%08x",
             Place(lane).text, lane.source, rendezvous.mask);
        Abandon();
      }
      lane.result = lane.source < 0 ? lane.operand : lanes[lane.source].operand;
    });
  }
  ready_[warp] |= rendezvous.mask;
}

void Block::WarpMatrices(WarpOperation operation, const void* given,
                         void* taken, const char* file, int line) {
  current_->given = given;
  current_->taken = taken;
  uint64_t nothing;
  WarpRendezvous(operation, 0xffffffffu, 0, -1, &nothing, file, line);
}

void Block::RequireShared(const void* at, const char* file, int line) {
  if (arena_.Holds(at) && reinterpret_cast<uintptr_t>(at) % 16 == 0) return;
  current_->file = file;
  current_->line = line;
  Fail("16 bytes must be in shared memory and begin at a multiple of 16: %s",
       Place(*current_).text);
  Abandon();
}

void Block::NoteCopy(const void* from, void* to, const char* file, int line) {
  Thread& me = *current_;
  me.file = file;
  me.line = line;
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0) {
    Fail("a copy from an address that is not a multiple of 16: %s",
         Place(me).text);
    Abandon();
  }
  if (me.num_copies == kMaxCopies) {
    Fail("more than %d copies that have not landed: %s", kMaxCopies,
         Place(me).text);
    Abandon();
  }
  const int last = (me.first_copy + me.num_copies++) % kMaxCopies;
  copies_[me.number][last] = {from, to, me.num_groups, file, line};
}

void Block::TakeCopy(int left, const void** from, void** to) {
  Thread& me = *current_;
  const Copy& next = copies_[me.number][me.first_copy];
  if (me.num_copies == 0 || next.group >= me.num_groups - left) {
    *from = *to = nullptr;
    return;
  }
  *from = next.from;
  *to = next.to;
  me.first_copy = (me.first_copy + 1) % kMaxCopies;
  --me.num_copies;
}

size_t Block::SharedLimit(const Grid& grid) const {
  const bool asked = grid.dynamic_shared_limit > 0 &&
                     grid.dynamic_shared <= grid.dynamic_shared_limit;
  return asked ? shared_limit_ : kDefaultSharedLimit;
}

// Returns false, and reports it, if there was no room for `memory`, or if a
// device would not give this block all that it uses by now.
bool Block::SharedFits(const void* memory, const char* file, int line) {
  const size_t used = arena_.used();
  if (memory != nullptr && used <= SharedLimit(grid_)) return true;
  Fail(
      "%s:%d: %zu bytes of shared memory, %zu of them dynamic: at most %zu "
      "without cudaFuncSetAttribute, never more than %zu, in %d variables",
      file, line, used, grid_.dynamic_shared, kDefaultSharedLimit,
      shared_limit_, SharedArena::kMaxVariables);
  return false;
}

void* Block::Shared(const void* identity, size_t size, const char* file,
                    int line) {
  void* memory = arena_.Find(identity, size);
  if (!SharedFits(memory, file, line)) Abandon();
  return memory;
}

}  // namespace softmoe::simt

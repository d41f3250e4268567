// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/ptx/grid.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>

namespace softmoe::ptx {
namespace {

using simt::Index3;
using simt::Schedule;

size_t Volume(const Index3& extent) {
  return size_t{extent.x} * extent.y * extent.z;
}

Index3 IndexOf(size_t number, const Index3& extent) {
  Index3 index;
  index.x = static_cast<unsigned>(number % extent.x);
  index.y = static_cast<unsigned>(number / extent.x % extent.y);
  index.z = static_cast<unsigned>(number / extent.x / extent.y);
  return index;
}

std::vector<size_t> Order(size_t count, Schedule schedule, uint64_t seed) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  if (schedule == Schedule::kDescending) std::ranges::reverse(order);
  if (schedule == Schedule::kRandom) {
    std::mt19937_64 random(seed);
    std::shuffle(order.begin(), order.end(), random);
  }
  return order;
}

// A fault with its place.
struct PlacedFault : Fault {
  using Fault::Fault;
};

// Steps of one thread: more than any of our kernels takes, by far.
constexpr int64_t kMostSteps = int64_t{1} << 28;

enum class State { kReady, kAtBarrier, kInWarp, kEnded };

class Block : public Memory {
 public:
  Block(const Launch& launch, Kernel* kernel)
      : launch_(launch),
        kernel_(*kernel),
        threads_(Volume(launch.threads)),
        states_(threads_.size()),
        registers_(threads_.size() * kernel->num_registers),
        parameters_(launch.parameters),
        shared_(kernel->shared),
        shared_memory_(kernel->shared_bytes + launch.dynamic_shared),
        writes_(shared_memory_.size() / granule_ + 1),
        warp_epochs_((threads_.size() + 31) / 32) {
    if (kernel_.has_dynamic_shared) {
      shared_.back().size = launch.dynamic_shared;
    }
  }

  void Run(const Index3& block) {
    block_ = block;
    Reset();
    const std::vector<size_t> warps =
        Order(warp_epochs_.size(), launch_.schedule, launch_.seed);
    do {
      for (const size_t warp : warps) RunWarp(warp);
    } while (PassBarrier());
  }

  char* At(const Thread& thread, Access access, Space space, uint64_t address,
           size_t size) override {
    if ((address & (size - 1)) != 0) {  // a power of two: no division
      Fail(thread.number,
           fmt::format("has address {:#x}, which is not a multiple of {}",
                       address, size));
    }
    char* at = nullptr;
    switch (space) {
      case Space::kGlobal:
        at = Global(address, size);
        break;
      case Space::kShared:
        // A carry out of 32 bits is lost; a generic address has more bits.
        if (address >> 33 == 0) {
          at = Shared(thread, access, address & 0xffffffff, size);
        }
        break;
      case Space::kParameters:
        at = OneParameter(address, size);
        break;
    }
    if (at == nullptr) {
      constexpr const char* kSpaces[] = {"allocation of global memory",
                                         "variable in shared memory",
                                         "parameter"};
      Fail(thread.number,
           fmt::format("accesses {} bytes at {:#x}, which are not in one {}",
                       size, address, kSpaces[static_cast<int>(space)]));
    }
    return at;
  }

 private:
  // The last thread to write a granule of shared memory, and how many barriers
  // its block, and its warp, had passed by then; whether other lanes, and other
  // warps, had written it since the last of those barriers.
  struct Write {
    int64_t block_epoch = -1;
    int32_t warp_epoch = -1;
    uint16_t thread = 0;
    bool by_lanes = false, by_warps = false;
  };
  // An atomic may follow another thread's atomics, but not its plain writes.
  struct Writes {
    Write plain, atomic;
  };

  static bool Holds(uint64_t begin, size_t bytes, uint64_t address,
                    size_t size) {
    return address >= begin && size <= bytes && address - begin <= bytes - size;
  }

  char* Global(uint64_t address, size_t size) {
    if (!Holds(last_.begin, last_.size, address, size)) {
      last_ = launch_.find(address);
      if (!Holds(last_.begin, last_.size, address, size)) return nullptr;
    }
    return reinterpret_cast<char*>(address);  // NOLINT: a device's address
  }

  char* OneParameter(uint64_t address, size_t size) {
    for (const Parameter& parameter : kernel_.parameters) {
      if (Holds(parameter.begin, parameter.size, address, size)) {
        return parameters_.data() + address;
      }
    }
    return nullptr;
  }

  char* Shared(const Thread& thread, Access access, uint64_t address,
               size_t size) {
    for (const Variable& variable : shared_) {
      if (!Holds(variable.begin, variable.size, address, size)) continue;
      if (size < granule_) Refine(size);
      for (size_t i = address / granule_; i * granule_ < address + size; ++i) {
        CheckOrder(thread, access, &writes_[i]);
      }
      return shared_memory_.data() + address;
    }
    return nullptr;
  }

  // Makes `granule`, a power of two, the unit in which writes are tracked. No
  // access so far is smaller.
  void Refine(size_t granule) {
    std::vector<Writes> finer(shared_memory_.size() / granule + 1);
    for (size_t i = 0; i < finer.size(); ++i) {
      finer[i] = writes_[i * granule / granule_];
    }
    writes_ = std::move(finer);
    granule_ = granule;
  }

  // Between a write and another thread's read, both threads must pass a
  // barrier; nothing else orders memory.
  void CheckOrder(const Thread& thread, Access access, Writes* writes) {
    switch (access) {
      case Access::kRead:
        RequireOrdered(thread, writes->plain);
        RequireOrdered(thread, writes->atomic);
        break;
      case Access::kWrite:
        // Others' atomics before it count like their plain writes.
        NoteWrite(
            thread,
            OthersOf(thread, writes->plain) | OthersOf(thread, writes->atomic),
            &writes->plain);
        break;
      case Access::kAtomic:
        RequireOrdered(thread, writes->plain);
        NoteWrite(thread, OthersOf(thread, writes->atomic), &writes->atomic);
        break;
    }
  }

  // Who else has written it without a barrier since.
  struct Others {
    bool warps, lanes;
    Others operator|(const Others& more) const {
      return {warps || more.warps, lanes || more.lanes};
    }
  };
  Others OthersOf(const Thread& thread, const Write& write) const {
    const size_t warp = thread.number / 32;
    const bool recent = write.block_epoch == block_epoch_;
    return {recent && (write.by_warps || write.thread / 32 != warp),
            recent && write.warp_epoch == warp_epochs_[warp] &&
                (write.by_lanes || write.thread != thread.number)};
  }

  void RequireOrdered(const Thread& thread, const Write& write) const {
    const Others others = OthersOf(thread, write);
    if (!others.warps && !others.lanes) return;
    Fail(
        thread.number,
        fmt::format("reads what thread {}{} wrote without a barrier in between",
                    write.thread,
                    write.by_lanes || write.by_warps ? " and others" : ""));
  }

  void NoteWrite(const Thread& thread, const Others& others,
                 Write* write) const {
    *write = {.block_epoch = block_epoch_,
              .warp_epoch = warp_epochs_[thread.number / 32],
              .thread = static_cast<uint16_t>(thread.number),
              .by_lanes = others.lanes,
              .by_warps = others.warps};
  }

  void Reset() {
    std::ranges::fill(registers_, ~uint64_t{0});
    std::ranges::fill(shared_memory_, '\xff');
    std::ranges::fill(states_, State::kReady);
    ++block_epoch_;  // what the previous block wrote is not recent
    std::ranges::fill(warp_epochs_, 0);
    const auto set = [](uint64_t* registers, int first, const Index3& index) {
      registers[first] = index.x;
      registers[first + 1] = index.y;
      registers[first + 2] = index.z;
    };
    for (size_t t = 0; t < threads_.size(); ++t) {
      threads_[t] = {};
      Thread& thread = threads_[t];
      thread.registers = registers_.data() + t * kernel_.num_registers;
      thread.memory = this;
      thread.number = t;
      thread.registers[kZero] = 0;
      thread.registers[kLaneid] = t % 32;
      set(thread.registers, kTid, IndexOf(t, launch_.threads));
      set(thread.registers, kNtid, launch_.threads);
      set(thread.registers, kCtaid, block_);
      set(thread.registers, kNctaid, launch_.blocks);
    }
  }

  const Instruction& Next(size_t t) const {
    return kernel_.code[threads_[t].next];
  }

  // Runs a warp until all of its threads wait for their block or have ended.
  void RunWarp(size_t warp) {
    const size_t first = 32 * warp;
    const std::vector<size_t> lanes =
        Order(std::min<size_t>(32, threads_.size() - first), launch_.schedule,
              launch_.seed + warp);
    do {
      for (const size_t lane : lanes) {
        if (states_[first + lane] == State::kReady) RunThread(first + lane);
      }
    } while (Meet(first));
    for (const size_t lane : lanes) {
      if (states_[first + lane] == State::kInWarp) {
        Fail(first + lane, "waits for lanes that never arrive");
      }
    }
  }

  void RunThread(size_t t) {
    Thread& thread = threads_[t];
    const std::span<Instruction> code = kernel_.code;
    for (;;) {
      if (thread.next >= code.size()) {
        thread.next = code.size() - 1;
        Fail(t, "runs past the kernel's end");
      }
      Instruction& instruction = code[thread.next];
      if (instruction.guard >= 0 &&
          (thread.registers[instruction.guard] != 0) == instruction.unless) {
        ++instruction.passed;
        ++thread.next;
        continue;
      }
      ++instruction.executed;
      if (++thread.steps > kMostSteps) Fail(t, "seems to run forever");
      switch (instruction.form.flow) {
        case Flow::kNext:
          Blame(t, [&] {
            instruction.form.run(thread, instruction.operands.data());
          });
          ++thread.next;
          break;
        case Flow::kBranch:
          thread.next = instruction.target;
          break;
        case Flow::kReturn:
          if (!thread.copies.empty()) Fail(t, "ends before its copies land");
          states_[t] = State::kEnded;
          return;
        case Flow::kWarp:
          states_[t] = State::kInWarp;
          return;
        case Flow::kBlock:
          if (thread.Bits(instruction.operands[0]) != 0) {
            Fail(t, "is at a barrier other than number 0");
          }
          states_[t] = State::kAtBarrier;
          return;
      }
    }
  }

  // Executes what all lanes of a mask have reached. Returns false if nothing.
  bool Meet(size_t first) {
    bool any = false;
    for (size_t t = first; t < std::min(first + 32, threads_.size()); ++t) {
      if (states_[t] != State::kInWarp) continue;
      const uint32_t mask = MaskOf(t);
      const std::optional<Lanes> lanes = Gather(t, first, mask);
      if (!lanes) continue;
      const Instruction& instruction = Next(t);
      Blame(t, [&] {
        instruction.form.run_warp(*lanes, instruction.operands.data());
      });
      if (instruction.form.orders_memory) {
        if (mask != 0xffffffff) {
          Fail(t, "synchronizes only some lanes of its warp");
        }
        ++warp_epochs_[first / 32];
      }
      for (size_t lane = 0; lane < 32; ++lane) {
        if (lanes->threads[lane] == nullptr) continue;
        ++threads_[first + lane].next;
        states_[first + lane] = State::kReady;
      }
      any = true;
    }
    return any;
  }

  uint32_t MaskOf(size_t t) const {
    const Instruction& instruction = Next(t);
    const int operand = instruction.form.mask;
    if (operand < 0) return 0xffffffff;
    return threads_[t].Read<uint32_t>(
        instruction.operands[static_cast<size_t>(operand)]);
  }

  // Returns the lanes of `mask` if all are where thread t is.
  std::optional<Lanes> Gather(size_t t, size_t first, uint32_t mask) {
    if ((mask >> (t - first) & 1) == 0) Fail(t, "is not in its own mask");
    Lanes lanes;
    for (size_t lane = 0; lane < 32; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      const size_t other = first + lane;
      if (other >= threads_.size() || states_[other] == State::kEnded) {
        Fail(t, fmt::format("waits for lane {}, which has ended", lane));
      }
      if (states_[other] != State::kInWarp ||
          threads_[other].next != threads_[t].next) {
        return std::nullopt;
      }
      if (MaskOf(other) != mask) {
        Fail(t, fmt::format("has a different mask from lane {}", lane));
      }
      lanes.threads[lane] = &threads_[other];
    }
    return lanes;
  }

  // Returns false if all threads have ended.
  bool PassBarrier() {
    if (std::ranges::count(states_, State::kEnded) ==
        static_cast<ptrdiff_t>(states_.size())) {
      return false;
    }
    for (size_t t = 0; t < threads_.size(); ++t) {
      if (states_[t] == State::kEnded) {
        Fail(t, "ends before a barrier of its block");
      }
      if (threads_[t].next != threads_[0].next) {
        Fail(t, fmt::format("is not at thread 0's barrier, line {}",
                            Next(0).line));
      }
    }
    ++block_epoch_;
    for (Thread& thread : threads_) ++thread.next;
    std::ranges::fill(states_, State::kReady);
    return true;
  }

  // Runs `body`. A fault that names no place gets that of thread t.
  template <typename Body>
  void Blame(size_t t, const Body& body) const {
    try {
      body();
    } catch (const PlacedFault&) {
      throw;
    } catch (const Fault& fault) {
      Fail(t, fault.what());
    }
  }

  [[noreturn]] void Fail(size_t t, const std::string& what) const {
    const Index3 thread = IndexOf(t, launch_.threads);
    throw PlacedFault(
        fmt::format("{}:{}: thread ({}, {}, {}) of block ({}, {}, {}) {}: {}",
                    kernel_.file, Next(t).line, thread.x, thread.y, thread.z,
                    block_.x, block_.y, block_.z, what, Next(t).text));
  }

  const Launch& launch_;
  Kernel& kernel_;
  std::vector<Thread> threads_;
  std::vector<State> states_;
  std::vector<uint64_t> registers_;  // thread by thread
  std::vector<char> parameters_;
  std::vector<Variable> shared_;
  std::vector<char> shared_memory_;
  // The size of the smallest access so far, and who wrote each such part.
  size_t granule_ = 16;
  std::vector<Writes> writes_;
  int64_t block_epoch_ = 0;  // barriers passed, and blocks begun
  std::vector<int32_t> warp_epochs_;
  Index3 block_;
  Extent last_;
};

}  // namespace

void RunGrid(const Launch& launch, Kernel* kernel) {
  if (Volume(launch.threads) > kernel->max_threads) {
    throw Fault(fmt::format("{}: blocks of {} threads, but .maxntid is {}",
                            kernel->name, Volume(launch.threads),
                            kernel->max_threads));
  }
  size_t shared = launch.dynamic_shared;
  for (const Variable& variable : kernel->shared) shared += variable.size;
  if (shared > launch.shared_limit) {
    throw Fault(fmt::format(
        "{}: {} bytes of shared memory, {} of them dynamic: at most {}",
        kernel->name, shared, launch.dynamic_shared, launch.shared_limit));
  }
  Block block(launch, kernel);
  for (const size_t number :
       Order(Volume(launch.blocks), launch.schedule, launch.seed)) {
    block.Run(IndexOf(number, launch.blocks));
  }
}

}  // namespace softmoe::ptx

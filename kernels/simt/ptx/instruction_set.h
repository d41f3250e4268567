// SPDX-License-Identifier: Apache-2.0
//
// instruction_set.h - what the instructions that nvcc makes of our kernels do,
// by the PTX ISA (https://docs.nvidia.com/cuda/parallel-thread-execution).
//
// A form is an instruction with its modifiers and types, "add.rn.f32". None is
// guessed: a form that is not in the table is unknown. Floating point is
// IEEE's, as the forms say, and NaNs that are computed in fp32 are 0x7fffffff.
// Where the ISA leaves bits open, these choices are the interpreter's own:
//
//   mma                  products and C are added in double, in the order of k,
//                        and rounded once; a device may truncate each addition
//   ex2.approx.ftz.f32   rounded to the nearest; a device may be off by 2 ulp
//   rcp.approx.ftz.f64   the upper half of the reciprocal, truncated
//   neg, abs of NaN      only the sign changes
#ifndef SOFTMOE_KERNELS_SIMT_PTX_INSTRUCTION_SET_H_
#define SOFTMOE_KERNELS_SIMT_PTX_INSTRUCTION_SET_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace softmoe::ptx {

// A kernel did something that a device would reject or leaves undefined.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Registers are 64 bits wide: first the special ones, then those that the
// kernel declares. kZero always holds 0, so that an immediate is a register
// plus a number. Three-dimensional ones take three slots: x, y, z.
enum SpecialRegister : int {
  kZero = 0,
  kTid = 1,
  kNtid = 4,
  kCtaid = 7,
  kNctaid = 10,
  kLaneid = 13,
  kFirstFreeRegister = 14
};

// A register, a number or, as an address, their sum.
struct Operand {
  int slot = kZero;
  uint64_t number = 0;
};

enum class Space { kGlobal, kShared, kParameters };

enum class Access { kRead, kWrite, kAtomic };

struct Thread;

// The memory that threads access.
class Memory {
 public:
  virtual ~Memory() = default;
  // Returns the `size` bytes, a power of two, at `address`, which must be a
  // multiple of `size`. Throws Fault.
  virtual char* At(const Thread& thread, Access access, Space space,
                   uint64_t address, size_t size) = 0;
};

// A copy to shared memory that has begun and not landed.
struct Copy {
  uint64_t from = 0, to = 0;
  bool exists = false;  // else zeros are written
  char bytes[16] = {};
  bool committed = false;
  int group = 0;
};

struct Thread {
  uint64_t* registers = nullptr;
  Memory* memory = nullptr;
  size_t number = 0;         // within the block
  size_t next = 0;           // index of the next instruction
  int64_t steps = 0;         // instructions executed so far
  std::vector<Copy> copies;  // in the order in which they began
  int groups = 0;            // of copies, committed so far

  char* At(Access access, Space space, uint64_t address, size_t size) const {
    return memory->At(*this, access, space, address, size);
  }

  uint64_t Bits(const Operand& operand) const {
    return registers[operand.slot] + operand.number;
  }
  template <typename T>
  T Read(const Operand& operand) const {
    const uint64_t bits = Bits(operand);
    if constexpr (std::is_same_v<T, float>) {
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    } else if constexpr (std::is_same_v<T, double>) {
      return std::bit_cast<double>(bits);
    } else if constexpr (std::is_same_v<T, bool>) {
      return bits != 0;
    } else {
      return static_cast<T>(bits);
    }
  }
  template <typename T>
  void Write(const Operand& operand, T value) {
    uint64_t& bits = registers[operand.slot];
    if constexpr (std::is_same_v<T, float>) {
      bits = value != value ? 0x7fffffffu : std::bit_cast<uint32_t>(value);
    } else if constexpr (std::is_same_v<T, double>) {
      bits = std::bit_cast<uint64_t>(value);
    } else {
      bits = static_cast<uint64_t>(value);  // integers keep their sign
    }
  }
};

// The lanes of a warp that execute an instruction together; null: not among
// them.
struct Lanes {
  Thread* threads[32] = {};
};

enum class Flow {
  kNext,    // one thread executes it and goes on
  kBranch,  // to the target
  kReturn,
  kWarp,   // all lanes of a mask execute it
  kBlock,  // the barrier of all threads of a block
};

struct Form {
  Flow flow = Flow::kNext;
  void (*run)(Thread&, const Operand*) = nullptr;            // kNext
  void (*run_warp)(const Lanes&, const Operand*) = nullptr;  // kWarp
  int operands = 0;
  int results = 0;         // how many of them, the first, are written
  unsigned addresses = 0;  // bit i: operand i is an address in brackets
  int mask = -1;  // kWarp: the operand that is the mask; -1: the whole warp
  bool orders_memory = false;  // kWarp: a barrier
};

// Null if there is none.
const Form* FindForm(const std::string& name);

}  // namespace softmoe::ptx

#endif  // SOFTMOE_KERNELS_SIMT_PTX_INSTRUCTION_SET_H_

// SPDX-License-Identifier: Apache-2.0
//
// program.h - kernels as nvcc makes them: PTX, read and decoded. What an
// instruction does is in instruction_set.h; grid.h executes it.
#ifndef SOFTMOE_KERNELS_SIMT_PTX_PROGRAM_H_
#define SOFTMOE_KERNELS_SIMT_PTX_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/simt/ptx/instruction_set.h"

namespace softmoe::ptx {

// What is read at every step comes first, to lie in one cache line or two.
struct Instruction {
  Form form;
  std::vector<Operand> operands;  // vectors and pairs are taken apart
  int guard = -1;                 // the register of @%p; -1: always
  bool unless = false;            // @!%p
  size_t target = 0;              // where a branch goes: an index
  // How often a thread executed it, or passed over it because of its guard.
  int64_t executed = 0, passed = 0;
  int line = 0;      // of the file, from 1
  std::string text;  // for messages
};

// A part of shared memory.
struct Variable {
  std::string name;
  size_t begin, size;
};

// A part of the parameters.
struct Parameter {
  size_t begin, size;
};

struct Kernel {
  std::string name;  // mangled
  std::string file;
  std::vector<Parameter> parameters;
  // In the order of their addresses; nothing between them may be touched.
  // Dynamic shared memory comes last, with size 0 here.
  std::vector<Variable> shared;
  size_t shared_bytes = 0;
  bool has_dynamic_shared = false;
  size_t max_threads = 1024;  // of a block
  size_t num_registers = kFirstFreeRegister;
  std::vector<Instruction> code;
};

// Returns the kernels of a module of PTX ISA 7.0 to 9.x. Throws DataError, with
// `file` and line, for anything that nvcc does not make of our sources, above
// all for unknown instructions.
std::vector<Kernel> ReadProgram(const std::string& file,
                                const std::string& text);

}  // namespace softmoe::ptx

#endif  // SOFTMOE_KERNELS_SIMT_PTX_PROGRAM_H_

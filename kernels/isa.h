// SPDX-License-Identifier: Apache-2.0
//
// isa.h - one kernel, compiled once per instruction set, chosen at run time.
//
// A kernel source is built by softmoe_isa_library into namespaces isa_v3
// (x86-64-v3: AVX2+FMA) and isa_v4 (x86-64-v4: AVX-512). Its header says
//     SOFTMOE_DECLARE_KERNEL(Gemm);      // needs struct GemmArgs
// which declares both and an inline Gemm(args, pool) that calls the active one.
// Beside the struct stands ForEachArray(args, f), which calls f(name, pointer,
// elements) for each of its arrays; f may replace the pointer.
//
// Per-ISA sources must not instantiate standard-library templates that other
// files use too (std::vector<float>, std::sort): the linker keeps one copy, and
// it may be the AVX-512 one. Pointers, intrinsics and own inline code only.
#ifndef SOFTMOE_KERNELS_ISA_H_
#define SOFTMOE_KERNELS_ISA_H_

#include <string>

#include "core/parallel_for.h"

namespace softmoe::kernels {

enum class Isa { kV3, kV4 };

// The level in use: the best this CPU has, unless SelectIsa said otherwise.
// Part of every result's fingerprint (DESIGN.md, ruling 9).
Isa ActiveIsa();
const char* IsaName(Isa isa);  // "v3", "v4"

// Chooses the level for the rest of the program: "", "v3" or "v4"; "" is the
// best available. Call before any kernel runs. Throws ConfigError for an
// unknown name and EnvironmentError if this CPU lacks the level.
void SelectIsa(const std::string& name);

// True if this CPU can run `isa`.
bool IsaAvailable(Isa isa);

}  // namespace softmoe::kernels

#define SOFTMOE_DECLARE_KERNEL(Name)                           \
  namespace isa_v3 {                                           \
  void Name(const Name##Args& args, ThreadPool& pool);         \
  }                                                            \
  namespace isa_v4 {                                           \
  void Name(const Name##Args& args, ThreadPool& pool);         \
  }                                                            \
  inline void Name(const Name##Args& args, ThreadPool& pool) { \
    if (ActiveIsa() == Isa::kV4) {                             \
      isa_v4::Name(args, pool);                                \
    } else {                                                   \
      isa_v3::Name(args, pool);                                \
    }                                                          \
  }                                                            \
  static_assert(true)

#endif  // SOFTMOE_KERNELS_ISA_H_

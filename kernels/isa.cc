// SPDX-License-Identifier: Apache-2.0
#include "kernels/isa.h"

#include <atomic>

#include "core/errors.h"

namespace softmoe::kernels {
namespace {

Isa BestIsa() {
  if (!IsaAvailable(Isa::kV3)) {
    throw EnvironmentError(
        "this CPU lacks AVX2 and FMA (x86-64-v3), which the CPU kernels need; "
        "run on an x86-64 machine from 2013 or later");
  }
  return IsaAvailable(Isa::kV4) ? Isa::kV4 : Isa::kV3;
}

std::atomic<Isa>& Active() {
  static std::atomic<Isa> active{BestIsa()};
  return active;
}

}  // namespace

bool IsaAvailable(Isa isa) {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  if (isa == Isa::kV3) return v3;
  return v3 && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

const char* IsaName(Isa isa) { return isa == Isa::kV4 ? "v4" : "v3"; }

Isa ActiveIsa() { return Active().load(std::memory_order_relaxed); }

void SelectIsa(const std::string& name) {
  Isa isa;
  if (name.empty()) {
    isa = BestIsa();
  } else if (name == "v3") {
    isa = Isa::kV3;
  } else if (name == "v4") {
    isa = Isa::kV4;
  } else {
    throw ConfigError("isa = \"" + name +
                      "\": expected \"v3\" (AVX2), \"v4\" (AVX-512) or \"\" "
                      "(the best this machine has)");
  }
  if (!IsaAvailable(isa)) {
    throw EnvironmentError("this CPU cannot run ISA level \"" + name +
                           "\"; choose \"v3\" or leave the key empty");
  }
  Active().store(isa, std::memory_order_relaxed);
}

}  // namespace softmoe::kernels

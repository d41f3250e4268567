// SPDX-License-Identifier: Apache-2.0
#include "property_tests/gpu/stage_programs.h"

#include "core/files/paths.h"
#include "property_tests/gpu/stage_bodies.h"

namespace softmoe::gpu {

double Limit(double seconds) { return IsSimulated() ? 20 * seconds : seconds; }

std::filesystem::path ThisProgram() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

std::filesystem::path Program(const std::string& name,
                              const std::string& in_repository) {
  const std::filesystem::path beside = ThisProgram().parent_path() / name;
  return std::filesystem::exists(beside) ? beside : RunfilePath(in_repository);
}

std::filesystem::path VerifyProgram() {
  return Program("verify", "property_tests/verify/verify");
}

}  // namespace softmoe::gpu

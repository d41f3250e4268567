// SPDX-License-Identifier: Apache-2.0
//
// stage_programs.h - the programs that stages run, and how long they may take
// here.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_STAGE_PROGRAMS_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_STAGE_PROGRAMS_H_

#include <filesystem>
#include <string>

namespace softmoe::gpu {

// The time limit of what takes at most `seconds` on a device: a simulated one
// is as slow as its machine is busy.
double Limit(double seconds);

std::filesystem::path ThisProgram();

// A program that in the bundle lies beside this one.
std::filesystem::path Program(const std::string& name,
                              const std::string& in_repository);

std::filesystem::path VerifyProgram();

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_STAGE_PROGRAMS_H_

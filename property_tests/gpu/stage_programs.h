// SPDX-License-Identifier: Apache-2.0
//
// stage_programs.h - the programs that stages run, and how long they may take
// here.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_STAGE_PROGRAMS_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_STAGE_PROGRAMS_H_

#include <filesystem>
#include <string>

namespace softmoe::gpu {

// The time limit of a stage that takes at most `seconds` on a device: a
// simulated device is as slow as its machine is busy.
double Limit(double seconds);

std::filesystem::path ThisProgram();

// The path of a program that lies beside this one in the bundle.
std::filesystem::path Program(const std::string& name,
                              const std::string& in_repository);

std::filesystem::path VerifyProgram();

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_STAGE_PROGRAMS_H_

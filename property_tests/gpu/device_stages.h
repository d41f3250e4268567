// SPDX-License-Identifier: Apache-2.0
//
// device_stages.h - the stages that call the device themselves: what it is, what
// it can do at most, and how long kernels and products take.
//
// The source is compiled twice, for CUDA and for the simulated device; a program
// links one of them. On the simulated device shapes are small and no time is
// taken.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_DEVICE_STAGES_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_DEVICE_STAGES_H_

#include <string>

#include "property_tests/gpu/stage_context.h"

namespace softmoe::gpu {

// Whether this program has the simulated device for CUDA's; starts nothing.
bool IsSimulated();

// Why there is no NCCL here, and what to do; "" if there is. Starts nothing.
std::string WhyNoNccl();

// The implementation of `verify` that runs here: "cuda", "cuda:bf16", "shim".
std::string ImplementationOf(const std::string& precision);

// Each returns whether all that it asked holds. Errors: EnvironmentError if
// there is no device, or too little memory; NumericsError if the device fails.
bool TellFacts(const StageContext& context);
bool TellProbes(const StageContext& context);
// A communicator of one rank, through every call that ranks make of NCCL.
bool TellNccl(const StageContext& context);
bool TellCeilings(const StageContext& context);
// Operations at the paper's shapes, in fp32 and bf16.
bool TellTimes(const StageContext& context);
// Its products, with each of the first eight algorithms of the heuristic.
bool TellAlgorithms(const StageContext& context);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_DEVICE_STAGES_H_

// SPDX-License-Identifier: Apache-2.0
//
// device_stages.h - the stages that call the device directly: its properties,
// its ceilings, and the times of kernels and products.
//
// The source is compiled twice, for CUDA and for the simulated device; a
// program links one of them. On the simulated device shapes are small and
// nothing is timed.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_DEVICE_STAGES_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_DEVICE_STAGES_H_

#include <string>

#include "property_tests/gpu/stage_context.h"

namespace softmoe::gpu {

// Whether this program has the simulated device in place of CUDA's; starts
// nothing.
bool IsSimulated();

// Why NCCL is missing here, and the remedy; "" if it is there. Starts nothing.
std::string WhyNoNccl();

// The `verify` implementation that runs here: "cuda", "cuda:bf16", "shim".
std::string ImplementationOf(const std::string& precision);

// Each returns whether all its checks hold. Errors: EnvironmentError if there
// is no device or too little memory; NumericsError if the device fails.
bool TellFacts(const StageContext& context);
bool TellProbes(const StageContext& context);
// A communicator of one rank makes every NCCL call that ranks make.
bool TellNccl(const StageContext& context);
bool TellCeilings(const StageContext& context);
// Operations at the paper's shapes, in fp32 and bf16.
bool TellTimes(const StageContext& context);
// The model's products, with each of the heuristic's first eight algorithms.
bool TellAlgorithms(const StageContext& context);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_DEVICE_STAGES_H_

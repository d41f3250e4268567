// SPDX-License-Identifier: Apache-2.0
//
// stage_bodies.h - what this program itself checks, each in its own process:
// the device (its properties, NCCL) and the model on it.
//
// Code that calls the device directly is compiled twice, for CUDA and for the
// simulated device; a program links one of the two.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_STAGE_BODIES_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_STAGE_BODIES_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace softmoe::gpu {

// A line of the record (golden/gpu_runs/gpu_record.h). A body omits what the
// parent adds: shares of ceilings.
using Line = nlohmann::ordered_json;

struct StageContext {
  std::function<void(const Line& line)> tell;
  bool planted_nccl = false;  // NCCL is made wrong, to test its check
  // Few cases, for tools that slow everything down a hundredfold.
  bool brief = false;
};

// ---- The device

// Whether this program has the simulated device in place of CUDA's. Starts
// nothing.
bool IsSimulated();

// Why NCCL is missing here, and the remedy; "" if it is not. Starts nothing.
std::string WhyNoNccl();

// Each returns whether all its checks hold. Errors: EnvironmentError if there
// is no device or too little memory; NumericsError if the device fails.
bool TellFacts(const StageContext& context);
bool TellProbes(const StageContext& context);
// A communicator of one rank makes every NCCL call that ranks make.
bool TellNccl(const StageContext& context);

// ---- The model, against the reference and against itself

// Passes of a small model for each kind of router, in fp32 and bf16: loss,
// routing and all gradients against the reference (testing/model_difference.h).
bool TellModel(const StageContext& context);
// One update of each: the gradient has the bits of a pass of the same model,
// parameters and moments those of AdamW on the CPU; the norm is off by no more
// than its sum may round.
bool TellUpdate(const StageContext& context);
// 20 updates of each (2 on the simulated device), twice, and once interrupted:
// the same bits.
bool TellRepeat(const StageContext& context);

// "WHAT: 3 of 100 differ in bits, first [17]: 0.5 instead of 0.25; ", or "".
// NaN equals itself, 0 differs from -0.
std::string BitDifference(const std::string& what, std::span<const float> got,
                          std::span<const float> expected);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_STAGE_BODIES_H_

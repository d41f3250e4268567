// SPDX-License-Identifier: Apache-2.0
//
// model_stages.h - the model on the device: against the reference, against
// itself, and how fast it trains.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_MODEL_STAGES_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_MODEL_STAGES_H_

#include "core/config/config.h"
#include "property_tests/gpu/stage_context.h"

namespace softmoe::gpu {

// One pass of a small model for each kind of router, in fp32 and bf16: loss,
// routing and all gradients against the reference (testing/model_difference.h).
bool TellModel(const StageContext& context);
// One update of each: gradient, norm and parameters against the CPU kernels',
// within the bounds of the gradient and of AdamW.
bool TellUpdate(const StageContext& context);
// 20 updates of each, twice, and once interrupted: the same bits.
bool TellRepeat(const StageContext& context);
// The paper's whole step, sparse with `active` experts per token. (A small
// model on the simulated device.)
bool TellStep(int active, Precision precision, const StageContext& context);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_MODEL_STAGES_H_

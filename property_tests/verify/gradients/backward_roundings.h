// SPDX-License-Identifier: Apache-2.0
//
// backward_roundings.h - counts how often the reference's backward pass rounds.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_BACKWARD_ROUNDINGS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_BACKWARD_ROUNDINGS_H_

#include <cstdint>

#include "core/config/config.h"

namespace softmoe::verify {

// D of path_dual.h: the largest number of roundings that the reference's
// backward pass makes on any path through one stage of the model (model_dual.h)
// and into a parameter, not counting those of the values that it reads.
double BackwardRoundings(const ModelConfig& m, int64_t num_tokens);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_BACKWARD_ROUNDINGS_H_

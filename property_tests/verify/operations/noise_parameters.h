// SPDX-License-Identifier: Apache-2.0
//
// noise_parameters.h - the parameters that both kinds of router noise share:
// where Philox draws (SPEC.md 2.4).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_NOISE_PARAMETERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_NOISE_PARAMETERS_H_

#include <cstdint>
#include <string>

#include "core/philox.h"
#include "property_tests/verify/engine/operation.h"
#include "reference/noise.h"

namespace softmoe::verify {

inline Parameter NoiseSeedParameter() {
  return {.name = "noise_seed", .text = "of the run", .low = 0, .high = 60000};
}
inline Parameter StepParameter() {
  return {.name = "step", .text = "updates before", .low = 0, .high = 60000};
}
inline Parameter LayerParameter() {
  return {.name = "layer", .text = "of the router", .low = 0, .high = 100};
}
// Includes numbers of more than 32 bits, and one from which the index of draws
// crosses a multiple of 2^32 after six rows, whatever their width.
inline Parameter FirstTokenParameter() {
  return {.name = "first_token",
          .kind = Parameter::Kind::kChoice,
          .text = "number of the first row in the whole batch",
          .choices = {"0", "1000", "1099511627776", "4294967290"}};
}

// As many of a seed's 64 bits as a double holds, and all 32 of a step.
inline constexpr char kNoiseEdge[] =
    "noise_seed=9007199254740991 step=4294967295";

inline int64_t FirstToken(const Case& c) {
  return std::stoll(c.Choice("first_token"));
}
// The key of the draws of our kernels.
inline RandomKey NoiseKey(const Case& c) {
  return {static_cast<uint64_t>(c.Size("noise_seed")),
          RandomStream::kRouterNoise, static_cast<uint32_t>(c.Size("step")),
          static_cast<uint32_t>(c.Size("layer"))};
}
// The same draws for the reference.
inline reference::RouterNoise NoiseOf(const Case& c, NoiseKind kind,
                                      double amplitude) {
  return {.kind = kind,
          .amplitude = amplitude,
          .seed = static_cast<uint64_t>(c.Size("noise_seed")),
          .step = static_cast<uint32_t>(c.Size("step")),
          .layer = static_cast<uint32_t>(c.Size("layer"))};
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_NOISE_PARAMETERS_H_

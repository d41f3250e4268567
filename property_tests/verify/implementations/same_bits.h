// SPDX-License-Identifier: Apache-2.0
//
// same_bits.h - one implementation held to the bits of another:
// "same:cuda,shim" computes on a device, and fails where the simulated device
// computes anything else, however small the difference.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_SAME_BITS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_SAME_BITS_H_

#include <memory>
#include <string>

#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {

// `argument` is IMPL,IMPL: the first computes, in all of its schedules; the
// second, in its first, says which bits. An output that only one of them has is
// not compared. Throws ConfigError if it is not, and what MakeImplementation
// throws.
std::unique_ptr<Implementation> MakeSameBitsImplementation(
    const std::string& argument);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_SAME_BITS_H_

// SPDX-License-Identifier: Apache-2.0
//
// reference_implementation.h - the reference's results, each rounded once to
// f32 or bf16, as "reference_f32" and "reference_bf16": the best that any
// implementation can return. It shows that the harness accepts what is right,
// and serves as the base for planted faults (faults.h).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_REFERENCE_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_REFERENCE_IMPLEMENTATION_H_

#include <memory>

#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {

// "reference_f64" rounds nothing, and accepts float data as well. It is not
// among ImplementationNames(): `verify grad` looks for faults in the
// reference's own derivatives, and `run` has nothing to hold it against.
std::unique_ptr<Implementation> MakeReferenceImplementation(Dtype dtype);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_REFERENCE_IMPLEMENTATION_H_

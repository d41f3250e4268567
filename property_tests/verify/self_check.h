// SPDX-License-Identifier: Apache-2.0
//
// self_check.h - checks, before anything is judged, that correct results pass
// and wrong ones fail. A harness that fails this proves nothing.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_SELF_CHECK_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_SELF_CHECK_H_

namespace softmoe::verify {

// Throws InternalError (exit code 6) unless, on a fixed case, the rounded
// reference passes and its copies with planted gross faults fail.
void CheckSelf();

// The same for CheckGradients (`verify grad`) and the reference in double.
void CheckGradientSelf();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_SELF_CHECK_H_

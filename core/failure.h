// SPDX-License-Identifier: Apache-2.0
//
// failure.h - what an exception means that nothing handles: the one place that
// turns exceptions into exit codes (DESIGN.md, ruling 1), for RunMain and for
// what works beside a main(), such as child processes and ranks.
#ifndef SOFTMOE_CORE_FAILURE_H_
#define SOFTMOE_CORE_FAILURE_H_

#include "core/errors.h"

namespace softmoe {

// The exception that is being handled, as an Error; call it in a catch block.
// Exceptions of the library that say what the machine lacks are of the
// environment, and any other is our own bug.
Error CurrentFailure();

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FAILURE_H_

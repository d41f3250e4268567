// SPDX-License-Identifier: Apache-2.0
//
// failure.h - the meaning of an exception that nothing handles: the one place
// that turns exceptions into exit codes (DESIGN.md, ruling 1), for RunMain and
// for code that runs beside a main(), such as child processes and ranks.
#ifndef SOFTMOE_CORE_FAILURE_H_
#define SOFTMOE_CORE_FAILURE_H_

#include "core/errors.h"

namespace softmoe {

// Returns the exception that is being handled as an Error; call it in a catch
// block. A standard exception that says what the machine lacks becomes an
// EnvironmentError; any other is our own bug.
Error CurrentFailure();

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FAILURE_H_

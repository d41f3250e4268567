// SPDX-License-Identifier: Apache-2.0
//
// communicator_checks.h - what every kind of communicator must do. For tests,
// with GoogleTest and without.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_COMMUNICATOR_CHECKS_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_COMMUNICATOR_CHECKS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "optimized/communicator/communicator.h"

namespace softmoe::optimized {

// Called by every rank inside Run: does operations of all kinds, in an order
// and with sizes that `seed` decides, and compares each with what it must give.
// Throws std::runtime_error where that differs.
void CheckOperations(Communicator& communicator, uint32_t seed);

// Ranks that do not do the same, or fail.
struct Mistake {
  std::string name;
  std::function<void(Communicator&)> body;
  ExitCode code;
  std::string text;  // part of what each rank throws
};

// The mistakes that can happen among `ranks` >= 2 ranks.
std::vector<Mistake> Mistakes(int ranks);

// Called by every rank: makes the mistake in a Run of its own. Returns what is
// wrong with the error that this rank ends with, or with that of one more
// operation, which must be the same; "" if nothing is.
std::string CheckMistake(Communicator& communicator, const Mistake& mistake);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_COMMUNICATOR_CHECKS_H_

// SPDX-License-Identifier: Apache-2.0
//
// communicator_checks.h - checks of what every communicator must do, for tests
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
// and with sizes that `seed` decides, and compares each result with the
// expected one. Throws std::runtime_error if they differ.
void CheckOperations(Communicator& communicator, uint32_t seed);

// Ranks that do different things, or fail.
struct Mistake {
  std::string name;
  std::function<void(Communicator&)> body;
  ExitCode code;
  std::string text;  // part of what each rank throws
};

// The mistakes that can happen among `ranks` >= 2 ranks.
std::vector<Mistake> Mistakes(int ranks);

// Called by every rank: makes the mistake in a Run of its own. Returns what is
// wrong with the error that ends this rank, or with the error of one more
// operation, which must be the same; "" if nothing is wrong.
std::string CheckMistake(Communicator& communicator, const Mistake& mistake);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_COMMUNICATOR_CHECKS_H_

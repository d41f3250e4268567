// SPDX-License-Identifier: Apache-2.0
//
// mutant.h - faults that can be switched on, one at a time, to measure whether
// the tests notice them (property_tests/mutation/README.md).
//
//   sum += SOFTMOE_MUTANT("kernels.tail_dropped", size, size - 1);
//
// is `(size)` in every program that is built for use: no symbol, no branch.
// Only the configuration of bazel/mutants.bzl defines SOFTMOE_MUTANTS; there it
// is `size - 1` in a process started with SOFTMOE_MUTANT=kernels.tail_dropped,
// and the number of times that this was evaluated is counted. Every id stands
// in the sources once, and in the table property_tests/mutation/mutants.cc.
#ifndef SOFTMOE_CORE_MUTANT_H_
#define SOFTMOE_CORE_MUTANT_H_

#ifndef SOFTMOE_MUTANTS

#define SOFTMOE_MUTANT(id, original, mutated) (original)
#define SOFTMOE_MUTANT_SKIPS(id, statement) statement

#else

namespace softmoe::mutant {

// Whether $SOFTMOE_MUTANT names this mutant.
bool IsOn(const char* id);
// One more evaluation of the mutant that is on: adds to the counter in the file
// $SOFTMOE_MUTANT_HITS, which the driver shares with all processes of a run.
void CountHit();

}  // namespace softmoe::mutant

// (A lambda has a variable of its own in every template and every ISA level.)
#define SOFTMOE_INTERNAL_MUTANT_ON(id)                     \
  ([]() -> bool {                                          \
    static const bool is_on = ::softmoe::mutant::IsOn(id); \
    if (is_on) ::softmoe::mutant::CountHit();              \
    return is_on;                                          \
  }())

// `mutated` instead of `original`, both of one type, where `id` is on.
#define SOFTMOE_MUTANT(id, original, mutated) \
  (SOFTMOE_INTERNAL_MUTANT_ON(id) ? (mutated) : (original))

// Leaves `statement` out where `id` is on.
#define SOFTMOE_MUTANT_SKIPS(id, statement) \
  if (SOFTMOE_INTERNAL_MUTANT_ON(id)) {     \
  } else                                    \
    statement

#endif  // SOFTMOE_MUTANTS

#endif  // SOFTMOE_CORE_MUTANT_H_

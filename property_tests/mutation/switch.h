// SPDX-License-Identifier: Apache-2.0
//
// switch.h - switches one planted fault on, and counts how often its place was
// evaluated. rewrite.h writes uses of it into copies of the sources, and the
// build of these copies includes this file before each (bazel/mutants.bzl); no
// source includes it.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SWITCH_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SWITCH_H_

namespace softmoe::mutant {

// Whether $SOFTMOE_MUTANT names this fault. Called when its place is evaluated
// for the first time; in the file $SOFTMOE_MUTANT_REACHED, if there is one,
// changes the line "- ID" to "+ ID".
bool IsOn(const char* id);
// Counts one more evaluation of the fault that is on, in the file
// $SOFTMOE_MUTANT_HITS, which the driver shares with all processes of a run.
void CountHit();

}  // namespace softmoe::mutant

// (A lambda has a variable of its own in every template and every ISA level.)
#define SOFTMOE_MUTANT_ON(id)                              \
  ([]() -> bool {                                          \
    static const bool is_on = ::softmoe::mutant::IsOn(id); \
    if (is_on) ::softmoe::mutant::CountHit();              \
    return is_on;                                          \
  }())

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SWITCH_H_

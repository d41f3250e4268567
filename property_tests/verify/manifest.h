// SPDX-License-Identifier: Apache-2.0
//
// manifest.h - what the tests must have run: a declaration of how many cases of
// which operation on which implementation, compared with what a suite has run.
// What is skipped counts as not run, with the reason, and never as passed.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_MANIFEST_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/verify/engine/suite.h"

namespace softmoe::verify {

struct Declared {
  Unit unit;
  int64_t cases = 0;
  std::string needs;  // "avx512", "gpu": may be missing here; "" may not
};

// What `test //...` runs, at least (implementations_property_test): 100 cases
// of each operation on each implementation that the table of operations
// (operations/operation_table.h) has adapters for, and on the rounded
// reference.
const std::vector<Declared>& Manifest();

// How a suite compares with a declaration.
struct ManifestCheck {
  int64_t declared = 0, ran = 0;  // cases, of what is declared
  std::vector<std::string>
      shortfalls;                    // sentences; empty: all that can run has
  std::vector<std::string> not_run;  // sentences: what this machine lacks
};

// Every declared unit must have run its cases unless what it needs is missing
// here, and every unit that ran must be declared.
ManifestCheck CheckManifest(const std::vector<Declared>& manifest,
                            const Suite& suite);

// "manifest: 2400 of 2700 declared cases ...", and what is missing, by line.
std::string ManifestText(const ManifestCheck& check);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_MANIFEST_H_

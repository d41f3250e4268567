// SPDX-License-Identifier: Apache-2.0
//
// repro.h - one line that reruns exactly one case.
//
//   REPRO v2 verify run op=lapsum impl=cpu:v4 ... # FAIL d_scores[3, 5] ...
//
// What follows "#" is for people. A change of what a case means (fills, Philox
// addresses) needs a new version, because an old line must never run with other
// data.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPRO_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPRO_H_

#include <string>

#include "property_tests/verify/engine/case_result.h"

namespace softmoe::verify {

inline constexpr int kReproVersion = 2;

std::string ReproLine(const CaseResult& result);

// The case text in `text`, which is a REPRO line, "verify run ...", or just the
// words of a case. Throws ConfigError for another version, for a line of
// another command (which checks its case differently), and for a REPRO line
// that is cut short or followed by another.
std::string StripRepro(const std::string& text,
                       const std::string& command = "run");

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPRO_H_

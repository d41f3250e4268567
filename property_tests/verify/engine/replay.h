// SPDX-License-Identifier: Apache-2.0
//
// replay.h - a failing case as one line that runs it again.
//
//   REPRO v7 verify run op=lapsum impl=cpu:v4 ... # FAIL d_scores[17] ...
//
// The line reruns exactly one case. Text after "#" is for people. A change in
// what a case means (fills, Philox addresses, whether another call precedes it)
// needs a new version, because an old line must never check something else.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPLAY_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPLAY_H_

#include <string>

#include "property_tests/verify/engine/check.h"

namespace softmoe::verify {

inline constexpr int kReproVersion = 7;

std::string ReproLine(const CaseResult& result);
// The line of a case that has no result, with a remark for people.
std::string ReproLine(const Case& c, const std::string& command,
                      const std::string& remark);

// The case text in `text`, which is a REPRO line, "verify run ...", or only the
// words of a case. Throws ConfigError for another version, for a line of
// another command (which checks its case differently), and for a REPRO line
// that is cut short before case= or followed by another.
std::string StripRepro(const std::string& text,
                       const std::string& command = "run");

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPLAY_H_

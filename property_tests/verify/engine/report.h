// SPDX-License-Identifier: Apache-2.0
//
// report.h - a suite as text for people, JSON for programs and JUnit for CI.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPORT_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "property_tests/verify/engine/suite.h"

namespace softmoe::verify {

// A table of what ran; the warnings; one REPRO line for each different failure;
// if the suite ended early, the reason and the REPRO line of the case that was
// being computed; and a last line with the verdict.
std::string SuiteText(const Suite& suite);

// One failure, as it is printed the moment it is found.
std::string FailureText(const Failure& failure);

// One case in full: every output with its utilisation, and the hints.
std::string CaseResultText(const CaseResult& result);

nlohmann::ordered_json SuiteJson(const Suite& suite);
nlohmann::ordered_json CaseJson(const CaseResult& result);

// One <testcase> per operation and implementation. A <failure> holds the REPRO
// lines, an <error> says why a unit without a failure is no success, and
// `exit_class` names the exit code. If the suite ended early, one more
// <testcase> says why, in an <error>.
std::string SuiteJUnit(const Suite& suite);

// `text` with U+FFFD for bytes that are not UTF-8. Output of other programs
// must pass through this, since no report can hold it otherwise.
std::string AsUtf8(const std::string& text);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPORT_H_

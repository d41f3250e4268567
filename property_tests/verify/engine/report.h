// SPDX-License-Identifier: Apache-2.0
//
// report.h - a suite for people, for programs (JSON) and for CI (JUnit).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPORT_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "property_tests/verify/engine/suite.h"

namespace softmoe::verify {

// A table of what ran, the warnings, one REPRO line for each different failure,
// why it ended early if it did, with the REPRO line of the case that was being
// computed, and a last line with the verdict.
std::string SuiteText(const Suite& suite);

// One failure, as it is printed the moment it is found.
std::string FailureText(const Failure& failure);

// One case in full: every output with its utilisation, and the hints.
std::string CaseResultText(const CaseResult& result);

nlohmann::ordered_json SuiteJson(const Suite& suite);
nlohmann::ordered_json CaseJson(const CaseResult& result);

// One <testcase> per operation and implementation; the <failure> holds the
// REPRO lines, an <error> why nothing that failed is no success, `exit_class`
// the name of the exit code. If it ended early, one more says why, in an
// <error>.
std::string SuiteJUnit(const Suite& suite);

// `text` with U+FFFD for what is not UTF-8: what other programs say enters
// through this, since no report could hold it as it is.
std::string AsUtf8(const std::string& text);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPORT_H_

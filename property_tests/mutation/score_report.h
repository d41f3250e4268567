// SPDX-License-Identifier: Apache-2.0
//
// score_report.h - a score as text and as JSON.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SCORE_REPORT_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SCORE_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "property_tests/mutation/score.h"

namespace softmoe::mutation {

// killed/total by area and tier, then what is not killed, each with the command
// that shows it.
std::string ScoreText(const Score& score);
nlohmann::ordered_json ScoreJson(const Score& score);

// One line of progress.
std::string ResultLine(const MutantResult& result);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SCORE_REPORT_H_

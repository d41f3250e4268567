// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/repro.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/errors.h"

namespace softmoe::verify {

std::string ReproLine(const CaseResult& result) {
  std::string line = fmt::format(
      "REPRO v{} verify {} {} # {} {}", kReproVersion, result.command,
      CaseText(result.c), golden::StatusName(result.status), result.Place());
  for (const OutputResult& output : result.outputs) {
    const golden::Comparison& found = output.comparison;
    if (output.output != result.output || found.failures == 0) continue;
    line += fmt::format(" got={:.9g} expected={:.9g} bound={:.3g} util={:.3g}",
                        found.worst_got, found.worst_expected,
                        found.worst_bound, found.utilisation);
  }
  // One line, whatever an exception said.
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::string StripRepro(const std::string& text, const std::string& command) {
  std::istringstream words(text.substr(0, text.find('#')));
  std::string word, rest;
  words >> word;
  if (word == "REPRO") {
    const std::string version = fmt::format("v{}", kReproVersion);
    words >> word;
    if (word != version) {
      throw ConfigError("this REPRO line is of version '" + word +
                        "', this program reads " + version +
                        "; rerun it with the program that printed it");
    }
    words >> word;
  }
  if (word == "verify") {
    words >> word;
    if (word != command && (word == "run" || word == "grad")) {
      throw ConfigError("this line is for `verify " + word +
                        "`, not for `verify " + command + "`");
    }
    if (word == command) word.clear();
  }
  if (!word.empty()) rest = word;
  while (words >> word) rest += (rest.empty() ? "" : " ") + word;
  return rest;
}

}  // namespace softmoe::verify

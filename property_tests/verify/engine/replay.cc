// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/errors.h"

namespace softmoe::verify {

std::string ReproLine(const CaseResult& result) {
  std::string remark =
      fmt::format("{} {}", StatusName(result.status), result.Place());
  for (const OutputResult& output : result.outputs) {
    const Comparison& found = output.comparison;
    if (output.output != result.output || found.failures == 0) continue;
    remark += fmt::format(
        " got={:.9g} expected={:.9g} bound={:.3g} util={:.3g}", found.worst_got,
        found.worst_expected, found.worst_bound, found.utilisation);
  }
  return ReproLine(result.c, result.command, remark);
}

std::string ReproLine(const Case& c, const std::string& command,
                      const std::string& remark) {
  std::string line = fmt::format("REPRO v{} verify {} {} # {}", kReproVersion,
                                 command, CaseText(c), remark);
  // Keeps the remark on one line, whatever an exception said.
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::string StripRepro(const std::string& text, const std::string& command) {
  // The first word that begins with "#" and all after it are for people.
  size_t end = text.find('#');
  while (end != std::string::npos && end > 0 &&
         !std::isspace(static_cast<unsigned char>(text[end - 1]))) {
    end = text.find('#', end + 1);
  }
  if (end != std::string::npos &&
      text.find("\nREPRO ", end) != std::string::npos) {
    throw ConfigError("these are two REPRO lines; give one at a time");
  }
  const std::string version = fmt::format("v{}", kReproVersion);
  std::istringstream words(text.substr(0, end));
  std::string word, rest;
  words >> word;
  const bool is_repro = word == "REPRO";
  if (is_repro) {
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
                        "`, which checks something else; give it to that "
                        "command");
    }
    if (word == command) word.clear();
  }
  if (!word.empty()) rest = word;
  while (words >> word) rest += (rest.empty() ? "" : " ") + word;
  // Otherwise the line would name many cases, and not the one that failed.
  if (is_repro && rest.find(" case=") == std::string::npos) {
    throw ConfigError(
        "this REPRO line is cut short: it ends before case=; paste all of it");
  }
  return rest;
}

}  // namespace softmoe::verify

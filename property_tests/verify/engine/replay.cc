// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/errors.h"

namespace softmoe::verify {
namespace {

// Where the first word of `text` from `begin` on starts that starts with "#";
// npos if none does.
size_t FindRemark(const std::string& text, size_t begin) {
  size_t at = text.find('#', begin);
  while (at != std::string::npos && at > 0 &&
         !std::isspace(static_cast<unsigned char>(text[at - 1]))) {
    at = text.find('#', at + 1);
  }
  return at;
}

// `text` without what is for people: a remark after words of the case, to the
// end of its line; or, if it begins a line, since the shell has split it into
// words, all that follows.
std::string WithoutRemarks(const std::string& text) {
  std::string words;
  size_t begin = 0;
  while (true) {
    const size_t remark = FindRemark(text, begin);
    words += text.substr(begin, remark - begin);
    const bool split = remark == 0 || (remark != std::string::npos &&
                                       text[remark - 1] == '\n');
    begin = split ? std::string::npos : text.find('\n', remark);
    if (begin == std::string::npos) return words;
  }
}

}  // namespace

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
  const size_t remark = FindRemark(text, 0);
  if (remark != std::string::npos &&
      text.find("\nREPRO ", remark) != std::string::npos) {
    throw ConfigError("these are two REPRO lines; give one at a time");
  }
  const std::string version = fmt::format("v{}", kReproVersion);
  std::istringstream words(WithoutRemarks(text));
  std::string word, rest;
  words >> word;
  const bool is_repro = word == "REPRO";
  if (is_repro) {
    word.clear();
    words >> word;
    if (!word.empty() && word != version) {
      throw ConfigError("this REPRO line is of version '" + word +
                        "', this program reads " + version +
                        "; rerun it with the program that printed it");
    }
    word.clear();
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

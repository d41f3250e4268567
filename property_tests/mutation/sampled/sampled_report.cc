// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/sampled_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"

namespace softmoe::mutation {
namespace {

// The rate, and the lower end of its interval, that the tests must reach.
constexpr double kWantedRate = 0.95;
constexpr double kWantedLowerEnd = 0.90;
// At most this share of the counted faults may be argued equivalent.
constexpr double kMostArgued = 0.10;

std::string PackageOf(const std::string& file) {
  return file.substr(0, file.rfind('/'));
}

void Count(const MeasuredFault& fault, bool is_argued, Score& score) {
  if (fault.equal_objects) {
    ++score.equal_objects;
    return;
  }
  if (is_argued) {
    ++score.argued;
    return;
  }
  score.Add(fault.fate, IsKilled(fault.fate));
}

std::string InOneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  std::string result;
  for (const char c : text) {
    if (c != ' ' || !result.ends_with(' ')) result += c;
  }
  return result;
}

// The line about sources in which nothing could be drawn.
std::string UnseenText(const std::vector<std::string>& unseen) {
  if (unseen.empty()) return "";
  return fmt::format(
      "nothing is drawn in {} sources that clang has not seen: {}\n",
      unseen.size(), fmt::join(unseen, ", "));
}

}  // namespace

std::map<std::string, Equivalent> ReadEquivalents(
    const std::filesystem::path& file) {
  const toml::table parsed = ParseTomlFile(file);
  TomlReader reader(&parsed);
  std::map<std::string, Equivalent> result;
  for (const toml::table* table : reader.Tables("equivalent")) {
    TomlReader one(table);
    const std::string id = one.Text("id");
    const Equivalent equivalent = {TomlPosition(*table), one.Text("because"),
                                   one.TextOr("read_by", "")};
    one.Finish();
    if (equivalent.because.size() < 10) {
      one.FailAt("because", "says too little");
    }
    if (!result.emplace(id, equivalent).second) {
      one.FailAt("id", id + " is argued already");
    }
  }
  reader.Finish();
  return result;
}

SampledReport::SampledReport(
    const SampledList& list,
    const std::map<std::string, Equivalent>& equivalents)
    : list_(list), equivalents_(equivalents) {
  const std::string prefix = list.run() ? IdPrefix(*list.run()) + "." : "s?";
  for (const auto& [id, equivalent] : equivalents) {
    if (!id.starts_with(prefix)) continue;
    const MeasuredFault* fault = list.Find(id);
    if (fault == nullptr) {
      if (!list.IsComplete()) continue;  // it may still be drawn
      throw DataError(equivalent.where + ": no fault " + id + " is in " +
                      list.path().string() + "; remove the argument");
    }
    if (IsKilled(fault->fate) || !IsBuilt(fault->fate)) {
      throw DataError(fmt::format(
          "{}: {} is argued to be equivalent, but {} ({}); remove the argument",
          equivalent.where, id, FateName(fault->fate), fault->suite));
    }
  }
  for (const MeasuredFault& fault : list.faults()) {
    if (!IsBuilt(fault.fate)) continue;
    const auto found = equivalents.find(fault.fault.id);
    const bool is_argued =
        found != equivalents.end() && !found->second.read_by.empty();
    Count(fault, is_argued, score_);
    Count(fault, is_argued, packages_[PackageOf(fault.fault.file)]);
    Count(fault, is_argued, changes_[fault.fault.kind]);
    if (!IsKilled(fault.fate) && !fault.equal_objects) {
      alive_.push_back(&fault);
    }
  }
  const int64_t drawn = score_.total + score_.equal_objects + score_.argued;
  if (list.IsComplete() && score_.argued > kMostArgued * drawn) {
    throw DataError(fmt::format(
        "{} of {} faults are argued to be equivalent, more than {:.0f} %: "
        "write tests instead",
        score_.argued, drawn, 100 * kMostArgued));
  }
}

std::string SampledReport::Text() const {
  if (!list_.run()) {
    return list_.path().string() + ": nothing has been drawn yet\n";
  }
  const SampledRun& run = *list_.run();
  std::map<Fate, int64_t> fates;
  for (const MeasuredFault& fault : list_.faults()) ++fates[fault.fate];
  std::string text = fmt::format(
      "seed {}{}: {} faults of {} places in {} units ({}; {})\n"
      "no places: {} in macros, {} that the compiler must know, {} "
      "declarations, {} in messages\n{}"
      "drawn, and put back: {} that do not compile, {} that broke the "
      "build\n\n",
      run.seed, run.part.empty() ? "" : ", only in " + run.part, run.faults,
      run.places, run.units, run.clang, "sources " + run.sources.substr(0, 12),
      run.left_out.in_macros, run.left_out.constants, run.left_out.declarations,
      run.left_out.messages, UnseenText(run.unseen),
      fates[Fate::kDoesNotCompile], fates[Fate::kBreaksTheBuild]);
  text += ScoreTable("package", packages_, score_) + "\n";
  text += ScoreTable("change", changes_, score_);
  if (!alive_.empty()) text += "\nalive:\n";
  for (const MeasuredFault* fault : alive_) {
    const auto argued = equivalents_.find(fault->fault.id);
    text += fmt::format(
        "{} {} {}:{} ({}, {} suites)\n    {}\n    -> {}\n",
        FateName(fault->fate), fault->fault.id, fault->fault.file, fault->line,
        fault->fault.kind, fault->suites, InOneLine(fault->original),
        fault->fault.instead.empty() ? "(nothing)"
                                     : InOneLine(fault->fault.instead));
    if (argued != equivalents_.end()) {
      text += fmt::format(
          "    equivalent: {} (read by {})\n", argued->second.because,
          argued->second.read_by.empty() ? "nobody yet, so it counts"
                                         : argued->second.read_by);
    }
  }
  text += fmt::format(
      "\n{}; {} equivalent by equal object code, {} argued{}\n",
      score_.Text(run.part.empty() ? "" : " in " + run.part + " alone"),
      score_.equal_objects, score_.argued,
      list_.IsComplete() ? "" : "; NOT COMPLETE, start it again to continue");
  return text;
}

ExitCode SampledReport::exit_code() const {
  if (!list_.IsComplete()) return ExitCode::kInconclusive;
  if (score_.rate() < kWantedRate) return ExitCode::kFailed;
  return score_.interval().low >= kWantedLowerEnd ? ExitCode::kDone
                                                  : ExitCode::kInconclusive;
}

}  // namespace softmoe::mutation

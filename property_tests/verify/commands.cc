// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/commands.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/failure.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/files/replacing.h"
#include "core/process/stop_signal.h"
#include "core/text/progress.h"
#include "property_tests/verify/engine/campaign.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/explain.h"
#include "property_tests/verify/foreign/case_file.h"
#include "property_tests/verify/foreign/vectors.h"
#include "property_tests/verify/gradients/gradient_check.h"

namespace softmoe::verify {
namespace {

using Json = nlohmann::ordered_json;

// Puts each word on a line of its own, so that two REPRO lines remain two.
std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + "\n";
  return text;
}

// Removes every word KEY=VALUE with this key from `text`, and returns the
// values. Throws ConfigError if two are the same.
std::vector<std::string> TakeAll(const std::string& key, std::string* text) {
  std::vector<std::string> values;
  std::istringstream words(*text);
  text->clear();
  for (std::string word; words >> word;) {
    if (!word.starts_with(key + "=") || word.size() == key.size() + 1) {
      *text += word + " ";
      continue;
    }
    const std::string value = word.substr(key.size() + 1);
    if (std::ranges::count(values, value) != 0) {
      throw ConfigError("'" + word + "' is given twice; leave one of them out");
    }
    values.push_back(value);
  }
  return values;
}

// The campaign that options and words describe together. It runs on `impls` if
// they name none, and runs `cases` cases from case 0 if they say neither how
// many nor which.
CampaignOptions MakeCampaign(
    const Options& options, const std::string& command = "run",
    const std::vector<std::string>& impls = {"cpu:v3", "cpu:v4", "shim",
                                             "cuda"},
    int64_t cases = 100) {
  std::string text = StripRepro(Join(options.words), command);
  CampaignOptions campaign;
  campaign.ops = TakeAll("op", &text);
  campaign.impls = TakeAll("impl", &text);
  if (campaign.impls.empty()) campaign.impls = impls;
  campaign.fixed = ParseWords(text);
  const auto take = [&](const std::string& key) {
    const auto node = campaign.fixed.extract(key);
    return node.empty() ? std::string() : node.mapped();
  };
  const std::string seed = take("seed");
  campaign.seed = seed.empty() ? 0 : ParseSeed("seed", seed);
  campaign.cases = options.cases.value_or(cases);
  const std::string number = take("case");
  if (!number.empty()) {
    campaign.first = ParseCaseNumber(number);
    campaign.cases = options.cases.value_or(1);
    if (campaign.cases > (int64_t{1} << 32) - campaign.first) {
      throw ConfigError(fmt::format(
          "{} cases from case={}: the highest possible case number is {}",
          campaign.cases, campaign.first, 0xffffffff));
    }
  }
  // A single case that is named is to be shown as it is.
  campaign.shrink =
      !options.no_shrink && (number.empty() || options.cases.has_value());
  return campaign;
}

void WriteReports(const Options& options, const Suite& suite) {
  if (!options.json.empty()) {
    // Converted through JsonLine, which has a text for numbers that JSON lacks.
    WriteFileAtomically(UserPath(options.json),
                        Json::parse(JsonLine(SuiteJson(suite))).dump(2) + "\n");
  }
  if (!options.junit.empty()) {
    WriteFileAtomically(UserPath(options.junit), SuiteJUnit(suite));
  }
}

// The files of other people's implementations: the text after serve:, lib: or
// recorded: in their names, both whole and split at its commas.
std::vector<std::filesystem::path> FilesOf(
    const std::vector<std::string>& impls) {
  std::vector<std::filesystem::path> files;
  const auto add = [&](const std::string& file) {
    if (!file.empty()) files.push_back(UserPath(file));
  };
  for (const std::string& impl : impls) {
    for (const std::string kind : {"serve:", "lib:", "recorded:"}) {
      for (size_t at = impl.find(kind); at != std::string::npos;
           at = impl.find(kind, at + 1)) {
        const std::string rest = impl.substr(at + kind.size());
        add(rest);
        std::istringstream parts(rest);
        for (std::string part; std::getline(parts, part, ',');) add(part);
      }
    }
  }
  return files;
}

// Throws ConfigError if a report would replace another one or a `used` file.
void CheckReportNames(const Options& options,
                      std::vector<std::filesystem::path> used) {
  for (const auto& [option, name] :
       {std::pair<const char*, const std::string&>{"--json", options.json},
        {"--junit", options.junit},
        {"--log", options.log}}) {
    if (name.empty()) continue;
    const std::filesystem::path path = UserPath(name);
    RefuseReplacing(option, path, used);
    used.push_back(path);
  }
}

// Throws if a report cannot be written, so that this shows before the run.
void CheckReports(const Options& options) {
  for (const std::string& path : {options.json, options.junit}) {
    if (!path.empty()) AtomicFile{UserPath(path)};
  }
  if (!options.bundles.empty()) MakeFolder(UserPath(options.bundles));
}

// Throws unless, of `names`, `check` passes "faulty:none:..." and nothing else.
void ExpectJudged(const Checker& check, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const bool healthy = name.starts_with("faulty:none");
    const auto implementation = MakeImplementation(name);
    const CaseResult result =
        check(ParseCase("op=lapsum fill=generic rows=5 num_experts=13 "
                        "mean_active=2.375 temperature=1.75 spread=1 impl=" +
                        name),
              *implementation);
    if ((result.status == Status::kPass) == healthy) continue;
    throw InternalError(
        "self-check: " + name + " was judged " + StatusName(result.status) +
        " " + result.reason +
        "; no verdict of this program can be trusted: report it as a bug");
  }
}

// Makes the empty file `folder`/OP-N.h5, with the first N that is free, and
// returns its path. Of several processes each gets a name of its own.
std::filesystem::path TakeBundleName(const std::string& folder,
                                     const std::string& op) {
  for (int number = 1;; ++number) {
    const std::filesystem::path path =
        UserPath(folder) / fmt::format("{}-{}.h5", op, number);
    const int file =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) throw FileError("write", path, errno);
    if (file < 0) continue;
    ::close(file);
    return path;
  }
}

// Records the smallest form of a failure as `folder`/OP-N.h5, with an N that no
// other bundle has.
void WriteFailureBundle(const std::string& folder, const Failure& failure) {
  const Case& c = failure.smallest.c;
  const auto implementation = MakeImplementation(c.impl);
  Evidence seen;
  const CaseResult result =
      Finished(CheckCase(c, *implementation, &seen), *implementation);
  if (!result.failed()) {
    fmt::print("  no bundle: the case passes alone\n");
    return;
  }
  const std::filesystem::path path = TakeBundleName(folder, c.op);
  try {
    WriteBundle(path, result, seen.got);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    throw;
  }
  fmt::print("  bundle: {}\n", path.string());
}

// One line on stderr about a running campaign: "fuzz 42s of 10m00 | 1234 cases
// | lapsum on cpu:v4", rewritten in place on a terminal; elsewhere a new line
// every 10 seconds.
class CampaignProgress {
 public:
  // seconds: how long the campaign will take; infinity if it counts cases.
  explicit CampaignProgress(double seconds)
      : seconds_(seconds), progress_("verify", 0) {}

  void Tell(const CaseResult& result) {
    ++cases_;
    const std::chrono::duration<double> passed = Clock::now() - start_;
    const double now = passed.count();
    const bool in_logs = now - last_in_logs_ >= kLogSeconds;
    if (in_logs) last_in_logs_ = now;
    std::string line = std::isfinite(seconds_)
                           ? fmt::format("fuzz {} of {}", FormatDuration(now),
                                         FormatDuration(seconds_))
                           : "run " + FormatDuration(now);
    line += fmt::format(" | {} cases", cases_);
    if (failures_ > 0) line += fmt::format(" | {} failures", failures_);
    progress_.Show(
        line + fmt::format(" | {} on {}", result.c.op, result.c.impl), in_logs);
  }

  // Must be called before a new failure is printed on stdout.
  void TellFailure(const CaseResult& smallest) {
    ++failures_;
    progress_.Note(fmt::format("failure {}: {} on {}", failures_, smallest.c.op,
                               smallest.c.impl));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kLogSeconds = 10;

  double seconds_;
  Clock::time_point start_ = Clock::now();
  double last_in_logs_ = 0;  // seconds since the start
  int64_t cases_ = 0, failures_ = 0;
  Progress progress_;
};

void PrintError(const Error& error) {
  fmt::print(stderr, "verify: error: {}\n", error.what());
}

// Runs `campaign` and reports it.
ExitCode RunCases(const Options& options, CampaignOptions campaign) {
  CheckReportNames(options, FilesOf(campaign.impls));
  CheckCampaign(campaign);  // before any file is written
  CheckReports(options);
  CheckSelf();
  std::unique_ptr<JsonLinesWriter> log;
  if (!options.log.empty()) {
    log = std::make_unique<JsonLinesWriter>(UserPath(options.log));
  }
  const StopSignal signal;
  campaign.stop = [&] { return signal.requested(); };
  CampaignProgress progress(campaign.seconds);
  campaign.on_result = [&](const CaseResult& result) {
    progress.Tell(result);
    if (log) log->Write(CaseJson(result));
  };
  campaign.on_failure = [&](const Failure& failure) {
    progress.TellFailure(failure.smallest);
    std::fputs(FailureText(failure).c_str(), stdout);
    if (!options.bundles.empty()) {
      WriteFailureBundle(options.bundles, failure);
    }
    std::fflush(stdout);
  };
  Suite result;
  std::optional<Error> error;
  try {
    RunCampaign(campaign, &result);
  } catch (...) {
    error = CurrentFailure();  // the report still has what was found
    if (!result.ended_early()) result.EndEarly(*error);
  }
  if (!result.failures().empty()) std::fputs("\n", stdout);
  std::fputs(SuiteText(result).c_str(), stdout);
  std::fflush(stdout);
  try {
    WriteReports(options, result);
  } catch (...) {
    if (error) PrintError(*error);
    error = CurrentFailure();
  }
  // Only an error of the harness itself takes precedence over a FAIL.
  const bool failed = result.exit_code() == ExitCode::kFailed;
  if (error && (!failed || error->code() == ExitCode::kSelfCheck)) {
    throw Error(*error);
  }
  if (error) PrintError(*error);
  if (result.stopped()) {
    signal.ThrowIfRequested(fmt::format(
        "{} cases ran and are reported above; continue with another seed=",
        result.cases()));
  }
  return result.exit_code();
}

// Judges the user's file `outputs` by `vectors`, and prints every new failure.
// Throws as MakeRecordedImplementation does.
Suite JudgeVectors(const std::string& vectors, const std::string& outputs) {
  const auto implementation =
      MakeImplementation("recorded:" + vectors + "," + outputs);
  const std::filesystem::path path = UserPath(vectors);
  const std::vector<VectorCase> cases = ReadVectors(path);
  CheckExpectations(path, cases);
  Suite suite;
  for (size_t i = 0; i < cases.size(); ++i) {
    Case c = cases[i].c;
    c.impl = implementation->name();
    CaseResult result = CheckInputs(c, cases[i].inputs, *implementation);
    suite.Add(result);
    if (!result.failed()) continue;
    result.hints.push_back("group " + CaseGroup(static_cast<int64_t>(i)) +
                           " of both files");
    const size_t before = suite.failures().size();
    suite.CountFailure(result);
    if (suite.failures().size() == before) continue;
    std::fputs(FailureText(suite.failures().back()).c_str(), stdout);
  }
  return suite;
}

}  // namespace

void CheckSelf() {
  ExpectJudged(
      [](const Case& c, Implementation& i) { return CheckCase(c, i); },
      {"faulty:none:weights:reference_f32", "faulty:zero:weights:reference_f32",
       "faulty:one_nan:d_scores:reference_f32",
       "faulty:sign:d_scores:reference_f32"});
}

void CheckGradientSelf() {
  ExpectJudged(CheckGradients,
               {"faulty:none:d_scores:reference_f64",
                "faulty:one_nan:d_scores:reference_f64",
                "faulty:zero:d_mean_active:reference_f64",
                "faulty:one_part_in_1e4:d_scores:reference_f64"});
}

ExitCode Run(const Options& options) {
  CampaignOptions campaign = MakeCampaign(options);
  using Edges = CampaignOptions::Edges;
  campaign.edges = options.edges         ? Edges::kAll
                   : options.edges_first ? Edges::kFirst
                                         : Edges::kNone;
  if (options.seconds) campaign.seconds = *options.seconds;
  return RunCases(options, std::move(campaign));
}

ExitCode Fuzz(const Options& options) {
  CampaignOptions campaign = MakeCampaign(options);
  campaign.cases = std::numeric_limits<int64_t>::max();
  campaign.seconds = options.seconds.value_or(60);
  using Edges = CampaignOptions::Edges;  // may lack the element of simplify=
  campaign.edges =
      campaign.fixed.contains("simplify") ? Edges::kNone : Edges::kFirst;
  campaign.shrink = !options.no_shrink;  // case= only sets the first case
  return RunCases(options, std::move(campaign));
}

ExitCode Grad(const Options& options) {
  CampaignOptions campaign =
      MakeCampaign(options, "grad", {"reference_f64"}, 20);
  if (options.seconds) {
    campaign.seconds = *options.seconds;
    campaign.cases =
        options.cases.value_or(std::numeric_limits<int64_t>::max());
    campaign.shrink = !options.no_shrink;  // case= only sets the first case
  }
  for (const std::string& impl : campaign.impls) {
    if (impl.ends_with("reference_f64")) continue;
    throw ConfigError("grad: impl=" + impl +
                      ": only the derivatives of reference_f64 are checked "
                      "here: `verify run impl=" +
                      impl + "` holds others against them; leave impl= out");
  }
  CheckGradientSelf();
  return RunCases(options, ForGradients(std::move(campaign)));
}

ExitCode Plan(const Options& options) {
  CampaignOptions campaign = MakeCampaign(options);
  if (campaign.ops.empty()) {
    for (const Operation* op : Operations()) {
      campaign.ops.push_back(op->name());
    }
  }
  int64_t total = 0;
  for (const std::string& name : campaign.ops) {
    const Operation& op = FindOperation(name);
    for (const std::string& impl : campaign.impls) {
      const auto implementation = MakeImplementation(impl);
      CasePattern fixed = campaign.fixed;
      fixed.emplace("dtype", DtypeName(DtypeFor(op, *implementation)));
      const Case first = DrawCase(op, fixed, campaign.seed, campaign.first);
      const std::string why = implementation->WhyUnsupported(op, first.dtype);
      if (!why.empty()) {
        fmt::print("{} on {}: not run: {}\n", name, impl, why);
        continue;
      }
      std::map<std::string, int> fills;
      for (int64_t i = 0; i < campaign.cases; ++i) {
        const Case c = DrawCase(op, fixed, campaign.seed,
                                campaign.first + static_cast<uint32_t>(i));
        ++fills[c.fill.name];
      }
      fmt::print("{} on {}: {} cases:", name, impl, campaign.cases);
      for (const auto& [fill, count] : fills) fmt::print(" {} {}", fill, count);
      fmt::print("\n");
      total += campaign.cases;
    }
  }
  fmt::print("{} cases in all\n", total);
  return ExitCode::kDone;
}

ExitCode Explain(const Options& options) {
  const std::string words = StripRepro(Join(options.words));
  Case c = ParseCase(words);
  const Operation& op = FindOperation(c.op);
  const auto implementation = MakeImplementation(c.impl);
  if (!ParseWords(words).contains("dtype")) {
    c.dtype = DtypeFor(op, *implementation);
  }
  Evidence seen;
  const CaseResult result =
      Finished(CheckCase(c, *implementation, &seen), *implementation);
  if (seen.expected.outputs.empty()) {  // nothing ran, or it failed
    seen.expected = ExpectOf(op, c, InputsOf(op, c), {});
    TakeBoundsFor(*implementation, &seen.expected);
  }
  std::fputs(ExplainText(result, seen).c_str(), stdout);
  Suite suite;
  suite.Add(result);
  return suite.exit_code();
}

ExitCode Replay(const Options& options, const std::string& file) {
  CasePattern words = ParseWords(Join(options.words));
  const auto impl = words.extract("impl");
  if (!words.empty()) {
    throw ConfigError("replay: " + words.begin()->first +
                      "=: the bundle determines the case; give only impl=, to "
                      "run it on another implementation");
  }
  const std::vector<VectorCase> cases = ReadVectors(UserPath(file));
  if (cases.size() != 1 || cases[0].result.empty()) {
    throw DataError(file +
                    ": these are vectors, not the bundle of a failed case; "
                    "give them to check-vectors, with the outputs to judge");
  }
  VectorCase bundle = cases[0];
  if (!impl.empty()) bundle.c.impl = impl.mapped();
  std::vector<std::filesystem::path> used = FilesOf({bundle.c.impl});
  used.push_back(UserPath(file));
  CheckReportNames(options, std::move(used));
  CheckReports(options);
  CheckSelf();
  const auto implementation = MakeImplementation(bundle.c.impl);
  const CaseResult result = Finished(
      CheckInputs(bundle.c, bundle.inputs, *implementation), *implementation);
  fmt::print("recorded: {}\n{}", bundle.result, CaseResultText(result));
  Suite suite;
  suite.Add(result);
  if (result.failed()) suite.CountFailure(result);
  WriteReports(options, suite);
  return suite.exit_code();
}

ExitCode ExportVectors(const Options& options) {
  const CampaignOptions campaign = MakeCampaign(options, "run", /*impls=*/{});
  if (!campaign.impls.empty()) {
    throw ConfigError(
        "export-vectors: impl=" + campaign.impls[0] +
        ": what is expected always comes from the reference; leave impl= out");
  }
  if (campaign.ops.empty()) {
    throw ConfigError(
        "export-vectors needs op=NAME, or several; `verify list` shows the "
        "names");
  }
  CasePattern pattern = campaign.fixed;
  pattern["impl"] = "theirs";
  std::vector<Case> drawn;
  for (const std::string& name : campaign.ops) {
    const Operation& op = FindOperation(name);
    for (int64_t i = 0; i < campaign.cases; ++i) {
      const bool at_edge =
          options.edges_first && i < 2 * std::ssize(op.edges());
      drawn.push_back((at_edge ? DrawEdge : DrawCase)(
          op, pattern, campaign.seed,
          campaign.first + static_cast<uint32_t>(i)));
    }
  }
  const std::filesystem::path path = UserPath(options.out);
  WriteVectors(path, drawn);
  fmt::print(
      "{}: {} cases of {} operation{}, {:.1f} MB\n"
      "Layout: property_tests/verify/foreign/FORMAT.md. When your framework "
      "has written its outputs:\n"
      "  ./bazelw run //:verify -- check-vectors {} theirs.h5\n",
      path.string(), drawn.size(), campaign.ops.size(),
      campaign.ops.size() == 1 ? "" : "s",
      static_cast<double>(std::filesystem::file_size(path)) / 1e6, options.out);
  return ExitCode::kDone;
}

ExitCode CheckVectors(const Options& options, const std::string& vectors,
                      const std::string& outputs) {
  if (vectors.find(',') != std::string::npos) {
    throw ConfigError("check-vectors: '" + vectors +
                      "': in a REPRO line, a comma separates the two files; "
                      "make a link whose name has no comma");
  }
  CheckReportNames(options, {UserPath(vectors), UserPath(outputs)});
  CheckReports(options);
  CheckSelf();
  const Suite suite = JudgeVectors(vectors, outputs);
  std::fputs(SuiteText(suite).c_str(), stdout);
  WriteReports(options, suite);
  return suite.exit_code();
}

}  // namespace softmoe::verify

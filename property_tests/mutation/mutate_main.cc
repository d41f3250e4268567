// SPDX-License-Identifier: Apache-2.0
//
// `verify mutate`: plants faults in the real sources, one at a time, and counts
// which of them the tests notice.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/files/private_folder.h"
#include "core/process/stop_signal.h"
#include "core/text/suggestion.h"
#include "core/text/text_table.h"
#include "property_tests/mutation/measure.h"
#include "property_tests/mutation/mutants.h"
#include "property_tests/mutation/run_suite.h"
#include "property_tests/mutation/score_report.h"

namespace {

using namespace softmoe;            // NOLINT: a main
using namespace softmoe::mutation;  // NOLINT
namespace fs = std::filesystem;

constexpr char kDescription[] =
    "Plants faults in the real sources, one at a time, and counts those that "
    "the tests notice.";

constexpr char kExamples[] = R"(
Examples:
  verify mutate
      every mutant: a table of killed/planted by area and tier
  verify mutate --list --area lapsum
      what is planted there, and which tests must notice
  verify mutate --mutant lapsum.d_mean_active_sign --output
      one mutant, with what its tests print
  verify mutate --sampled 300 --seed 1
      faults drawn by chance, against every test; --help says more there

Exit codes: 0 every mutant is killed, or argued equivalent and alive; 1 one is
not; 2 an unknown name; 6 void: tests fail without any mutant, or a canary was
misjudged; 75 stopped by a signal, after the report.
property_tests/mutation/README.md says how to plant another one.)";

struct Options {
  std::vector<std::string> areas, mutants;
  int jobs = 2;
  std::string json;
  bool list = false, output = false;
};

void RequireKnown(const std::string& what,
                  const std::vector<std::string>& given,
                  const std::vector<std::string>& known) {
  for (const std::string& name : given) {
    if (std::ranges::count(known, name) == 0) {
      throw ConfigError("unknown " + what + " '" + name + "'; " +
                        Suggestion(name, known));
    }
  }
}

// The mutants that the options select, plus the canaries.
std::vector<Mutant> Choose(const Options& options) {
  std::vector<std::string> areas, ids;
  for (const Mutant& mutant : AllMutants()) {
    areas.push_back(mutant.area());
    ids.push_back(mutant.id);
  }
  RequireKnown("area", options.areas, areas);
  RequireKnown("mutant", options.mutants, ids);
  std::vector<Mutant> chosen;
  for (const Mutant& mutant : AllMutants()) {
    const bool all = options.areas.empty() && options.mutants.empty();
    if (all || mutant.area() == kCanaryArea ||
        std::ranges::count(options.areas, mutant.area()) > 0 ||
        std::ranges::count(options.mutants, mutant.id) > 0) {
      chosen.push_back(mutant);
    }
  }
  return chosen;
}

ExitCode List(const Options& options) {
  TextTable table({"mutant", "killed by", "fault"});
  for (const Mutant& mutant : Choose(options)) {
    table.Add({mutant.id,
               mutant.equivalent_because.empty() ? mutant.suite : "equivalent",
               mutant.fault});
  }
  std::fputs(table.Text().c_str(), stdout);
  return ExitCode::kDone;
}

ExitCode Mutate(const Options& options) {
  const PrivateFolder scratch;
  const StopSignal signal;
  MeasureOptions measure;
  measure.mutants = Choose(options);
  measure.suites = AllSuites();
  measure.jobs = options.jobs;
  measure.stop = [&] { return signal.requested(); };
  measure.run = [&](const Suite& suite, const std::string& id, double timeout) {
    return RunSuite(suite, id, timeout, scratch.path());
  };
  measure.on_clean_run = [&](const Suite& suite, const SuiteRun& run) {
    const bool passed = run.end == SuiteRun::End::kExited && run.code == 0;
    fmt::print("{:<11} {} without a mutant  ({:.1f} s)\n",
               passed ? "passed" : "FAILED", suite.name, run.seconds);
    if (!passed) std::fputs(run.output.c_str(), stdout);
    std::fflush(stdout);
  };
  size_t done = 0;
  measure.on_result = [&](const MutantResult& result, const SuiteRun& run) {
    fmt::print("[{}/{}] {}\n", ++done, measure.mutants.size(),
               ResultLine(result));
    if (options.output && result.mutant.area() != kCanaryArea) {
      fmt::print("{}\n{}\n",
                 SuiteCommand(FindSuite(AllSuites(), result.mutant.suite),
                              result.mutant.id),
                 run.output);
    }
    std::fflush(stdout);
  };
  const Score score = Measure(measure);
  std::fputs(ScoreText(score).c_str(), stdout);
  std::fflush(stdout);
  if (!options.json.empty()) {
    WriteFileAtomically(UserPath(options.json),
                        ScoreJson(score).dump(2) + "\n");
  }
  signal.ThrowIfRequested("the mutants that ran are reported above");
  return score.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kDescription, "verify mutate"};
  app.footer(kExamples);
  Options options;
  app.add_option("--area", options.areas,
                 "lapsum, routing, budget, kernels, numerics, training, "
                 "harness, reference, reports, plan, readers, device, ranks, "
                 "gpu_check, miniature [all]");
  app.add_option("--mutant", options.mutants, "ids, as --list shows them");
  app.add_option("--jobs", options.jobs, "tests at a time [2]")
      ->check(CLI::Range(1, 256));
  app.add_option("--json", options.json, "report as JSON, into this file");
  app.add_flag("--list", options.list, "show what is planted, run nothing");
  app.add_flag("--output", options.output, "show what the tests print");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  return RunMain("verify mutate", [&] {
    return options.list ? List(options) : Mutate(options);
  });
}

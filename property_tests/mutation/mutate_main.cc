// SPDX-License-Identifier: Apache-2.0
//
// `verify mutate`: plants faults, chosen or drawn ones (--sampled), in copies
// of the real sources, one at a time, and counts those that the tests notice.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/process/stop_signal.h"
#include "core/stoppable_output.h"
#include "core/text/command_line.h"
#include "core/text/suggestion.h"
#include "core/text/text_table.h"
#include "property_tests/mutation/build.h"
#include "property_tests/mutation/chosen_run.h"
#include "property_tests/mutation/driver.h"
#include "property_tests/mutation/sampled/sample.h"
#include "property_tests/mutation/suites.h"

namespace {

using namespace softmoe;            // NOLINT: a main
using namespace softmoe::mutation;  // NOLINT

constexpr char kDescription[] =
    "Plants faults in copies of the real sources, one at a time, and counts "
    "those that the tests notice.";

constexpr char kExamples[] = R"(
Examples:
  verify mutate
      every chosen fault, against the suite that is named for it
  verify mutate --list --area lapsum
      what is planted there, and which tests must notice
  verify mutate --mutant lapsum.d_mean_active_sign --output
      one fault, with what its tests print
  verify mutate --sampled 300 --seed 7
      drawn faults, against every test: two to three hours of two cores;
      after an interruption, the same command continues
  verify mutate --sampled 300 --seed 1 --report
      the results in the list so far; nothing is run
  verify mutate --sampled 300 --seed 3 --in optimized --log optimized.jsonl
      faults drawn only in this folder, each place with the same chance

Exit codes of chosen faults: 0 each is killed, or argued equivalent and alive; 1
one is not; of drawn ones: 0 at least 95 % are killed, and the interval begins at
90 % or more; 1 fewer are; 4 too few to say, or not all of them yet. Of both: 2
an unknown name, an invalid number, a damaged list or one of other sources; 5
the build, another compiler, or no memory; 6 void: tests fail without any fault,
or a canary was misjudged; 75 stopped by a signal, after the report.
property_tests/mutation/README.md says how to plant another one, and
property_tests/mutation/sampled/README.md what is drawn.)";

struct Options {
  std::vector<std::string> areas, mutants;
  std::string log;
  bool list = false, output = false, has_seed = false;
  SampleOptions sample;  // and options of both modes
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

// Whether the options ask for `fault`; canaries always run.
bool IsChosen(const Options& options, const Fault& fault) {
  const bool all = options.areas.empty() && options.mutants.empty();
  return all || fault.area() == kCanaryArea ||
         std::ranges::count(options.areas, fault.area()) > 0 ||
         std::ranges::count(options.mutants, fault.id) > 0;
}

void RequireKnown(const Options& options) {
  std::set<std::string> areas;
  std::vector<std::string> ids;
  for (const Fault& fault : AllFaults()) {
    areas.insert(fault.area());
    ids.push_back(fault.id);
  }
  RequireKnown("area", options.areas, {areas.begin(), areas.end()});
  RequireKnown("mutant", options.mutants, ids);
}

ExitCode List(const Options& options) {
  TextTable table({"mutant", "killed by", "fault"});
  for (const Fault& fault : AllFaults()) {
    if (!IsChosen(options, fault)) continue;
    table.Add({fault.id,
               fault.equivalent_because.empty() ? fault.suite : "equivalent",
               fault.fault});
  }
  std::fputs(table.Text().c_str(), stdout);
  return ExitCode::kDone;
}

// The faults whose sources the project has, asked for or not, so that each
// source is compiled only once: faults that are not asked for stay off.
std::vector<Fault> PlantableFaults(const Options& options,
                                   const SourceTree& tree) {
  std::vector<Fault> faults;
  for (const Fault& fault : AllFaults()) {
    if (tree.Text(fault.file) != nullptr || IsChosen(options, fault)) {
      faults.push_back(fault);
    }
  }
  return faults;
}

ExitCode MeasureChosen(const Options& options, const StopSignal& signal) {
  std::optional<JsonLinesWriter> log;  // fails before anything takes long
  if (!options.log.empty()) log.emplace(UserPath(options.log));
  std::map<std::string, Suite> suites;  // by name
  std::set<std::string> programs;
  for (const Fault& fault : AllFaults()) {
    if (!IsChosen(options, fault)) continue;
    const Suite suite = SuiteOf(fault.suite);
    suites.emplace(suite.name, suite);
    programs.insert(suite.program);
  }
  const BuildFolder folder;
  Say("asking Bazel what the tests are made from ...");
  const Project project = ReadProject(
      Workspace(), RunfilePath("property_tests/mutation/flags.json"), programs);
  signal.ThrowIfRequested("nothing was measured yet");
  SourceTree tree(project, folder.path() / "tree");
  const Compiler compiler(project, tree, VersionOf(project.compiler));
  ChosenOptions chosen;
  chosen.kill.jobs = options.sample.jobs;
  chosen.kill.stop = [&] { return signal.requested(); };
  const std::vector<Fault> faults = PlantableFaults(options, tree);
  const std::vector<PlacedFault> placed = PlaceFaults(faults, tree.Reader());
  for (size_t i = 0; i < faults.size(); ++i) {
    if (!IsChosen(options, faults[i])) continue;
    chosen.faults.push_back({faults[i], Describe(tree, placed[i])});
  }
  Say(fmt::format("building {} test programs with {} faults ...",
                  programs.size(), placed.size()));
  Build build(project, tree, compiler,
              {.folder = folder.path(),
               .jobs = options.sample.jobs,
               .stop = chosen.kill.stop,
               .on_unit = Progress("units compiled")});
  const auto broken = build.Make(placed, {programs.begin(), programs.end()});
  signal.ThrowIfRequested("nothing was measured yet");
  if (!broken.empty()) {
    throw DataError(broken.begin()->first +
                    " breaks the build: " + broken.begin()->second);
  }
  for (auto& [name, suite] : suites) {
    suite.runfiles = build.Runfiles();
    chosen.suites.push_back(suite);
  }
  chosen.kill.run = [&](const Suite& suite, const std::string& id,
                        double timeout) {
    SuiteRun run =
        RunSuite(suite, id, timeout, folder.scratch(), chosen.kill.stop);
    if (options.output && std::ranges::count(options.mutants, id) > 0) {
      Say(SuiteCommand(suite, id) + "\n" + run.output);
    }
    return run;
  };
  chosen.on_clean_run = [](const Suite& suite, const CleanRun& run,
                           const std::string& output) {
    Say(fmt::format("{:<11} {} without a fault  ({:.1f} s)",
                    run.passed ? "passed" : "FAILED", suite.name, run.seconds));
    if (!run.passed) Say(output);
  };
  size_t done = 0;
  chosen.on_result = [&](const ChosenFault& result) {
    Say(fmt::format("[{}/{}] {}", ++done, chosen.faults.size(),
                    ResultLine(result)));
    if (log) log->Write(FaultJson(result.measured));
  };
  const ChosenScore score = Measure(chosen);
  PrintUnlessStopped(stdout, score.Text());
  signal.ThrowIfRequested("the faults that ran are reported above");
  return score.exit_code();
}

ExitCode Mutate(Options& options) {
  const bool is_sampled = options.sample.faults > 0;
  const bool has_chosen = !options.areas.empty() || !options.mutants.empty() ||
                          options.list || options.output;
  if (is_sampled && has_chosen) {
    throw ConfigError(
        "--sampled: --area, --mutant, --list and --output are for chosen "
        "faults; leave them out");
  }
  if (!is_sampled && (options.sample.report || !options.sample.in.empty() ||
                      options.has_seed)) {
    throw ConfigError(
        "--seed, --report and --in are for drawn faults; add --sampled N");
  }
  if (options.output && options.mutants.empty()) {
    throw ConfigError(
        "--output shows the tests of named faults; name them with --mutant");
  }
  RequireKnown(options);
  if (options.list) return List(options);
  const StopSignal signal;
  if (!is_sampled) return MeasureChosen(options, signal);
  options.sample.list = options.log;
  return RunSample(options.sample, signal);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kDescription, "verify mutate"};
  app.footer(kExamples);
  Options options;
  app.add_option("--jobs", options.sample.jobs,
                 "compilers or tests at a time [2]")
      ->check(CLI::Range(1, 256))
      ->check(RefuseOctal);
  app.add_option("--log", options.log,
                 "write a line of JSON for each fault to this file; with drawn "
                 "faults, a later run continues from it "
                 "[property_tests/mutation/sampled/seedS.jsonl]");
  app.add_option("--area", options.areas,
                 "the part of ids before the dot, as --list shows them [all]");
  app.add_option("--mutant", options.mutants, "ids, as --list shows them");
  app.add_flag("--list", options.list, "show what is planted, run nothing");
  app.add_flag("--output", options.output,
               "show what the tests of each --mutant print");
  app.add_option("--sampled", options.sample.faults,
                 "draw this many faults instead")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}, "N"))
      ->check(RefuseOctal);
  app.add_option("--seed", options.sample.seed, "of the draw [1]")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 62, "SEED"))
      ->check(RefuseOctal);
  app.add_option(
         "--in", options.sample.in,
         "draw only in these folders or files (kernels/cuda,optimized), with a "
         "--log of its own; its results are for them alone")
      ->type_name("PATH,...");
  app.add_flag("--report", options.sample.report,
               "show the results in the list of drawn faults, run nothing");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  options.has_seed = app.count("--seed") > 0;
  return RunMain("verify mutate", [&] { return Mutate(options); });
}

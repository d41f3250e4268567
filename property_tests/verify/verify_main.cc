// SPDX-License-Identifier: Apache-2.0
//
// //:verify - compares implementations of the method's operations with the
// reference, element by element, within derived bounds. commands.cc holds what
// its commands do; this file, how they are called.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/process/process.h"
#include "core/text/command_line.h"
#include "property_tests/verify/commands.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/explain.h"
#include "property_tests/verify/foreign/foreign_implementations.h"

namespace {

using namespace softmoe;          // NOLINT: a main
using namespace softmoe::verify;  // NOLINT

constexpr char kDescription[] =
    "Verifies implementations of SoftMoE's operations against the reference: "
    "every element of every output within a bound that is derived, not tuned.";

constexpr char kExamples[] = R"(
A case is a list of words KEY=VALUE, each of which may be left out:
  op=lapsum impl=cpu:v3 fill=near_ties:3 rows=7 num_experts=33 seed=0x5eed case=4
What is left out is drawn from the seed and the number of the case. Where many
cases run, op= and impl= may be given several times. What is not part of a case
is an option: --cases, --seconds, --out, ...

Examples:
  verify list
      operations, their parameters, fills, implementations, planted faults
  verify run
      100 cases of every operation on our CPU kernels and CUDA source
  verify run op=lapsum fill=ties num_experts=33 --cases 500
      one operation, two parameters fixed
  verify run op=lapsum impl=cpu:v3 ... seed=0x5eed case=417
      the one case that a REPRO line names: paste the line
  verify fuzz --seconds 3600 seed=7 --log fuzz.jsonl --bundles failures/
      for an hour, even if cases fail; new failures are shrunk
  verify fuzz impl=faulty:times_temperature:d_scores:cpu:v3 --seconds 5
      what a failure looks like
  verify grad op=router kind=soft
      checks the reference's gradient, against which all others are judged, by
      differences with their observed order and by dual numbers; accepts
      --seconds instead of --cases
  verify grad op=lapsum impl=faulty:times_temperature:d_scores:reference_f64
      what a wrong derivative looks like
  verify explain op=lapsum rows=3 num_experts=5
      what is expected of one case, and where its bounds come from
  verify replay failures/lapsum-1.h5 impl=cpu:v3
      a recorded case, from its recorded data
  verify mutate --area lapsum
      plant faults in the sources and count which of them the tests notice

Your own implementation (property_tests/verify/foreign/README.md):
  verify fuzz op=lapsum impl=serve:./mine.py  a program: file in, file out
  verify fuzz op=lapsum impl=lib:./mine.so    a C ABI
  verify export-vectors op=lapsum --out v.h5
  verify check-vectors v.h5 theirs.h5         computed elsewhere

Exit codes: 0 all PASS; 1 a FAIL; 2 an unknown name or key, or an invalid file;
3 NOT_COMPARABLE; 4 nothing ran or was compared, or nothing was decided; 5 a
missing file; 6 the harness failed its own check; 7 data that cannot tell right
from wrong; 75 stopped by a signal, after the report. How to add an operation or an
implementation: property_tests/verify/README.md.)";

// The positional argument of commands that read the words of a case.
constexpr char kCaseWords[] = "case";

// The command that `arguments` name, if it accepts a case.
const CLI::App* FindCommand(const CLI::App& app,
                            const std::vector<std::string>& arguments) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!arguments.empty() && command->get_name() == arguments[0] &&
        command->get_option_no_throw(kCaseWords) != nullptr) {
      return command;
    }
  }
  return nullptr;
}

bool IsCaseKey(const std::string& key) {
  return std::ranges::any_of(Operations(), [&](const Operation* op) {
    return std::ranges::count(CaseKeys(*op), key) != 0;
  });
}

// Enforces one syntax: the parts of a case are words KEY=VALUE, and everything
// else is an option. Throws ConfigError, with the right spelling, for a key of
// the case that is given as an option, and for an option that is given as a
// word. `arguments` begin with the name of the command.
void CheckSpelling(const CLI::App& app,
                   const std::vector<std::string>& arguments) {
  const CLI::App* command = FindCommand(app, arguments);
  if (command == nullptr) return;
  const auto find = [&](const std::string& name) {
    return command->get_option_no_throw(name);
  };
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const CLI::Option* before = find(arguments[i - 1]);
    if (before != nullptr && before->get_items_expected_max() > 0 &&
        arguments[i - 1].starts_with("--")) {
      continue;  // the value of an option
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    std::string value = "VALUE";
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[i + 1];
    }
    if (name.starts_with("--") && find(name) == nullptr) {
      std::string key = name.substr(2);
      std::ranges::replace(key, '-', '_');
      if (!IsCaseKey(key)) continue;
      throw ConfigError(
          fmt::format("{}: {} is a key of the case, not an option; write {}={}",
                      arguments[0], name, key, value));
    }
    if (equals != std::string::npos && find("--" + name) != nullptr) {
      throw ConfigError(fmt::format(
          "{}: {} is an option, not a key of the case; write --{} {}",
          arguments[0], argument, name, value));
    }
  }
}

// Replaces CLI::PositiveNumber, which accepts nan and prints the largest double
// digit by digit in its message.
CLI::Validator Seconds() {
  const auto check = [](const std::string& text) -> std::string {
    double seconds = 0;
    const bool is_number = CLI::detail::lexical_cast(text, seconds);
    if (is_number && seconds > 0 && seconds <= kMaxSeconds) return "";
    return fmt::format("'{}' is not a number above 0 and at most {:g}", text,
                       kMaxSeconds);
  };
  return CLI::Validator(check, "SECONDS");
}

// A case number has 32 bits.
void AddCases(CLI::App* command, Options& options,
              const std::string& standard = "100") {
  command
      ->add_option("--cases", options.cases,
                   "cases of each operation on each implementation, from "
                   "case=N if that is given [" +
                       standard + "; with case=N, 1]")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 32, "CASES"))
      ->check(RefuseOctal);
}

void AddSeconds(CLI::App* command, Options& options, const std::string& text) {
  command->add_option("--seconds", options.seconds, text)->check(Seconds());
}

CLI::Option* AddEdgesFirst(CLI::App* command, Options& options) {
  return command->add_flag("--edges-first", options.edges_first,
                           "the first cases are at the edges that `verify "
                           "list` shows, two at each");
}

void AddTimeout(CLI::App* command) {
  command
      ->add_option("--timeout", CallSeconds(),
                   "most seconds for one call of serve: or lib: [60]")
      ->check(Seconds());
}

CLI::Option* AddWords(CLI::App* command, Options& options,
                      const std::string& text) {
  return command->add_option(kCaseWords, options.words, text);
}

void AddCaseWords(
    CLI::App* command, Options& options,
    const std::string& impls =
        "[cpu:v3 cpu:v4 shim cuda; yours: serve:PATH, lib:PATH]") {
  AddWords(command, options,
           "words KEY=VALUE, or a REPRO line; `verify list` shows the keys. "
           "op= [all] and impl= " +
               impls + " may be given several times; seed= [0], also 0x5eed");
}

void AddReportOptions(CLI::App* command, Options& options) {
  command->add_option("--json", options.json, "report as JSON, into this file");
  command->add_option("--junit", options.junit, "report as JUnit XML");
}

void AddLog(CLI::App* command, Options& options) {
  command->add_option(
      "--log", options.log,
      "append every result, as it comes, to this file as one line of JSON");
}

void AddNoShrink(CLI::App* command, Options& options) {
  command->add_flag("--no-shrink", options.no_shrink,
                    "report failures as found, without shrinking them");
}

void AddRunOptions(CLI::App* command, Options& options) {
  AddCaseWords(command, options);
  AddTimeout(command);
  AddReportOptions(command, options);
  AddLog(command, options);
  command->add_option("--bundles", options.bundles,
                      "folder for replay bundles (HDF5) of what fails");
  AddNoShrink(command, options);
}

// The commands of an application, in the order of its --help, and the values
// that the given command sets.
struct Commands {
  explicit Commands(CLI::App& app);
  Commands(const Commands&) = delete;  // `app` refers to it

  CLI::App *list, *plan, *run, *fuzz, *grad, *explain, *replay, *export_vectors,
      *check_vectors, *mutate;
  Options options;
  std::string file, outputs;
};

Commands::Commands(CLI::App& app) {
  list =
      app.add_subcommand("list", "show operations, implementations and faults");
  plan = app.add_subcommand("plan", "count what `run` would run");
  AddCaseWords(plan, options);
  AddCases(plan, options);

  run = app.add_subcommand("run", "run a number of cases of each");
  AddRunOptions(run, options);
  AddCases(run, options);
  CLI::Option* edges = run->add_flag(
      "--edges", options.edges,
      "sizes that are never drawn, in turn: nothing, several blocks of the "
      "kernels (`verify list` shows them)");
  AddEdgesFirst(run, options)->excludes(edges);
  AddSeconds(run, options,
             "stop after this long even if not all --cases are done");

  fuzz = app.add_subcommand(
      "fuzz", "run until the time is up; the first cases are at edges");
  AddRunOptions(fuzz, options);
  AddSeconds(fuzz, options, "how long [60]");

  grad = app.add_subcommand(
      "grad", "check the reference's derivatives by differences and duals");
  AddCaseWords(grad, options,
               "(whose derivatives [reference_f64], or faulty:... of it)");
  AddReportOptions(grad, options);
  AddLog(grad, options);
  AddNoShrink(grad, options);
  AddCases(grad, options, "20");
  AddSeconds(grad, options,
             "stop after this long; without --cases, run until then");

  explain = app.add_subcommand(
      "explain", "one case: data, expected values, derivation of the bounds");
  AddWords(explain, options,
           "words KEY=VALUE; op= is required, impl= [cpu:v3] computes it")
      ->required();
  AddTimeout(explain);

  replay = app.add_subcommand("replay", "run a recorded case");
  replay->add_option("file", file, "a bundle that --bundles wrote")->required();
  AddWords(replay, options, "impl=NAME, instead of the recorded one");
  AddTimeout(replay);
  AddReportOptions(replay, options);

  export_vectors = app.add_subcommand(
      "export-vectors", "cases and what is expected of them, for others");
  AddWords(export_vectors, options,
           "words KEY=VALUE that all cases share; op= is required, and may be "
           "given several times");
  export_vectors->add_option("--out", options.out, "the HDF5 file to write")
      ->required();
  export_vectors->add_option("--cases", options.cases, "of each [100]")
      ->check(CLI::Range(1, 1'000'000))
      ->check(RefuseOctal);
  AddEdgesFirst(export_vectors, options);

  check_vectors = app.add_subcommand("check-vectors",
                                     "judge what another framework computed");
  check_vectors->add_option("vectors", file, "what export-vectors wrote")
      ->required();
  check_vectors->add_option("outputs", outputs, "what was computed")
      ->required();
  AddReportOptions(check_vectors, options);

  mutate = app.add_subcommand("mutate",
                              "the mutation score; `./bazelw run //:verify -- "
                              "mutate --help` says more");
  mutate->set_help_flag();
  mutate->prefix_command();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kDescription, "verify"};
  app.footer(kExamples);
  app.require_subcommand(1);
  Commands commands(app);

  return RunMain("verify", [&]() -> ExitCode {
    const std::string unknown = UnknownCommand(app, argc, argv);
    if (!unknown.empty()) throw ConfigError(unknown);
    CheckSpelling(app, {argv + 1, argv + argc});
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? ExitCode::kDone : ExitCode::kUsage;
    }
    const Options& options = commands.options;
    if (*commands.list) {
      std::fputs(ListText().c_str(), stdout);
      return ExitCode::kDone;
    }
    if (*commands.plan) return Plan(options);
    if (*commands.run) return Run(options);
    if (*commands.fuzz) return Fuzz(options);
    if (*commands.grad) return Grad(options);
    if (*commands.explain) return Explain(options);
    if (*commands.mutate) {
      throw EnvironmentError(
          "a separate program does this, which builds tests and must know "
          "where the sources are; start it as ./bazelw run //:verify -- "
          "mutate");
    }
    if (*commands.replay) return Replay(options, commands.file);
    if (*commands.export_vectors) return ExportVectors(options);
    return CheckVectors(options, commands.file, commands.outputs);
  });
}

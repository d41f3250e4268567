// SPDX-License-Identifier: Apache-2.0
#include "property_tests/gpu/operation_stages.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdint>
#include <filesystem>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/text/suggestion.h"
#include "golden/gpu_runs/gpu_runs.h"
#include "property_tests/gpu/stage_bodies.h"
#include "property_tests/gpu/stage_programs.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::gpu {
namespace {

namespace fs = std::filesystem;

std::string SourceHash(const std::string& operation) {
  for (const auto& [name, hash] : golden::ParseOperationSources(
           ReadWholeFile(RunfilePath("bazel/operation_sources.txt")))) {
    if (name == operation) return hash;
  }
  throw InternalError(operation +
                      " is in no line of kernels/cuda/operation_sources.txt");
}

// A fault that is always found: it doubles an output.
std::string Planted(const std::string& operation, const std::string& base) {
  for (const verify::OutputSpec& output :
       verify::FindOperation(operation).outputs()) {
    if (!output.optional) return "faulty:twice:" + output.name + ":" + base;
  }
  throw InternalError(operation + " has no output that is always there");
}

// Returns the line of the record for a report of `verify run`.
Line OperationLine(const OperationRun& run, const Line& report) {
  const Line& unit = report.at("units").at(0);
  if (unit.at("ran") == 0) {
    throw DataError(unit.at("unsupported").get<std::string>());
  }
  double utilisation = 0;
  std::string bound;
  for (const Line& output : unit.at("outputs")) {
    // JSON has no infinity.
    const Line& number = output.at("utilisation");
    const double largest = number.is_number() ? number.get<double>() : INFINITY;
    if (bound.empty() || largest > utilisation) {
      utilisation = largest;
      bound = output.at("derivation");
    }
  }
  std::string text;
  if (const Line& failures = report.at("failures"); !failures.empty()) {
    text = failures.at(0).at("text");
  }
  for (const std::string output : report.at("mistrusted")) {
    text += "MISTRUSTED: " + output + "\n";
  }
  const bool passed = report.at("verdict") == "PASS";
  return {{"kind", "operation"},
          {"name", run.operation},
          {"precision", run.precision},
          {"sources", SourceHash(run.operation)},
          {"passed", passed},
          {"cases", unit.at("ran")},
          {"failures", unit.at("cases").value("FAIL", 0)},
          {"bound", bound},
          {"utilisation", utilisation},
          {"text", text}};
}

// Whether `verify run` reached all cases of the operation, or says why it could
// run none.
bool RanAll(const Line& report, int cases) {
  const Line& units = report.at("units");
  if (units.empty()) return false;
  const Line& unit = units.at(0);
  int64_t count = 0;
  for (const Line& of_status : unit.at("cases")) {
    count += of_status.get<int64_t>();
  }
  return count == cases || unit.at("ran") == 0;
}

// `verify run` of one operation as a stage, still without lines of the record.
Stage VerifyStage(const std::string& name, const OperationRun& run,
                  const std::string& implementation, int cases,
                  const fs::path& report) {
  Stage stage = {.name = name, .seconds = Limit(40)};
  stage.report = report;
  stage.command = {VerifyProgram(),
                   "run",
                   "op=" + run.operation,
                   "impl=" + implementation,
                   "--json",
                   report,
                   "--cases",
                   std::to_string(cases)};
  stage.told = 0.7;
  stage.whole = [cases](const Line& report) { return RanAll(report, cases); };
  stage.shares_device = true;
  return stage;
}

// The implementation that runs here, with the fault that the options ask for.
std::string Examined(const OperationRun& run, const StageOptions& options) {
  const std::string base = ImplementationOf(run.precision);
  return options.planted == run.operation ? Planted(run.operation, base) : base;
}

}  // namespace

std::vector<OperationRun> OperationRuns() {
  const verify::Adapters& adapters = verify::AdapterTable();
  std::vector<OperationRun> runs;
  for (const verify::Operation* op : verify::Operations()) {
    if (adapters.rows.contains(op->name())) {
      runs.push_back({op->name(), "fp32"});
    }
    if (adapters.bf16.contains(op->name())) {
      runs.push_back({op->name(), "bf16"});
    }
  }
  return runs;
}

void CheckPlanted(const std::string& name) {
  std::vector<std::string> known;
  for (const OperationRun& run : OperationRuns()) {
    if (run.operation == name) return;
    known.push_back(run.operation);
  }
  throw ConfigError("no operation '" + name + "' runs on a device; " +
                    Suggestion(name, known));
}

std::string ImplementationOf(const std::string& precision) {
  return std::string(IsSimulated() ? "shim" : "cuda") +
         (precision == "bf16" ? ":bf16" : "");
}

Stage OperationStage(const OperationRun& run, const StageOptions& options) {
  // 100, as many as `test //...` runs on a device. That test runs 100 in the
  // simulator too, so fewer suffice there.
  const int cases = IsSimulated() ? 20 : 100;
  Stage stage = VerifyStage("operation " + run.operation + " " + run.precision,
                            run, Examined(run, options), cases,
                            fmt::format("{}.{}.{}", options.report.string(),
                                        run.operation, run.precision));
  // kernels_property_test runs the edge cases in the simulator.
  if (!IsSimulated()) stage.command.emplace_back("--edges-first");
  stage.part_counts = true;  // its line says how many cases passed
  stage.lines_of = [run](const Line& report) {
    return std::vector<Line>{OperationLine(run, report)};
  };
  return stage;
}

Stage BitsStage(const OperationRun& run, const StageOptions& options) {
  const std::string name = golden::NameOfBits(run.operation, run.precision);
  Stage stage =
      VerifyStage(name, run,
                  fmt::format("same:{},shim{}", Examined(run, options),
                              run.precision == "bf16" ? ":bf16" : ""),
                  40,
                  fmt::format("{}.bits.{}.{}", options.report.string(),
                              run.operation, run.precision));
  stage.command.emplace_back("--edges-first");
  if (IsSimulated()) {
    stage.why_not = "a simulated device: its bits are what others are held to";
  }
  stage.lines_of = [run, name](const Line& report) {
    const Line line = OperationLine(run, report);
    return std::vector<Line>{{{"kind", "check"},
                              {"name", name},
                              {"passed", line["passed"]},
                              {"utilisation", line["utilisation"]},
                              {"text", line["text"]}}};
  };
  return stage;
}

}  // namespace softmoe::gpu

// SPDX-License-Identifier: Apache-2.0
#include "property_tests/gpu/operation_stage.h"

#include <cstdio>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/runfiles.h"
#include "core/text/suggestion.h"
#include "golden/gpu_runs/gpu_runs.h"
#include "property_tests/gpu/device_stages.h"
#include "property_tests/verify/engine/campaign.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::gpu {
namespace {

std::string SourceHash(const std::string& operation) {
  for (const auto& [name, hash] : golden::ParseOperationSources(
           ReadWholeFile(RunfilePath("bazel/operation_sources.txt")))) {
    if (name == operation) return hash;
  }
  throw InternalError(operation +
                      " is in no line of kernels/cuda/operation_sources.txt");
}

// A fault that is always found: doubles an output.
std::string Planted(const std::string& operation, const std::string& base) {
  for (const verify::OutputSpec& output :
       verify::FindOperation(operation).outputs()) {
    if (!output.optional) return "faulty:twice:" + output.name + ":" + base;
  }
  throw InternalError(operation + " has no output that is always there");
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

bool TellOperation(const OperationRun& run, const StageContext& context) {
  const std::string base = ImplementationOf(run.precision);
  verify::CampaignOptions campaign;
  campaign.ops = {run.operation};
  campaign.impls = {
      context.planted == run.operation ? Planted(run.operation, base) : base};
  // 100, as `test //...` runs on a device; it also runs that many in the
  // simulator, so fewer suffice there.
  campaign.cases = context.brief ? 2 : IsSimulated() ? 20 : 100;
  campaign.seconds = 0.7 * context.seconds;
  campaign.max_shrunk = 1;
  std::string first;
  campaign.on_failure = [&](const verify::Failure& failure) {
    const std::string text = FailureText(failure);
    if (first.empty()) first = text;
    std::fputs(text.c_str(), stderr);
  };
  const verify::Suite suite = RunCampaign(campaign).suite;
  SOFTMOE_CHECK(suite.units().size() == 1) << suite.units().size();
  const verify::UnitStatistics& unit = suite.units().begin()->second;
  if (unit.ran() == 0) throw EnvironmentError(unit.unsupported);

  double utilisation = 0;
  std::string bound;
  for (const auto& [name, output] : unit.outputs) {
    if (bound.empty() || !(output.utilisation <= utilisation)) {
      utilisation = output.utilisation;
      bound = output.loosest_derivation;
    }
  }
  for (const std::string& output : suite.Mistrusted()) {
    const std::string text = "MISTRUSTED: " + output + "\n";
    first += text;
    std::fputs(text.c_str(), stderr);
  }
  const bool passed = suite.exit_code() == ExitCode::kDone;
  context.tell({{"kind", "operation"},
                {"name", run.operation},
                {"precision", run.precision},
                {"sources", SourceHash(run.operation)},
                {"passed", passed},
                {"cases", unit.ran()},
                {"failures", unit.Count(Status::kFail)},
                {"bound", bound},
                {"utilisation", utilisation},
                {"text", first}});
  return passed;
}

}  // namespace softmoe::gpu

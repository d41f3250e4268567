// SPDX-License-Identifier: Apache-2.0
#include "property_tests/gpu/stage_list.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/process/process.h"
#include "property_tests/gpu/operation_stages.h"
#include "property_tests/gpu/stage_bodies.h"
#include "property_tests/gpu/stage_programs.h"
#include "property_tests/gpu/time_stages.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::gpu {
namespace {

namespace fs = std::filesystem;

// ---- What this program does itself

struct Body {
  std::string name;
  double seconds;
  std::function<bool(const StageContext&)> run;
};

const std::vector<Body>& DeviceBodies() {
  static const std::vector<Body> bodies = {{kFactsStage, 60, TellFacts},
                                           {"probes", 60, TellProbes},
                                           {kNcclStage, 60, TellNccl}};
  return bodies;
}

constexpr char kModelStage[] = "model";
const std::vector<Body>& ModelBodies() {
  static const std::vector<Body> bodies = {{kModelStage, 60, TellModel},
                                           {"update", 60, TellUpdate},
                                           {"repeat", 60, TellRepeat}};
  return bodies;
}

Stage BodyStage(const Body& body, const StageOptions& options) {
  Stage stage = {.name = body.name,
                 .seconds = Limit(body.seconds),
                 .command = {ThisProgram(), "--child", body.name}};
  if (body.name == kNcclStage) {
    stage.why_not = WhyNoNccl();
    if (options.planted == kNcclStage) {
      stage.command.insert(stage.command.end(), {"--plant", kNcclStage});
    }
  }
  return stage;
}

// ---- Other tools and programs

// The first place in which toolkits install the sanitizer; "" if it is in none.
fs::path FindSanitizer() {
  std::vector<fs::path> folders;
  if (const char* home = std::getenv("CUDA_HOME")) {
    folders.push_back(fs::path(home) / "bin");
  }
  const char* const path = std::getenv("PATH");
  std::string rest = path != nullptr ? path : "";
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    folders.emplace_back(rest.substr(0, end));
    rest = end == std::string::npos ? "" : rest.substr(end + 1);
  }
  folders.emplace_back("/usr/local/cuda/bin");
  for (const fs::path& folder : folders) {
    const fs::path program = folder / "compute-sanitizer";
    if (IsProgram(program)) return program;
  }
  return {};
}

// A program under a tool that checks every access and prints what it finds.
Stage SanitizerStage(const std::string& tool, const std::string& what,
                     double seconds, const std::vector<std::string>& program) {
  Stage stage = {
      .name = tool + " of " + what, .seconds = seconds, .shares_device = true};
  const fs::path sanitizer = FindSanitizer();
  if (IsSimulated()) {
    stage.why_not = "a simulated device: the shim tests look for the same";
  } else if (sanitizer.empty()) {
    stage.why_not =
        "compute-sanitizer is neither in $CUDA_HOME/bin nor in $PATH nor in "
        "/usr/local/cuda/bin; it is part of the CUDA toolkit";
  } else {
    stage.command = {sanitizer, "--tool", tool, "--error-exitcode", "1"};
    stage.command.insert(stage.command.end(), program.begin(), program.end());
  }
  return stage;
}

// Whether `verify run` of all operations reached each, on both implementations.
bool CameToAll(const Line& report) {
  return report.at("units").size() == 2 * verify::Operations().size();
}

// A stage that runs all operations under the tool.
Stage SanitizedOperations(const std::string& tool,
                          const StageOptions& options) {
  const std::string report = options.report.string() + "." + tool;
  Stage stage = SanitizerStage(
      tool, "operations", 100,
      {VerifyProgram(), "run", "impl=" + ImplementationOf("fp32"),
       "impl=" + ImplementationOf("bf16"), "--cases", "2", "--json", report});
  stage.report = report;
  stage.whole = CameToAll;
  stage.lines_of = [](const Line&) { return std::vector<Line>(); };
  // The program ends by itself within a third of the time, as far as a case can
  // be cut short.
  stage.told = 0.33;
  // Two cases cannot always tell right from wrong; here the tool judges.
  stage.also_passes = static_cast<int>(ExitCode::kMistrusted);
  return stage;
}

Stage SanitizedModel(const std::string& tool) {
  Stage stage =
      SanitizerStage(tool, "the model", 60,
                     {ThisProgram(), "--child", kModelStage, "--brief"});
  // On an H100 initcheck took all results of products for unwritten.
  if (tool == "initcheck") {
    stage.why_not =
        "it does not see what cuBLASLt's kernels store by bulk copies; the "
        "tests under MemorySanitizer look for the same";
  }
  return stage;
}

Stage GridStage(const StageOptions& options) {
  Stage stage = {
      .name = "smoke grid", .seconds = 150, .results = options.grid_out};
  if (IsSimulated()) {
    stage.why_not = "a simulated device: it would take hours";
  } else if (options.grid.empty() || options.grid_file.empty()) {
    stage.why_not = "--grid and --grid-file do not say what to train";
  } else {
    stage.folder = options.grid_file.parent_path();
    stage.command = {options.grid,    "run",   options.grid_file,
                     "--device=cuda", "--out", options.grid_out,
                     "--quiet"};
  }
  return stage;
}

}  // namespace

std::vector<Stage> Stages(const StageOptions& options) {
  if (!options.planted.empty() && options.planted != kNcclStage) {
    CheckPlanted(options.planted);
  }
  std::vector<Stage> stages;
  for (const Body& body : DeviceBodies()) {
    stages.push_back(BodyStage(body, options));
  }
  stages.push_back(TimeStage("ceilings", "ceiling", 0.1, options));
  for (const OperationRun& run : OperationRuns()) {
    stages.push_back(OperationStage(run, options));
  }
  for (const OperationRun& run : OperationRuns()) {
    if (verify::HasSumsOfALibrary(run.operation)) continue;
    stages.push_back(BitsStage(run, options));
  }
  for (const Body& body : ModelBodies()) {
    stages.push_back(BodyStage(body, options));
    stages.back().shares_device = true;
  }
  stages.push_back(TimeStage("times", "time", 0.1, options));
  for (const char* step : {"sparse2/bf16", "soft_learned2/bf16", "sparse1/bf16",
                           "sparse4/bf16", "sparse2/fp32"}) {
    stages.push_back(TimeStage(std::string("step ") + step,
                               std::string("step/") + step, 0, options));
    stages.back().may_not_fit = true;
  }
  stages.push_back(TimeStage("algorithms", "algorithm", 0.03, options));
  for (const char* tool : {"memcheck", "racecheck", "initcheck"}) {
    stages.push_back(SanitizedOperations(tool, options));
    stages.push_back(SanitizedModel(tool));
  }
  stages.push_back(GridStage(options));
  return stages;
}

bool RunBody(const std::string& name, const StageContext& context) {
  for (const auto& bodies : {DeviceBodies(), ModelBodies()}) {
    for (const Body& body : bodies) {
      if (body.name == name) return body.run(context);
    }
  }
  throw ConfigError("--child: there is no stage '" + name + "'");
}

}  // namespace softmoe::gpu

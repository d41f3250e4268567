// SPDX-License-Identifier: Apache-2.0
#include "property_tests/gpu/stage_list.h"

#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <utility>

#include "core/config/config.h"
#include "core/config/config_enums.h"
#include "core/errors.h"
#include "property_tests/gpu/device_stages.h"
#include "property_tests/gpu/model_stages.h"
#include "property_tests/gpu/operation_stage.h"

namespace softmoe::gpu {
namespace {

namespace fs = std::filesystem;

// A simulated device is as slow as its machine is busy.
double Limit(double seconds) { return IsSimulated() ? 20 * seconds : seconds; }

// A stage that this program runs itself.
struct Body {
  std::string name;
  double seconds;
  std::function<bool(const StageContext&)> run;
};

std::vector<Body> CheapBodies() {
  std::vector<Body> bodies = {{kFactsStage, 60, TellFacts},
                              {"probes", 60, TellProbes},
                              {kNcclStage, 60, TellNccl},
                              {"ceilings", 60, TellCeilings}};
  for (const OperationRun& run : OperationRuns()) {
    bodies.push_back({"operation " + run.operation + " " + run.precision, 40,
                      [run](const StageContext& context) {
                        return TellOperation(run, context);
                      }});
  }
  bodies.push_back({"model", 60, TellModel});
  bodies.push_back({"update", 60, TellUpdate});
  bodies.push_back({"repeat", 60, TellRepeat});
  return bodies;
}

std::vector<Body> DearBodies() {
  std::vector<Body> bodies = {{"times", 90, TellTimes},
                              {"algorithms", 90, TellAlgorithms}};
  constexpr std::pair<int, Precision> kSteps[] = {{2, Precision::kBf16},
                                                  {1, Precision::kBf16},
                                                  {4, Precision::kBf16},
                                                  {2, Precision::kFp32}};
  for (const auto& [active, precision] : kSteps) {
    bodies.push_back(
        {fmt::format("step with AE = {} in {}", active, EnumName(precision)),
         90,
         [active = active, precision = precision](const StageContext& context) {
           return TellStep(active, precision, context);
         }});
  }
  return bodies;
}

// A short run under tools that check every access. The tools print their
// findings; the stage records nothing.
constexpr char kBriefStage[] = "brief";
bool RunBriefly(StageContext context) {
  context.brief = true;
  context.tell = [](const Line&) {};
  context.seconds /= static_cast<double>(OperationRuns().size() + 1);
  bool all = true;
  for (const OperationRun& run : OperationRuns()) {
    all = TellOperation(run, context) && all;
  }
  return TellModel(context) && all;
}

// The first place in which toolkits install it; "" if it is in none.
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
    std::error_code ignored;
    if (fs::exists(folder / "compute-sanitizer", ignored)) {
      return folder / "compute-sanitizer";
    }
  }
  return {};
}

Stage SanitizerStage(const std::string& tool) {
  // The body ends by itself within a third of that, as far as a case can be cut
  // short.
  Stage stage = {.name = tool, .seconds = 120};
  const fs::path sanitizer = FindSanitizer();
  if (IsSimulated()) {
    stage.why_not = "a simulated device: the shim tests look for the same";
  } else if (sanitizer.empty()) {
    stage.why_not =
        "compute-sanitizer is neither in $CUDA_HOME/bin nor in $PATH nor in "
        "/usr/local/cuda/bin; it is part of the CUDA toolkit";
  } else {
    stage.command = {sanitizer,   "--tool",
                     tool,        "--error-exitcode",
                     "1",         fs::read_symlink("/proc/self/exe"),
                     "--child",   kBriefStage,
                     "--seconds", "40"};
  }
  return stage;
}

Stage GridStage(const StageOptions& options) {
  Stage stage = {.name = "smoke grid", .seconds = 150};
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
  for (const Body& body : CheapBodies()) {
    stages.push_back({.name = body.name, .seconds = Limit(body.seconds)});
    if (body.name == kNcclStage) stages.back().why_not = WhyNoNccl();
  }
  for (const char* tool : {"memcheck", "racecheck", "initcheck"}) {
    stages.push_back(SanitizerStage(tool));
  }
  for (const Body& body : DearBodies()) {
    stages.push_back({.name = body.name, .seconds = Limit(body.seconds)});
  }
  stages.push_back(GridStage(options));
  return stages;
}

bool RunBody(const std::string& name, const StageContext& context) {
  if (name == kBriefStage) return RunBriefly(context);
  for (const auto& bodies : {CheapBodies(), DearBodies()}) {
    for (const Body& body : bodies) {
      if (body.name == name) return body.run(context);
    }
  }
  throw ConfigError("--child: there is no stage '" + name + "'");
}

}  // namespace softmoe::gpu

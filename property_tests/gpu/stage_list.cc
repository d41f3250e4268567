// SPDX-License-Identifier: Apache-2.0
#include "property_tests/gpu/stage_list.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/parallel_for.h"
#include "core/text/suggestion.h"
#include "golden/gpu_runs/gpu_runs.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::gpu {
namespace {

namespace fs = std::filesystem;

// A simulated device is as slow as its machine is busy.
double Limit(double seconds) { return IsSimulated() ? 20 * seconds : seconds; }

fs::path ThisProgram() { return fs::read_symlink("/proc/self/exe"); }

// A program that in the bundle lies beside this one.
fs::path Program(const std::string& name, const std::string& in_repository) {
  const fs::path beside = ThisProgram().parent_path() / name;
  return fs::exists(beside) ? beside : RunfilePath(in_repository);
}

fs::path VerifyProgram() {
  return Program("verify", "property_tests/verify/verify");
}

// ---- Operations

// One operation with activations of one type.
struct OperationRun {
  std::string operation;
  std::string precision;  // "fp32" or "bf16"
};

// All operations with CUDA source, in the model's order.
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

std::string SourceHash(const std::string& operation) {
  for (const auto& [name, hash] : golden::ParseOperationSources(
           ReadWholeFile(RunfilePath("bazel/operation_sources.txt")))) {
    if (name == operation) return hash;
  }
  throw InternalError(operation +
                      " is in no line of kernels/cuda/operation_sources.txt");
}

// The `verify` implementation that runs here: "cuda", "cuda:bf16", "shim".
std::string ImplementationOf(const std::string& precision) {
  return std::string(IsSimulated() ? "shim" : "cuda") +
         (precision == "bf16" ? ":bf16" : "");
}

// A fault that is always found: doubles an output.
std::string Planted(const std::string& operation, const std::string& base) {
  for (const verify::OutputSpec& output :
       verify::FindOperation(operation).outputs()) {
    if (!output.optional) return "faulty:twice:" + output.name + ":" + base;
  }
  throw InternalError(operation + " has no output that is always there");
}

// The line of the record that the report of `verify run` comes to.
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

// Whether `verify run` of one operation came to all of its cases, or says why
// it could take none.
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

// Whether `verify run` of all operations came to each, on both implementations.
bool CameToAll(const Line& report) {
  return report.at("units").size() == 2 * verify::Operations().size();
}

// `verify run` of one operation; the lines of the record are not yet said.
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

// What runs here, with the fault that the options ask for.
std::string Examined(const OperationRun& run, const StageOptions& options) {
  const std::string base = ImplementationOf(run.precision);
  return options.planted == run.operation ? Planted(run.operation, base) : base;
}

Stage OperationStage(const OperationRun& run, const StageOptions& options) {
  // 100, as `test //...` runs on a device; it also runs that many in the
  // simulator, so fewer suffice there.
  const int cases = IsSimulated() ? 20 : 100;
  Stage stage = VerifyStage("operation " + run.operation + " " + run.precision,
                            run, Examined(run, options), cases,
                            fmt::format("{}.{}.{}", options.report.string(),
                                        run.operation, run.precision));
  // kernels_property_test runs the simulator at its edges.
  if (!IsSimulated()) stage.command.emplace_back("--edges-first");
  // Its line says how many cases passed, so fewer will do.
  stage.whole = [cases](const Line& report) {
    return report.at("verdict") == "PASS" || RanAll(report, cases);
  };
  stage.lines_of = [run](const Line& report) {
    return std::vector<Line>{OperationLine(run, report)};
  };
  return stage;
}

// Checks that the device gives the bits of its simulation.
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

// ---- Times

// The line that one benchmark comes to; null if cuBLASLt has fewer algorithms.
Line TimeLine(const Line& entry, bool simulated) {
  std::vector<std::string> words;  // of KIND/OPERATION/PRECISION/NAME/SHAPE
  std::istringstream name(entry.at("run_name").get<std::string>());
  for (std::string word; std::getline(name, word, '/');) words.push_back(word);
  const std::string& kind = words.at(0);
  if (entry.contains("error_message")) {
    if (kind == "algorithm" && words.at(5) != "0") return nullptr;
    return {{"kind", "check"},
            {"name", name.str()},
            {"passed", false},
            {"utilisation", 0},
            {"text", entry.at("error_message")}};
  }
  const double unit = entry.at("time_unit") == "ms" ? 1e-3 : 1e-9;
  const double seconds = unit * entry.at("real_time").get<double>();
  const auto whole = [&](const char* counter) {
    return static_cast<int64_t>(entry.at(counter).get<double>());
  };
  Line line = {{"kind", kind}};
  const auto measured = [&](const char* field, double value) {
    if (!simulated) line[field] = value;
  };
  if (kind == "step") {
    line.update({{"row", words.at(1)},
                 {"active_experts", entry.at("active_experts")},
                 {"precision", words.at(2)},
                 {"sequences", whole("sequences")},
                 {"recompute", entry.at("label")},
                 {"loss", entry.at("loss")},
                 {"memory_bytes", whole("memory_bytes")}});
    measured("seconds", seconds);
    measured("tokens_per_second", entry.at("tokens/s").get<double>());
    return line;
  }
  const double flops = entry.value("flops", 0.0);
  const double bytes = entry.value("bytes", 0.0);
  line["name"] = words.at(3);
  if (kind == "ceiling") {
    line["shape"] = words.at(4);
    line["unit"] = flops > 0 ? "TFLOP/s" : "GB/s";
    measured("value", (flops > 0 ? 1e-12 * flops : 1e-9 * bytes) / seconds);
    return line;
  }
  if (kind == "time") line["operation"] = words.at(1);
  line["precision"] = words.at(2);
  line["shape"] = words.at(4);
  if (kind == "algorithm") line["choice"] = std::stoi(words.at(5));
  line["flops"] = flops;
  if (kind == "time") line["bytes"] = bytes;
  measured("seconds", seconds);
  return line;
}

// The benchmarks whose names begin so: of each the median of three bursts that
// last at least `burst` seconds, and on the simulated device one run.
Stage TimeStage(const std::string& name, const std::string& begin, double burst,
                const StageOptions& options) {
  Stage stage = {.name = name, .seconds = Limit(90)};
  stage.command = {IsSimulated() ? Program("bench", "optimized/bench_simulated")
                                 : Program("bench", "optimized/bench"),
                   "--device=cuda", "--benchmark_filter=^" + begin + "/",
                   "--benchmark_out=" + options.report.string()};
  if (IsSimulated()) {
    stage.command.emplace_back("--benchmark_min_time=0");
  } else {
    stage.command.insert(
        stage.command.end(),
        {fmt::format("--benchmark_min_time={}", burst),
         "--benchmark_repetitions=3", "--benchmark_report_aggregates_only=true",
         // Threads are for initial parameters alone.
         fmt::format("--threads={}", AvailableCores())});
  }
  stage.report = options.report;
  stage.lines_of = [](const Line& report) {
    return TimeLines(report, IsSimulated());
  };
  return stage;
}

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

// A program under a tool that checks every access, and prints what it finds.
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

std::vector<Line> TimeLines(const Line& report, bool simulated) {
  std::vector<Line> lines;
  for (const Line& entry : report.at("benchmarks")) {
    // One that failed is there as often as it was to be repeated.
    const bool counts = entry.value("aggregate_name", "median") == "median" &&
                        entry.value("repetition_index", 0) == 0;
    if (!counts) continue;
    Line line = TimeLine(entry, simulated);
    if (!line.is_null()) lines.push_back(std::move(line));
  }
  return lines;
}

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
  }
  stages.push_back(TimeStage("algorithms", "algorithm", 0.03, options));
  for (const char* tool : {"memcheck", "racecheck", "initcheck"}) {
    const std::string report = options.report.string() + "." + tool;
    stages.push_back(SanitizerStage(
        tool, "operations", 100,
        {VerifyProgram(), "run", "impl=" + ImplementationOf("fp32"),
         "impl=" + ImplementationOf("bf16"), "--cases", "2", "--json",
         report}));
    stages.back().report = report;
    stages.back().whole = CameToAll;
    stages.back().lines_of = [](const Line&) { return std::vector<Line>(); };
    // It ends by itself within a third of the time, as far as a case can be cut
    // short.
    stages.back().told = 0.33;
    // Two cases cannot always tell right from wrong; here the tool judges.
    stages.back().also_passes = static_cast<int>(ExitCode::kMistrusted);
    stages.push_back(
        SanitizerStage(tool, "the model", 60,
                       {ThisProgram(), "--child", kModelStage, "--brief"}));
    // On an H100 it took all results of products for unwritten.
    if (std::string(tool) == "initcheck") {
      stages.back().why_not =
          "it does not see what cuBLASLt's kernels store by bulk copies; the "
          "tests under MemorySanitizer look for the same";
    }
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

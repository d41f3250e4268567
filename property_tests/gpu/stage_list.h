// SPDX-License-Identifier: Apache-2.0
//
// stage_list.h - the checks on a device, and how they run: each in its own
// process with a time limit, and several at a time if they time nothing. Their
// findings go to a record, line by line, in the order of the list.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_STAGE_LIST_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_STAGE_LIST_H_

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "property_tests/gpu/stage_bodies.h"

namespace softmoe::gpu {

// Work done in its own process.
struct Stage {
  std::string name;                       // "operation rmsnorm bf16"
  double seconds;                         // at most
  std::vector<std::string> command = {};  // the program and its arguments
  // The share of its time that the program is told to fill (--seconds); 0: it
  // is told nothing.
  double told = 0;
  std::filesystem::path folder = ".";  // its working directory
  // The JSON file that the program leaves, and the lines of the record that
  // follow from it. Without such a file, the lines are those that it prints.
  std::filesystem::path report = {};
  std::function<std::vector<Line>(const Line& report)> lines_of = {};
  // Whether the report covers all that the program was asked to check;
  // consulted only if it found nothing wrong. Unset: it does.
  std::function<bool(const Line& report)> whole = {};
  // A part that passes is also recorded; the run is then inconclusive.
  bool part_counts = false;
  // A folder that the program fills; removed before it begins.
  std::filesystem::path results = {};
  int also_passes = 0;  // besides 0, an exit status that is no failure
  // A healthy device may be too small for it: if the program ends because
  // something is lacking (ExitCode::kEnvironment), the stage is "not run".
  bool may_not_fit = false;
  // It times nothing: others like it may use the device meanwhile.
  bool shares_device = false;
  std::string why_not = {};  // why it cannot run here; "" if it can
};

// The first stage identifies the device: if there is none, or it does not
// answer, nothing else is tried.
inline constexpr char kFactsStage[] = "facts";

// The stage that tests NCCL, which like operations can be made wrong on
// purpose.
inline constexpr char kNcclStage[] = "nccl";

struct StageOptions {
  std::string planted;  // an operation or NCCL, to be wrong; "": none
  // Prefix of the stages' report files, each removed once it has been read.
  std::filesystem::path report;
  // The program `grid` and a grid for it to train; "": not run.
  std::filesystem::path grid, grid_file;
  std::filesystem::path grid_out;  // folder for its results
};

// Errors: ConfigError if `planted` is neither an operation nor NCCL.
std::vector<Stage> Stages(const StageOptions& options);

// Runs the body of the stage of this program with this name. Returns whether
// all holds. Errors: ConfigError for another name; those of the bodies.
bool RunBody(const std::string& name, const StageContext& context);

struct RunOptions {
  double minutes = 9;             // for all stages together
  std::filesystem::path record;   // a new file
  std::vector<std::string> only;  // names or prefixes of stages; empty: all
  std::string planted;            // as StageOptions
};

// Prints progress. A stage that fails, crashes or hangs does not stop the
// others. A stage that does not fit on the device is "not run", and so is one
// to which `minutes` leave less than its own time, if that is too little for
// it. Returns kDone if everything that could be run passes; kFailed, with the
// names of what failed printed and recorded; kInconclusive if time ran out for
// some stages or for a part of one. Output that nobody reads is no reason to
// stop. Errors: ConfigError for options that make no sense; EnvironmentError if
// the record exists or, before there is one, no device answers; StoppedError.
ExitCode RunStages(const std::vector<Stage>& stages, const RunOptions& options);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_STAGE_LIST_H_

// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_status.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "core/config/config.h"
#include "core/errors.h"
#include "core/failure.h"
#include "core/files/folder_lock.h"
#include "core/files/json_lines.h"
#include "core/text/progress.h"
#include "core/text/text_table.h"
#include "experiments/run/run_folder.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_log.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

// What metrics.jsonl, which grows with every step, says about a run.
struct Progressed {
  int64_t step = 0;
  double loss = 0;     // nats per token, at that step
  double seconds = 0;  // over all steps
};

// Reads the log of the run with this configuration. Throws DataError if the log
// belongs to another.
Progressed ReadMetrics(const fs::path& path, const std::string& config_hash) {
  Progressed progressed;
  trainer::LogCheck check(config_hash);
  std::error_code error;
  if (!fs::exists(path, error) && !error) return progressed;
  VisitJsonLines(path, [&](nlohmann::ordered_json&& record, int64_t line) {
    const std::string place = fmt::format("{}:{}", path.string(), line);
    if (!check.Line(record, place)) return;
    progressed.step = check.steps();
    progressed.loss = JsonNumber(record, trainer::metrics::kLoss.name, place);
    progressed.seconds +=
        JsonNumber(record, trainer::metrics::kStepSeconds.name, place);
  });
  return progressed;
}

int64_t FolderBytes(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code gone;  // renamed meanwhile
    const auto size = entry->file_size(gone);
    if (!gone) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

struct Line {
  std::string state = "waiting", val_loss = "-", holder = "-";
  Progressed progressed;
};

Line ReadLine(const GridRun& run, const fs::path& grid_folder,
              std::string* problem) {
  Line line;
  const RunOutcome outcome = ReadRun(run, grid_folder);
  if (outcome.state == RunState::kFinished) {
    const trainer::RunResult& result = *outcome.result;
    line.state = "finished";
    line.val_loss =
        Shown(trainer::metrics::kValLoss, result.final_validation.loss);
    line.progressed = {.step = result.steps.back().step,
                       .loss = result.steps.back().loss,
                       .seconds = result.seconds};
    return line;
  }
  line.progressed = ReadMetrics(outcome.folder / trainer::kMetricsName,
                                ConfigHash(run.config));
  if (const auto holder = HolderOf(outcome.folder)) {
    line.state = "running";
    line.holder = Describe(*holder);
  } else if (outcome.state == RunState::kFailed) {
    line.state = "failed";
    *problem = outcome.problem;
  } else if (outcome.state == RunState::kInterrupted) {
    line.state = "interrupted";
  } else if (line.progressed.step > 0) {
    line.state = "not saved yet";
  }
  return line;
}

}  // namespace

std::optional<Error> RunProblems::Note(const std::function<void()>& use) {
  try {
    use();
    return std::nullopt;
  } catch (const DataError& error) {
    damaged = true;
    return error;
  } catch (const EnvironmentError& error) {
    unusable = true;
    return error;
  } catch (const fs::filesystem_error&) {
    unusable = true;
    return CurrentFailure();
  }
}

ExitCode RunProblems::code() const {
  if (damaged) return ExitCode::kUsage;
  return unusable ? ExitCode::kEnvironment : ExitCode::kDone;
}

GridStatus DescribeStatus(const Grid& grid, const fs::path& grid_folder) {
  GridStatus status;
  TextTable table({"run", "state", "steps", trainer::metrics::kLoss.title,
                   trainer::metrics::kValLoss.title, "size", "time",
                   "held by"});
  std::string problems;
  int64_t finished = 0, bytes = 0;
  for (const GridRun& run : grid.runs) {
    Line line;
    std::string problem;
    if (const auto error = status.problems.Note(
            [&] { line = ReadLine(run, grid_folder, &problem); })) {
      line.state = error->code() == ExitCode::kUsage ? "damaged" : "unreadable";
      problem = error->what();
    }
    if (!problem.empty()) {
      problems += fmt::format("\n{} {}: {}\n", run.id, line.state, problem);
    }
    const int64_t size = FolderBytes(grid_folder / RunFolderName(run));
    const bool begun = line.progressed.step > 0;
    table.Add(
        {run.id, line.state,
         fmt::format("{}/{}", line.progressed.step, run.config.training.steps),
         begun ? Shown(trainer::metrics::kLoss, line.progressed.loss) : "-",
         line.val_loss, size > 0 ? FormatBytes(size) : "-",
         begun ? FormatDuration(line.progressed.seconds) : "-", line.holder});
    finished += line.state == "finished" ? 1 : 0;
    bytes += size;
  }
  status.text = fmt::format(
      "grid {} in {}\n\n{}\n{} of {} runs are finished; {} on disk\n{}",
      grid.name, grid_folder.string(), table.Text(), finished, grid.runs.size(),
      FormatBytes(bytes), problems);
  return status;
}

}  // namespace softmoe::experiments

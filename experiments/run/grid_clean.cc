// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_clean.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <system_error>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/folder_lock.h"
#include "core/text/ascii.h"
#include "experiments/run/grid_requirements.h"
#include "experiments/run/run_folder.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result_file.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

// Whether this is "CORPUS-ROW-seedN-HASH", a name that run_folder.cc makes.
// Sets `*seed`, unless null, to "N".
bool IsRunFolderName(const std::string& name, std::string* seed = nullptr) {
  static const std::regex kName("[A-Za-z0-9._-]+-seed([0-9]+)-[0-9a-f]{16}");
  std::smatch match;
  if (!std::regex_match(name, match, kName)) return false;
  if (seed != nullptr) *seed = match[1];
  return true;
}

bool IsRegular(const fs::directory_entry& entry) {
  return entry.is_regular_file() && !entry.is_symlink();
}

// Whether the trainer or the grid makes files with this name in a run's folder.
bool IsRunPart(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  return IsRegular(entry) &&
         (name == trainer::kCheckpointName || name == trainer::kMetricsName ||
          name == trainer::kResultName || name == kProblemName ||
          name == kLockName || TemporaryFileOwner(name) != 0);
}

bool IsFolder(const fs::directory_entry& entry) {
  return entry.is_directory() && !entry.is_symlink();
}

std::vector<fs::directory_entry> Entries(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  for (const auto& entry : fs::directory_iterator(folder)) {
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

void AddTemporary(const fs::directory_entry& entry,
                  std::vector<StaleItem>* items) {
  const auto owner =
      static_cast<pid_t>(TemporaryFileOwner(entry.path().filename().string()));
  if (owner == 0 || !IsRegular(entry)) return;
  if (::kill(owner, 0) == 0 || errno != ESRCH) return;
  items->push_back(
      {.kind = StaleKind::kTemporary,
       .path = entry.path(),
       .bytes = static_cast<int64_t>(entry.file_size()),
       .reason = fmt::format("left by process {}, which is gone", owner)});
}

// Whether a grid has a folder of this name for reports, scripts or event files.
bool IsOwnFolderName(const std::string& name) {
  static const std::set<std::string> kNames = {"plots", "slurm", "tables",
                                               "tensorboard"};
  return kNames.contains(name) || name.starts_with("report-") ||
         std::ranges::count(EveryExperimentName(), name) > 0;
}

void AddTemporariesIn(const fs::path& folder, std::vector<StaleItem>* items) {
  for (const auto& entry : Entries(folder)) {
    AddTemporary(entry, items);
    if (IsFolder(entry)) AddTemporariesIn(entry.path(), items);
  }
}

// Adds the folder of a run that the grid does not have, if it holds nothing
// else.
void AddForeignRun(const fs::path& folder, std::vector<StaleItem>* items) {
  int64_t bytes = 0;
  bool finished = false;
  for (const auto& entry : Entries(folder)) {
    if (!IsRunPart(entry)) return;
    bytes += static_cast<int64_t>(entry.file_size());
    finished |= entry.path().filename() == trainer::kResultName;
  }
  items->push_back(
      {.kind = StaleKind::kRun,
       .path = folder,
       .bytes = bytes,
       .reason = fmt::format("a{} run that the grid does not have: of other "
                             "settings, or of another version of the grid file",
                             finished ? " FINISHED" : "n unfinished")});
}

// The runs in `grid_folder` of the grid's rows, with any seed: an earlier
// command may have given seeds with `--seeds` that the grid does not have.
std::vector<GridRun> RunsOfOtherSeeds(const Grid& grid,
                                      const fs::path& grid_folder) {
  std::set<int64_t> seeds;
  std::set<std::string> names;
  for (const auto& entry : Entries(grid_folder)) {
    const std::string name = entry.path().filename().string();
    std::string seed;
    if (!IsFolder(entry) || !IsRunFolderName(name, &seed)) continue;
    names.insert(name);
    if (const auto value = ParseNumber<int64_t>(seed)) seeds.insert(*value);
  }
  std::vector<GridRun> runs;
  std::set<std::string> rows;  // folder names with seed 0
  for (const GridRun& run : grid.runs) {
    GridRun other = run;
    other.seed = other.config.training.seed = 0;
    if (!rows.insert(RunFolderName(other)).second) continue;
    for (const int64_t seed : seeds) {
      other.seed = other.config.training.seed = seed;
      if (names.contains(RunFolderName(other))) runs.push_back(other);
    }
  }
  return runs;
}

// A checkpoint can go if the result exists, is intact, and has every evaluation
// of the run's plan; otherwise it may still be needed to measure them.
bool NeedsNoCheckpoint(const GridRun& run, const fs::path& grid_folder) {
  try {
    const RunOutcome outcome = ReadRun(run, grid_folder);
    return outcome.state == RunState::kFinished && !CanBeMeasured(outcome);
  } catch (const DataError&) {
    return false;
  }
}

void AddOwnRun(const GridRun& run, const fs::path& folder,
               std::vector<StaleItem>* items) {
  const bool needless = NeedsNoCheckpoint(run, folder.parent_path());
  for (const auto& entry : Entries(folder)) {
    AddTemporary(entry, items);
    if (needless && IsRegular(entry) &&
        entry.path().filename() == trainer::kCheckpointName) {
      items->push_back({.kind = StaleKind::kCheckpoint,
                        .path = entry.path(),
                        .bytes = static_cast<int64_t>(entry.file_size()),
                        .reason = "of a finished run; only //:evaluate, or "
                                  "evaluations added to the grid later, "
                                  "would read it"});
    }
  }
}

void Remove(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw FileError("delete", path, error.value());
}

}  // namespace

std::vector<StaleItem> FindStale(const Grid& grid,
                                 const fs::path& grid_folder) {
  std::map<std::string, const GridRun*> own;
  for (const GridRun& run : grid.runs) {
    own.try_emplace(RunFolderName(run), &run);
  }
  const std::vector<GridRun> of_other_seeds =
      RunsOfOtherSeeds(grid, grid_folder);
  for (const GridRun& run : of_other_seeds) {
    own.try_emplace(RunFolderName(run), &run);
  }
  std::vector<StaleItem> items;
  for (const auto& entry : Entries(grid_folder)) {
    const std::string name = entry.path().filename().string();
    AddTemporary(entry, &items);
    if (!IsFolder(entry)) continue;
    if (const auto run = own.find(name); run != own.end()) {
      AddOwnRun(*run->second, entry.path(), &items);
    } else if (IsRunFolderName(name)) {
      AddForeignRun(entry.path(), &items);
    } else if (IsOwnFolderName(name)) {
      AddTemporariesIn(entry.path(), &items);
    }
  }
  return items;
}

void DeleteStale(const fs::path& grid_folder,
                 const std::vector<StaleItem>& items) {
  // The entry of `grid_folder` that contains the item or is the item itself.
  const auto top = [&grid_folder](const StaleItem& item) {
    return grid_folder / *item.path.lexically_relative(grid_folder).begin();
  };
  // A running grid locks the run that it trains, and looks for the results of
  // the others at its end.
  std::set<fs::path> needed;
  for (const auto& entry : Entries(grid_folder)) {
    if (IsFolder(entry) && IsRunFolderName(entry.path().filename().string())) {
      needed.insert(entry.path());
    }
  }
  for (const StaleItem& item : items) needed.insert(top(item));
  for (const fs::path& folder : needed) {
    if (!fs::is_directory(folder)) continue;
    if (const auto holder = HolderOf(folder)) {
      throw FolderHeldError(
          fmt::format("{}: another process is working in this folder, {}; "
                      "nothing was deleted; wait until it ends, or end it",
                      folder.string(), Describe(*holder)));
    }
  }
  for (const StaleItem& item : items) {
    // The caller holds the lock on the grid's folder. A temporary file's
    // process may look dead here but be alive on another machine.
    std::optional<FolderLock> lock;
    if (fs::is_directory(top(item))) lock.emplace(top(item));
    if (item.kind != StaleKind::kRun) {
      Remove(item.path);
      continue;
    }
    for (const auto& entry : Entries(item.path)) {
      if (IsRunPart(entry)) Remove(entry.path());
    }
    Remove(item.path);  // fails if something else has appeared meanwhile
  }
}

}  // namespace softmoe::experiments

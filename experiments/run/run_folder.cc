// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/run_folder.h"

#include <fmt/core.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

trainer::RunResult ReadResult(const GridRun& run, const fs::path& path) {
  trainer::RunResult result;
  try {
    result = trainer::ReadRunResult(path);
  } catch (const DataError& error) {
    throw DataError(fmt::format(
        "{}. Or delete it: the same command then makes it again, from the "
        "checkpoint beside it or from the beginning",
        error.what()));
  }
  const trainer::IdentityDifferences differences =
      trainer::CompareConfigs(result.identity.config, run.config);
  if (!differences.empty()) {
    throw DataError(fmt::format(
        "{}: is the result of configuration {}, but its folder is that of {}: "
        "{}; move it back where it came from, or delete it",
        path.string(), ConfigHash(result.identity.config),
        ConfigHash(run.config),
        trainer::DescribeConfigDifferences(differences)));
  }
  return result;
}

// Returns why the run failed. A process that retries it successfully may delete
// the file at any moment.
std::optional<std::string> ReadProblem(const fs::path& run_folder) {
  const fs::path path = run_folder / kProblemName;
  if (!fs::exists(path)) return std::nullopt;
  try {
    std::string problem = ReadWholeFile(path);
    while (problem.ends_with('\n')) problem.pop_back();
    return problem;
  } catch (const EnvironmentError&) {
    if (fs::exists(path)) throw;
    return std::nullopt;
  }
}

void CheckCheckpoint(const RunOutcome& outcome) {
  const fs::path path = outcome.folder / trainer::kCheckpointName;
  try {
    trainer::Checkpoint{path};
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("{}. Or delete it: the run then starts from the beginning",
                    error.what()));
  } catch (const EnvironmentError&) {
    // Another process may have finished the run and deleted its checkpoint.
    if (fs::exists(path)) throw;
  }
}

trainer::PreparedCorpus ReadCorpusRecord(const fs::path& prefix) {
  try {
    return trainer::ReadPreparedCorpus(prefix);
  } catch (const DataError& error) {
    throw DataError(
        fmt::format("{}. Or delete it: `run` writes it again", error.what()));
  }
}

}  // namespace

std::string RunFolderName(const GridRun& run) {
  return fmt::format("{}-{}-seed{}-{}", run.corpus.id,
                     run.first_row.empty() ? run.row.id : run.first_row,
                     run.seed, ConfigHash(run.config));
}

fs::path GridFolder(const Grid& grid, const std::string& out) {
  const std::string& name =
      grid.scale_grid.empty() ? grid.name : grid.scale_grid;
  return UserPath(out.empty() ? "runs/" + name : out);
}

fs::path ReportFolder(const Grid& grid, const fs::path& grid_folder) {
  const fs::path folder =
      IsMain(grid) ? grid_folder : grid_folder / grid.experiment;
  if (!grid.other_seeds && SetsOnlyRuntime(grid)) return folder;
  std::string choice;
  for (const int64_t seed : grid.seeds) choice += fmt::format("{} ", seed);
  for (const std::string& set : grid.overrides) {
    if (!set.starts_with("runtime.")) choice += set + "\n";
  }
  return folder / ("report-" + Sha256Hex(choice).substr(0, 8));
}

RunOutcome ReadRun(const GridRun& run, const fs::path& grid_folder) {
  RunOutcome outcome;
  outcome.run = run;
  outcome.folder = grid_folder / RunFolderName(run);
  if (fs::exists(outcome.folder / trainer::kResultName)) {
    outcome.state = RunState::kFinished;
    outcome.result = ReadResult(run, outcome.folder / trainer::kResultName);
  } else if (const auto problem = ReadProblem(outcome.folder)) {
    outcome.state = RunState::kFailed;
    outcome.problem = *problem;
  } else if (fs::exists(outcome.folder / trainer::kCheckpointName)) {
    outcome.state = RunState::kInterrupted;
  }
  return outcome;
}

GridOutcome ReadGrid(const Grid& grid, const fs::path& grid_folder,
                     bool check_checkpoints) {
  GridOutcome outcome;
  outcome.grid = grid;
  std::string damaged;
  std::set<fs::path> prefixes;
  const auto collect = [&](const auto& read) {
    try {
      read();
    } catch (const DataError& error) {
      damaged += (damaged.empty() ? "" : "\n") + std::string(error.what());
    }
  };
  for (const GridRun& run : grid.runs) {
    collect([&] {
      outcome.runs.push_back(ReadRun(run, grid_folder));
      const RunOutcome& read = outcome.runs.back();
      if (check_checkpoints && read.state != RunState::kFinished &&
          fs::exists(read.folder / trainer::kCheckpointName)) {
        CheckCheckpoint(read);
      }
    });
    const fs::path prefix = CorpusPrefix(run, grid_folder);
    if (!prefixes.insert(prefix).second) continue;
    if (!fs::exists(prefix.string() + ".json")) continue;
    collect([&] { outcome.corpora.push_back(ReadCorpusRecord(prefix)); });
  }
  if (!damaged.empty()) throw DataError(damaged);
  return outcome;
}

void RequireSameTokens(const GridOutcome& outcome) {
  struct Tokens {
    const trainer::TokenIdentity* identity;
    std::string of;
  };
  std::map<std::string, Tokens> known;  // by CorpusName
  for (const trainer::PreparedCorpus& corpus : outcome.corpora) {
    known.try_emplace(corpus.prefix.filename().string(),
                      Tokens{&corpus.tokens, corpus.prefix.string() + ".json"});
  }
  for (const RunOutcome& run : outcome.runs) {
    if (run.state != RunState::kFinished) continue;
    const trainer::TokenIdentity& there = run.result->identity.tokens;
    const auto [first, is_new] = known.try_emplace(
        CorpusName(run.run), Tokens{&there, "run " + run.run.id});
    if (is_new) continue;
    const std::string other =
        trainer::DescribeTokenDifferences(there, *first->second.identity);
    if (other.empty()) continue;
    throw ConfigError(fmt::format(
        "run {} was trained on other token files than {} has: {}; keep runs on "
        "another text in a folder of their own (--out), or, if the .json file "
        "is the wrong one, delete it: `run` writes it again",
        run.run.id, first->second.of, other));
  }
}

void RecordProblem(const fs::path& run_folder, const std::string& problem) {
  MakeFolder(run_folder);
  WriteFileAtomically(run_folder / kProblemName, problem + "\n");
}

void ForgetProblem(const fs::path& run_folder) {
  std::error_code none;
  fs::remove(run_folder / kProblemName, none);
}

std::string CorpusName(const GridRun& run) {
  const std::string key = Sha256Hex(TokensKey(run.config));
  return fmt::format("corpus-{}-{}", run.corpus.id, key.substr(0, 8));
}

fs::path CorpusPrefix(const GridRun& run, const fs::path& grid_folder) {
  return grid_folder / CorpusName(run);
}

bool IsCorpusOf(const GridRun& run, const trainer::PreparedCorpus& corpus) {
  return corpus.prefix.filename() == CorpusName(run);
}

}  // namespace softmoe::experiments

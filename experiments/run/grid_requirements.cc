// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/text/text_table.h"
#include "experiments/grids/cost_model.h"
#include "experiments/grids/experiment.h"
#include "experiments/grids/grid_select.h"
#include "experiments/plan/grid_estimate.h"
#include "experiments/run/run_device.h"
#include "experiments/run/run_folder.h"
#include "experiments/run/run_record.h"
#include "golden/document/document.h"
#include "trainer/corpora/corpus.h"
#include "trainer/evaluation/final_evaluations.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics_log.h"
#include "trainer/run/resources.h"
#include "trainer/tasks/task_items.h"
#include "trainer/tokens/prepare.h"
#include "trainer/tokens/token_disk.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

// Opens the tokens that the user names for the corpus of `config`.
trainer::PreparedCorpus OpenTokens(const Config& config,
                                   const fs::path& prefix) {
  trainer::PreparedCorpus corpus =
      trainer::OpenPreparedCorpus(prefix, config.model.vocab_size);
  trainer::RequireTokensOf(config.data, corpus);
  return corpus;
}

// How much disk the token files will take, for messages.
std::string TokenDiskText(const Config& config, const RuntimeConfig& runtime) {
  const trainer::CorpusSize size = trainer::SizeOfCorpus(
      config.data.corpus, CacheFolder(), trainer::PlacesOf(runtime));
  return fmt::format("; its token files take {} in {}, where {} are free",
                     Describe(trainer::ExpectedDisk(
                         config.data, config.model.vocab_size, size)),
                     CacheFolder().string(),
                     FormatBytes(FreeDiskBytes(CacheFolder())));
}

}  // namespace

trainer::PreparedCorpus FindTokens(const GridRun& run,
                                   const GridRunOptions& options) {
  const Config& config = run.config;
  const auto given = options.tokens.find(config.data.corpus);
  if (given != options.tokens.end()) return OpenTokens(config, given->second);
  trainer::PrepareOptions find;
  find.places = trainer::PlacesOf(run.runtime);
  find.quiet = true;
  find.only_find = true;
  const trainer::CorpusSize size =
      trainer::SizeOfCorpus(config.data.corpus, CacheFolder(), find.places);
  // A stand-in corpus, which would be downloaded.
  if (!size.here && size.bytes > 0) {
    trainer::RefuseToPrepare(config.data, config.model.vocab_size, find.places);
  }
  return trainer::PrepareCorpus(config.data, config.model.vocab_size, find);
}

std::vector<RunOutcome> SelectedRuns(GridOutcome outcome,
                                     const GridRunOptions& options,
                                     std::vector<std::string>* notes) {
  if (options.record) {
    std::vector<std::string> said = TakeRecordedRuns(*options.record, outcome);
    if (notes != nullptr) std::ranges::move(said, std::back_inserter(*notes));
  }
  std::vector<RunOutcome> runs;
  for (const size_t r : options.selected) runs.push_back(outcome.runs[r]);
  return runs;
}

std::vector<size_t> RecordedCorpora(const GridOutcome& found,
                                    const GridRunOptions& options) {
  std::vector<size_t> runs;
  std::set<fs::path> corpora;
  for (const size_t r : options.selected) {
    const GridRun& run = found.runs[r].run;
    const fs::path corpus = CorpusPrefix(run, options.folder);
    if (!HasEnded(found.runs[r].state) &&
        options.record->Find(RunIdentityKey(run)) != nullptr &&
        !fs::exists(corpus.string() + ".json") &&
        corpora.insert(corpus).second) {
      runs.push_back(r);
    }
  }
  return runs;
}

bool CanBeMeasured(const RunOutcome& run) {
  return run.state == RunState::kFinished && !run.recorded &&
         fs::exists(run.folder / trainer::kCheckpointName) &&
         !trainer::MissingEvaluations(run.run.evaluations, *run.result).empty();
}

Grid WithItemsHere(Grid grid, const GridRunOptions& options) {
  std::set<std::string> names;
  for (const GridRun& run : grid.runs) {
    names.insert(run.evaluations.tasks.begin(), run.evaluations.tasks.end());
  }
  const auto items = trainer::ItemsHere({.tasks = {names.begin(), names.end()}},
                                        options.task_files);
  for (GridRun& run : grid.runs) run.evaluations.items_here = items;
  return grid;
}

std::vector<std::string> RequireTaskItems(const std::vector<RunOutcome>& runs,
                                          const GridRunOptions& options) {
  std::set<std::string> names;
  std::vector<const RunOutcome*> asked_again;
  for (const RunOutcome& run : runs) {
    trainer::EvaluationPlan plan = run.run.evaluations;
    if (run.state == RunState::kFinished) {
      if (!CanBeMeasured(run)) continue;
      asked_again.push_back(&run);
      plan = trainer::WithEarlierPlans(plan, *run.result);
    }
    names.insert(plan.tasks.begin(), plan.tasks.end());
  }
  const std::vector<trainer::TaskItems> tasks = trainer::ReadPlannedTasks(
      {.tasks = {names.begin(), names.end()}}, options.task_files);
  for (const RunOutcome* run : asked_again) {
    trainer::RequireNoFewerItems(tasks, *run->result, run->run.id);
  }
  std::vector<std::string> parts;
  for (const trainer::TaskItems& task : tasks) {
    const std::string part = trainer::PartText(task);
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

void RequireTokens(const Grid& grid, const GridRunOptions& options) {
  for (const auto& [name, prefix] : options.tokens) {
    std::map<int64_t, trainer::PreparedCorpus> opened;  // by vocabulary
    std::vector<std::string> names;
    for (const size_t r : options.selected) {
      const Config& config = grid.runs[r].config;
      names.push_back(config.data.corpus);
      if (config.data.corpus != name) continue;
      const auto [corpus, is_new] = opened.try_emplace(config.model.vocab_size);
      if (is_new) {
        corpus->second =
            trainer::OpenPreparedCorpus(prefix, config.model.vocab_size);
      }
      trainer::RequireTokensOf(config.data, corpus->second);
    }
    if (opened.empty()) RefuseTokens(name, prefix, names);
  }
}

void RequirePaperScale(const Grid& grid, const std::vector<RunOutcome>& runs,
                       const GridRunOptions& options, bool trains_here) {
  if (grid.scale != "paper") return;
  std::vector<RunOutcome> open = runs;
  std::erase_if(open, [](const RunOutcome& run) {
    return run.state == RunState::kFinished;
  });
  if (open.empty()) return;
  std::string missing;
  const auto ask = [&](const char* what, const auto& require) {
    try {
      require();
    } catch (const EnvironmentError& error) {
      missing += fmt::format("\n  {}: {}", what, error.what());
    }
  };
  std::set<std::string> asked;
  const golden::Document paper = ReadPaper();
  double flops = 0, gpu_hours = 0;
  for (const RunOutcome& run : open) {
    RuntimeConfig runtime = run.run.runtime;
    // At this scale the CPU trains only if asked explicitly.
    if (runtime.device.empty()) runtime.device = "cuda";
    if (trains_here && asked.insert("device " + runtime.device).second) {
      ask("device", [&] { (void)IdentifyDevice(runtime); });
    }
    const Config& config = run.run.config;
    if (!options.tokens.contains(config.data.corpus) &&
        asked.insert("corpus " + CorpusName(run.run)).second) {
      const size_t before = missing.size();
      ask("corpus", [&] { (void)FindTokens(run.run, options); });
      if (missing.size() > before) {
        missing += TokenDiskText(config, run.run.runtime);
      }
    }
    const RunCost cost = EstimateCost(
        config, AssumedActiveExperts(run.run, paper).active_experts,
        grid.cluster);
    flops += cost.train_flops;
    gpu_hours += cost.gpu_hours;
  }
  ask("tasks", [&] { (void)RequireTaskItems(open, options); });
  ask("disk", [&] { RequireGridDiskSpace(open, options); });
  if (missing.empty()) return;
  throw EnvironmentError(
      fmt::format("grid '{}' is of the paper's scale, and this machine lacks "
                  "something that its {} runs need:{}\nThey take about {:.2g} "
                  "FLOPs, {:.0f} GPU hours. `plan {}` shows everything; `run "
                  "mini` trains the same rows at a size for CPUs",
                  grid.name, open.size(), missing, flops, gpu_hours,
                  fmt::join(CommandWords(grid), " ")));
}

int64_t DiskBytesStillNeeded(const std::vector<RunOutcome>& runs,
                             int64_t jobs) {
  const auto bytes_there = [](const RunOutcome& run, const char* name) {
    std::error_code missing;
    const auto bytes = fs::file_size(run.folder / name, missing);
    return missing ? int64_t{0} : static_cast<int64_t>(bytes);
  };
  int64_t need = 0;
  std::vector<int64_t> at_work;
  for (const RunOutcome& run : runs) {
    if (run.state == RunState::kFinished) continue;
    const trainer::ResourceNeed one =
        trainer::EstimateResources(run.run.config);
    need += one.disk_bytes - 2 * one.checkpoint_bytes -
            bytes_there(run, trainer::kMetricsName);
    // While a checkpoint is written, the previous one still exists; one stays
    // at the end, or none.
    int64_t checkpoints =
        2 * one.checkpoint_bytes - bytes_there(run, trainer::kCheckpointName);
    if (run.run.evaluations.keep_checkpoint) {
      need += checkpoints - one.checkpoint_bytes;
      checkpoints = one.checkpoint_bytes;
    }
    at_work.push_back(checkpoints);
  }
  // Whichever runs are active at a time, they need no more than the largest
  // ones.
  std::ranges::sort(at_work, std::greater());
  for (size_t i = 0; i < at_work.size() && std::cmp_less(i, jobs); ++i) {
    need += at_work[i];
  }
  return need;
}

void RequireGridDiskSpace(const std::vector<RunOutcome>& runs,
                          const GridRunOptions& options) {
  const int64_t need =
      DiskBytesStillNeeded(runs, options.jobs * options.processes_at_work);
  const int64_t free = FreeDiskBytes(options.folder);
  if (need <= free) return;
  throw EnvironmentError(
      fmt::format("{}: the grid will write {} there, but the disk has {} free; "
                  "free some, choose a folder on another disk with --out, {}or "
                  "fewer runs with --rows, --corpora or --seeds",
                  options.folder.string(), FormatBytes(need), FormatBytes(free),
                  options.jobs > 1 ? "fewer --jobs, " : ""));
}

}  // namespace softmoe::experiments

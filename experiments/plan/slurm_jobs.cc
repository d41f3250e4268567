// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/slurm_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/grids/grid_select.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

SlurmJob NewJob(const Grid& grid, const RowEstimate& row,
                const SlurmPlace& place) {
  const GridCorpus& corpus = row.run.corpus;
  SlurmJob job;
  job.name = fmt::format("softmoe-{}-{}", grid.name, corpus.id);
  job.corpus = corpus.id;
  fs::path start = fs::absolute(place.start).lexically_normal();
  if (!start.has_filename()) start = start.parent_path();  // "/home/me/"
  job.start = start.string();
  job.logs = SlurmFolder(fs::absolute(place.folder)).string();
  job.gpus = corpus.gpus;
  job.gpus_per_node = grid.cluster.gpus_per_node;
  job.ranks = place.ranks;
  const int64_t threads = row.run.runtime.threads;
  if (threads > 0) job.cores = threads;
  job.options = grid.cluster.sbatch;
  job.hours = 0;
  job.command = TaskCommand(grid, place);
  if (job.gpus == 0 && threads == 0) {
    job.command.insert(job.command.end(),
                       {"--threads", std::to_string(job.cores)});
  }
  if (job.gpus > 0 && row.run.runtime.device.empty()) {
    job.command.insert(job.command.end(), {"--device", "cuda"});
  }
  if (job.num_ranks() > 1) {
    job.command.insert(job.command.end(), {"--ranks", "mpi"});
  }
  job.command.insert(job.command.end(), {"--corpora", corpus.id});
  return job;
}

// Expected hours for all seeds of the row, one after the other.
double Hours(const RowEstimate& row, const SlurmJob& job) {
  const double gpus = static_cast<double>(job.gpus);
  const double one =
      job.gpus == 0
          ? row.cost.core_hours / static_cast<double>(job.ranks * job.cores)
          : std::max(row.cost.hours, row.paper_gpu_hours.value_or(0) / gpus);
  return static_cast<double>(row.seeds) * one;
}

}  // namespace

fs::path SlurmFolder(const fs::path& grid_folder) {
  return grid_folder / "slurm";
}

std::vector<std::string> TaskCommand(const Grid& grid,
                                     const SlurmPlace& place) {
  std::vector<std::string> command = CommandWords(grid);
  command.insert(command.begin(), {place.program, "run"});
  command.insert(command.end(),
                 {"--seeds", fmt::format("{}", fmt::join(grid.seeds, ","))});
  for (const std::string& assignment : grid.overrides) {
    command.insert(command.end(), {"--set", assignment});
  }
  command.insert(command.end(), {"--out", fs::absolute(place.folder).string()});
  command.insert(command.end(), place.options.begin(), place.options.end());
  return command;
}

std::vector<SlurmJob> SlurmJobs(const Grid& grid,
                                const std::vector<RowEstimate>& rows,
                                const SlurmPlace& place) {
  std::vector<SlurmJob> jobs;
  for (const RowEstimate& row : rows) {
    if (jobs.empty() || row.run.corpus.id != jobs.back().corpus) {
      jobs.push_back(NewJob(grid, row, place));
    }
    SlurmJob& job = jobs.back();
    job.rows.push_back(row.run.row.id);
    job.hours = std::max(job.hours, Hours(row, job));
  }
  return jobs;
}

}  // namespace softmoe::experiments

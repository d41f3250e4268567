// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/slurm_jobs.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/errors.h"
#include "experiments/grids/grid_select.h"
#include "trainer/run/trainer.h"

namespace softmoe::experiments {

// ---- The script of a job.

namespace {

constexpr double kTimeMargin = 1.5;
constexpr int kSecondsToSave = 300;
// Open MPI 4.1 passes SIGTERM on after this time, and kills after the same time
// again (measured with other values). Both fit into kSecondsToSave.
constexpr int kMpirunWaits = 120;
// More steps than any run has, so a log has only the first and the last step.
constexpr int kLogEvery = 1'000'000'000;
constexpr int kReturnsOfKilled = 3;

// Quotes `value` for a #SBATCH line, which sbatch reads differently from a
// shell.
std::string SbatchQuoted(const std::string& value) {
  if (ShellQuoted(value) == value) return value;
  if (value.find('\n') != std::string::npos) {
    throw ConfigError(fmt::format(
        "'{}' has a line break, which no #SBATCH line can hold; start in "
        "another folder, or choose one with --out",
        value));
  }
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// A path with sbatch's replacement patterns escaped.
std::string Percents(const std::string& path) {
  std::string escaped;
  for (const char c : path) escaped += c == '%' ? "%%" : std::string(1, c);
  return escaped;
}

std::string Resources(const SlurmJob& job) {
  if (job.gpus == 0) {
    return fmt::format("{}#SBATCH --ntasks={}\n#SBATCH --cpus-per-task={}\n",
                       job.ranks == 1 ? "#SBATCH --nodes=1\n" : "", job.ranks,
                       job.cores);
  }
  const NodeLayout layout = LayOutNodes(job.gpus, job.gpus_per_node);
  return fmt::format(
      "#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n"
      "#SBATCH --gpus-per-node={}\n",
      layout.nodes, layout.gpus_per_node, layout.gpus_per_node);
}

int64_t LimitHours(const SlurmJob& job) {
  return std::max<int64_t>(1, std::llround(std::ceil(kTimeMargin * job.hours)));
}

// The lines that sbatch reads.
std::string Directives(const SlurmJob& job) {
  std::string lines = fmt::format(
      "#SBATCH --job-name={}\n"
      "#SBATCH --array=0-{}\n",
      SbatchQuoted(job.name), job.rows.size() - 1);
  lines += Resources(job);
  lines += fmt::format(
      R"(#SBATCH --time={:02}:00:00
#SBATCH --signal=TERM@{}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --chdir={}
#SBATCH --output={}
)",
      LimitHours(job), kSecondsToSave, SbatchQuoted(job.start),
      SbatchQuoted(Percents(job.logs) + "/%x-%A_%a.log"));
  for (const std::string& option : job.options) {
    lines += "#SBATCH " + option + "\n";
  }
  return lines;
}

std::string RowsOf(const SlurmJob& job) {
  std::string text = "rows=(\n";
  for (const std::string& row : job.rows) {
    text += "  " + ShellQuoted(row) + "\n";
  }
  return text + ")\n";
}

std::string Training(const SlurmJob& job) {
  // Not SLURM_JOB_ID, which for the last task is that of the whole array.
  std::string text = "task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\n";
  text += "kills=" + ShellQuoted(job.logs) + "/kills-$task\n";
  // Since Slurm 22.05, srun does not inherit this from the job.
  const std::string cores =
      job.gpus == 0 ? fmt::format(" --cpus-per-task={}", job.cores) : "";
  if (job.num_ranks() > 1) {
    // srun must be tried: Debian's lists pmix even if its plugin cannot load
    // the library, for want of libpmix-dev. Slurm signals only what srun
    // starts, so `timeout` tells mpirun, and mpirun its ranks. Slurm knows the
    // end, which [cluster] sbatch may have changed. Without --foreground mpirun
    // gets the signal twice, alone and with its process group, and ends at
    // once: its ranks are never told, and save nothing.
    text += fmt::format(
        R"sh(more=()
# Ranks end each other, with the code of the one that was first.
start=(srun --mpi=pmix --kill-on-bad-exit=0{})
if ! srun --mpi=pmix --ntasks=1 --nodes=1 true; then
  command -v mpirun >/dev/null || {{
    echo "no PMIx and no mpirun: apt-get install openmpi-bin" >&2
    exit {}
  }}
  now=$(date +%s)
  left=$((${{SLURM_JOB_END_TIME:-now + {}}} - now - {}))
  start=(timeout --foreground $((left > 0 ? left : 1))
    mpirun -n {} --bind-to none --mca odls_base_sigkill_timeout {})
  # While mpirun ends, it reads nothing: a process that fills the pipe hangs.
  more=(--set runtime.log_every={})
fi
status=0
"${{start[@]}}")sh",
        cores, static_cast<int>(ExitCode::kEnvironment), LimitHours(job) * 3600,
        kSecondsToSave, job.num_ranks(), kMpirunWaits, kLogEvery);
  } else {
    text += "status=0\nsrun" + cores;
  }
  for (const std::string& word : job.command) {
    text += (word.starts_with("--") ? " \\\n  " : " ") + ShellQuoted(word);
  }
  if (job.num_ranks() > 1) text += " \\\n  \"${more[@]}\"";
  return text +
         " \\\n  --rows \"${rows[$SLURM_ARRAY_TASK_ID]}\" || status=$?\n";
}

// Decides whether the task goes back into the queue.
std::string WhenItHasEnded(const SlurmJob& job) {
  const bool ranks = job.num_ranks() > 1;
  return fmt::format(
      R"sh(case $status in
  # Stopped in time, state saved: continues in a new allocation.
  {}{}) scontrol requeue "$task" ;;
  # {}:
  # continues from its checkpoint, but the cause may come again.
  {}{})
    echo "$(hostname) $(date)" >>"$kills" &&
      [ "$(wc -l <"$kills")" -le {} ] && scontrol requeue "$task"
    ;;
esac
exit "$status"
)sh",
      static_cast<int>(ExitCode::kStopped), ranks ? " | 124" : "",
      ranks ? "Killed, or a rank was silent" : "Killed",
      ranks ? fmt::format("{} | ", static_cast<int>(ExitCode::kEnvironment))
            : "",
      128 + SIGKILL, kReturnsOfKilled);
}

}  // namespace

std::string ShellQuoted(const std::string& word) {
  const bool plain =
      !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) ||
               std::string("-_./=:,+@%").find(c) != std::string::npos;
      });
  if (plain) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

NodeLayout LayOutNodes(int64_t gpus, int64_t gpus_per_node) {
  SOFTMOE_CHECK(gpus > 0 && gpus_per_node > 0)
      << gpus << " GPUs, " << gpus_per_node << " a node";
  int64_t per_node = std::min(gpus, gpus_per_node);
  while (gpus % per_node != 0) --per_node;
  return {.nodes = gpus / per_node, .gpus_per_node = per_node};
}

std::string SlurmScript(const SlurmJob& job) {
  SOFTMOE_CHECK(!job.rows.empty()) << job.name << " has no rows";
  return "#!/bin/bash\n" + Directives(job) + "\n" + RowsOf(job) +
         Training(job) + WhenItHasEnded(job);
}

std::string SlurmLogName(const SlurmJob& job, const std::string& id,
                         size_t task) {
  return fmt::format("{}/{}-{}_{}.log", job.logs, job.name, id, task);
}

// ---- The jobs of a grid.

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
    job.command.insert(job.command.end(), place.rank_options.begin(),
                       place.rank_options.end());
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

void CheckSlurmRanks(const Grid& grid, const GridRun& run, int64_t ranks) {
  const int64_t gpus = run.corpus.gpus;
  if (gpus > 0 && ranks != 1) {
    throw ConfigError(fmt::format(
        "--ranks {}: corpus '{}' of {} has gpus = {}, each of which is a "
        "rank; change that number, or leave --ranks out",
        ranks, run.corpus.id, grid.path.string(), gpus));
  }
  (void)trainer::RanksInIdentity(run.config,
                                 static_cast<int>(gpus > 0 ? gpus : ranks));
}

}  // namespace softmoe::experiments

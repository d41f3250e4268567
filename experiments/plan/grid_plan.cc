// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/grid_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/text/suggestion.h"
#include "core/text/text_table.h"
#include "experiments/grids/experiment.h"
#include "experiments/grids/grid_select.h"
#include "experiments/plan/grid_estimate.h"
#include "experiments/plan/plan_sections.h"
#include "experiments/plan/plan_text.h"
#include "experiments/plan/rank_plan.h"
#include "experiments/plan/slurm_jobs.h"
#include "golden/document/document.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

using Rows = std::vector<RowEstimate>;

bool HasGpus(const Grid& grid) {
  return std::any_of(grid.corpora.begin(), grid.corpora.end(),
                     [](const GridCorpus& corpus) { return corpus.gpus > 0; });
}

// Runs that may write at the same time: with Slurm, one task for each row.
size_t RunsAtWork(const Rows& rows, Launcher launcher) {
  return launcher == Launcher::kSlurm ? rows.size() : 1;
}

std::vector<Rows> ByCorpus(const Rows& rows) {
  std::vector<Rows> corpora;
  for (const RowEstimate& row : rows) {
    if (corpora.empty() ||
        corpora.back().front().run.corpus.id != row.run.corpus.id) {
      corpora.emplace_back();
    }
    corpora.back().push_back(row);
  }
  return corpora;
}

// Warns of rows that claim to be a row of the paper but are not judged as one.
std::vector<std::string> PaperRowWarnings(const Rows& rows,
                                          const golden::Document& paper) {
  std::set<std::string> known;
  for (const golden::Table& table : paper.tables) {
    for (const golden::Row& row : table.rows) known.insert(row.id);
  }
  std::map<std::pair<std::string, std::string>, std::string> taken;
  std::vector<std::string> warnings;
  for (const RowEstimate& row : rows) {
    const std::string id = row.run.paper_id();
    if (id.empty()) continue;
    const std::string name = row.run.corpus.id + "/" + row.run.row.id;
    if (!known.contains(id)) {
      warnings.push_back(
          fmt::format("{}: not judged: the paper has no row {}; {}", name, id,
                      Suggestion(id, {known.begin(), known.end()})));
      continue;
    }
    const auto [first, is_new] =
        taken.try_emplace({row.run.row.variant, id}, name);
    if (is_new) continue;
    warnings.push_back(
        fmt::format("{}: not judged: {} is already the paper's row {}", name,
                    first->second, id));
  }
  return warnings;
}

// What is wrong if a grid run by itself deletes checkpoints on which
// experiments at its scale measure more; else "".
std::string CheckpointProblem(const Grid& grid) {
  const trainer::EvaluationPlan& own = grid.evaluations;
  if (!grid.experiment.empty() || own.keep_checkpoint) return "";
  bool builds_on_it = false, more = false;
  std::vector<std::string> unreadable;
  for (const Grid& other :
       ReadableExperiments(grid.path, grid.overrides, &unreadable)) {
    builds_on_it |= !TakesEveryRow(other, grid);
    if (!IsMain(other)) continue;
    for (const GridRun& run : other.runs) {
      trainer::EvaluationPlan kept = own;
      kept.keep_checkpoint = run.evaluations.keep_checkpoint;
      more |= run.evaluations != kept;
    }
  }
  if (!builds_on_it || !more) return "";
  return "experiments at the scale of this file evaluate its runs further, "
         "and cannot once their checkpoints are deleted "
         "(evaluations.keep_checkpoint); `run main`, with this file as "
         "--scale, evaluates everything, and `run --keep-checkpoints` keeps "
         "them";
}

// False if some row or corpus lacks some of the seeds.
bool IsWhole(const Grid& grid) {
  return grid.runs.size() ==
         grid.corpora.size() * grid.rows.size() * grid.seeds.size();
}

// For each experiment, how many of this grid's runs it is the first to have.
std::string WhoTrains(const Grid& grid) {
  if (grid.experiment.empty()) return "";
  std::string who;
  for (const std::string& name : EveryExperimentName()) {
    const auto runs =
        std::ranges::count(grid.runs, name, &GridRun::first_experiment);
    const bool of_all =
        grid.experiment == kAllExperiments && !IsOwnExperiment(name);
    if (runs == 0 && !of_all) continue;
    who += fmt::format("{}{} of {}", who.empty() ? "" : ", ",
                       runs == 0 ? "none" : std::to_string(runs), name);
  }
  return Paragraph(fmt::format(
      "{}: {}. Runs that an earlier experiment has, too, are trained once and "
      "shared.",
      Count(static_cast<int64_t>(grid.runs.size()), "training"), who));
}

// The evaluations of the final parameters.
std::string Evaluations(const Grid& grid) {
  bool histograms = false, health = false;
  // Numbers of runs, keyed by what their plans list.
  std::map<std::vector<double>, int64_t> with_tau;
  std::map<std::vector<std::string>, int64_t> with_tasks;
  for (const GridRun& run : grid.runs) {
    const trainer::EvaluationPlan& plan = run.evaluations;
    ++with_tau[plan.inference_tau_factors];
    ++with_tasks[plan.tasks];
    histograms |= plan.active_histogram;
    health |= plan.router_health;
  }
  std::vector<std::string> what;
  for (const auto& [factors, runs] : with_tau) {
    if (factors.empty()) continue;
    what.push_back(fmt::format("validation at {} times tau ({})",
                               fmt::join(factors, ", "), Count(runs, "run")));
  }
  if (histograms) what.push_back("histograms of active experts");
  if (health) what.push_back("the health of the routers");
  for (const auto& [tasks, runs] : with_tasks) {
    if (tasks.empty()) continue;
    what.push_back(fmt::format(
        "the zero-shot tasks {} ({}), whose items `run` takes from the folder "
        "--task-files",
        fmt::join(tasks, ", "), Count(runs, "run")));
  }
  if (what.empty()) return "";
  return Paragraph(fmt::format("after training: {}", fmt::join(what, ", ")));
}

std::string Header(const Grid& grid, const Rows& rows, const fs::path& folder) {
  std::string text =
      grid.name == grid.scale_grid || grid.experiment.empty()
          ? fmt::format("Grid {}: {}\n", grid.name, grid.title)
          : fmt::format("Experiment {} at the scale of grid {}: {}\n",
                        grid.experiment, grid.scale_grid, grid.title);
  text += Paragraph(fmt::format(
      "{} {} {} x {} x {} ({}); scale {}. A plan: nothing is run, downloaded "
      "or written.",
      Count(static_cast<int64_t>(grid.runs.size()), "run"),
      IsWhole(grid) ? "=" : "of",
      Count(static_cast<int64_t>(grid.corpora.size()), "corpus", "corpora"),
      Count(static_cast<int64_t>(grid.rows.size()), "row"),
      Count(static_cast<int64_t>(grid.seeds.size()), "seed"),
      fmt::join(grid.seeds, ", "), grid.scale));
  const std::string model = DescribeModel(rows.front().run.config.model);
  const bool same =
      std::all_of(rows.begin(), rows.end(), [&](const RowEstimate& row) {
        return DescribeModel(row.run.config.model) == model;
      });
  text += Paragraph("model: " +
                    (same ? model : "of different sizes, see `parameters`"));
  text += WhoTrains(grid) + Evaluations(grid);
  return text + fmt::format("results: {}\n", folder.string());
}

std::string SlurmSection(const Grid& grid, const Rows& rows,
                         const SlurmPlace& place) {
  // PlanWarnings reports GPUs that do not divide the balance groups.
  if (place.ranks != 1) {
    for (const GridRun& run : grid.runs) {
      CheckSlurmRanks(grid, run, place.ranks);
    }
  }
  std::string text =
      "\nSlurm\n" + Paragraph(fmt::format(
                        "`run --launcher=slurm` writes these scripts into {}, "
                        "submits them and waits (--detach: does not), leaving "
                        "out what is finished. By hand: make that folder, for "
                        "the logs, and sbatch each.",
                        SlurmFolder(place.folder).string()));
  if (HasGpus(grid)) {
    text += Paragraph(
        "Ranks on several GPUs have never run, for lack of a machine with "
        "two; start with one row and few steps.");
  }
  for (const SlurmJob& job : SlurmJobs(grid, rows, place)) {
    text += fmt::format("\n----- {}.sh -----\n{}", job.name, SlurmScript(job));
  }
  return text;
}

std::string MpiSection(const Grid& grid, const SlurmPlace& place) {
  std::string command;
  for (const std::string& word : TaskCommand(grid, place)) {
    command += " " + ShellQuoted(word);
  }
  return "\nMPI\n" +
         Paragraph(
             "The processes of one mpirun or srun share the rows, each with "
             "its share of the cores; they are not ranks of one data-parallel "
             "training.") +
         fmt::format("\nmpirun -n 4{} --launcher=mpi\n", command);
}

// Lists for each experiment the number of rows in the paper's table and, at
// each scale that has it, the runs it needs and how many of them no earlier
// experiment has.
std::string ListExperiments(const golden::Document& paper) {
  std::vector<std::string> header = {"experiment", "paper's rows"};
  std::vector<std::vector<std::string>> lines;
  std::string titles;
  std::set<std::string> titled;
  const std::vector<std::string> names = EveryExperimentName();
  for (const std::string& name : names) lines.push_back({name, ""});
  lines.push_back({kAllExperiments, ""});
  for (const std::string& scale : ShippedGrids()) {
    header.push_back(scale);
    for (std::vector<std::string>& line : lines) line.emplace_back("-");
    int64_t all = 0;
    for (const Grid& grid : LoadExperiments(GridPath(scale), {})) {
      const bool of_paper = !IsOwnExperiment(grid.experiment);
      const auto own = std::ranges::count(grid.runs, grid.experiment,
                                          &GridRun::first_experiment);
      const auto line = std::ranges::find(names, grid.experiment);
      std::vector<std::string>& words =
          lines[static_cast<size_t>(line - names.begin())];
      if (titled.insert(grid.experiment).second) {
        const golden::Table* table = paper.FindTable(grid.table);
        SOFTMOE_CHECK(table != nullptr) << "no table " << grid.table;
        words[1] = of_paper ? std::to_string(table->rows.size()) : "-";
        titles +=
            fmt::format("{:13}  {}\n", grid.experiment, grid.experiment_title);
      }
      words[header.size() - 1] = fmt::format("{} (+{})", grid.runs.size(), own);
      if (of_paper) all += own;
    }
    lines.back()[header.size() - 1] = std::to_string(all);
  }
  TextTable table(header);
  for (std::vector<std::string>& line : lines) table.Add(std::move(line));
  return table.Text() + "\n" + titles +
         "\nRuns at each scale; in brackets, those that no experiment above "
         "has.\nplan, run, status, report EXPERIMENT --scale=SCALE; SCALE "
         "alone means main.\n";
}

}  // namespace

Launcher DefaultLauncher(const Grid& grid) {
  return HasGpus(grid) ? Launcher::kSlurm : Launcher::kLocal;
}

std::string DescribePlan(const Grid& grid, const SlurmPlace& place,
                         Launcher launcher, const TokenPrefixes& tokens) {
  const fs::path& folder = place.folder;
  const golden::Document paper = ReadPaper();
  Rows rows = EstimateGrid(grid, paper);
  UsePrepared(tokens, &rows);
  std::string text = Header(grid, rows, folder);
  const std::vector<Rows> corpora = ByCorpus(rows);
  for (const Rows& corpus : corpora) text += "\n" + DescribeCorpus(corpus);
  for (const Rows& corpus : corpora) {
    const std::string ranks = DescribeRanks(corpus, grid.cluster);
    if (!ranks.empty()) text += "\n" + ranks;
  }
  text += "\n" + PlanLegend(grid.cluster, rows);
  if (HasGpus(grid)) text += RankLegend(grid.cluster);
  const std::string protocol = DescribeStillRuns(rows);
  if (!protocol.empty()) text += "\n" + protocol;
  const size_t at_work = RunsAtWork(rows, launcher);
  text += "\nTotals\n";
  if (corpora.size() > 1) {
    for (const Rows& corpus : corpora) {
      text += Paragraph(TotalLine(corpus.front().run.corpus.id, corpus,
                                  RunsAtWork(corpus, launcher)),
                        2);
    }
  }
  text += Paragraph(TotalLine("all", rows, at_work), 2);
  text += "\n" + DescribeDisk(rows, folder, CacheFolder());
  const int64_t free = FreeDiskBytes(folder);
  std::vector<std::string> warnings = PlanWarnings(grid, rows, free, at_work);
  std::ranges::move(PaperRowWarnings(rows, paper),
                    std::back_inserter(warnings));
  for (const std::string& problem :
       {TokenDiskProblem(rows, CacheFolder()), CheckpointProblem(grid)}) {
    if (!problem.empty()) warnings.push_back(problem);
  }
  text += warnings.empty() ? "\nNo warnings.\n" : "\n";
  for (const std::string& warning : warnings) {
    text += Paragraph("WARNING " + warning);
  }
  if (launcher == Launcher::kSlurm) text += SlurmSection(grid, rows, place);
  if (launcher == Launcher::kMpi) text += MpiSection(grid, place);
  return text;
}

std::string DescribeGrids() {
  const golden::Document paper = ReadPaper();
  TextTable table(
      {"grid", "runs", "corpora x rows x seeds", "scale", "cost", "disk"});
  std::string titles;
  for (const std::string& name : ShippedGrids()) {
    const Grid grid = LoadGrid(GridPath(name), {});
    const Rows rows = EstimateGrid(grid, paper);
    const GridTotal total =
        Total(rows, RunsAtWork(rows, DefaultLauncher(grid)));
    table.Add(
        {name, std::to_string(total.runs),
         fmt::format("{}{} x {} x {}", IsWhole(grid) ? "" : "of ",
                     grid.corpora.size(), grid.rows.size(), grid.seeds.size()),
         grid.scale, CostInWords(total), FormatBytes(total.disk_bytes)});
    titles += fmt::format("{:5}  {}\n", name, grid.title);
  }
  return table.Text() + "\n" + titles + "\n" + ListExperiments(paper) + "\n" +
         "Costs are estimates; `plan GRID` shows what goes into them.\n"
         "A grid of your own is a path to a TOML file: "
         "experiments/GRIDS.md.\n";
}

}  // namespace softmoe::experiments

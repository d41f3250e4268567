// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/grid_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/process/process.h"
#include "core/testing/message_test_util.h"
#include "core/text/text_table.h"
#include "experiments/grids/grid_select.h"
#include "experiments/plan/grid_estimate.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

Grid Shipped(const std::string& name,
             const std::vector<std::string>& overrides = {}) {
  return LoadGrid(RunfilePath("experiments/grids/" + name + ".toml"),
                  overrides);
}

std::string PlanIn(const Grid& grid, const fs::path& folder) {
  ::setenv("XDG_CACHE_HOME", "/tmp/cache", 1);
  return DescribePlan(grid, {.start = "/tmp", .folder = folder},
                      DefaultLauncher(grid));
}

// The plan of a shipped grid, of an experiment at the paper's scale, and the
// list of them all. Cached: each takes a while.
const std::string& PlanOf(const std::string& name) {
  static std::map<std::string, std::string> plans;
  const auto [plan, is_new] = plans.try_emplace(name);
  if (is_new) {
    plan->second = PlanIn(
        name == "all" ? SelectGrid("all", "paper", {}) : Shipped(name), "/tmp");
  }
  return plan->second;
}

const std::string& List() {
  static const std::string list = DescribeGrids();
  return list;
}

fs::path Folder(const std::string& name) {
  return fs::path(std::getenv("TEST_TMPDIR")) / name;
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// `text` without its line breaks.
std::string InOneLine(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += word + " ";
  return line;
}

// The words of the `nth` line that starts with `word`.
std::vector<std::string> Entry(const std::string& text, const std::string& word,
                               int nth) {
  for (const std::string& line : Lines(text)) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string w; stream >> w;) words.push_back(w);
    if (!words.empty() && words[0] == word && nth-- == 0) return words;
  }
  return {};
}

using Words = std::vector<std::string>;

// Acceptance numbers: 1,631,409,280 parameters and 10 budget logits (DESIGN.md,
// ruling 17); tokens and GPU hours of the paper's Table
// tab:training_time_gpus and section 5 (SPEC.md 6b, T3).
TEST(GridPlan, PaperRowsHaveThePapersNumbers) {
  const std::string& plan = PlanOf("paper");
  // Columns: row, k, tau, start, zero AE, AE, from, parameters, active
  // parameters.
  EXPECT_EQ(Entry(plan, "sparse-2", 0),
            (Words{"sparse-2", "2", "-", "2.00", "0.0%", "2.00", "paper",
                   "1,631,409,280", "156,849,280"}));
  const Words learned = Entry(plan, "softmoe-2-paper-tau", 0);
  ASSERT_EQ(learned.size(), 9u);
  EXPECT_EQ(learned[5], "3.18");  // Train-AE, T1
  EXPECT_EQ(learned[7], "1,631,409,290");
  // 58,545,280 + 49,152,000 * 3.18 (SPEC.md 3.1).
  EXPECT_EQ(learned[8], "214,848,640");
  // Columns: row, steps, tokens, FLOPs, GPU hours, the paper's, disk.
  const Words owt = Entry(plan, "softmoe-star-1.5-calibrated", 1);
  ASSERT_EQ(owt.size(), 8u);
  EXPECT_EQ(owt[1], "18,000");
  EXPECT_EQ(owt[2], "8,847,360,000");
  EXPECT_EQ(owt[5], "20.0");
  const Words c4 = Entry(plan, "softmoe-star-1.5-calibrated", 3);
  ASSERT_EQ(c4.size(), 8u);
  EXPECT_EQ(c4[1], "164,000");
  EXPECT_EQ(c4[2], "201,523,200,000");
  EXPECT_EQ(c4[5], "424.3");
  EXPECT_TRUE(Says(plan, "on each of 8 GPUs: 30 sequences = 1 micro-batch"));
  EXPECT_TRUE(Says(plan, "the steps are 1.00 epochs"));
  // 8,847,360,000 / 0.98 tokens of 2 bytes are 18.06e9 bytes.
  EXPECT_TRUE(Says(plan, "tokens of owt, vocabulary 32768: about 18.5 GiB"));
  // 10 batches of 240 (600) sequences, 10 layers, 4 weights of 4 bytes.
  EXPECT_TRUE(Says(plan, "calibrating tau: up to 750.0 MiB of host",
                   "calibrating tau: up to 1.8 GiB of host"));
  // Each of the paper's 18 rows counts once, although two of our rows repeat
  // some.
  EXPECT_TRUE(
      Says(plan, "the paper's 9 rows: 180)", "the paper's 9 rows: 4,052)"));
}

// At T = 5 and tau = 1.8 no expert is active (DESIGN.md, ruling 7; SPEC.md
// 2.3); with tau 1.1, 1.2 or calibrated, and in sparse rows, enough are.
TEST(GridPlan, WarnsOfRowsThatTrainNoExpertAndOfNoOthers) {
  const std::string& plan = PlanOf("paper");
  const size_t first = plan.find("WARNING owt/");
  ASSERT_NE(first, std::string::npos) << plan;
  const std::string warning =
      plan.substr(first, plan.find("\nWARNING", first) - first);
  EXPECT_TRUE(Says(warning, "owt/softmoe-star-1.5-paper-none",
                   "owt/softmoe-1.5-paper-none"));
  for (const char* row :
       {"sparse", "calibrated,", "star-1-", "-2-", "paper-tau,", "c4/"}) {
    EXPECT_FALSE(Says(warning, row));
  }
  EXPECT_TRUE(Says(warning, "tau = 1.8 at T ="));
}

TEST(GridPlan, SmokeHasNothingToWarnOfAndNoScripts) {
  const std::string& plan = PlanOf("smoke");
  EXPECT_TRUE(Says(plan, "No warnings."));
  EXPECT_FALSE(Says(plan, "sbatch"));
  EXPECT_FALSE(Says(plan, "GPU"));
  EXPECT_TRUE(Says(plan, "core minutes"));
}

TEST(GridPlan, WarnsOfRowsThatNothingJudges) {
  Grid grid = Shipped("smoke");
  for (GridRun& run : grid.runs) {
    if (run.row.id == "sparse-2") run.row.paper_row = "sparse/k9";
    if (run.row.id == "sparse-3") run.row.paper_row = "sparse/k1";
  }
  const std::string plan = PlanIn(grid, "/tmp");
  EXPECT_TRUE(Says(plan,
                   "WARNING foldoc/sparse-2: not judged: the paper has no row "
                   "owt/sparse/k9; did you mean",
                   "WARNING foldoc/sparse-3: not judged: foldoc/sparse-1 is "
                   "already the paper's row owt/sparse/k1"));
}

// A user's file that is a scale, like a copy of mini, gets the warning, too.
TEST(GridPlan, WarnsOfCheckpointsThatExperimentsNeed) {
  const fs::path path = Folder("mini9.toml");
  std::string text = ReadWholeFile(GridPath("mini"));
  text.replace(text.find("name = \"mini\""), 13, "name = \"mini9\"");
  WriteFileAtomically(path, text);
  EXPECT_TRUE(Says(PlanIn(SelectGrid(path.string(), "", {}), "/tmp"),
                   "(evaluations.keep_checkpoint)", "`run main`"));
  EXPECT_FALSE(Says(PlanIn(SelectGrid("main", path.string(), {}), "/tmp"),
                    "(evaluations.keep_checkpoint)"));
  text.replace(text.find("keep_checkpoint = false"), 23,
               "keep_checkpoint = true");
  WriteFileAtomically(path, text);
  EXPECT_FALSE(Says(PlanIn(SelectGrid(path.string(), "", {}), "/tmp"),
                    "(evaluations.keep_checkpoint)"));
}

// At every scale: corpora, tokens, checkpoints and results.
TEST(GridPlan, SaysWhatEachKindOfFileTakes) {
  for (const std::string& name : Scales()) {
    const std::string& plan = PlanOf(name);
    const size_t at = plan.find("\nDisk\n");
    ASSERT_NE(at, std::string::npos) << plan;
    for (const char* kind : {"  corpus ", "  tokens of ", "  checkpoints: ",
                             "  results: ", "free there: "}) {
      EXPECT_NE(plan.find(kind, at), std::string::npos) << kind << plan;
    }
  }
}

TEST(GridPlan, FitsATerminal) {
  for (const std::string& name : Scales()) {
    for (const std::string& line : Lines(PlanOf(name))) {
      EXPECT_LE(line.size(), 100u) << line;
    }
  }
  for (const std::string& line : Lines(List())) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

// Acceptance numbers for the plan of everything.
TEST(GridPlan, AllExperimentsOfThePaper) {
  const std::string& plan = PlanOf("all");
  EXPECT_TRUE(Says(plan,
                   "43 trainings: 33 of main, 7 of tau, none of "
                   "inference_tau, 3 of jitter, none of load_variance"));
  for (const char* row : {"softmoe-star-1-tau-1.5", "sparse-3-jitter-0.05"}) {
    EXPECT_EQ(Entry(plan, row, 0).back(),
              row[0] == 's' && row[1] == 'p' ? "206,001,280" : "107,697,280");
    EXPECT_EQ(Entry(plan, row, 0).at(7), "1,631,409,280") << row;
    EXPECT_EQ(Entry(plan, row, 1).at(2), "8,847,360,000") << row;
    // Two tables for the corpus, two for its ranks, one for soft rows.
    const int tables = row[1] == 'p' ? 4 : 5;
    EXPECT_TRUE(Entry(plan, row, tables).size() <= 1) << "on OWT only: " << row;
  }
  EXPECT_TRUE(Says(plan, "validation at 0.5, 1, 1.5, 2 times tau (2 runs)",
                   "grid run all \\\n  --scale=paper \\\n"));
}

TEST(GridPlan, WritesNothing) {
  const fs::path folder = Folder("untouched");
  PlanIn(Shipped("smoke"), folder / "runs");
  EXPECT_FALSE(fs::exists(folder));
}

TEST(GridPlan, ScriptsRepeatTheCommandLine) {
  const std::string plan =
      PlanIn(Shipped("paper", {"router.fallback=\"top1\""}), "/data/my runs");
  EXPECT_TRUE(Says(plan, R"("${start[@]}" bazel-bin/experiments/grid run paper \
  --seeds 1234 \
  --set 'router.fallback="top1"' \
  --out '/data/my runs' \
  --device cuda \
  --ranks mpi \
  --corpora c4 \
  "${more[@]}" \
  --rows "${rows[$SLURM_ARRAY_TASK_ID]}" || status=$?
)")) << plan;
  // With a fallback every token has an expert: the only warning is about the
  // disk.
  EXPECT_FALSE(Says(plan, "WARNING owt/"));
}

// A run that several experiments share is given what any of them lists.
TEST(GridPlan, SaysWhichRunsAreAskedForWhat) {
  Grid grid = Shipped("smoke");
  grid.runs.resize(3);
  grid.runs[0].evaluations = {.inference_tau_factors = {0.5, 2},
                              .tasks = {"piqa"}};
  grid.runs[1].evaluations = {.inference_tau_factors = {0.5, 2}};
  grid.runs[2].evaluations = {.inference_tau_factors = {3},
                              .tasks = {"piqa", "hellaswag"}};
  const std::string plan = InOneLine(PlanIn(grid, "/tmp"));
  EXPECT_TRUE(Says(plan, "validation at 0.5, 2 times tau (2 runs)",
                   "validation at 3 times tau (1 run)", "tasks piqa (1 run)",
                   "tasks piqa, hellaswag (1 run)"));
}

// A user's grid whose GPU numbers do not fit.
fs::path WriteUsersGrid() {
  fs::path path = Folder("mine.toml");
  std::ofstream(path) << R"([grid]
name = "mine"
scale = "paper"
seeds = [1, 2]
[cluster]
gpu_bytes = 1e9
gpus_per_node = 8
sbatch = ["--partition=big"]
[[corpora]]
id = "text"
title = "A text"
gpus = 20
[corpora.config.data]
corpus = "path:text.txt"
[[rows]]
id = "wide"
label = "Sparse"
paper_row = "sparse/k2"
[rows.config.router]
mean_active_experts = 2
)";
  return path;
}

// The grid is named by its path, problems by their rows.
TEST(GridPlan, UsersGrid) {
  const fs::path path = WriteUsersGrid();
  const std::string plan = PlanIn(LoadGrid(path, {}), "/tmp");
  const Words row = Entry(plan, "wide", 0);
  ASSERT_EQ(row.size(), 9u);
  EXPECT_EQ(row[6], "k");  // not a corpus of the paper: nothing assumed from it
  EXPECT_EQ(Entry(plan, "wide", 1)[5], "-");
  // 240 sequences in 8 groups do not divide over 20 GPUs.
  EXPECT_TRUE(Says(plan, "WARNING text/wide: 8 balance groups of 30"));
  EXPECT_FALSE(Says(plan, "WARNING text/wide: needs "));
  EXPECT_TRUE(Says(plan, "run " + path.string() + " \\\n", "--seeds 1,2 \\\n",
                   "#SBATCH --partition=big\n"));
  // The fewest nodes with equally many GPUs, at most 8 each: 4 nodes of 5.
  EXPECT_TRUE(Says(plan, "#SBATCH --nodes=4\n", "#SBATCH --gpus-per-node=5\n"));
}

// The runner accepts the script's command down to the row: srun passes it on,
// and the only error is a row that the grid lacks.
TEST(GridPlan, RunnerTakesTheCommandOfTheScript) {
  const fs::path folder = Folder("runner");
  std::string script =
      PlanIn(LoadGrid(WriteUsersGrid(), {"router.fallback=\"top1\""}), folder);
  script.erase(0, script.find("#!/bin/bash"));
  const size_t row = script.find("  wide\n");
  ASSERT_NE(row, std::string::npos) << script;
  script.replace(row, 6, "  nowhere");
  fs::create_directories(folder / "slurm");
  std::ofstream(folder / "job.sh") << script;
  std::ofstream(folder / "srun")
      << "#!/bin/bash\n[ \"${@: -1}\" = true ] && exit\nshift 3\n"
      << "exec mpirun -n 1 " << RunfilePath("experiments/grid").string()
      << " \"$@\"\n";
  fs::permissions(folder / "srun", fs::perms::owner_all);
  const ProgramResult ended =
      RunProgram({"env", "PATH=" + folder.string() + ":/usr/bin:/bin",
                  "SLURM_ARRAY_TASK_ID=0", "OMPI_ALLOW_RUN_AS_ROOT=1",
                  "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "bash", "job.sh"},
                 folder);
  EXPECT_EQ(ended.exit_status, static_cast<int>(ExitCode::kUsage));
  EXPECT_TRUE(Says(ended.output,
                   "--rows nowhere: grid 'mine' has no such "
                   "row"));
}

// In all lines, each corpus counts its own kind of hours.
TEST(GridPlan, CorporaWithAndWithoutGpus) {
  const fs::path path = Folder("mixed.toml");
  std::string text = ReadWholeFile(WriteUsersGrid());
  text.insert(text.find("[[rows]]"),
              "[[corpora]]\nid = \"small\"\ntitle = \"Another\"\n"
              "[corpora.config.data]\ncorpus = \"path:small.txt\"\n");
  text.replace(text.find("gpus = 20"), 9, "gpus = 8");
  std::ofstream(path) << text;
  const std::string plan = InOneLine(PlanIn(LoadGrid(path, {}), "/tmp"));
  const size_t totals = plan.find(" Totals text: 2 runs, ");
  ASSERT_NE(totals, std::string::npos) << plan;
  const auto line = [&](const std::string& start) {
    const size_t at = plan.find(" " + start + ": ", totals);
    return plan.substr(at, plan.find(" on disk ", at) - at);
  };
  EXPECT_TRUE(Says(line("text"), " GPU hours, "));
  EXPECT_FALSE(Says(line("text"), "core"));
  EXPECT_TRUE(Says(line("small"), " core hours, "));
  EXPECT_FALSE(Says(line("small"), "GPU"));
  EXPECT_TRUE(Says(line("all"), " GPU hours and ", " core hours, "));
  EXPECT_TRUE(Says(plan, "GPU h: at an assumed ", "Core time: at an assumed "));
}

// GRIDS.md's script for one node with 8 GPUs is what the launcher writes.
TEST(GridPlan, GuideShowsTheScriptOfOneNode) {
  Grid paper = Shipped("paper");
  paper.name = "paper8";
  paper.path = "/data/paper8.toml";
  paper.cluster.gpus_per_node = 8;
  const std::string plan = DescribePlan(paper,
                                        {.program = "/opt/softmoe/grid",
                                         .start = "/data",
                                         .folder = "/data/runs/paper"},
                                        Launcher::kSlurm);
  const std::string begin = "----- softmoe-paper8-owt.sh -----\n";
  const size_t at = plan.find(begin) + begin.size();
  std::string shown;
  std::istringstream script(plan.substr(at, plan.find("\n-----", at) - at));
  for (std::string line; std::getline(script, line);) {
    shown += line.empty() ? "\n" : "    " + line + "\n";
  }
  const std::string guide = ReadWholeFile(RunfilePath("experiments/GRIDS.md"));
  EXPECT_TRUE(Says(guide, shown));
}

TEST(GridPlan, FollowsTheLauncher) {
  const Grid smoke = Shipped("smoke");
  EXPECT_EQ(DefaultLauncher(smoke), Launcher::kLocal);
  EXPECT_EQ(DefaultLauncher(Shipped("paper")), Launcher::kSlurm);
  ::setenv("XDG_CACHE_HOME", "/tmp/cache", 1);
  const SlurmPlace place = {.program = "/opt/grid", .folder = "/data/smoke"};
  const std::string slurm = DescribePlan(smoke, place, Launcher::kSlurm);
  EXPECT_TRUE(Says(slurm, "/data/smoke/slurm", "#SBATCH --array=0-8\n",
                   "#SBATCH --cpus-per-task=4\n",
                   "srun --cpus-per-task=4 /opt/grid run", "--threads 4 \\\n",
                   "  sparse-1\n"));
  EXPECT_FALSE(Says(slurm, "GPU"));
  // All nine rows may be at work at the same time.
  const std::vector<RowEstimate> rows = EstimateGrid(smoke, ReadPaper());
  const auto on_disk = [&rows](size_t at_work) {
    return FormatBytes(Total(rows, at_work).disk_bytes) + " on disk";
  };
  ASSERT_NE(on_disk(1), on_disk(9));
  EXPECT_TRUE(Says(InOneLine(slurm), on_disk(9)));
  EXPECT_TRUE(Says(InOneLine(DescribePlan(smoke, place, Launcher::kLocal)),
                   on_disk(1)));
  const std::string mpi = DescribePlan(smoke, place, Launcher::kMpi);
  EXPECT_TRUE(Says(mpi,
                   "mpirun -n 4 /opt/grid run smoke --seeds 1234 "
                   "--out /data/smoke --launcher=mpi\n"));
  EXPECT_FALSE(Says(mpi, "sbatch"));
}

// The paper's rows, then all runs and new runs at smoke, mini, midi and paper
// scale.
TEST(GridList, CountsTheRunsOfExperiments) {
  const std::string& list = List();
  EXPECT_EQ(Entry(list, "tau", 0),
            (Words{"tau", "10", "10", "(+10)", "20", "(+14)", "30", "(+21)",
                   "10", "(+7)"}))
      << list;
  const std::pair<const char*, const char*> kPaperRows[] = {
      {"main", "18"},          {"inference_tau", "8"}, {"jitter", "6"},
      {"load_variance", "18"}, {"throughput", "3"},    {"compute", "18"}};
  for (const auto& [name, rows] : kPaperRows) {
    EXPECT_EQ(Entry(list, name, 0).at(1), rows) << name;
  }
  EXPECT_EQ(Entry(list, "all", 0), (Words{"all", "22", "90", "114", "43"}));
}

TEST(GridList, SaysOnceWhatAScaleAloneMeans) {
  const std::string& list = List();
  EXPECT_TRUE(Says(list, "SCALE alone means main.\n"));
  EXPECT_EQ(list.find("means main."), list.rfind("means main.")) << list;
}

TEST(GridList, NamesTheGridsThatShip) {
  const std::string& list = List();
  // Columns: grid, runs, corpora x rows x seeds.
  for (const Words& start :
       {Words{"smoke", "9", "1", "x", "9", "x", "1", "smoke"},
        Words{"mini", "76", "of", "2", "x", "17", "x", "4", "mini"},
        Words{"midi", "84", "2", "x", "14", "x", "3", "midi"},
        Words{"paper", "33", "of", "2", "x", "19", "x", "1", "paper"}}) {
    Words entry = Entry(list, start[0], 0);
    ASSERT_GT(entry.size(), start.size()) << list;
    entry.resize(start.size());
    EXPECT_EQ(entry, start) << list;
  }
}

}  // namespace
}  // namespace softmoe::experiments

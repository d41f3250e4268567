// SPDX-License-Identifier: Apache-2.0
#include "experiments/grids/experiment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/grid_select.h"
#include "golden/document/document.h"
#include "golden/verdict/regime.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

using Ids = std::vector<std::string>;

std::vector<Grid> Experiments(const std::string& scale,
                              const SeedOption& seeds = {}) {
  return LoadExperiments(GridPath(scale), {}, seeds);
}

Grid Experiment(const std::string& name, const std::string& scale,
                const SeedOption& seeds = {}) {
  return LoadExperiment(name, GridPath(scale), {}, seeds);
}

std::map<std::string, int> RunsByFirst(const Grid& grid) {
  std::map<std::string, int> runs;
  for (const GridRun& run : grid.runs) ++runs[run.first_experiment];
  return runs;
}

// main: 9 rows on 2 corpora, with both readings of the 5 soft ones, which on
// OWT also run with published tau and no fallback. tau: the 10 rows of T6 but
// 3, whose tau is the published one. jitter: the 3 of T8's 6 rows that have
// jitter. No other table or figure trains anything.
TEST(Experiments, ThePaperTakesFortyThreeTrainings) {
  const Grid all = Experiment("all", "paper");
  EXPECT_EQ(all.runs.size(), 43u);
  EXPECT_EQ(RunsByFirst(all), (std::map<std::string, int>{
                                  {"main", 33}, {"tau", 7}, {"jitter", 3}}));
  std::set<std::string> hashes;
  for (const GridRun& run : all.runs) hashes.insert(ConfigHash(run.config));
  EXPECT_EQ(hashes.size(), 43u);
  std::map<std::string, size_t> runs;
  for (const Grid& grid : Experiments("paper")) {
    runs[grid.experiment] = grid.runs.size();
  }
  EXPECT_EQ(runs, (std::map<std::string, size_t>{{"main", 33},
                                                 {"tau", 10},
                                                 {"inference_tau", 2},
                                                 {"jitter", 6},
                                                 {"load_variance", 33},
                                                 {"throughput", 7},
                                                 {"compute", 33},
                                                 {"figures", 33}}));
}

// The mini grid is frozen: the runs that it lacks for T6 are extra.
TEST(Experiments, MiniTakesItsSeventySixAndFourteenMore) {
  const Grid all = Experiment("all", "mini");
  EXPECT_EQ(RunsByFirst(all),
            (std::map<std::string, int>{{"main", 76}, {"tau", 14}}));
}

TEST(Experiments, EveryScaleHasEveryExperiment) {
  for (const std::string& scale : Scales()) {
    const std::vector<Grid> experiments = Experiments(scale);
    // Only mini names an experiment of this project.
    ASSERT_EQ(experiments.size(),
              ExperimentNames().size() + (scale == "mini" ? 1 : 0));
    for (size_t i = 0; i < experiments.size(); ++i) {
      const Grid& grid = experiments[i];
      EXPECT_EQ(grid.experiment, EveryExperimentName()[i]);
      EXPECT_EQ(grid.scale_grid, scale);
      EXPECT_EQ(grid.scale, scale);
      EXPECT_FALSE(grid.runs.empty()) << scale << " " << grid.experiment;
    }
    const Grid file = LoadGrid(GridPath(scale), {});
    ASSERT_EQ(experiments[0].runs.size(), file.runs.size());
    for (size_t r = 0; r < file.runs.size(); ++r) {
      EXPECT_EQ(experiments[0].runs[r].id, file.runs[r].id);
      EXPECT_EQ(ConfigHash(experiments[0].runs[r].config),
                ConfigHash(file.runs[r].config));
    }
  }
}

// Compared with the paper's own tables: at its scale every row of T6 and T8 is
// one run with the settings that the row's name states, and there are no other
// runs.
TEST(Experiments, RowsAreThoseOfThePapersTables) {
  const golden::Document paper =
      golden::ReadDocument(RunfilePath("golden/paper/paper.h5"));
  for (const Grid& grid : Experiments("paper")) {
    const golden::Table* table = paper.FindTable(grid.table);
    ASSERT_NE(table, nullptr) << grid.experiment;
    std::set<std::string> rows, ours;
    for (const golden::Row& row : table->rows) {
      rows.insert(row.id.substr(0, row.id.find("/infer_tau")));
    }
    for (const GridRun& run : grid.runs) ours.insert(run.paper_id());
    if (grid.table == "allocation") {  // the figures show more than k_l
      EXPECT_TRUE(std::ranges::includes(ours, rows));
    } else {
      EXPECT_EQ(ours, rows) << grid.experiment;
    }
    if (grid.experiment != "tau" && grid.experiment != "jitter") continue;
    EXPECT_EQ(grid.runs.size(), table->rows.size());
    for (const GridRun& run : grid.runs) {
      const RouterConfig& router = run.config.router;
      const std::string& row = run.row.paper_row;
      EXPECT_EQ(run.corpus.id, "owt") << run.id;
      if (grid.experiment == "tau") {
        EXPECT_EQ(router.kind, RouterKind::kSoftFixed) << run.id;
        EXPECT_EQ(router.tau, std::stod(row.substr(row.find("tau") + 3)));
        EXPECT_EQ(router.fallback, Fallback::kTop1) << run.id;
      } else {
        EXPECT_EQ(router.kind, RouterKind::kSparse) << run.id;
        EXPECT_EQ(router.noise_amplitude, row.ends_with("none") ? 0 : 0.05);
        EXPECT_EQ(router.noise == NoiseKind::kNone, row.ends_with("none"));
      }
    }
  }
}

// Every experiment sees the same folder and the same final evaluations of a
// run.
TEST(Experiments, ASharedRunIsOneRun) {
  const Grid main = Experiment("main", "paper");
  const Grid tau = Experiment("tau", "paper");
  const auto run_of = [](const Grid& grid, const std::string& row) {
    return *std::ranges::find(grid.runs, row,
                              [](const GridRun& run) { return run.row.id; });
  };
  const GridRun shared = run_of(tau, "softmoe-star-1-tau-1.1");
  EXPECT_EQ(shared.first_experiment, "main");
  EXPECT_EQ(shared.first_row, "softmoe-star-1-paper-tau");
  EXPECT_EQ(RunIdentityKey(shared),
            RunIdentityKey(run_of(main, "softmoe-star-1-paper-tau")));
  const GridRun own = run_of(tau, "softmoe-star-1-tau-1.5");
  EXPECT_EQ(own.first_experiment, "tau");
  EXPECT_EQ(own.first_row, own.row.id);
  for (const Grid& grid : Experiments("paper")) {
    for (const GridRun& run : grid.runs) {
      const auto& factors = run.evaluations.inference_tau_factors;
      // T7's inference tau: 0.6, 1.2, 1.8 and 2.4.
      const bool of_t7 = run.config.router.kind == RouterKind::kSoftLearned &&
                         run.config.router.tau == 1.2 &&
                         run.config.router.fallback == Fallback::kTop1;
      EXPECT_EQ(factors, of_t7 ? (std::vector<double>{0.5, 1, 1.5, 2})
                               : std::vector<double>{})
          << grid.experiment << " " << run.id;
      // T1, T6, T7 and T8 have accuracies.
      EXPECT_EQ(run.evaluations.tasks,
                (std::vector<std::string>{"piqa", "hellaswag",
                                          "arc_easy_validation"}));
      // Figures and T5 need these for every row of main.
      EXPECT_EQ(run.evaluations.router_health, run.first_experiment == "main")
          << grid.experiment << " " << run.id;
    }
  }
}

TEST(Experiments, MiniKeepsNoCheckpointsAndAsksNoTasks) {
  for (const Grid& grid : Experiments("mini")) {
    for (const GridRun& run : grid.runs) {
      EXPECT_FALSE(run.evaluations.keep_checkpoint);
      EXPECT_TRUE(run.evaluations.tasks.empty());
    }
  }
}

TEST(Experiments, PlacementsSayWhere) {
  for (const GridRun& run : Experiment("tau", "mini").runs) {
    EXPECT_EQ(run.corpus.id, "gcide");
    EXPECT_LE(run.seed, 1235);
    EXPECT_EQ(run.paper_id().substr(0, 4), "owt/");  // T6 has no other
  }
  for (const GridRun& run : Experiment("inference_tau", "paper").runs) {
    EXPECT_EQ(run.row.variant, "paper");
  }
  const Grid jitter = Experiment("jitter", "mini");
  EXPECT_EQ(jitter.corpora.size(), 1u);
  EXPECT_EQ(jitter.runs.front().paper_id(), "unstated/sparse/k1/jitternone");
}

// "7001 regime-1", ... in the order in which they are trained.
Ids OrderOfWork(const Grid& grid) {
  Ids order;
  for (const size_t r : SelectRuns(grid, {}, {})) {
    const GridRun& run = grid.runs[r];
    order.push_back(std::to_string(run.seed) + " " + run.row.id);
  }
  return order;
}

// Rows, seeds and pilots are those fixed beforehand.
TEST(Regime, TrainsWhatIsJudged) {
  const golden::RegimeDefinitions regime = golden::LoadRegime();
  const Grid grid = Experiment("regime", "mini");
  std::set<std::string> planned, ours;
  for (const golden::RegimeRow& row : regime.rows) {
    for (const int64_t seed : row.seeds) {
      planned.insert(std::to_string(seed) + " " + row.id);
    }
    for (const int64_t seed : regime.pilot_seeds) {
      if (!regime.IsPilot(row.id, seed)) continue;
      planned.insert(std::to_string(seed) + " " + row.id);
    }
  }
  for (const GridRun& run : grid.runs) {
    EXPECT_EQ(run.corpus.id, regime.corpus);
    ours.insert(std::to_string(run.seed) + " " + run.row.id);
  }
  EXPECT_EQ(ours, planned);
  EXPECT_EQ(ours.size(), grid.runs.size());
}

// Each row is main's row, changed only where the experiment says so.
TEST(Regime, RowsAreMainsButForTauNoiseFallbackAndTemperature) {
  const Grid mini = Experiment("main", "mini");
  std::map<std::string, const GridRun*> mains;
  for (const GridRun& run : mini.runs) {
    if (run.corpus.id == "gcide" && run.row.variant != "paper") {
      mains.emplace(run.row.paper_row, &run);
    }
  }
  const Grid grid = Experiment("regime", "mini");
  std::map<std::string, RouterConfig> routers;
  for (const GridRun& run : grid.runs) {
    const RouterConfig& router =
        routers.emplace(run.row.id, run.config.router).first->second;
    const bool star = run.row.id.starts_with("regime-1.5");
    Config bare = run.config;
    const Config& main =
        mains.at(star ? "softmoe_star/k1.5/a2" : run.row.paper_row)->config;
    bare.router.tau = main.router.tau;
    bare.router.noise = main.router.noise;
    bare.router.noise_amplitude = main.router.noise_amplitude;
    bare.router.fallback = main.router.fallback;
    bare.router.init_std = main.router.init_std;
    bare.router.temperature_start = main.router.temperature_start;
    bare.training.seed = main.training.seed;
    EXPECT_EQ(ConfigHash(bare), ConfigHash(main)) << run.id;
    const bool sparse = router.kind == RouterKind::kSparse;
    const bool quiet = sparse || run.row.id == "regime-1.5-quiet";
    const bool flat = run.row.id == "regime-1.5-T1";
    EXPECT_EQ(router.noise, quiet ? NoiseKind::kNone : NoiseKind::kLogitGauss);
    EXPECT_EQ(router.fallback == Fallback::kTop1, !sparse && !flat);
    EXPECT_EQ(router.temperature_start, flat ? 1 : 5) << run.id;
    EXPECT_EQ(router.temperature_end, 1) << run.id;
    if (quiet) continue;
    // A tenth of the scores' initial standard deviation.
    const ModelConfig& model = run.config.model;
    const double std = router.init_std > 0 ? router.init_std : model.init_std;
    const double spread = std * std::sqrt(static_cast<double>(model.d_model));
    EXPECT_NEAR(router.noise_amplitude / spread, 0.1, 0.001) << run.id;
  }
  const auto same = [&](const char* one, const char* other) {
    EXPECT_EQ(routers.at(one).tau, routers.at(other).tau);
    EXPECT_EQ(routers.at(one).init_std, routers.at(other).init_std);
  };
  same("regime-1.5-quiet", "regime-1.5");
  same("regime-learned-1.5", "regime-1.5");
  same("regime-learned-2", "regime-2");
}

TEST(Regime, PilotsFirstThenSeedBySeedAndSideRowsLast) {
  const Ids order = OrderOfWork(Experiment("regime", "mini"));
  ASSERT_EQ(order.size(), 8u + 7 * 12 + 2 * 8 + 8 + 4);
  EXPECT_EQ(Ids(order.begin(), order.begin() + 4),
            (Ids{"7001 regime-1", "7001 regime-1.5", "7001 regime-2",
                 "7001 regime-1.5-T1"}));
  EXPECT_EQ(order[4], "7002 regime-1");
  EXPECT_EQ(Ids(order.begin() + 8, order.begin() + 16),
            (Ids{"1234 sparse-1", "1234 sparse-2", "1234 sparse-3",
                 "1234 sparse-4", "1234 regime-1", "1234 regime-1.5",
                 "1234 regime-2", "1235 sparse-1"}));
  EXPECT_EQ(order[91], "1245 regime-2");
  EXPECT_EQ(order[92], "1234 regime-learned-1.5");
  EXPECT_EQ(order.back(), "1237 regime-1.5-quiet");
  // Other experiments are trained as they stand.
  const Grid main = Experiment("main", "mini");
  for (const GridRun& run : main.runs) EXPECT_EQ(run.turn, 0);
}

// The sparse rows share runs and folders with main.
TEST(Regime, SharesTheSparseRunsOfMain) {
  int shared = 0;
  for (const GridRun& run : Experiment("regime", "mini").runs) {
    const bool of_main = run.seed <= 1237 && run.row.id.starts_with("sparse");
    EXPECT_EQ(run.first_experiment, of_main ? "main" : "regime") << run.id;
    shared += of_main ? 1 : 0;
  }
  EXPECT_EQ(shared, 16);
}

TEST(Regime, IsWhereAScaleNamesItAndNoPartOfAll) {
  for (const GridRun& run : Experiment("all", "mini").runs) {
    EXPECT_NE(run.first_experiment, "regime");
  }
  for (const std::string scale : {"smoke", "midi", "paper"}) {
    EXPECT_TRUE(
        Says(MessageOf<ConfigError>([&] { Experiment("regime", scale); }),
             "[experiments] does not name it"))
        << scale;
  }
  // Seeds are chosen by position, as everywhere: the first two, no pilots.
  EXPECT_EQ(Experiment("regime", "mini", {7, 8}).runs.size(), 2u * 11);
  // The grid's seeds are unaffected.
  EXPECT_EQ(Experiment("main", "mini").seeds.size(), 4u);
}

TEST(SeedOption, GoesOnAfterTheGridsOwn) {
  const std::vector<int64_t> seeds = {5, 9, 7};
  EXPECT_EQ(SeedOption().Apply(seeds), seeds);
  EXPECT_EQ(SeedOption({1, 2}).Apply(seeds), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(ParseSeeds({"x2"}).Apply(seeds), (std::vector<int64_t>{5, 9}));
  EXPECT_EQ(ParseSeeds({"x5"}).Apply(seeds),
            (std::vector<int64_t>{5, 9, 7, 10, 11}));
  EXPECT_EQ(ParseSeeds({"3", "1"}).Apply(seeds), (std::vector<int64_t>{3, 1}));
  for (const Ids& wrong :
       {Ids{"x0"}, Ids{"x"}, Ids{"x-1"}, Ids{"x10001"}, Ids{"1", "x2"},
        Ids{"x2", "1"}, Ids{"-1"}, Ids{"1.5"}, Ids{""}, Ids{"2", "2"},
        Ids{"9223372036854775807"}, Ids{"99999999999999999999"}}) {
    EXPECT_THROW(ParseSeeds(wrong), ConfigError) << wrong.front();
  }
  EXPECT_EQ(Experiment("all", "paper", ParseSeeds({"x4"})).runs.size(), 172u);
  // By position: the first two of four become the first two of these.
  EXPECT_EQ(Experiment("tau", "mini", {7, 8, 9}).runs.size(), 20u);
}

// A user's scale, with these lines at the end of its file.
fs::path WriteScale(const std::string& more = "") {
  fs::path path = fs::path(std::getenv("TEST_TMPDIR")) / "scale.toml";
  std::ofstream out(path);
  out << R"([grid]
name = "own"
scale = "smoke"
seeds = [1]
[[corpora]]
id = "text"
title = "A text"
)";
  for (const char* row :
       {"sparse/k1 sparse 1", "sparse/k2 sparse 2", "sparse/k3 sparse 3",
        "softmoe_star/k1/a4 soft_fixed 1",
        "softmoe_star/k1.5/a2 soft_fixed 1.5",
        "softmoe_star/k2/a2 soft_fixed 2", "softmoe/k1.5/a2 soft_learned 1.5",
        "softmoe/k2/a2 soft_learned 2"}) {
    std::istringstream words(row);
    std::string paper_row, kind, k;
    words >> paper_row >> kind >> k;
    out << "[[rows]]\nid = \"" << kind << k
        << "\"\nlabel = \"L\"\npaper_row = \"" << paper_row
        << "\"\n[rows.config.router]\nkind = \"" << kind
        << "\"\nmean_active_experts = " << k << "\n";
  }
  out << more;
  return path;
}

std::string Refusal(const std::string& more) {
  return MessageOf<ConfigError>([&] { LoadExperiments(WriteScale(more), {}); });
}

TEST(Experiments, AScaleOfTheUsers) {
  const Grid all = LoadExperiment("all", WriteScale(), {});
  EXPECT_EQ(RunsByFirst(all), (std::map<std::string, int>{
                                  {"main", 8}, {"tau", 10}, {"jitter", 3}}));
  EXPECT_EQ(all.scale_grid, "own");
}

// Corpora keep the order of the file, although main is not on the first.
TEST(Experiments, AllIsOnTheCorporaOfEveryExperiment) {
  const Grid all = LoadExperiment("all", WriteScale(R"([[corpora]]
id = "more"
title = "Another text"
[experiments.main]
corpora = ["more"]
[experiments.jitter]
corpora = ["text"]
)"),
                                  {});
  ASSERT_EQ(all.corpora.size(), 2u);
  EXPECT_EQ(all.corpora[0].id, "text");
  EXPECT_EQ(all.corpora[1].id, "more");
  EXPECT_EQ(all.runs.front().corpus.id, "text");
  EXPECT_EQ(all.runs.back().corpus.id, "more");
  EXPECT_FALSE(SelectRuns(all, {"sparse-1-jitter-0.05"}, {"text"}).empty());
}

// In main, jitter's row has only the second seed, which --seeds may put first.
TEST(Experiments, SeedsOfTheCommandLineRenameNoRun) {
  std::string text = ReadWholeFile(WriteScale(R"([[rows]]
id = "mine"
label = "L"
seeds = [2]
[rows.config.router]
kind = "sparse"
mean_active_experts = 2
noise = "input_jitter"
noise_amplitude = 0.05
)"));
  const std::string seeds = "seeds = [1]";
  text.replace(text.find(seeds), seeds.size(), "seeds = [1, 2]");
  const fs::path path = fs::path(std::getenv("TEST_TMPDIR")) / "seeds.toml";
  std::ofstream(path) << text;
  for (const SeedOption& given : {SeedOption(), SeedOption({2})}) {
    int runs = 0;
    for (const GridRun& run : LoadExperiment("jitter", path, {}, given).runs) {
      if (run.row.id != "sparse-2-jitter-0.05") continue;
      EXPECT_EQ(run.first_row, "mine") << run.seed;
      ++runs;
    }
    EXPECT_EQ(runs, given.listed.empty() ? 2 : 1);
  }
}

// Two experiments give one run different settings.
TEST(Experiments, OneNameWithTwoSettingsIsRefused) {
  const std::string row = R"([[rows]]
id = "sparse-2-jitter-0.05"
label = "L"
[rows.config.router]
kind = "sparse"
mean_active_experts = 2
noise = "input_jitter"
noise_amplitude = )";
  EXPECT_EQ(Refusal(row + "0.05\n"), kNoError);  // the same run
  const std::string refusal = Refusal(row + "0.04\n");
  EXPECT_TRUE(Says(refusal, "jitter.toml:", "scale.toml:",
                   "row 'sparse-2-jitter-0.05'", "noise_amplitude"));
  // Each experiment can be read on its own.
  std::vector<std::string> problems;
  const fs::path scale = WriteScale(row + "0.04\n");
  EXPECT_EQ(ReadableExperiments(scale, {}, &problems).size(),
            ExperimentNames().size());
  EXPECT_EQ(problems, Ids());
}

// Without noise, the rows of jitter have an amplitude that does nothing.
TEST(Experiments, OverridesNeedToSuitOnlyTheOneAskedFor) {
  const Ids quiet = {"router.noise=none"};
  const auto refusal = [&](const std::string& name) {
    return MessageOf<ConfigError>(
        [&] { LoadExperiment(name, WriteScale(), quiet); });
  };
  EXPECT_EQ(refusal("main"), kNoError);
  EXPECT_EQ(refusal("tau"), kNoError);
  for (const char* name : {"jitter", "all"}) {
    EXPECT_TRUE(Says(refusal(name), "noise_amplitude", "no effect"));
  }
  EXPECT_EQ(SelectGrid("smoke", "", quiet).runs.size(),
            SelectGrid("smoke", "", {}).runs.size());
}

// tau has only the second seed, and the command line gives only one.
TEST(Experiments, SeedsNeedToSuitOnlyTheOneAskedFor) {
  std::string text =
      ReadWholeFile(WriteScale("[experiments.tau]\nseeds = [2]\n"));
  const std::string seeds = "seeds = [1]";
  text.replace(text.find(seeds), seeds.size(), "seeds = [1, 2]");
  const fs::path path = fs::path(std::getenv("TEST_TMPDIR")) / "second.toml";
  std::ofstream(path) << text;
  EXPECT_EQ(LoadExperiment("main", path, {}, {7}).runs.size(), 8u);
  for (const char* name : {"tau", "all"}) {
    EXPECT_TRUE(Says(
        MessageOf<ConfigError>([&] { LoadExperiment(name, path, {}, {7}); }),
        "experiment 'tau' has no run at this scale"));
  }
}

TEST(Experiments, WhatTheScaleLacksIsNamed) {
  const std::pair<const char*, const char*> kCases[] = {
      {"[experiments.taus]\n", "did you mean 'tau'?"},
      {"[experiments]\ntau = 1\n", "must be a table"},
      {"[experiments.tau]\nrows = [\"x\"]\n", "unknown key 'rows'"},
      {"[experiments.tau]\ncorpora = [\"txt\"]\n", "did you mean 'text'?"},
      {"[experiments.tau]\nseeds = [2]\n", "no seed 2"},
      {"[experiments.regime]\nseeds = [1]\n", "has seeds of its own"},
      {"[experiments.tau]\nvariants = [\"paper\"]\n", "no row of variant"},
      {"[experiments.tau]\nvariants = [1]\n", "a name in quotes"},
      {"[evaluations]\ninference_tau_factors = [2, 1]\n", "ascending"},
      {"[evaluations]\ninference_tau_factors = [\"a\"]\n", "must be a number"},
      {"[evaluations]\nrouter_health = 1\n", "wrong type"},
      {"[evaluations]\ntasks = \"piqa\"\n", "tasks"},
      {"[evaluations]\ntasks = [1]\n", "a name in quotes"},
      {"[evaluations]\ntasks = [\"pika\"]\n", "did you mean 'piqa'?"},
      {"[evaluations]\ntasks = [\"piqa\", \"piqa\"]\n", "piqa twice"},
      {"[evaluations]\nhealth = true\n", "unknown key 'health'"}};
  for (const auto& [more, message] : kCases) {
    const std::string refusal = Refusal(more);
    EXPECT_TRUE(Says(refusal, "scale.toml:", message));
  }
  // A scale without a row that an experiment builds on.
  std::ifstream in(WriteScale());
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const size_t at = text.find("softmoe_star/k1/a4");
  text.replace(at, 18, "softmoe_star/k9/a4");
  const fs::path path = fs::path(std::getenv("TEST_TMPDIR")) / "lacking.toml";
  std::ofstream(path) << text;
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { LoadExperiments(path, {}); }),
                   "tau.toml:",
                   "lacking.toml has no row with paper_row = "
                   "\"softmoe_star/k1/a4\""));
  // No option is to blame, so every experiment is refused.
  EXPECT_TRUE(
      Says(MessageOf<ConfigError>([&] { LoadExperiment("main", path, {}); }),
           "tau.toml:"));
  // The others can be read.
  std::vector<std::string> problems;
  const std::vector<Grid> readable = ReadableExperiments(path, {}, &problems);
  EXPECT_EQ(readable.size(), ExperimentNames().size() - 1);
  EXPECT_EQ(std::ranges::count(readable, std::string("tau"), &Grid::experiment),
            0);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(Says(problems[0], "experiment tau: ", "tau.toml:"));
}

TEST(SelectGrid, KnowsScalesExperimentsAndFiles) {
  EXPECT_EQ(SelectGrid("mini", "", {}).experiment, "main");
  EXPECT_EQ(SelectGrid("main", "mini", {}).name, "mini");
  EXPECT_EQ(SelectGrid("tau", "mini", {}).name, "tau");
  const fs::path path = WriteScale();
  EXPECT_EQ(SelectGrid(path.string(), "", {}).experiment, "");
  EXPECT_EQ(SelectGrid("tau", path.string(), {}).scale_grid, "own");
  EXPECT_EQ(CommandWords(SelectGrid("mini", "", {})), Ids{"mini"});
  EXPECT_EQ(CommandWords(SelectGrid("tau", "mini", {})),
            (Ids{"tau", "--scale=mini"}));
  EXPECT_EQ(CommandWords(SelectGrid("all", path.string(), {})),
            (Ids{"all", "--scale=" + path.string()}));
  EXPECT_EQ(CommandWords(SelectGrid("main", path.string(), {})),
            (Ids{"main", "--scale=" + path.string()}));
  EXPECT_EQ(CommandWords(SelectGrid(path.string(), "", {})),
            Ids{path.string()});
  EXPECT_THROW(SelectGrid("tau", "", {}), ConfigError);
  EXPECT_THROW(SelectGrid("tua", "mini", {}), ConfigError);
  EXPECT_THROW(SelectGrid("mini", "mini", {}), ConfigError);
  EXPECT_THROW(SelectGrid("tau", "nano", {}), ConfigError);
}

}  // namespace
}  // namespace softmoe::experiments

// SPDX-License-Identifier: Apache-2.0
#include "experiments/grids/grid_file.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/config/router_traits.h"
#include "core/config/toml.h"
#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/grid_parts.h"
#include "experiments/grids/grid_select.h"

namespace softmoe::experiments {
namespace {

// The shipped grids, from Bazel's runfiles.
std::filesystem::path Shipped(const std::string& name) {
  return std::filesystem::path(std::getenv("TEST_SRCDIR")) / "softmoe" /
         "experiments" / "grids" / (name + ".toml");
}

std::filesystem::path Write(const std::string& text) {
  const std::filesystem::path path =
      std::filesystem::path(std::getenv("TEST_TMPDIR")) / "grid.toml";
  std::ofstream(path) << text;
  return path;
}

// The smallest grid, plus lines that may contain a mistake.
std::string Minimal(const std::string& extra) {
  return R"([grid]
name = "tiny"
scale = "smoke"
seeds = [1, 2]
[[corpora]]
id = "text"
title = "A text"
[corpora.config.data]
corpus = "path:text.txt"
[[rows]]
id = "sparse-2"
label = "Sparse"
[rows.config.router]
kind = "sparse"
mean_active_experts = 2
)" + extra;
}

std::string FailureOf(const std::string& text,
                      const std::vector<std::string>& overrides = {}) {
  return MessageOf<ConfigError>([&] { LoadGrid(Write(text), overrides); });
}

// Paper: Table tab:owt_and_c4_results: Sparse 1-4, SoftMoE* 1, 1.5, 2 and
// SoftMoE 1.5, 2, each with both readings of tau (DESIGN.md, ruling 7).
TEST(Grid, ShippedGridsHaveTheNineRows) {
  const std::set<std::string> nine = {
      "sparse/k1",          "sparse/k2",          "sparse/k3",
      "sparse/k4",          "softmoe_star/k1/a4", "softmoe_star/k1.5/a2",
      "softmoe_star/k2/a2", "softmoe/k1.5/a2",    "softmoe/k2/a2"};
  for (const std::string& name : Scales()) {
    const Grid grid = LoadGrid(Shipped(name), {});
    EXPECT_EQ(grid.name, name);
    EXPECT_EQ(grid.scale, name);
    std::set<std::string> rows;
    std::set<std::string> hashes;
    for (const GridRun& run : grid.runs) {
      rows.insert(run.row.paper_row);
      EXPECT_TRUE(hashes.insert(ConfigHash(run.config)).second) << run.id;
    }
    rows.erase("");  // rows of our own
    EXPECT_EQ(rows, nine);
    if (name == "mini" || name == "paper") continue;  // below
    EXPECT_EQ(grid.runs.size(),
              grid.rows.size() * grid.corpora.size() * grid.seeds.size());
    EXPECT_EQ(grid.rows.size(), grid.scale == "smoke" ? 9u : 14u);
  }
}

// The grid that is actually run: nine rows with calibrated tau, 4 seeds on one
// corpus and 2 on the other; five rows with the published tau and 2 seeds;
// three rows with input jitter and 4 seeds.
TEST(Grid, MiniHasItsSeventySixRuns) {
  const Grid grid = LoadGrid(Shipped("mini"), {});
  std::map<std::string, int> runs;
  for (const GridRun& run : grid.runs) {
    const RouterConfig& router = run.config.router;
    const std::string kind = router.noise != NoiseKind::kNone ? "jitter"
                             : run.row.variant == "paper"     ? "published"
                                                              : "calibrated";
    ++runs[kind + " on " + run.corpus.id];
    EXPECT_EQ(kind == "published",
              router.tau && router.kind != RouterKind::kSparse)
        << run.id;
    if (kind == "jitter") {
      EXPECT_EQ(router.kind, RouterKind::kSparse) << run.id;
      EXPECT_EQ(router.noise, NoiseKind::kInputJitter) << run.id;
      EXPECT_EQ(router.noise_amplitude, 0.05) << run.id;
    }
    // 4 balance groups of 4 sequences.
    EXPECT_EQ(run.config.training.global_batch_sequences, 16) << run.id;
    EXPECT_EQ(run.config.training.balance_group_sequences, 4) << run.id;
  }
  EXPECT_EQ(grid.runs.size(), 76u);
  EXPECT_EQ(runs, (std::map<std::string, int>{{"calibrated on gcide", 36},
                                              {"calibrated on foldoc", 18},
                                              {"published on gcide", 10},
                                              {"jitter on gcide", 12}}));
  for (const GridRun& run : grid.runs) {
    const RunCost cost = EstimateCost(
        run.config, run.config.router.mean_active_experts, grid.cluster);
    // 2 V d + L (4 d^2 + d E + 2 d + 3 E d d_ffn) + d
    const bool learned = TraitsOf(run.config).learned_budget;
    EXPECT_EQ(cost.parameters,
              16'931'456 + (learned ? run.config.model.num_layers : 0))
        << run.id;
    EXPECT_EQ(cost.tokens, 2'048'000) << run.id;
  }
}

// Two seeds, two corpora, and a row with these extra lines.
std::string Choosing(const std::string& row, const std::string& corpus = "") {
  return R"([grid]
name = "tiny"
scale = "smoke"
seeds = [1, 2]
[[corpora]]
id = "a"
title = "A text"
[[corpora]]
id = "b"
title = "Another"
)" + corpus +
         R"(
[[rows]]
id = "everywhere"
label = "Sparse"
[[rows]]
id = "some"
label = "Sparse"
)" + row;
}

std::vector<std::string> RunIds(const Grid& grid) {
  std::vector<std::string> ids;
  for (const GridRun& run : grid.runs) ids.push_back(run.id);
  return ids;
}

TEST(Grid, RowsAndCorporaChooseTheirRuns) {
  using Ids = std::vector<std::string>;
  const std::string text =
      Choosing("corpora = [\"b\"]\nseeds = [2]\n", "seeds = [2]\n");
  EXPECT_EQ(RunIds(LoadGrid(Write(text), {})),
            (Ids{"a/everywhere/seed1", "a/everywhere/seed2",
                 "b/everywhere/seed2", "b/some/seed2"}));
  // The row picks the second seed, whatever its value.
  EXPECT_EQ(RunIds(LoadGrid(Write(text), {}, {7, 8, 9})),
            (Ids{"a/everywhere/seed7", "a/everywhere/seed8",
                 "a/everywhere/seed9", "b/everywhere/seed8", "b/some/seed8"}));
  EXPECT_EQ(RunIds(LoadGrid(Write(text), {}, {7})), Ids{"a/everywhere/seed7"});
}

TEST(SelectRuns, KeepsTheOrderOfTheGrid) {
  const Grid grid = LoadGrid(Shipped("mini"), {}, {1, 2});
  const auto all = SelectRuns(grid, {}, {});
  EXPECT_EQ(all.size(), grid.runs.size());
  const auto some =
      SelectRuns(grid, {"softmoe-2-calibrated", "sparse-1"}, {"foldoc"});
  ASSERT_EQ(some.size(), 4u);
  EXPECT_EQ(grid.runs[some[0]].id, "foldoc/sparse-1/seed1");
  EXPECT_EQ(grid.runs[some[3]].id, "foldoc/softmoe-2-calibrated/seed2");
  // The row exists only on the other corpus.
  EXPECT_THROW(SelectRuns(grid, {"softmoe-2-paper-tau"}, {"foldoc"}),
               ConfigError);
}

TEST(Grid, ChoicesThatTheGridLacksAreNamedWithTheirPlace) {
  struct Case {
    std::string text, place, message;
  };
  const Case kCases[] = {
      {Choosing("seeds = [2, 3]\n"), ":18:13: ",
       "the grid has no seed 3; add it to the seeds of [grid], which are 1, 2"},
      {Choosing("", "seeds = [5]\n"), ":11:10: ", "the grid has no seed 5"},
      {Choosing("corpora = [\"a\", \"c\"]\n"),
       ":18:17: ", "the grid has no corpus 'c'; did you mean"},
      {Choosing("corpora = []\n"), ":18:11: ", "a list that is not empty"},
      {Choosing("seeds = 1\n"), ":18:9: ", "a list that is not empty"},
      {Choosing("seeds = [1.5]\n"), ":18:10: ", "must be an integer"},
      {Choosing("seeds = [1, 1]\n"), ":18:13: ", "'seeds' lists 1 twice"},
      {Choosing("corpora = [\"b\"]\nseeds = [1]\n", "seeds = [2]\n"),
       ":16:1: ", "row 'some' has no run"}};
  for (const Case& wrong : kCases) {
    const std::string failure = FailureOf(wrong.text);
    EXPECT_TRUE(Says(failure, "grid.toml" + wrong.place)) << wrong.text;
    EXPECT_TRUE(Says(failure, wrong.message));
  }
  // No row uses this corpus.
  std::string text = Choosing("corpora = [\"a\"]\n");
  text.insert(text.find("[[rows]]\nid = \"some"), "corpora = [\"a\"]\n");
  const std::string failure = FailureOf(text);
  EXPECT_TRUE(Says(failure, "corpus 'b' has no run"));
}

// --seeds gives fewer seeds than the rows choose from.
TEST(Grid, SeedsThatLeaveNothingAreRefused) {
  std::string text = Minimal("");
  text.insert(text.find("[rows.config"), "seeds = [2]\n");
  EXPECT_EQ(RunIds(LoadGrid(Write(text), {})).size(), 1u);
  EXPECT_THROW(LoadGrid(Write(text), {}, {7}), ConfigError);
}

TEST(Grid, PaperRunsAreThePapersRows) {
  const Grid grid = LoadGrid(Shipped("paper"), {});
  std::map<std::string, int> runs;
  for (const GridRun& run : grid.runs) {
    EXPECT_EQ(run.config.training.steps,
              run.corpus.paper_dataset == "owt" ? 18000 : 164000);
    EXPECT_EQ(run.paper_id(),
              run.corpus.paper_dataset + "/" + run.row.paper_row);
    const RouterConfig& router = run.config.router;
    const std::string& variant = run.row.variant;
    ++runs[variant + " on " + run.corpus.id];
    EXPECT_EQ(variant == "paper" || variant == "paper-none",
              router.tau.has_value())
        << run.id;
    EXPECT_EQ(router.fallback,
              variant == "paper" ? Fallback::kTop1 : Fallback::kNone)
        << run.id;
    // The paper states noise in soft rows and none in sparse ones. Its size is
    // a tenth of the scores' initial spread, 0.02 sqrt(640).
    const bool sparse = router.kind == RouterKind::kSparse;
    EXPECT_EQ(router.noise, sparse ? NoiseKind::kNone : NoiseKind::kLogitGauss)
        << run.id;
    EXPECT_EQ(router.noise_amplitude, sparse ? 0 : 0.05) << run.id;
  }
  EXPECT_EQ(runs, (std::map<std::string, int>{{" on c4", 4},
                                              {" on owt", 4},
                                              {"calibrated on c4", 5},
                                              {"calibrated on owt", 5},
                                              {"paper on c4", 5},
                                              {"paper on owt", 5},
                                              {"paper-none on owt", 5}}));
}

TEST(Grid, SeedsAndOverridesReachEveryRun) {
  const Grid grid =
      LoadGrid(Write(Minimal("")), {"training.steps=7", "runtime.threads=3"});
  ASSERT_EQ(grid.runs.size(), 2u);
  EXPECT_EQ(grid.runs[0].config.training.seed, 1);
  EXPECT_EQ(grid.runs[1].config.training.seed, 2);
  EXPECT_EQ(grid.runs[1].config.training.steps, 7);
  EXPECT_EQ(grid.runs[1].runtime.threads, 3);
  EXPECT_EQ(grid.runs[1].id, "text/sparse-2/seed2");
  EXPECT_EQ(grid.runs[1].paper_id(), "");
}

// Runs are found by their hash: while a file is unchanged, its rows keep their
// hashes, whatever keys are added to the program.
TEST(Grid, ShippedRowsKeepTheirHashes) {
  const std::map<std::string, std::map<std::string, std::string>> kHashes = {
      {"smoke",
       {{"foldoc/sparse-1/seed1234", "6ca20b5567186920"},
        {"foldoc/sparse-2/seed1234", "bdebe32834ddd7ee"},
        {"foldoc/sparse-3/seed1234", "5bdf88c3e5f28469"},
        {"foldoc/sparse-4/seed1234", "838c5e85b2336d82"},
        {"foldoc/softmoe-star-1/seed1234", "3aba00621b53116a"},
        {"foldoc/softmoe-star-1.5/seed1234", "ed8177ffbeb03116"},
        {"foldoc/softmoe-star-2/seed1234", "1405770653d29970"},
        {"foldoc/softmoe-1.5/seed1234", "d03ac63d358483d8"},
        {"foldoc/softmoe-2/seed1234", "dba173b6da410cd4"}}},
      {"midi",
       {{"gcide/sparse-1/seed1234", "60a434f8e03d2bb7"},
        {"gcide/softmoe-star-1.5-paper-tau/seed1234", "c4ac391c79813e95"},
        {"gcide/softmoe-2-calibrated/seed1234", "da35f2a2e31f45bc"}}},
      {"paper",
       {{"owt/sparse-1/seed1234", "c97118710c85099d"},
        {"owt/softmoe-star-1.5-paper-tau/seed1234", "bc42099cf12362ac"},
        {"c4/softmoe-2-calibrated/seed1234", "77d38a548da52090"}}}};
  for (const auto& [name, hashes] : kHashes) {
    size_t found = 0;
    for (const GridRun& run : LoadGrid(Shipped(name), {}).runs) {
      const auto expected = hashes.find(run.id);
      if (expected == hashes.end()) continue;
      EXPECT_EQ(ConfigHash(run.config), expected->second) << run.id;
      ++found;
    }
    EXPECT_EQ(found, hashes.size()) << name;
  }
}

// Batch sizes that no layer of settings gives follow from those given, merged
// over all layers.
TEST(Grid, BatchSizesFollowWhateverLayerSetsThem) {
  const auto sizes = [](const std::string& layers,
                        const std::vector<std::string>& overrides) {
    const Grid grid = LoadGrid(Write(Minimal(layers)), overrides);
    const TrainingConfig& t = grid.runs[0].config.training;
    return std::vector<int64_t>{t.global_batch_sequences,
                                t.micro_batch_sequences,
                                t.balance_group_sequences};
  };
  using Sizes = std::vector<int64_t>;
  const std::string of_grid =
      "[config.training]\nglobal_batch_sequences = 16\n";
  EXPECT_EQ(sizes(of_grid, {}), (Sizes{16, 16, 16}));
  const std::string of_row =
      "[rows.config.training]\nmicro_batch_sequences = 8\n" + of_grid;
  EXPECT_EQ(sizes(of_row, {}), (Sizes{16, 8, 8}));
  EXPECT_EQ(sizes(of_row, {"training.balance_group_sequences=2"}),
            (Sizes{16, 8, 2}));
  EXPECT_EQ(sizes(of_grid, {"training.global_batch_sequences=64"}),
            (Sizes{64, 32, 32}));
  const std::string failure =
      FailureOf(Minimal(of_row), {"training.global_batch_sequences=12"});
  EXPECT_TRUE(
      Says(failure, "grid.toml:", "write training.micro_batch_sequences = 6"));
}

TEST(Grid, SeedsOnTheCommandLineReplaceTheFiles) {
  const Grid grid = LoadGrid(Write(Minimal("")), {}, {7, 8, 9});
  ASSERT_EQ(grid.runs.size(), 3u);
  EXPECT_EQ(grid.seeds, (std::vector<int64_t>{7, 8, 9}));
  EXPECT_EQ(grid.runs[2].config.training.seed, 9);
  for (const char* set :
       {"training.seed=3", "training.seed = 3", " training.seed\t= 3"}) {
    EXPECT_TRUE(Says(FailureOf(Minimal(""), {set}), "--seeds")) << set;
  }
}

TEST(Grid, OverridesAreKeptWithoutSpaces) {
  const Grid grid = LoadGrid(
      Write(Minimal("")), {" runtime.threads = 2\t", "runtime.isa = \"v3\""});
  EXPECT_EQ(grid.overrides, (std::vector<std::string>{"runtime.threads=2",
                                                      "runtime.isa=\"v3\""}));
  EXPECT_TRUE(SetsOnlyRuntime(grid));
  EXPECT_EQ(grid.runs.front().runtime.threads, 2);
}

// A stand-in's row is put beside the paper's row, never presented as it; the
// comparison says NOT_COMPARABLE and why.
TEST(Grid, StandInsSayWhoseRowsTheyStandFor) {
  for (const GridRun& run : LoadGrid(Shipped("smoke"), {}).runs) {
    EXPECT_EQ(run.corpus.paper_dataset, "");
    EXPECT_EQ(run.paper_id(), "owt/" + run.row.paper_row);
  }
  const std::string both = R"([grid]
name = "tiny"
scale = "smoke"
seeds = [1]
[[corpora]]
id = "text"
title = "A text"
paper_dataset = "owt"
stands_for = "c4"
)";
  const std::string failure = FailureOf(both);
  EXPECT_TRUE(Says(failure, "grid.toml:9:", "stands_for"));
}

// These texts become names of files, jobs and rows of results.
TEST(Grid, NamesThatNothingCouldBeCalledAreRefused) {
  const std::string signs = ": only letters, digits, '-', '_'";
  const std::pair<std::string, std::string> kRows[] = {
      {"paper_row = \"sparse/k1 \"", signs + ", '.' and '/'"},
      {"paper_row = \"sparse:k1\"", signs + ", '.' and '/'"},
      {"paper_row = \"sparse/k\u00fc\"", signs + ", '.' and '/'"},
      {"variant = \"b/c\"", signs + " and '.'"},
      {"variant = \"acc_norm\"", "'acc_norm': names that end in acc_norm"},
      {"variant = \"a-acc_norm\"", "'a-acc_norm': names that end in acc_norm"},
      {"variant = \"" + std::string(101, 'v') + "\"",
       "has 101 characters; at most 100"}};
  for (const auto& [line, message] : kRows) {
    EXPECT_TRUE(
        Says(FailureOf(Choosing(line + "\n")), "grid.toml:18:", message))
        << line;
  }
  EXPECT_NO_THROW(LoadGrid(
      Write(Choosing("paper_row = \"softmoe_star/k1.5/a2\"\nvariant = \"" +
                     std::string(100, 'v') + "\"\n")),
      {}));
  EXPECT_TRUE(Says(
      FailureOf(Minimal(fmt::format("[[rows]]\nid = \"{}\"\nlabel = \"x\"\n",
                                    std::string(101, 'i')))),
      "grid.toml:17:", "has 101 characters; at most 100"));
}

TEST(Grid, CorporaAreOfDatasetsThatThePaperHas) {
  const std::pair<const char*, const char*> kCorpora[] = {
      {"paper_dataset = \"c5\"",
       "the paper has no dataset 'c5'; did you mean 'c4'?"},
      {"stands_for = \"open web\"",
       "the paper has no dataset 'open web'; known are 'owt' "
       "and 'c4'"},
      {"gpus = -1", "'gpus' must be from 0 to 1048576"},
      {"gpus = 1048577", "'gpus' must be from 0 to 1048576"}};
  for (const auto& [line, message] : kCorpora) {
    EXPECT_TRUE(Says(FailureOf(Choosing("", std::string(line) + "\n")),
                     "grid.toml:11:", message))
        << line;
  }
  EXPECT_NO_THROW(
      LoadGrid(Write(Choosing("", "stands_for = \"\"\ngpus = 1048576\n")), {}));
}

// Neither HDF5 nor HTML can hold a NUL.
TEST(Grid, TextsHaveNoNul) {
  const std::string nul = "\"a\\u0000b\"\n";
  for (const std::string& text :
       {Minimal("[[rows]]\nid = \"b\"\nlabel = " + nul),
        "[grid]\nname = \"x\"\nscale = \"smoke\"\ntitle = " + nul}) {
    EXPECT_TRUE(Says(FailureOf(text), "grid.toml:", "has a NUL")) << text;
  }
}

// The list of seeds sets it, and nothing else may.
TEST(Grid, AConfigurationHasNoSeed) {
  const std::pair<const char*, const char*> kTables[] = {
      {"[config.training]", "[[corpora]]"},
      {"[corpora.config.training]", "[[rows]]"},
      {"[rows.config.training]", "[rows.config.router]"}};
  for (const auto& [table, before] : kTables) {
    std::string text = Minimal("");
    text.insert(text.find(before), std::string(table) + "\nseed = 7\n");
    EXPECT_TRUE(Says(FailureOf(text), "grid.toml:",
                     ":8: the seeds of a grid are a list; leave out "
                     "training.seed and use 'seeds' of [grid]"))
        << table;
  }
}

// 2^63 - 1 is not a seed, neither on the command line nor here.
TEST(Grid, SeedsAreBelowTheLargestInteger) {
  const std::string largest = "9223372036854775807";
  std::string text = Minimal("");
  text.replace(text.find("[1, 2]"), 6, "[" + largest + "]");
  EXPECT_TRUE(Says(FailureOf(text), "grid.toml:4:",
                   "must be an integer >= 0 and below " + largest));
  text.replace(text.find(largest), largest.size(), "9223372036854775805");
  SeedOption more;
  more.first = 2;
  EXPECT_EQ(LoadGrid(Write(text), {}, more).seeds.back(), 9223372036854775806);
  more.first = 3;
  EXPECT_TRUE(
      Says(MessageOf<ConfigError>([&] { LoadGrid(Write(text), {}, more); }),
           "--seeds x3: too few integers follow the grid's largest seed, "
           "9223372036854775805"));
}

TEST(Grid, MistakesAreNamedWithTheirPlace) {
  const std::string unknown = FailureOf(Minimal("lable = \"x\"\n"));
  EXPECT_TRUE(Says(unknown, "grid.toml:16:"));
  const std::string row_key =
      FailureOf(Minimal("[[rows]]\nid = \"b\"\nlabl = \"x\"\n"));
  EXPECT_TRUE(Says(row_key, "grid.toml:18:8: unknown key 'labl'", "label"));
  EXPECT_TRUE(
      Says(FailureOf(Minimal("[[rows]]\nid = \"sparse-2\"\nlabel = \"x\"\n")),
           "used twice"));
  EXPECT_TRUE(
      Says(FailureOf(Minimal("[[rows]]\nid = \"a/b\"\nlabel = \"x\"\n")),
           "only letters"));
  EXPECT_TRUE(Says(FailureOf(Minimal("[[rows]]\nid = \"..\"\nlabel = \"x\"\n")),
                   "begins with a point"));
  for (const char* name : {"..", "../x", "a b"}) {
    EXPECT_TRUE(Says(FailureOf(fmt::format("[grid]\nname = \"{}\"\n", name)),
                     "grid.toml:2:", fmt::format("name '{}'", name)));
  }
  EXPECT_TRUE(Says(FailureOf("[grid]\nname = \"x\"\nscale = \"huge\"\n"),
                   "expected one of smoke, mini, midi, paper"));
  EXPECT_TRUE(Says(FailureOf(""), "[grid]"));
  // k outside [1, num_experts], in a row: SPEC.md 2.1.
  const std::string range =
      FailureOf(Minimal(""), {"router.mean_active_experts=99"});
  EXPECT_TRUE(Says(range, "mean_active_experts", "sparse-2"));
}

// Either all rows that stand for one of the paper's have a variant, or none: a
// row without one is in the results of every variant.
TEST(Grid, RowsWithAndWithoutAVariantMustStandForDifferentRows) {
  const auto grid = [](const std::string& rows) {
    return "[grid]\nname = \"tiny\"\nscale = \"smoke\"\nseeds = [1]\n"
           "[config.router]\nkind = \"sparse\"\nmean_active_experts = 2\n"
           "[[corpora]]\nid = \"a\"\ntitle = \"A\"\nstands_for = \"owt\"\n"
           "[[corpora]]\nid = \"b\"\ntitle = \"B\"\nstands_for = \"c4\"\n"
           "[[rows]]\nid = \"plain\"\nlabel = \"P\"\n"
           "paper_row = \"sparse/k2\"\n" +
           rows;
  };
  const std::string other =
      "[[rows]]\nid = \"other\"\nlabel = \"O\"\nvariant = \"x\"\n";
  const std::string same_row = "paper_row = \"sparse/k2\"\n";
  EXPECT_TRUE(
      Says(FailureOf(grid(other + same_row)),
           "grid.toml:20:", "rows 'other' and 'plain' (at ", "grid.toml:16:",
           "are both the paper's c4/sparse/k2, and only 'other' has a variant, "
           "'x'; give the other one a 'variant', too, or no 'paper_row'"));
  EXPECT_NO_THROW(LoadGrid(Write(grid(other)), {}));
  EXPECT_NO_THROW(
      LoadGrid(Write(grid("variant = \"y\"\n" + other + same_row)), {}));
  EXPECT_NO_THROW(LoadGrid(Write(grid("corpora = [\"a\"]\n" + other + same_row +
                                      "corpora = [\"b\"]\n")),
                           {}));
}

// Every run is held in memory, and thousands of lines could expand to billions
// of runs.
TEST(Grid, TooManyRunsAreRefused) {
  std::string rows;
  for (int i = 0; i < 5001; ++i) {
    rows += fmt::format("[[rows]]\nid = \"r{}\"\nlabel = \"x\"\n", i);
  }
  const std::string failure = FailureOf(Minimal(rows));
  EXPECT_TRUE(Says(failure, "10004 runs"));
}

TEST(Grid, ClusterIsReadAndChecked) {
  const std::string options = R"([cluster]
gpu_bytes = 80e9
gpus_per_node = 8
core_flops = 1e9
sbatch = ["--partition=gpu", "--account=me"]
)";
  const Cluster cluster = LoadGrid(Write(options + Minimal("")), {}).cluster;
  EXPECT_EQ(cluster.gpu_bytes, 80e9);
  EXPECT_EQ(cluster.gpus_per_node, 8);
  EXPECT_EQ(cluster.core_flops, 1e9);
  EXPECT_EQ(cluster.sbatch,
            (std::vector<std::string>{"--partition=gpu", "--account=me"}));
  for (const char* wrong :
       {"gpus_per_node = 0", "gpus_per_node = 4.0", "gpu_bytes = -1",
        "gpu_bytes = inf", "gpu_bytes = 1e300", "gpu_bytes = nan",
        "core_flops = 0", "core_flops = inf", "core_flops = 1e-300",
        "peak_flops = 1e-300", "peak_flops = inf", "assumed_mfu = 0",
        "assumed_mfu = 1e-300", "assumed_mfu = 1.01", "sbatch = \"--x\"",
        "sbatch = [\"partition\"]", "sbatch = [\"--a\\nrm\"]"}) {
    const std::string failure =
        FailureOf(fmt::format("[cluster]\n{}\n", wrong) + Minimal(""));
    EXPECT_TRUE(Says(failure, "grid.toml:2:"));
  }
}

TEST(Grid, RemembersWhereItCameFrom) {
  const std::filesystem::path path = Write(Minimal(""));
  const Grid grid = LoadGrid(path, {"training.steps=7"});
  EXPECT_EQ(grid.path, path);
  EXPECT_EQ(grid.overrides, std::vector<std::string>{"training.steps=7"});
}

TEST(Grid, MissingFileIsAnEnvironmentError) {
  EXPECT_THROW(LoadGrid("/nonexistent/grid.toml", {}), EnvironmentError);
}

// Rows a and b of a file with these waves, for seeds 5, 6, 7.
Waves WavesOf(const std::string& waves) {
  const std::string text =
      "[[rows]]\nid = \"a\"\n[[rows]]\nid = \"b\"\n" + waves;
  static toml::table file;  // the rows point into it
  file = ParseTomlFile(Write(text));
  std::vector<RowPart> rows;
  for (const toml::node& node : *file["rows"].as_array()) {
    RowPart& row = rows.emplace_back();
    row.table = node.as_table();
    row.row.id = *(*row.table)["id"].value<std::string>();
  }
  return Waves(file, {5, 6, 7}, rows);
}

TEST(Waves, SaySeedsAndOrder) {
  const Waves waves = WavesOf(R"(
[[waves]]
rows = ["b"]
seeds = [7]
[[waves]]
rows = ["a", "b"]
seeds = [5, 6]
)");
  EXPECT_EQ(waves.PlacesOf("a"), (std::set<size_t>{0, 1}));
  EXPECT_EQ(waves.PlacesOf("b"), (std::set<size_t>{0, 1, 2}));
  EXPECT_LT(waves.Turn("b", 2), waves.Turn("a", 0));
  EXPECT_EQ(waves.Turn("a", 0), waves.Turn("b", 0));
  EXPECT_LT(waves.Turn("b", 0), waves.Turn("a", 1));
}

TEST(Waves, RefuseMistakesWithTheirPlace) {
  const std::pair<const char*, const char*> kCases[] = {
      {"[[waves]]\nrows = [\"a\", \"c\"]\nseeds = [5]\n", ":6:14: "},
      {"[[waves]]\nrows = [\"a\"]\nseeds = [8]\n",
       "the experiment has no seed 8; add it to the seeds of [experiment]"},
      {"[[waves]]\nrows = [\"a\"]\n", "needs rows = [ID, ...] and seeds"},
      {"[[waves]]\nseeds = [5]\n", "needs rows = [ID, ...] and seeds"},
      {"[[waves]]\nrow = [\"a\"]\nseeds = [5]\n", "unknown key 'row'"},
      {"[[waves]]\nrows = [\"a\"]\nseeds = [5]\n",
       "row 'b' is in no [[waves]]"},
      {"[[waves]]\nrows = [\"a\", \"b\"]\nseeds = [5]\n[[waves]]\n"
       "rows = [\"a\"]\nseeds = [6, 5]\n",
       ":8:1: row 'a' has seed 5 in an earlier wave"}};
  for (const auto& wrong : kCases) {
    EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { WavesOf(wrong.first); }),
                     "grid.toml:", wrong.second))
        << wrong.first;
  }
}

}  // namespace
}  // namespace softmoe::experiments

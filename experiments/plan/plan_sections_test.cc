// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_sections.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/text/text_table.h"
#include "experiments/plan/rank_plan.h"
#include "optimized/step_memory.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

// A text as one line, however it is broken.
std::string OneLine(const std::string& text) {
  std::istringstream stream(text);
  std::string one_line;
  for (std::string word; stream >> word;) one_line += word + " ";
  return one_line;
}

// ---- The protocol.

RowEstimate SoftRow(const std::string& id, const std::string& corpus) {
  RowEstimate row;
  row.run.corpus.id = corpus;
  row.run.row.id = id;
  row.run.config.model.norm_epsilon = 1e-15;
  row.run.config.router.kind = RouterKind::kSoftFixed;
  row.run.config.router.mean_active_experts = 1.5;
  row.run.config.router.expansion_factor = 2;
  row.run.config.router.tau = 1.8;
  row.initial = EstimateInitialActivity(row.run.config);
  return row;
}

// N28 of golden/paper/notes.toml: 0.45 on average and 2.24 at the end; with
// top1 1.20 and 2.27; calibrated 1.17, and 3.00 at the end.
TEST(PlanProtocol, ShowsEachSoftRowOnce) {
  RowEstimate top1 = SoftRow("with-top1", "owt"),
              calibrated = SoftRow("cal", "owt");
  top1.run.config.router.fallback = Fallback::kTop1;
  calibrated.run.config.router.tau.reset();
  for (RowEstimate* row : {&top1, &calibrated}) {
    row->initial = EstimateInitialActivity(row->run.config);
  }
  RowEstimate sparse = SoftRow("sparse", "owt");
  sparse.run.config.router.kind = RouterKind::kSparse;
  const std::string text =
      DescribeStillRuns({SoftRow("none", "owt"), top1, sparse, calibrated,
                         SoftRow("none", "c4")});
  const auto line = [&text](const std::string& start) {
    const size_t at = text.find("\n" + start + " ");
    if (at == std::string::npos) return std::string();
    EXPECT_EQ(text.find("\n" + start + " ", at + 1), std::string::npos);
    const size_t end = text.find('\n', at + 1);
    std::string words = text.substr(at + 1, end - at - 1);
    // One space between columns.
    for (size_t i = words.find("  "); i != std::string::npos;
         i = words.find("  ")) {
      words.erase(i, 1);
    }
    return words;
  };
  EXPECT_EQ(line("none"), "none 1.800 none 0.00 100.0% 0.00 99.6% 2.24 0.45");
  EXPECT_EQ(line("with-top1"),
            "with-top1 1.800 top1 1.00 100.0% 1.00 99.6% 2.27 1.20");
  EXPECT_TRUE(line("cal").starts_with("cal ~1.174 none 1.50 16.0%")) << text;
  EXPECT_EQ(line("sparse"), "");
  EXPECT_EQ(DescribeStillRuns({sparse}), "");
}

TEST(DescribeCorpus, SaysOfWhichTokensTheStepsAreEpochs) {
  RowEstimate row;
  row.epochs = 1.25;
  EXPECT_TRUE(Says(DescribeCorpus({row}),
                   "1.25 epochs of as many tokens as the paper's"));
  row.prepared.emplace();
  row.prepared->prefix = "/data/owt";
  row.prepared->num_tokens = 1234567;
  EXPECT_TRUE(Says(DescribeCorpus({row}),
                   "1.25 epochs of the 1,234,567 tokens of /data/owt"));
}

// Every rank holds the values of all ranks.
TEST(DescribeCorpus, SaysWhatCalibrationTakesOnEachRank) {
  RowEstimate row;
  row.calibration_bytes = 3000;
  EXPECT_TRUE(Says(DescribeCorpus({row}), "calibrating tau: up to " +
                                              FormatBytes(3000) +
                                              " of host memory on each rank, "
                                              "while it lasts"));
  row.run.corpus.gpus = 8;
  EXPECT_TRUE(Says(OneLine(DescribeCorpus({row})),
                   FormatBytes(3000) + " of host memory on each rank, " +
                       FormatBytes(24000) + " on 8, while it lasts"));
}

// ---- Costs.

TEST(PlanLegend, SaysWhatItsRowsHave) {
  RowEstimate gpu, cpu;
  gpu.run.corpus.gpus = 8;
  const auto legend = [](const std::vector<RowEstimate>& rows) {
    return OneLine(PlanLegend(Cluster(), rows));
  };
  const std::string gpus =
      "GPU h: at an assumed 30 % of 989 TFLOP/s in bf16, of 66.9 in fp32";
  const std::string cores = "Core time: at an assumed 40 GFLOP/s";
  EXPECT_TRUE(Says(legend({gpu}), gpus));
  EXPECT_FALSE(Says(legend({gpu}), cores));
  EXPECT_TRUE(Says(legend({cpu}), cores,
                   "three arrays of the weights' size for a checkpoint"));
  EXPECT_FALSE(Says(legend({cpu}), "GPU"));
  EXPECT_TRUE(Says(legend({cpu, gpu}), gpus, cores));
}

TEST(CostInWords, SaysWhatGpusAndWhatCoresTake) {
  GridTotal total;
  total.runs = total.gpu_runs = 2;
  total.gpu_hours = 121;
  EXPECT_EQ(CostInWords(total), "121 GPU hours");
  total.core_hours = 0.5;
  total.runs = 3;
  EXPECT_EQ(CostInWords(total, " (the paper's)"),
            "121 GPU hours (the paper's) and 30 core minutes");
  total.gpu_runs = 0;
  EXPECT_EQ(CostInWords(total), "30 core minutes");
  total.core_hours = 5;
  EXPECT_EQ(CostInWords(total), "5 core hours");
}

// ---- Disk space.

RowEstimate DiskRow(const std::string& corpus) {
  RowEstimate row;
  row.run.config.data.corpus = corpus;
  row.run.config.model.vocab_size = 1024;
  row.run.evaluations.keep_checkpoint = false;
  row.seeds = 3;
  row.checkpoint_bytes = 1000;
  row.disk_bytes = 2300;
  return row;
}

TEST(PlanDisk, NamesEveryKindOnce) {
  const fs::path folder = FreshFolder("plan_disk");
  WriteFileAtomically(folder / "novels.txt", std::string(5000, 'x'));
  const std::string path = "path:" + (folder / "novels.txt").string();
  const std::string text =
      DescribeDisk({DiskRow(path), DiskRow(path), DiskRow("foldoc")},
                   folder / "runs", folder / "cache");
  EXPECT_TRUE(Says(OneLine(text),
                   "corpus " + path + ": " + FormatBytes(5000) + ", there:"));
  const std::string size = FormatBytes(5000) + ",";
  EXPECT_EQ(text.find(size), text.rfind(size)) << text;
  EXPECT_TRUE(Says(OneLine(text),
                   "corpus foldoc: about 4.7 MiB, not there yet:",
                   "vocabulary 1024: at most " + FormatBytes(10000),
                   "tokens of foldoc, vocabulary 1024: at most 9.5 MiB",
                   "checkpoints: up to " + FormatBytes(1000) +
                       " each, two for every run at work; those of finished "
                       "runs are"));
  // Three rows with three seeds, 300 bytes each.
  EXPECT_TRUE(
      Says(OneLine(text), "results: " + FormatBytes(2700), "free there: "));
  EXPECT_FALSE(fs::exists(folder / "cache"));
}

// One text in two forms is two sets of tokens.
TEST(PlanDisk, NamesTheTokensOfEachFormOfAText) {
  std::vector<RowEstimate> rows = {DiskRow("foldoc"), DiskRow("foldoc")};
  rows[1].run.config.data.normalise = Normalise::kHfOpenWebText;
  const fs::path folder = FreshFolder("plan_disk_forms");
  const std::string text = OneLine(DescribeDisk(rows, folder, folder));
  EXPECT_TRUE(Says(text, "tokens of foldoc, vocabulary 1024: at most",
                   "tokens of foldoc, vocabulary 1024, normalised: at most"));
  EXPECT_EQ(text.find("corpus foldoc:"), text.rfind("corpus foldoc:"));
}

TEST(PlanDisk, CheckpointsThatAreKeptCount) {
  std::vector<RowEstimate> rows = {DiskRow("foldoc"), DiskRow("foldoc")};
  rows[1].run.evaluations.keep_checkpoint = true;
  const fs::path folder = FreshFolder("plan_disk_kept");
  EXPECT_TRUE(Says(OneLine(DescribeDisk(rows, folder, folder)),
                   FormatBytes(3000) + " once all runs are finished"));
}

TEST(PlanDisk, APublishedCorpusIsAsLargeAsItsFilesSay) {
  RowEstimate row = DiskRow("c4");
  row.run.config.model.vocab_size = 32768;
  const fs::path folder = FreshFolder("plan_disk_c4");
  const auto plan = [&] {
    return OneLine(DescribeDisk({row}, folder, folder));
  };
  EXPECT_TRUE(Says(plan(),
                   "corpus c4: as large as its publishers' files, not there",
                   "tokens of c4, vocabulary 32768: about 368.6 GiB of tokens "
                   "and 6.8 GiB of index"));
  // A thousandth of the shards' bytes is here, as a sparse file.
  fs::create_directories(folder / "corpora" / "c4");
  WriteFileAtomically(folder / "corpora" / "c4" / "1.json.gz", "\x1F\x8B");
  fs::resize_file(folder / "corpora" / "c4" / "1.json.gz", 326'778'636);
  EXPECT_TRUE(Says(plan(), "about 377.4 MiB of tokens and 7.0 MiB of index"));
  // A prepared corpus needs no more room.
  row.prepared.emplace();
  row.prepared->prefix = "/data/c4";
  EXPECT_TRUE(Says(plan(), "tokens of c4: there: /data/c4 "));
}

TEST(PlanDisk, TokensAreNoMoreThanTheBytesThatAreRead) {
  const fs::path folder = FreshFolder("plan_disk_most");
  RowEstimate row = DiskRow("foldoc");
  row.run.config.data.max_bytes = 2000;
  const auto plan = [&] {
    return OneLine(DescribeDisk({row}, folder, folder));
  };
  EXPECT_TRUE(Says(plan(), "at most " + FormatBytes(4000) + " of tokens"));
  row.run.config.model.vocab_size = 100'000;
  EXPECT_TRUE(Says(plan(), "at most " + FormatBytes(8000) + " of tokens"));
}

TEST(PlanDisk, WarnsIfTokensHaveNoRoom) {
  const fs::path folder = FreshFolder("plan_disk_room");
  std::vector<RowEstimate> rows = {DiskRow("foldoc")};
  EXPECT_EQ(TokenDiskProblem(rows, folder), "");
  // More vocabularies than any disk has room for.
  for (int64_t vocab_size = 32768; vocab_size < 34768; ++vocab_size) {
    rows.push_back(DiskRow("c4"));
    rows.back().run.config.model.vocab_size = vocab_size;
  }
  EXPECT_TRUE(Says(TokenDiskProblem(rows, folder),
                   "not prepared yet take up to ", folder.string(),
                   "XDG_CACHE_HOME"));
  for (RowEstimate& row : rows) row.prepared.emplace();
  EXPECT_EQ(TokenDiskProblem(rows, folder), "");
}

// ---- Warnings.

constexpr int64_t kHugeDisk = std::numeric_limits<int64_t>::max();

// A row without problems.
RowEstimate SoundRow(const std::string& id) {
  RowEstimate row;
  row.run.corpus.id = "owt";
  row.run.corpus.gpus = 8;
  row.run.row.id = id;
  row.run.config.data.corpus = "owt";
  row.run.config.router.kind = RouterKind::kSoftFixed;
  row.run.config.router.mean_active_experts = 2;
  row.run.config.router.tau = 1.1;
  row.seeds = 1;
  row.initial.tau = 1.1;
  row.initial.active_experts = 2;
  row.disk_bytes = 1000;
  row.left_bytes = 600;
  return row;
}

std::vector<std::string> Warnings(const std::vector<RowEstimate>& rows,
                                  int64_t disk = kHugeDisk) {
  return PlanWarnings(Grid(), rows, disk);
}

TEST(PlanWarnings, NoneWhereNothingIsWrong) {
  EXPECT_TRUE(Warnings({SoundRow("a"), SoundRow("b")}).empty());
}

// The limit of DESIGN.md, ruling 7.
TEST(PlanWarnings, FewActiveExperts) {
  RowEstimate row = SoundRow("a");
  row.initial.active_experts = 0.5;
  EXPECT_TRUE(Warnings({row}).empty());
  row.initial.active_experts = 0.499;
  row.initial.zero_active_fraction = 0.61;
  const std::vector<std::string> warnings = Warnings({row});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("owt/a: with tau = 1.1 at T = 5, 0.499 "))
      << warnings[0];
  EXPECT_TRUE(Says(warnings[0], "(zero AE 61.0%)", "little gradient",
                   "\"calibrated\""));
}

// As T falls from 5 to 1 with tau = 1.8, the mean crosses 0.5 (SPEC.md 2.3: 2.4
// at T = 1); if T stays at 5 it never does.
TEST(PlanWarnings, SaysWhetherTheTemperatureWillMendIt) {
  RowEstimate row = SoundRow("a");
  row.run.config.router.tau = 1.8;
  row.initial = EstimateInitialActivity(row.run.config);
  std::string warning = Warnings({row}).at(0);
  EXPECT_TRUE(
      Says(warning, "no gradient", "would raise the mean to 0.5 after"));
  row.run.config.router.temperature_end = 5;
  warning = Warnings({row}).at(0);
  EXPECT_TRUE(Says(warning, "below 0.5 to the end"));
}

TEST(PlanWarnings, OneForAllRowsWithTheSameProblem) {
  RowEstimate a = SoundRow("a"), b = SoundRow("b"), c = SoundRow("c");
  a.initial.active_experts = b.initial.active_experts = 0.1;
  const std::vector<std::string> warnings = Warnings({a, c, b});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("owt/a, owt/b: ")) << warnings[0];
}

TEST(PlanWarnings, PrecisionInWhichNothingTrains) {
  RowEstimate row = SoundRow("a");
  row.run.config.training.precision = Precision::kBf16;
  EXPECT_TRUE(Warnings({row}).empty());
  row.run.corpus.gpus = 0;
  const std::vector<std::string> warnings = Warnings({row});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(
      Says(warnings[0], "owt/a: training.precision = \"bf16\": the CPU"));
  row.run.runtime.device = "cuda";
  EXPECT_TRUE(Warnings({row}).empty());
}

// `run` refuses them too, but perhaps only a day later.
TEST(PlanWarnings, CorporaAndVocabulariesThatNothingIsPreparedFrom) {
  RowEstimate row = SoundRow("a");
  row.run.corpus.gpus = 0;  // nothing to fit into
  for (const char* good :
       {"foldoc", "c4", "owt:here", "jsonl:not/here", "path:not/here"}) {
    row.run.config.data.corpus = good;
    EXPECT_TRUE(Warnings({row}).empty()) << good;
  }
  for (const char* wrong :
       {"", "foldok", "owt:", "foldoc:", "path", "text:x"}) {
    row.run.config.data.corpus = wrong;
    const std::vector<std::string> warnings = Warnings({row});
    ASSERT_EQ(warnings.size(), 1u) << wrong;
    EXPECT_TRUE(Says(warnings[0], "owt/a: data.corpus = \"", "no such corpus"));
  }
  for (const int64_t vocabulary : {319, 1048577}) {
    row.run.config.data.corpus = "owt";
    row.run.config.model.vocab_size = vocabulary;
    const std::vector<std::string> warnings = Warnings({row});
    ASSERT_EQ(warnings.size(), 1u) << vocabulary;
    EXPECT_TRUE(Says(warnings[0], "owt/a: model.vocab_size = ",
                     "320 to 1048576 pieces", "--tokens"));
  }
  row.run.config.data.corpus = "mine";
  row.prepared.emplace();
  row.run.config.model.vocab_size = 319;
  EXPECT_TRUE(Warnings({row}).empty());
}

TEST(PlanWarnings, BatchThatDoesNotDivide) {
  RowEstimate row = SoundRow("a");
  row.run.corpus.gpus = 20;  // 240 sequences in groups of 30
  const std::vector<std::string> warnings = Warnings({row});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(Says(warnings[0], "owt/a: 8 balance groups of 30"));
  row.run.corpus.gpus = 0;  // CPU: there are no GPUs to divide over
  EXPECT_TRUE(Warnings({row}).empty());
}

// As on the device, including what is kept for kernels and, with ranks, NCCL.
TEST(PlanWarnings, MoreMemoryThanAGpuHas) {
  RowEstimate row = SoundRow("a");
  const auto warnings = [&row](double gpu_bytes) {
    Grid grid;
    grid.cluster.gpu_bytes = gpu_bytes;
    return PlanWarnings(grid, {row}, kHugeDisk);
  };
  const auto need = static_cast<double>(
      RankMemory(row.run.config, 8, Recompute::kNone).bytes() +
      optimized::kReservedMemory + optimized::kReservedForNccl);
  EXPECT_TRUE(warnings(need).empty());
  ASSERT_EQ(warnings(need - 1).size(), 1u);
  EXPECT_TRUE(Says(warnings(need - 1)[0],
                   "runtime.recompute = \"experts\" makes it fit"));
  row.run.runtime.recompute = Recompute::kExperts;
  EXPECT_TRUE(warnings(need - 1).empty());
  ASSERT_EQ(warnings(1e9).size(), 1u);
  EXPECT_TRUE(Says(warnings(1e9)[0], " GiB on each GPU, and 2.8 more for ",
                   "the GPU has 0.9 ", "no runtime.recompute makes it fit"));
  row.run.corpus.gpus = 0;
  EXPECT_TRUE(warnings(1e9).empty());
}

TEST(PlanWarnings, MoreDiskThanIsFree) {
  RowEstimate row = SoundRow("a");
  // Two are finished, the third is at its peak: 600 + 600 + 1000.
  row.seeds = 3;
  EXPECT_TRUE(Warnings({row}, 2200).empty());
  const std::vector<std::string> warnings = Warnings({row}, 2199);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(
      Says(warnings[0], "up to 2.1 KiB, but the disk has 2.1 KiB", "--out"));
  // When two rows run at the same time, both may be at their peaks.
  const std::vector<RowEstimate> rows = {SoundRow("a"), SoundRow("b")};
  EXPECT_TRUE(PlanWarnings(Grid(), rows, 1600).empty());
  EXPECT_TRUE(PlanWarnings(Grid(), rows, 2000, 2).empty());
  EXPECT_EQ(PlanWarnings(Grid(), rows, 1999, 2).size(), 1u);
}

}  // namespace

}  // namespace softmoe::experiments

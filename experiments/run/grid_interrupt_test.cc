// SPDX-License-Identifier: Apache-2.0
//
// Failures while a grid runs: signals, failing rows, damaged files, a
// full disk, text that changes. //:grid as a user meets it.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <functional>
#include <string>

#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/testing/grid_test_util.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/testing/corpus_test_util.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

class GridInterrupt : public GridProgram {};

TEST_F(GridInterrupt, SignalsSaveAndTheSameCommandGoesOn) {
  ASSERT_TRUE(TakeTrained("whole"));
  const Strings arguments = {"run", "micro.toml", "--threads", "2"};
  // 60 lines of at least 150 letters do not fit into the pipe, so the process
  // cannot have reached the end of the row when the signal comes.
  const std::pair<int, std::string> kStops[] = {
      {SIGTERM, "row 2/3 star-1.5, grid"},
      {SIGINT, "row 3/3 learned-1.5, grid"}};
  int finished = 0;
  for (const auto& [number, line] : kStops) {
    HeldProgram held(Program(), arguments, folder_);
    ASSERT_TRUE(held.ReadUntil(line));
    EXPECT_TRUE(EndedWith(Grid({"status", "micro.toml"}), 0, "running"));
    held.Signal(number);
    const ProgramResult stopped = held.Finish();
    EXPECT_TRUE(EndedWith(
        stopped, 75, number == SIGTERM ? "stopped: SIGTERM" : "stopped: SIGINT",
        "the same command continues",
        std::to_string(++finished) + " of 3 runs are finished"));
    EXPECT_FALSE(fs::exists(RunFolder(finished) / "result.h5"));
    EXPECT_TRUE(EndedWith(Grid({"status", "micro.toml"}), 0, "interrupted"));
  }
  // A report is possible, but the grid is incomplete.
  EXPECT_TRUE(
      EndedWith(Grid({"report", "micro.toml"}), 1, "2 of 3 runs finished"));
  EXPECT_TRUE(EndedWith(Grid(arguments), 0, "2 finished, 1 interrupted"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), Bytes("whole/results.h5"));
  for (size_t n = 0; n < 3; ++n) {
    trainer::ExpectSameResult(
        trainer::ReadRunResult(RunFolder(n, "whole") / "result.h5"),
        trainer::ReadRunResult(RunFolder(n) / "result.h5"));
  }
}

// After the signal nobody reads: the last messages are lost, the state is not.
TEST_F(GridInterrupt, ItSavesThoughTheReaderHasStoppedReading) {
  for (const std::string jobs : {"1", "2"}) {
    HeldProgram held(
        Program(),
        {"run", "micro.toml", "--threads", "1", "--jobs", jobs, "--out", jobs},
        folder_);
    ASSERT_TRUE(held.ReadUntil("row 1/3 sparse-2, grid"));
    held.Signal(SIGTERM);
    held.WaitForEnd();
    EXPECT_EQ(held.Finish().exit_status, 75);
    EXPECT_TRUE(fs::exists(RunFolder(0, jobs) / "checkpoint.h5"));
    EXPECT_FALSE(fs::exists(RunFolder(0, jobs) / "result.h5"));
  }
}

TEST_F(GridInterrupt, AFailingRowDoesNotHideTheOthers) {
  WriteGrid(MicroGrid(60, kDivergingRow) +
            "[[rows]]\nid = \"last\"\nlabel = \"Sparse MoE\"\n");
  const Strings arguments = {"run", "micro.toml"};
  EXPECT_TRUE(EndedWith(Grid(arguments), 1, "row 4/5 diverges FAILED: ",
                        "training.learning_rate", "row 5/5 last finished",
                        "FAILED text/diverges/seed7", "4 of 5 runs finished"));
  EXPECT_TRUE(fs::exists(RunFolder(3) / "problem.txt"));
  EXPECT_TRUE(EndedWith(Grid({"status", "micro.toml"}), 0, "failed",
                        "4 of 5 runs", "training.learning_rate"));
  EXPECT_TRUE(EndedWith(Grid({"report", "micro.toml"}), 1,
                        "FAILED text/diverges/seed7"));
  EXPECT_TRUE(EndedWith(Grid(arguments), 1,
                        "4 finished, 1 failed, to be tried again", "FAILED"));
  // A retry that ends in another way does not forget the failure.
  fs::remove(RunFolder(3) / "metrics.jsonl");
  fs::create_directory(RunFolder(3) / "metrics.jsonl");
  EXPECT_TRUE(EndedWith(Grid(arguments), 5, "metrics.jsonl"));
  EXPECT_TRUE(fs::exists(RunFolder(3) / "problem.txt"));
  // Without its settings, all is well.
  EXPECT_TRUE(EndedWith(
      Grid({"run", "micro.toml", "--rows", "diverges", "--set",
            "training.learning_rate=1e-2", "--set", "training.clip_norm=1",
            "--set", "training.warmup_fraction=0.01", "--out", "other"}),
      0, "1 of 1 runs finished"));
}

TEST_F(GridInterrupt, DamagedFilesAreNamedNotRetrained) {
  const Strings arguments = {"run", "micro.toml"};
  ASSERT_TRUE(TakeTrained());
  const fs::path result = RunFolder(1) / "result.h5";
  const fs::path checkpoint = RunFolder(2) / "checkpoint.h5";
  const std::string whole = ReadWholeFile(result);
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 1;
  fs::remove(RunFolder(2) / "result.h5");
  fs::resize_file(checkpoint, fs::file_size(checkpoint) - 1);
  for (const std::string& bytes : {flipped, whole.substr(0, whole.size() - 1),
                                   std::string(), std::string("not HDF5")}) {
    WriteFileAtomically(result, bytes);
    // Both problems are named at once, before training starts.
    const ProgramResult run = Grid(arguments);
    EXPECT_TRUE(
        EndedWith(run, 2, result.string(), checkpoint.string(), "delete it"));
    EXPECT_FALSE(Says(run.output, "row 1/3"));
    EXPECT_EQ(ReadWholeFile(result), bytes);
    EXPECT_TRUE(EndedWith(Grid({"status", "micro.toml"}), 2, "damaged",
                          result.string()));
    EXPECT_TRUE(EndedWith(Grid({"report", "micro.toml"}), 2, result.string()));
  }
  // `clean` keeps the checkpoint of the damaged result: only it can restore the
  // result.
  const ProgramResult clean = Grid({"clean", "micro.toml"});
  EXPECT_TRUE(EndedWith(clean, 0, "1 could be deleted",
                        RunFolder(0).filename().string()));
  fs::remove(result);
  fs::remove(checkpoint);
  const fs::path metrics = RunFolder(1) / "metrics.jsonl";
  const std::string steps = ReadWholeFile(metrics);
  const std::string first_line = steps.substr(0, steps.find('\n') + 1);
  WriteFileAtomically(metrics, first_line + "{\"kind\": \"step\"}\n");
  EXPECT_TRUE(EndedWith(Grid({"status", "micro.toml"}), 2, "damaged",
                        metrics.string() + ":2"));
  WriteFileAtomically(metrics, steps);
  EXPECT_TRUE(EndedWith(Grid(arguments), 0, "3 of 3 runs finished"));
  EXPECT_EQ(trainer::ReadRunResult(result).steps.size(), 60u);

  fs::copy_file(RunFolder(0) / "result.h5", result,
                fs::copy_options::overwrite_existing);
  EXPECT_TRUE(EndedWith(Grid(arguments), 2, result.string(),
                        "the result of configuration"));
}

TEST_F(GridInterrupt, AFileDamagedOnTheWayIsNoDivergedRow) {
  WriteGrid(MicroGrid(60));
  const Strings arguments = {"run", "micro.toml"};
  HeldProgram held(Program(), arguments, folder_);
  ASSERT_TRUE(held.ReadUntil("row 1/3 sparse-2, grid"));
  int damaged = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (entry.path().extension() != ".idx") continue;
    fs::resize_file(entry.path(), fs::file_size(entry.path()) - 1);
    ++damaged;
  }
  ASSERT_GE(damaged, 1);
  EXPECT_TRUE(
      EndedWith(held.Finish(), 2, ".idx",
                "1 of 3 runs are finished; the same command continues"));
  EXPECT_FALSE(fs::exists(RunFolder(1) / "problem.txt"));
  EXPECT_TRUE(EndedWith(Grid(arguments), 0, "3 of 3 runs finished"));
}

TEST_F(GridInterrupt, AFullDiskEndsWithFiveAndNothingHalfWritten) {
  if (!kBeginsOnFullDisk) GTEST_SKIP() << "TSan's runtime needs large files";
  const Strings arguments = {"run", "micro.toml"};
  // Prepares the tokens, so that the limit below affects only the runs.
  ASSERT_TRUE(TakeTrained("whole"));
  // The limit is in blocks of 512 bytes: enough for metrics, not for a
  // checkpoint.
  const ProgramResult full = GridAfter("ulimit -f 60; trap '' XFSZ", arguments);
  EXPECT_TRUE(EndedWith(full, 5, "checkpoint.h5", "0 of 3 runs are finished",
                        "the same command continues"));
  EXPECT_EQ(FilesIn(RunFolder(0)), Strings{"metrics.jsonl"});
  EXPECT_TRUE(
      EndedWith(Grid({"status", "micro.toml"}), 0, "not saved yet", "5/60"));
  EXPECT_TRUE(EndedWith(Grid(arguments), 0, "3 of 3 runs finished"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), Bytes("whole/results.h5"));
}

TEST_F(GridInterrupt, AFullDiskLeavesNoHalfReport) {
  if (!kBeginsOnFullDisk) GTEST_SKIP() << "TSan's runtime needs large files";
  const Strings arguments = {"run", "micro.toml"};
  ASSERT_TRUE(TakeTrained());
  const std::string results = Bytes("runs/micro/results.h5");
  EXPECT_TRUE(EndedWith(GridAfter("ulimit -f 2; trap '' XFSZ", arguments), 5,
                        "runs/micro/"));
  EXPECT_EQ(Bytes("runs/micro/results.h5"), results);
  for (const std::string& name : FilesIn(folder_ / "runs/micro")) {
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
  }
}

TEST_F(GridInterrupt, RunsOnOtherTokensDoNotMix) {
  const Strings arguments = {"run", "micro.toml"};
  ASSERT_TRUE(TakeTrained());
  WriteFileAtomically(folder_ / "text.txt",
                      trainer::TestText(trainer::TestDocuments(601)));
  fs::remove(RunFolder(2) / "result.h5");
  EXPECT_TRUE(EndedWith(Grid(arguments), 2, "result.h5", "other tokens",
                        "path:text.txt", "--out"));
  EXPECT_FALSE(fs::exists(RunFolder(2) / "result.h5"));
  // Also runs of other seeds, which do not read the finished ones.
  EXPECT_TRUE(EndedWith(Grid({"run", "micro.toml", "--seeds", "8"}), 2,
                        "corpus-text-", "other tokens now", "--out"));
  // If both are there, nothing takes their mean.
  fs::path corpus;
  for (const std::string& name : FilesIn(folder_ / "runs/micro")) {
    if (name.starts_with("corpus-")) corpus = folder_ / "runs/micro" / name;
  }
  fs::remove(corpus);
  ASSERT_EQ(Grid({"run", "micro.toml", "--seeds", "8"}).exit_status, 0);
  for (const char* command : {"report", "record"}) {
    EXPECT_TRUE(EndedWith(Grid({command, "micro.toml", "--seeds", "7,8"}), 2,
                          "other token files than", corpus.string(), "--out"));
  }
  fs::remove(corpus);
  EXPECT_TRUE(EndedWith(Grid({"report", "micro.toml", "--seeds", "7,8"}), 2,
                        "other token files than run text/sparse-2/seed7"));
}

TEST_F(GridInterrupt, RunsOnAnotherInstructionSetDoNotMix) {
  const Strings arguments = {"run", "micro.toml"};
  ASSERT_TRUE(TakeTrained());
  const fs::path path = RunFolder(1) / "result.h5";
  trainer::RunResult result = trainer::ReadRunResult(path);
  result.identity.isa = "v2";  // not the level of any test machine
  trainer::WriteRunResult(result, path);
  // Reading finished runs uses no kernels.
  EXPECT_TRUE(EndedWith(Grid(arguments), 0, "3 of 3 runs finished"));
  fs::remove(RunFolder(2) / "result.h5");
  EXPECT_TRUE(EndedWith(Grid(arguments), 2, path.string(), "instruction set v2",
                        "--isa v2", "--out"));
  EXPECT_FALSE(fs::exists(RunFolder(2) / "result.h5"));
}

TEST_F(GridInterrupt, AnotherVersionOfTheCodeIsNoReasonToTrainAgain) {
  const Strings arguments = {"run", "micro.toml"};
  ASSERT_TRUE(TakeTrained());
  const fs::path path = RunFolder(1) / "result.h5";
  trainer::RunResult result = trainer::ReadRunResult(path);
  result.code_version = "0123456789ab";
  trainer::WriteRunResult(result, path);
  fs::remove(RunFolder(2) / "result.h5");
  EXPECT_TRUE(
      EndedWith(Grid(arguments), 0, "3 of 3 runs finished", "0123456789ab"));
  EXPECT_EQ(trainer::ReadRunResult(path).code_version, "0123456789ab");
}

}  // namespace
}  // namespace softmoe::experiments

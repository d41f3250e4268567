// SPDX-License-Identifier: Apache-2.0
//
// Records of runs as a user meets them.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "experiments/run/run_record.h"
#include "experiments/testing/grid_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

class GridRecord : public GridProgram {};

TEST_F(GridRecord, RecordsWhatIsFinishedAndGrows) {
  ExpectEnd(Grid({"record", "micro.toml"}), 5, {"no such folder"});
  ASSERT_EQ(Grid({"run", "micro.toml", "--rows", "sparse-2"}).exit_status, 0);
  ExpectEnd(Grid({"record", "micro.toml", "--set", "training.steps=9"}), 5,
            {"no run of grid 'micro'"});
  EXPECT_FALSE(fs::exists(folder_ / "golden"));
  ExpectEnd(Grid({"record", "micro.toml"}), 0,
            {"golden/runs/micro.h5: 1 of 3 planned runs: PARTIAL",
             "missing: text/star-1.5/seed7, text/learned-1.5/seed7",
             "1 runs are new"});
  const std::string partial = Bytes("golden/runs/micro.h5");

  // Runs of another folder, without the first of them.
  ASSERT_EQ(Grid({"run", "micro.toml", "--out", "later", "--rows",
                  "star-1.5,learned-1.5"})
                .exit_status,
            0);
  // A disk without room leaves the record as it was.
  ExpectEnd(GridAfter("ulimit -f 8; trap '' XFSZ",
                      {"record", "micro.toml", "--out", "later"}),
            5, {"golden/runs"});
  EXPECT_EQ(Bytes("golden/runs/micro.h5"), partial);
  EXPECT_EQ(FilesIn(folder_ / "golden/runs"), Strings{"micro.h5"});

  ExpectEnd(Grid({"record", "micro.toml", "--out", "later"}), 0,
            {"3 of 3 planned runs\n", "2 runs are new"});
  EXPECT_EQ(ReadRunRecord(folder_ / "golden/runs/micro.h5").runs.size(), 3u);

  std::string damaged = Bytes("golden/runs/micro.h5");
  damaged[damaged.size() / 2] ^= 1;
  WriteFileAtomically(folder_ / "golden/runs/micro.h5", damaged);
  ExpectEnd(Grid({"record", "micro.toml"}), 2,
            {"golden/runs/micro.h5", "get it from version control"});
  EXPECT_EQ(Bytes("golden/runs/micro.h5"), damaged);
  ExpectEnd(Grid({"record", "micro.toml", "--to", "other.h5"}), 0,
            {"other.h5: 1 of 3 planned runs"});
}

TEST_F(GridRecord, CountsRecordedRunsAsFinished) {
  ASSERT_EQ(
      Grid({"run", "micro.toml", "--rows", "sparse-2,star-1.5"}).exit_status,
      0);
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  const std::string line = "a.h5: 2 runs count as finished, of version ";
  // Where nothing was ever run.
  ExpectEnd(
      Grid({"report", "micro.toml", "--from", "a.h5", "--out", "reported"}), 1,
      {line, "instruction set v", "2 of 3 rows finished"});
  const std::string reported = Bytes("reported/results.h5");
  fs::remove_all(folder_ / "reported");
  ExpectEnd(
      Grid({"report", "micro.toml", "--from", "a.h5", "--out", "reported"}), 1,
      {line});
  EXPECT_EQ(Bytes("reported/results.h5"), reported);

  ExpectEnd(Grid({"run", "micro.toml", "--from", "a.h5", "--out", "more"}), 0,
            {line, "row 3/3 learned-1.5 finished", "3 of 3 rows finished"});
  EXPECT_FALSE(fs::exists(RunFolder(0, "more")));
  EXPECT_TRUE(fs::exists(RunFolder(2, "more") / "result.h5"));
  // The numbers are those of a grid that trained all of them.
  ASSERT_EQ(Grid({"run", "micro.toml"}).exit_status, 0);
  EXPECT_EQ(Bytes("more/results.h5"), Bytes("runs/micro/results.h5"));

  // Other tokens here: trained again. Other settings: none of the record's runs
  // fits.
  WriteFileAtomically(folder_ / "text.txt",
                      Bytes("text.txt") + "\n\nOne document more.\n");
  ExpectEnd(Grid({"run", "micro.toml", "--from", "a.h5", "--out", "other"}), 0,
            {"does not count as finished", "a.h5: 0 runs count as finished",
             "row 1/3 sparse-2 finished"});
  ExpectEnd(Grid({"report", "micro.toml", "--from", "a.h5", "--out", "none",
                  "--set", "training.steps=9"}),
            5, {"no run of grid 'micro'"});
  ExpectEnd(Grid({"run", "micro.toml", "--from", "none.h5"}), 5, {"none.h5"});
  ExpectEnd(Grid({"report", "micro.toml", "--from", "text.txt"}), 2,
            {"text.txt"});
}

TEST_F(GridRecord, VerifiesByTrainingAgain) {
  ASSERT_EQ(Grid({"run", "micro.toml"}).exit_status, 0);
  ASSERT_EQ(Grid({"record", "micro.toml", "--to", "a.h5"}).exit_status, 0);
  const Strings verify = {"verify-record", "a.h5", "--run",
                          "text/learned-1.5/seed7", "--quiet"};
  ExpectEnd(Grid(verify), 0, {"PASS: the same bits"});
  EXPECT_EQ(FilesIn(folder_ / "runs/verify-record"), Strings{});

  // One bit of one step, which no thinned curve need have.
  RunRecord record = ReadRunRecord(folder_ / "a.h5");
  for (RecordedRun& run : record.runs) {
    char& digit = run.training_sha256[0];
    digit = digit == '0' ? '1' : '0';
  }
  WriteRunRecord(record);
  ExpectEnd(Grid(verify), 1, {"FAIL: other bits", "--changed-by"});

  ExpectEnd(Grid({"verify-record", "a.h5", "--run", "text/lerned-1.5/seed7"}),
            2, {"did you mean 'text/learned-1.5/seed7'?"});
  Strings excused = verify;
  excused.insert(excused.end(), {"--changed-by", "fedcba9876543210"});
  ExpectEnd(Grid(excused), 2, {"CHANGELOG.md names no such commit"});
  WriteFileAtomically(folder_ / "text.txt", Bytes("text.txt") + "More.\n");
  ExpectEnd(Grid(verify), 2, {"other token files"});
}

}  // namespace
}  // namespace softmoe::experiments

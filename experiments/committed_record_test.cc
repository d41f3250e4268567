// SPDX-License-Identifier: Apache-2.0
//
// The shipped records (golden/runs) as a user meets them: report and compare
// reproduce the committed verdicts beside them.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/files/atomic_file.h"
#include "core/testing/message_test_util.h"
#include "experiments/testing/grid_test_util.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

constexpr char kRenew[] =
    "the committed verdicts are those of an older program or record: "
    "`./bazelw run //:grid -- record mini --renew` writes both anew";

class CommittedRecord : public GridProgram {
 protected:
  void SetUp() override {
    record_ = fs::absolute("golden/runs/mini.h5").string();
    verdicts_ = ReadWholeFile("golden/runs/mini_verdicts.txt");
    golden_ = fs::absolute("golden/golden").string();
    results_ = ReadWholeFile("golden/RESULTS.md");
    GridProgram::SetUp();
  }

  std::string record_, verdicts_, golden_, results_;
};

// The report exits with 1 while runs are missing.
TEST_F(CommittedRecord, GivesTheCommittedVerdicts) {
  const auto reported =
      Grid({"report", "mini", "--from", record_, "--out", "told"});
  EXPECT_LE(reported.exit_status, 1) << reported.output;
  EXPECT_EQ(Bytes("told/claims.txt"), verdicts_) << kRenew;
}

// Likewise for the regime experiment.
TEST_F(CommittedRecord, OfTheRegimeGivesTheCommittedVerdicts) {
  const fs::path record = fs::path(record_).parent_path() / "regime.h5";
  const fs::path beside = record.parent_path() / "regime_verdicts.txt";
  const auto reported = Grid({"report", "regime", "--scale=mini", "--from",
                              record.string(), "--out", "told"});
  EXPECT_LE(reported.exit_status, 1) << reported.output;
  const std::string verdicts = ReadWholeFile(beside);
  EXPECT_EQ(Bytes("told/regime/claims.txt"), verdicts) << kRenew;
  const auto judged =
      RunProgram({golden_, "compare", record.string()}, folder_);
  EXPECT_TRUE(EndedWith(judged, 3, "OVERALL NOT_COMPARABLE"));
  EXPECT_TRUE(judged.output.ends_with(verdicts)) << judged.output;
}

// 28 runs of regime.h5 were also trained by the CUDA backend, on an H200.
// Rounding drives two trainings apart, but neither may be better in any row.
TEST_F(CommittedRecord, OfADeviceEndsWhereTheCpusDoes) {
  const fs::path folder = fs::path(record_).parent_path();
  for (const char* name : {"regime", "regime_h200"}) {
    const auto reported =
        Grid({"report", "regime", "--scale=mini", "--seeds",
              "1240,1241,1242,1243", "--from",
              (folder / (std::string(name) + ".h5")).string(), "--out", name});
    EXPECT_LE(reported.exit_status, 1) << reported.output;
  }
  const auto judged = RunProgram(
      {golden_, "compare", "regime_h200/regime/report-0170859d/results.h5",
       "regime/regime/report-0170859d/results.h5"},
      folder_);
  // Three rows with these seeds were not trained there: eight cells each.
  EXPECT_TRUE(EndedWith(judged, 3, "72 cells: 24 NOT_COMPARABLE, 48 PASS\n",
                        "the CPU backend of this project in the golden, the "
                        "CUDA backend of this project here"));
  // These are two trainings, not one that was recorded twice.
  EXPECT_TRUE(Says(judged.output, "val_loss", "+0.00812", "0.016"));
}

TEST_F(CommittedRecord, IsJudgedAlikeByGolden) {
  const auto judged = RunProgram({golden_, "compare", record_}, folder_);
  EXPECT_TRUE(EndedWith(judged, 3, "OVERALL NOT_COMPARABLE"));
  // Both texts begin with the claims.
  const std::string claims =
      verdicts_.substr(0, verdicts_.find("\nEvery case"));
  EXPECT_TRUE(Says(claims, "\nH2 ")) << verdicts_;
  EXPECT_TRUE(judged.output.ends_with(claims)) << kRenew << "\n"
                                               << judged.output;
}

TEST_F(CommittedRecord, IsWhatTheResultsSay) {
  WriteFileAtomically(folder_ / "RESULTS.md", results_);
  for (const std::string name : {"mini.h5", "regime.h5"}) {
    const fs::path record = fs::path(record_).parent_path() / name;
    const auto written = RunProgram(
        {golden_, "claims-table", record.string(), "--into", "RESULTS.md"},
        folder_);
    EXPECT_TRUE(EndedWith(written, 0));
    EXPECT_EQ(Bytes("RESULTS.md"), results_)
        << "`./bazelw run //:golden -- claims-table golden/runs/" << name
        << " --into golden/RESULTS.md` writes the tables anew";
  }
}

// The record's runs predate the definitions that judge them.
TEST_F(CommittedRecord, IsJudgedAfterTheFact) {
  EXPECT_TRUE(
      Says(verdicts_, "C3     NOT_TESTABLE, after the fact  C3: CONTRADICTED",
           "C4     NOT_TESTABLE, after the fact  C4: CONTRADICTED",
           "C1b    NOT_TESTABLE, after the fact  C1: CONTRADICTED",
           "H1          NOT_TESTABLE, after the fact  C8: NOT_TESTABLE",
           "H2          NOT_TESTABLE, after the fact  C9: SHOWN",
           "C2.order       REPORTED", "rounding of caps alone gives +0.42"));
}

}  // namespace
}  // namespace softmoe::experiments

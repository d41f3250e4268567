// SPDX-License-Identifier: Apache-2.0
//
// The record of the mini grid that ships (golden/runs), as a user meets it:
// reported, and judged, it gives the verdicts that stand beside it.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/files/atomic_file.h"
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
    readme_ = ReadWholeFile("README.md");
    GridProgram::SetUp();
  }

  std::string record_, verdicts_, golden_, readme_;
};

// With 1 while runs are missing.
TEST_F(CommittedRecord, GivesTheCommittedVerdicts) {
  const auto reported =
      Grid({"report", "mini", "--from", record_, "--out", "told"});
  EXPECT_LE(reported.exit_status, 1) << reported.output;
  EXPECT_EQ(Bytes("told/claims.txt"), verdicts_) << kRenew;
}

TEST_F(CommittedRecord, IsJudgedAlikeByGolden) {
  const auto judged = RunProgram({golden_, "compare", record_}, folder_);
  ExpectEnd(judged, 3, {"OVERALL NOT_COMPARABLE"});
  // Both begin with what is said of the nine claims.
  const std::string claims =
      verdicts_.substr(0, verdicts_.find("\nEvery case"));
  EXPECT_NE(claims.find("\nC9 "), std::string::npos) << verdicts_;
  EXPECT_TRUE(judged.output.ends_with(claims)) << kRenew << "\n"
                                               << judged.output;
}

TEST_F(CommittedRecord, IsWhatTheReadmeSays) {
  WriteFileAtomically(folder_ / "README.md", readme_);
  const auto written = RunProgram(
      {golden_, "claims-table", record_, "--into", "README.md"}, folder_);
  ExpectEnd(written, 0, {});
  EXPECT_EQ(Bytes("README.md"), readme_)
      << "`./bazelw run //:golden -- claims-table golden/runs/mini.h5 --into "
         "README.md` writes the tables anew";
}

}  // namespace
}  // namespace softmoe::experiments

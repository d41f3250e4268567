// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_protocol.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace softmoe::experiments {
namespace {

RowEstimate Row(const std::string& id, const std::string& corpus) {
  RowEstimate row;
  row.run.corpus.id = corpus;
  row.run.row.id = id;
  row.run.config.model.norm_epsilon = 1e-15;
  row.run.config.router.kind = RouterKind::kSoftFixed;
  row.run.config.router.mean_active_experts = 1.5;
  row.run.config.router.expansion_factor = 2;
  row.run.config.router.tau = 1.8;
  return row;
}

// N28 of golden/paper/notes.toml: 0.45 in the mean and 2.24 at the end; with
// top1 1.20 and 2.27; calibrated 1.17, 3.00 at the end.
TEST(PlanProtocol, ShowsEachSoftRowOnce) {
  RowEstimate top1 = Row("with-top1", "owt"), calibrated = Row("cal", "owt");
  top1.run.config.router.fallback = Fallback::kTop1;
  calibrated.run.config.router.tau.reset();
  RowEstimate sparse = Row("sparse", "owt");
  sparse.run.config.router.kind = RouterKind::kSparse;
  const std::string text = DescribeStillRuns(
      {Row("none", "owt"), top1, sparse, calibrated, Row("none", "c4")});
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

}  // namespace
}  // namespace softmoe::experiments

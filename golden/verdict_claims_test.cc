// SPDX-License-Identifier: Apache-2.0
//
// Judge on imitations of a grid's results: the paper's claims.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "golden/verdict.h"
#include "golden/verdict_test_util.h"

namespace softmoe::golden {
namespace {

// The paper with every field stated: strict claims are not capped.
Document ClosedPaper() {
  Document paper = Paper();
  auto state = [](Field* field) {
    if (field->value.empty()) field->value = "something";
    field->known = Known::kStated;
  };
  for (Field& field : paper.fields) state(&field);
  for (Table& table : paper.tables) {
    for (Row& row : table.rows) {
      for (Field& field : row.fields) state(&field);
    }
  }
  return paper;
}

TEST(Judge, ClaimsAreTestedOnOurRuns) {
  const Verdicts verdicts = Judge(Reproduction(8, 0.03), ClosedPaper());
  EXPECT_EQ(Claimed(verdicts, "star_lower_loss.1").status, Status::kPass);
  // 2.21 is not below 2.20 (N8); 2.75 against 2.75 decides nothing.
  EXPECT_EQ(Claimed(verdicts, "star_lower_loss.6").status, Status::kFail);
  EXPECT_EQ(Claimed(verdicts, "star_lower_loss.3").status,
            Status::kInconclusive);
  EXPECT_TRUE(Contains(Claimed(verdicts, "star_lower_loss.6").reason,
                       "the published numbers: REFUTED"));
  EXPECT_EQ(Claimed(verdicts, "learned_more_experts.1").status, Status::kPass);
  // 0.06 points of PIQA are far within the noise of 1838 items.
  EXPECT_EQ(Claimed(verdicts, "best_piqa_owt.6").status, Status::kInconclusive);
}

TEST(Judge, StrictClaimsAreCappedUnderOpenFields) {
  const Verdicts verdicts = Judge(Reproduction(8, 0.03), Paper());
  const ClaimVerdict& strict = Claimed(verdicts, "star_lower_loss.1");
  EXPECT_EQ(strict.status, Status::kInconclusive);
  EXPECT_TRUE(Contains(strict.reason, "our runs say that it holds"))
      << strict.reason;
  EXPECT_EQ(Claimed(verdicts, "learned_loss_not_higher.1").status,
            Status::kPass);
}

TEST(Judge, ClaimsOfOneRunAreInconclusive) {
  const Verdicts verdicts = Judge(Reproduction(1, 0), ClosedPaper());
  EXPECT_EQ(Claimed(verdicts, "star_lower_loss.1").status,
            Status::kInconclusive);
}

Document Allocation(double share, double budget, double least) {
  Document results = Reproduction(3, 0.05);
  Table table = *Paper().FindTable("allocation");
  for (Row& row : table.rows) {
    for (const Row& other : results.tables[0].rows) {
      if (other.id == row.id) row.fields = other.fields;
    }
    const double k = row.id.find("k1.5") != std::string::npos ? 15 : 20;
    const std::vector<double> values = {share, k + budget, least, 0.8};
    for (size_t c = 0; c < values.size(); ++c) {
      SetValue(&row.cells[c], values[c]);
      row.cells[c].runs = 3;
      row.cells[c].deviation = c == 0 || c == 3 ? 0.01 : 0.0;
    }
  }
  results.tables = {table};
  return results;
}

TEST(Judge, ClaimsAboutFiguresTakeOurDataThoughThePaperHasNone) {
  const Verdicts good = Judge(Allocation(0.5, 0, 1), Paper());
  for (const char* id : {"top3_share.1", "top3_share_at_most.2",
                         "budget_is_kept.2", "at_least_one.3"}) {
    EXPECT_EQ(Claimed(good, id).status, Status::kPass)
        << id << ": " << Claimed(good, id).reason;
  }
  EXPECT_TRUE(Contains(Claimed(good, "top3_share.1").reason, "NO_DATA"));
  const Verdicts bad = Judge(Allocation(0.3, 0.01, 0.99), Paper());
  for (const char* id :
       {"top3_share.1", "budget_is_kept.2", "at_least_one.3"}) {
    EXPECT_EQ(Claimed(bad, id).status, Status::kFail) << id;
  }
}

}  // namespace
}  // namespace softmoe::golden

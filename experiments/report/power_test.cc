// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/power.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "experiments/grids/grid_select.h"

namespace softmoe::experiments {
namespace {

constexpr int kDraws = 100;

const MeasurePower& MeasureOf(const DesignPower& power, const std::string& id) {
  const auto found = std::ranges::find(power.measures, id, &MeasurePower::id);
  if (found == power.measures.end()) throw InternalError("no measure " + id);
  return *found;
}

// How many records got the verdict at the n-th truth.
int CountOf(const MeasurePower& measure, size_t n, const std::string& verdict) {
  const auto& verdicts = measure.at.at(n).verdicts;
  const auto found = verdicts.find(verdict);
  return found == verdicts.end() ? 0 : found->second;
}

std::vector<std::string> ClaimsNotReady(const DesignPower& power) {
  std::vector<std::string> claims;
  for (const std::string& line : power.not_ready) {
    claims.push_back(line.substr(0, line.find(':')));
  }
  return claims;
}

// The records known when the regime was planned. regime.h5 is left out: it
// grows with its own runs, and its deviation moves with them.
std::vector<RunRecord> KnownAtTheFreeze() {
  return KnownRecords(RunfilePath("golden/runs/mini.h5"));
}

class MiniPowerTest : public testing::Test {
 protected:
  static const DesignPower& Power() {
    static const DesignPower power =
        PowerOf(SelectGrid("mini", "", {}), KnownAtTheFreeze(), kDraws);
    return power;
  }
};

// C1a and H2 are found now and then, the others never.
TEST_F(MiniPowerTest, NamesTheClaimsThatItCanHardlyShow) {
  EXPECT_EQ(ClaimsNotReady(Power()),
            (std::vector<std::string>{"C1a", "C1a", "C1b", "C3", "C4", "C6",
                                      "H1", "H2"}));
  for (const std::string& line : Power().not_ready) {
    if (line.starts_with("C1a") || line.starts_with("H2")) {
      EXPECT_TRUE(Says(line, " of 100 records of each of these effects"));
    } else {
      // The judge's reason follows.
      EXPECT_GT(line.size(), line.find("at any of these effects: ") + 30)
          << line;
    }
  }
  const std::string text = DescribePower(Power(), kDraws);
  EXPECT_TRUE(Says(text, "NOT READY C3: C3.early cannot be SHOWN", "mini.h5"));
}

// Without a difference, "lower" is false and "not higher by 0.01" is true.
TEST_F(MiniPowerTest, KnowsWhereAClaimIsTrue) {
  for (const MeasurePower& measure : Power().measures) {
    const bool wide = measure.claim == "C1b" || measure.claim == "C4" ||
                      measure.claim == "C7";
    EXPECT_EQ(measure.at[0].holds, wide) << measure.id;
    for (size_t n = 1; n < 4; ++n) EXPECT_TRUE(measure.at[n].holds);
  }
}

TEST_F(MiniPowerTest, GrowsWithTheEffect) {
  EXPECT_EQ(Power().measures.size(), 12u);
  for (const MeasurePower& measure : Power().measures) {
    ASSERT_EQ(measure.at.size(), 4u) << measure.id;
    for (const PowerAt& at : measure.at) {
      int all = 0;
      for (const auto& [name, count] : at.verdicts) all += count;
      EXPECT_EQ(all, kDraws) << measure.id;
    }
  }
  for (const char* id :
       {"C1a.curve", "C1a.group", "C2.share", "C5.experts", "H2.throughput"}) {
    const MeasurePower& measure = MeasureOf(Power(), id);
    EXPECT_LE(CountOf(measure, 0, "SHOWN"), CountOf(measure, 3, "SHOWN")) << id;
    EXPECT_GT(CountOf(measure, 3, "SHOWN"), 0) << id;
    // Without a difference SHOWN is rare, by Holm's rule.
    EXPECT_LE(CountOf(measure, 0, "SHOWN"), kDraws / 10) << id;
  }
  EXPECT_EQ(MeasureOf(Power(), "C1a.curve").at[3].truth, -0.05);
  EXPECT_EQ(MeasureOf(Power(), "C5.experts").at[3].truth, 0.5);
}

// With ten times the deviation the effect is no longer found.
TEST_F(MiniPowerTest, FallsWithTheDeviation) {
  std::vector<RunRecord> records = KnownAtTheFreeze();
  for (RunRecord& record : records) {
    for (size_t i = 0; i < record.runs.size(); ++i) {
      record.runs[i].result.final_validation.loss +=
          0.1 * std::sin(37 * static_cast<double>(i));
    }
  }
  const DesignPower noisy =
      PowerOf(SelectGrid("mini", "", {}), records, kDraws);
  // At 0.05 both find it: it lies 0.08 above the margin.
  EXPECT_LT(CountOf(MeasureOf(noisy, "C7.jitter"), 0, "SHOWN"),
            CountOf(MeasureOf(Power(), "C7.jitter"), 0, "SHOWN"))
      << noisy.basis;
}

TEST(Power, OfTheRegimeIsWhatItWasPlannedFor) {
  const Grid grid = SelectGrid("regime", "mini", {});
  const std::vector<RunRecord> known = KnownAtTheFreeze();
  const DesignPower power = PowerOf(grid, known, kDraws);
  EXPECT_TRUE(power.not_ready.empty()) << power.not_ready.front();
  const MeasurePower& primary = MeasureOf(power, "primary");
  ASSERT_EQ(primary.at.size(), 4u);
  // A true 0 is called superior in 2.5 % of records, a true 0.01 in at least 90
  // %.
  EXPECT_LE(CountOf(primary, 0, "SUPERIOR"), 10);
  EXPECT_GE(CountOf(primary, 0, "MATCHES"), 50);
  EXPECT_GE(CountOf(primary, 1, "SUPERIOR"), 80);
  EXPECT_GE(CountOf(primary, 3, "SUPERIOR"), 95);
  EXPECT_EQ(primary.at[1].truth, -0.01);
  for (const MeasurePower& measure : power.measures) {
    EXPECT_EQ(measure.at.size(), 4u) << measure.id;
    EXPECT_FALSE(Says(measure.id, "train_ae"));
  }
  EXPECT_LE(CountOf(MeasureOf(power, "C5.loss"), 0, "SUPERIOR"), 10);
  const std::string text = DescribePower(power, kDraws);
  EXPECT_TRUE(Says(text, "READY: every claim"));
  // The same call gives the same numbers.
  EXPECT_EQ(DescribePower(PowerOf(grid, known, 5), 5),
            DescribePower(PowerOf(grid, known, 5), 5));
}

// With ten times the deviation, only chance finds an effect now and then, as it
// does where there is none.
TEST(Power, ChanceDoesNotMakeARegimeReady) {
  std::vector<RunRecord> known = KnownAtTheFreeze();
  for (RunRecord& record : known) {
    for (size_t i = 0; i < record.runs.size(); ++i) {
      record.runs[i].result.final_validation.loss +=
          0.3 * std::sin(37 * static_cast<double>(i));
    }
  }
  const DesignPower power =
      PowerOf(SelectGrid("regime", "mini", {}), known, kDraws);
  EXPECT_GT(CountOf(MeasureOf(power, "C5.loss"), 0, "SUPERIOR"), 0);
  EXPECT_GT(CountOf(MeasureOf(power, "C5.loss"), 3, "SUPERIOR"), 0);
  EXPECT_FALSE(MeasureOf(power, "C5.loss").at[0].holds);
  EXPECT_TRUE(MeasureOf(power, "C1b").at[0].holds);
  ASSERT_EQ(power.not_ready.size(), 3u);
  EXPECT_TRUE(Says(power.not_ready[0], "primary cannot be SUPERIOR"));
  EXPECT_TRUE(Says(power.not_ready[1], "C1b is MATCHES in at most "));
  EXPECT_TRUE(Says(power.not_ready[2], "C5.loss is SUPERIOR in at most ",
                   " of 100 records of each of these effects"));
}

// Another program computed the deviation of all judged runs, without the
// pilots, from a fit of row and seed.
TEST(Power, PairsTheRowsOfARegimeThatHaveOtherSeeds) {
  const DesignPower power =
      PowerOf(SelectGrid("regime", "mini", {}),
              KnownRecords(RunfilePath("golden/runs/regime.h5")), 1);
  EXPECT_TRUE(Says(power.basis, "loss (after pairing) 0.0122"));
}

TEST(Power, TakesARunThatWasNotEvaluatedAtOtherTau) {
  std::vector<RunRecord> known = KnownAtTheFreeze();
  for (RecordedRun& run : known.front().runs) {
    if (run.result.config.training.seed != 1234) {
      run.result.final_evaluations.reset();
    }
  }
  EXPECT_FALSE(PowerOf(SelectGrid("mini", "", {}), known, 1).measures.empty());
}

TEST(Power, ARegimeThatCannotBeJudgedIsNotReady) {
  std::vector<RunRecord> known =
      KnownRecords(RunfilePath("golden/runs/regime.h5"));
  for (RunRecord& record : known) {
    for (RecordedRun& run : record.runs) {
      if (!run.id.starts_with("gcide/regime-1/")) continue;
      // More than any sparse row has.
      run.result.final_validation.active_experts = 4.5;
    }
  }
  const DesignPower power = PowerOf(SelectGrid("regime", "mini", {}), known, 5);
  ASSERT_EQ(power.not_ready.size(), 1u);
  EXPECT_TRUE(Says(power.not_ready[0], "primary cannot be SUPERIOR"));
}

// Only rows that a measure uses count. With the rows of the published tau, the
// deviation of active experts on GCIDE would be 0.119.
TEST_F(MiniPowerTest, DrawsWithTheDeviationsOfTheRowsThatAreUsed) {
  EXPECT_TRUE(
      Says(Power().basis,
           "gcide: loss (after pairing) 0.0109, active experts 0.0289, "
           "log load variance 0.156, k_l 0.0216",
           "foldoc: loss (after pairing) 0.0157, active experts 0.0802, "
           "log load variance 0.111, k_l 0.0153"));
}

// The record of the regime knows only the sparse rows of the mini grid. If
// unknown soft rows were at a whole number of experts, half of the made-up
// records would be read in the next group.
TEST(Power, UnknownSoftRowsAreNotAtTheEndOfAGroup) {
  const DesignPower power =
      PowerOf(SelectGrid("mini", "", {}),
              KnownRecords(RunfilePath("golden/runs/regime.h5")), kDraws);
  for (const char* id : {"C1a.group", "C1a.curve"}) {
    const MeasurePower& measure = MeasureOf(power, id);
    for (size_t n = 1; n < measure.at.size(); ++n) {
      EXPECT_TRUE(measure.at[n].holds);
      EXPECT_LE(CountOf(measure, n, "CONTRADICTED"), kDraws / 20) << id;
      EXPECT_EQ(CountOf(measure, n, "NOT_TESTABLE"), 0) << id;
    }
  }
}

// Where nothing is known, defaults are used and named.
TEST(Power, SaysWhatItDoesNotKnow) {
  const DesignPower power = PowerOf(SelectGrid("regime", "mini", {}), {}, 20);
  EXPECT_TRUE(Says(power.basis, "no record", "(default)"));
  EXPECT_TRUE(power.not_ready.empty());
  EXPECT_EQ(ClaimsNotReady(PowerOf(SelectGrid("mini", "", {}), {}, 20)),
            (std::vector<std::string>{"C3", "C4", "C6", "H1", "H2"}));
}

TEST(Power, IsOfDesignsThatAreJudgedByClaims) {
  for (const auto& [name, scale] :
       {std::pair("smoke", ""), std::pair("paper", ""),
        std::pair("tau", "mini"), std::pair("all", "mini")}) {
    EXPECT_TRUE(PowerOf(SelectGrid(name, scale, {}), {}, 1).measures.empty());
  }
  EXPECT_EQ(DescribePower({}, 1), "");
  EXPECT_THROW(KnownRecords("/nonexistent/record.h5"), EnvironmentError);
}

}  // namespace
}  // namespace softmoe::experiments

// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/protocol_report.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "golden/document/document.h"
#include "golden/paper/still_scores.h"
#include "golden/testing/document_test_util.h"

namespace softmoe::golden {
namespace {

const std::vector<ProtocolReading>& Readings() {
  static const std::vector<ProtocolReading> readings = ReadProtocol(Paper());
  return readings;
}

const ProtocolReading& Of(const std::string& row, bool calibrated, bool top1) {
  for (const ProtocolReading& reading : Readings()) {
    if (reading.row == row && reading.calibrated == calibrated &&
        reading.fallback_top1 == top1) {
      return reading;
    }
  }
  throw DataError("no reading of " + row);
}

constexpr const char* kRows[] = {"owt/softmoe_star/k1/a4",
                                 "owt/softmoe_star/k1.5/a2",
                                 "owt/softmoe_star/k2/a2"};

TEST(Protocol, EverySoftRowHasFourReadings) {
  EXPECT_EQ(Readings().size(), 4u * 10);
}

// N28 quotes the numbers that `show --protocol` prints.
TEST(Protocol, N28HasTheNumbersThatAreComputed) {
  const Note* note = nullptr;
  for (const Note& each : Paper().notes) {
    if (each.id == "N28") note = &each;
  }
  ASSERT_NE(note, nullptr);
  std::string tau, end, printed, published_at;
  for (const char* row : kRows) {
    const char* slash = tau.empty() ? "" : "/";
    const ProtocolReading& calibrated = Of(row, true, false);
    tau += fmt::format("{}{:.2f}", slash, calibrated.tau);
    end += fmt::format("{}{:.2f}", slash, calibrated.end);
    printed += fmt::format("{}{:.2f}", slash, calibrated.printed_infer_ae);
    published_at +=
        fmt::format("{}{:.2f}", slash, Of(row, false, false).calibrated_at);
  }
  const ProtocolReading& none = Of(kRows[1], false, false);
  const ProtocolReading& top1 = Of(kRows[1], false, true);
  const std::string computed[] = {
      "is " + tau + " for k = 1/1.5/2",
      "have " + end + " active experts",
      "has " + printed + " (OWT)",
      "spread by " + published_at + ", but they do by " +
          fmt::format("{:.2f}", Of(kRows[0], true, false).calibrated_at),
      fmt::format("{:.2f} in the mean of a run (T1: {:.2f}) and {:.2f} at its "
                  "end (T1: {:.2f})",
                  none.train_ae, none.printed_train_ae, none.end,
                  none.printed_infer_ae),
      fmt::format("with top1 {:.2f} and {:.2f}", top1.train_ae, top1.end)};
  for (const std::string& part : computed) {
    EXPECT_NE(note->text.find(part), std::string::npos)
        << part << "\nis not in\n"
        << note->text;
  }
}

// T falls from 5 to 1 in 18000 steps.
TEST(Protocol, ReadsTheActivityAtTheScheduleOfTheRow) {
  for (const ProtocolReading& reading : Readings()) {
    if (reading.row != kRows[1]) continue;
    StillScores scores = {.num_experts = 32,
                          .mean_active = 1.5,
                          .max_active = 3,
                          .tau = reading.tau,
                          .spread = 0.02 * std::sqrt(640),
                          .fallback_top1 = reading.fallback_top1};
    const auto expect = [&](double temperature, double active, double zero) {
      scores.temperature = temperature;
      const StillActivity activity = ActivityOf(scores);
      EXPECT_NEAR(active, activity.active_experts, 1e-9) << temperature;
      EXPECT_NEAR(zero, activity.zero_active_fraction, 1e-9) << temperature;
    };
    expect(5, reading.start, reading.start_zero);
    expect(3, reading.middle, reading.middle_zero);
    expect(1, reading.end, reading.end_zero);
    EXPECT_NEAR(reading.train_ae,
                MeanActivity(scores, 5, 1, 18000).active_experts, 1e-9);
  }
}

// At the listed spreads the curve has the printed Infer-AE; where none is
// listed it stays on one side.
TEST(Protocol, SpreadsGiveWhatIsPrinted) {
  int none = 0;
  for (const ProtocolReading& reading : Readings()) {
    SCOPED_TRACE(reading.row);
    none += reading.spreads.empty();
    if (reading.row != kRows[0] && reading.row != kRows[1]) continue;
    for (const double spread : reading.spreads) {
      StillScores scores = {.num_experts = 32,
                            .mean_active = reading.row == kRows[0] ? 1 : 1.5,
                            .max_active = reading.row == kRows[0] ? 4 : 3,
                            .tau = reading.tau,
                            .temperature = 5,
                            .spread = spread,
                            .fallback_top1 = reading.fallback_top1};
      if (reading.calibrated) scores.tau = CalibratedTau(scores);
      scores.temperature = 1;
      // Between spreads 10 % apart the curve is not linear: two digits.
      EXPECT_NEAR(ActivityOf(scores).active_experts, reading.printed_infer_ae,
                  0.02)
          << spread;
    }
  }
  // No calibrated row with k = 1.5 reaches it, with either fallback: 1.73,
  // 1.81, 1.96 and 2.19. OWT's SoftMoE*-2, 3.12, needs slightly more than 4.
  EXPECT_EQ(none, 8 + 2);
}

// The router of kRows[0] at T = 1, whose curve rises and then falls: where it
// passes the printed number the logarithm of the spread is interpolated, also
// in the first and the last of the 56 intervals, and at a point of the curve.
TEST(Protocol, FindsWhereTheCurveCrosses) {
  StillScores scores = {.num_experts = 32,
                        .mean_active = 1,
                        .max_active = 4,
                        .tau = 1.1,
                        .temperature = 1};
  std::vector<double> spread, active;
  for (int i = 0; i <= 56; ++i) {  // ln(200) / ln(1.1) = 55.6
    spread.push_back(0.02 * std::pow(4 / 0.02, static_cast<double>(i) / 56));
    scores.spread = spread.back();
    active.push_back(ActivityOf(scores).active_experts);
  }
  struct Case {
    double printed;
    std::vector<size_t> after;  // the points before the crossings
  };
  const std::vector<Case> cases = {{(active[0] + active[1]) / 2, {0}},
                                   {active[10], {9}},
                                   {3.9, {17, 47}},
                                   {(active[55] + active[56]) / 2, {14, 55}},
                                   {4.5, {}}};
  Document paper = Paper();
  ASSERT_EQ(paper.tables[0].id, "main_results");
  const Row row = *paper.tables[0].FindRow(kRows[0]);
  paper.tables[0].rows.assign(cases.size(), row);
  const auto column =
      static_cast<size_t>(paper.tables[0].FindColumn("infer_ae"));
  for (size_t c = 0; c < cases.size(); ++c) {
    paper.tables[0].rows[c].cells[column].text =
        fmt::format("{:.17f}", cases[c].printed);
  }
  const std::vector<ProtocolReading> readings = ReadProtocol(paper);
  ASSERT_EQ(readings.size(), 4 * cases.size());
  for (size_t c = 0; c < cases.size(); ++c) {
    const auto& [printed, after] = cases[c];
    SCOPED_TRACE(printed);
    const ProtocolReading& published = readings[4 * c + 2];
    ASSERT_FALSE(published.calibrated || published.fallback_top1);
    EXPECT_NEAR(published.printed_infer_ae, printed, 1e-16);
    ASSERT_EQ(published.spreads.size(), after.size());
    for (size_t i = 0; i < after.size(); ++i) {
      const size_t at = after[i];
      const double share =
          (printed - active[at]) / (active[at + 1] - active[at]);
      EXPECT_NEAR(
          std::log(published.spreads[i]),
          std::lerp(std::log(spread[at]), std::log(spread[at + 1]), share),
          1e-9);
    }
  }
}

// Bisection ends within 1e-4 of where the activity passes k = 1. With equal
// scores a tau of 0.9 leaves too many; above a cutoff of 20 / 32 one weight of
// a sum of 1 may lie, and does not in every token.
TEST(Protocol, FindsTheLeastSpreadThatCalibrates) {
  Document paper = Paper();
  ASSERT_EQ(paper.tables[0].id, "main_results");
  const Row row = *paper.tables[0].FindRow(kRows[0]);
  paper.tables[0].rows.assign(3, row);
  for (size_t r = 1; r < 3; ++r) {
    for (Field& field : paper.tables[0].rows[r].fields) {
      if (field.name == "router.tau") field.value = r == 1 ? "0.9" : "20";
    }
  }
  const std::vector<ProtocolReading> readings = ReadProtocol(paper);
  ASSERT_EQ(readings.size(), 12u);
  EXPECT_EQ(readings[2].tau, 1.1);
  const auto active = [&](double spread) {
    return ActivityOf({.num_experts = 32,
                       .mean_active = 1,
                       .max_active = 4,
                       .tau = 1.1,
                       .temperature = 1,
                       .spread = spread})
        .active_experts;
  };
  EXPECT_LT(active(readings[2].calibrated_at * (1 - 1e-4)), 1);
  EXPECT_GT(active(readings[2].calibrated_at * (1 + 1e-4)), 1);
  EXPECT_EQ(readings[6].tau, 0.9);
  EXPECT_EQ(readings[6].calibrated_at, 0);
  EXPECT_EQ(readings[10].tau, 20);
  EXPECT_EQ(readings[10].calibrated_at, 0);
}

TEST(Protocol, DescribesEveryReading) {
  ProtocolReading a, b;
  a.row = "owt/a";
  a.calibrated = a.fallback_top1 = true;
  a.tau = 1.1999;
  a.calibrated_at = 0.101;
  a.start = 1.25;
  a.start_zero = 0.333;
  a.middle = 2;
  a.middle_zero = 0.25;
  a.end = 3.999;
  a.end_zero = 0.125;
  a.train_ae = 2.5;
  a.printed_train_ae = 1.53;
  a.printed_infer_ae = 1.73;
  a.spreads = {0.1, 2.34};
  b.row = "owt/b";
  b.tau = 1.8;
  const std::string text = DescribeProtocol({a, b});
  EXPECT_EQ(text.find("\n "), std::string::npos);  // nothing is indented
  for (const char* part :
       {"owt/a  ~1.200  top1", "0.10", "1.25", "33.3%", "2.00", "25.0%", "4.00",
        "12.5%", "1.73", "2.50", "1.53", "0.1, 2.3\n", "owt/b  1.800   none",
        "none up to 4\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST(Protocol, RefusesADocumentThatIsNotThePapers) {
  Document paper = Paper();
  paper.provenance.origin = Origin::kOurRun;
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { ReadProtocol(paper); }),
                   "not of the paper"));
  paper = Paper();
  for (Field& field : paper.fields) {
    if (field.name == "model.d_model") field.value = "wide";
  }
  EXPECT_THROW(ReadProtocol(paper), DataError);
}

}  // namespace
}  // namespace softmoe::golden

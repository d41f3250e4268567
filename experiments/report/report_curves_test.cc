// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/testing/message_test_util.h"
#include "experiments/run/run_record.h"
#include "experiments/testing/report_test_util.h"

namespace softmoe::experiments {
namespace {

TEST(Curves, SeedsBecomeTheirMeanAndABandOfOneDeviation) {
  const Series one{"", {1, 2}, {1, 4}}, two{"", {1, 2}, {3, 4}};
  const Series other{"", {1, 3}, {9, 9}};  // other steps
  const Series over = OverSeeds("row", {one, two, other});
  EXPECT_EQ(over.name, "row");
  EXPECT_EQ(over.y, (std::vector<double>{2, 4}));
  EXPECT_DOUBLE_EQ(over.low[0], 2 - std::sqrt(2.0));  // n - 1 = 1
  EXPECT_DOUBLE_EQ(over.high[0], 2 + std::sqrt(2.0));
  EXPECT_EQ(over.low[1], 4);
  EXPECT_TRUE(OverSeeds("row", {one}).low.empty());
}

// A record has fewer steps than a run on disk.
TEST(Curves, RecordedSeedsCountBesideWholeOnes) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2}});
  for (const size_t seed : {0, 1}) {
    std::vector<trainer::StepRecord>& steps = outcome.runs[seed].result->steps;
    steps.resize(300, steps.front());
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].step = static_cast<int64_t>(i) + 1;
      steps[i].loss = static_cast<double>(i + 1 + 2 * seed);
    }
  }
  RunOutcome& recorded = outcome.runs[1];
  recorded.recorded = true;
  recorded.result->steps = ThinnedSteps(recorded.result->steps);
  const Series over = OverSteps("row", SummarizeRows(outcome).front(),
                                std::mem_fn(&trainer::StepRecord::loss));
  ASSERT_EQ(over.x.size(), recorded.result->steps.size());
  ASSERT_EQ(over.low.size(), over.x.size());
  for (size_t i = 0; i < over.x.size(); ++i) {
    EXPECT_EQ(over.y[i], over.x[i] + 1);
    EXPECT_DOUBLE_EQ(over.high[i], over.y[i] + std::sqrt(2.0));
  }
}

TEST(MakeCurves, CaptionsFollowTheBands) {
  for (const Figure& figure : MakeCurves(ExampleOutcome())) {
    EXPECT_TRUE(figure.caption.ends_with(" Mean over the finished seeds."))
        << figure.caption;
    EXPECT_FALSE(Says(figure.caption, "Pilots"));
  }
  const std::string banded = " finished seeds; bands: one standard deviation.";
  std::vector<Figure> figures = MakeCurves(ExampleOutcome({.seeds = {1, 2}}));
  ASSERT_EQ(figures.size(), 2u);
  for (const Figure& figure : figures) {
    EXPECT_TRUE(figure.caption.ends_with(banded)) << figure.caption;
  }
  // Too many lines.
  std::vector<Plot>& plots = figures[0].plots;
  for (Plot& plot : plots) plot.series.resize(11, plot.series.front());
  EXPECT_EQ(SeedsCaption(plots),
            "Mean over the finished seeds; their standard deviation is with "
            "the points.");
}

TEST(MakeCurves, LayersCountFromOne) {
  const std::vector<Figure> figures = MakeCurves(ExampleOutcome());
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].title, "Training, foldoc");
  EXPECT_EQ(figures[0].rows.size(), 4u);
  const Plot& layers = figures[1].plots[0];
  EXPECT_EQ(layers.id, "layers_0");
  ASSERT_EQ(layers.series.size(), 1u);  // of the row that learns its allocation
  EXPECT_EQ(layers.series[0].name, "soft-2");
  EXPECT_EQ(layers.series[0].x, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(layers.series[0].y, (std::vector<double>{1.75, 2, 2.25}));
}

}  // namespace
}  // namespace softmoe::experiments

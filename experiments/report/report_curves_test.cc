// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "experiments/run/run_record.h"
#include "experiments/testing/report_test_util.h"

namespace softmoe::experiments {
namespace {

std::string DrawnAlone(const Plot& plot) {
  return DrawSvgs({&plot}).at(plot.id);
}

TEST(Plot, ThinAveragesBlocks) {
  Series series{"s", {}, {}};
  for (int i = 0; i < 10; ++i) {
    series.x.push_back(i);
    series.y.push_back(10 * i);
  }
  const Series thin = Thin(series, 4);  // blocks of three, and a rest
  EXPECT_EQ(thin.x, (std::vector<double>{1, 4, 7, 9}));
  EXPECT_EQ(thin.y, (std::vector<double>{10, 40, 70, 90}));
  EXPECT_EQ(Thin(series, 10).x.size(), 10u);
}

TEST(Plot, DrawsEveryLineWithItsName) {
  Plot plot{"loss_0", "step", "nat/token", {}};
  for (int s = 0; s < 11; ++s) {  // more than there are colours
    plot.series.push_back({"it's row " + std::to_string(s),
                           {0, 1, 2},
                           {1.0 * s, std::nan(""), 2.0 * s}});
  }
  const std::string svg = DrawnAlone(plot);
  EXPECT_EQ(svg.find("<svg"), 0u);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  EXPECT_NE(svg.find("loss_0_plot_11"), std::string::npos);
  for (int s = 0; s < 11; ++s) {
    EXPECT_NE(svg.find("row " + std::to_string(s) + "<"), std::string::npos)
        << s;
  }
  EXPECT_EQ(svg, DrawnAlone(plot));
}

TEST(Plot, ALineOfOnePointIsNoError) {
  Plot plot{"one", "x", "y", {{"a", {1}, {1}}}};
  plot.points = true;
  EXPECT_NE(DrawnAlone(plot).find("</svg>"), std::string::npos);
}

TEST(Plot, WithoutGnuplotItSaysWhatToInstall) {
  const NoPrograms none;
  EXPECT_TRUE(DrawSvgs({}).empty());
  const Plot plot{"one", "x", "y", {{"a", {1}, {1}}}};
  try {
    DrawnAlone(plot);
    FAIL() << "drew without gnuplot";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("gnuplot-nox"), std::string::npos)
        << error.what();
  }
}

TEST(Plot, DrawsBarsAndBands) {
  Plot plot{"bars", "x", "y", {{"a", {0, 1}, {1, 2}}, {"b", {0, 1}, {2, 1}}}};
  plot.bars = plot.ordered = true;
  // #440154 and #bddf26
  EXPECT_TRUE(
      Says(DrawnAlone(plot), "rgb( 68,   1,  84)", "rgb(189, 223,  38)"));
  plot.bars = false;
  EXPECT_FALSE(Says(DrawnAlone(plot), "fill-opacity"));
  plot.series[0].low = {0.5, 1.5};
  plot.series[0].high = {1.5, 2.5};
  EXPECT_TRUE(Says(DrawnAlone(plot), "fill-opacity"));
}

// Nothing of one is left in the next.
TEST(Plot, DrawnTogetherAreAsDrawnAlone) {
  Plot points{"points", "x", "y", {}};
  for (int s = 0; s < 9; ++s) {  // more than there are colours: dashes
    points.series.push_back({"s" + std::to_string(s), {1, 2}, {1.0 * s, 2}});
  }
  points.points = true;
  points.title = "a title";
  Plot bars{"bars", "x", "y", {{"a", {0, 1}, {1, 2}}, {"b", {0, 1}, {2, 1}}}};
  bars.bars = bars.ordered = true;
  const Plot bands{"bands", "x", "y", {{"a", {1, 2}, {3, 4}, {2, 3}, {4, 5}}}};
  for (const std::vector<const Plot*>& plots :
       {std::vector<const Plot*>{&points, &bars, &bands},
        {&bands, &bars, &points},
        {&bars, &points, &bands}}) {
    const auto together = DrawSvgs(plots);
    ASSERT_EQ(together.size(), plots.size());
    for (const Plot* plot : plots) {
      EXPECT_EQ(together.at(plot->id), DrawnAlone(*plot)) << plot->id;
    }
  }
}

TEST(Plot, SeedsBecomeTheirMeanAndABandOfOneDeviation) {
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
TEST(Plot, RecordedSeedsCountBesideWholeOnes) {
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

TEST(Plot, ItsPointsAreACsv) {
  Plot plot{"one", "step", "nat/token", {{"a, b", {1}, {0.1}}}};
  plot.series.push_back({"c", {2}, {3}, {2.5}, {3.5}});
  EXPECT_EQ(PlotCsv(plot),
            "series,step,nat/token,low,high\n\"a, b\",1,0.1,,\n"
            "c,2,3,2.5,3.5\n");
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

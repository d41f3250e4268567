// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/paper_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "core/testing/message_test_util.h"
#include "experiments/testing/report_test_util.h"

namespace softmoe::experiments {
namespace {

using Texts = std::vector<std::string>;
using Numbers = std::vector<double>;

const Figure& FigureOf(const std::vector<Figure>& figures,
                       const std::string& title) {
  for (const Figure& figure : figures) {
    if (figure.title == title) return figure;
  }
  ADD_FAILURE() << "no figure " << title;
  return figures.front();
}

TEST(PaperFigures, AreDrawnOfTheRowsThatThereAre) {
  GridOutcome outcome = ExampleOutcome();
  std::vector<std::string> titles;
  for (const Figure& figure : PaperFigures(outcome)) {
    titles.push_back(figure.title);
    EXPECT_EQ(figure.corpora, Texts{"foldoc"});
  }
  // The only SoftMoE row has k = 2, which the second pair does not use.
  EXPECT_EQ(titles, (Texts{"Active experts in each layer, foldoc",
                           "Sparse MoE and SoftMoE* during training, foldoc",
                           "Learned allocation during training, foldoc"}));
  RunOf(outcome, "soft-2").run.row.paper_row = "softmoe/k1.5/a2";
  const std::vector<Figure> all = PaperFigures(outcome);
  EXPECT_EQ(FigureOf(all, "SoftMoE* and SoftMoE during training, foldoc").rows,
            (Texts{"star-1.5", "soft-2"}));
  EXPECT_EQ(all[0].rows, (Texts{"sparse-2", "star-1.5", "soft-2"}));
  for (RunOutcome& run : outcome.runs) Interrupt(run);
  EXPECT_TRUE(PaperFigures(outcome).empty());
}

// Three of four tokens of SoftMoE* have two experts, the others one.
TEST(PaperFigures, CountTheTokensOfEveryLayer) {
  const Figure figure = PaperFigures(ExampleOutcome()).front();
  ASSERT_EQ(figure.plots.size(), 2u);
  const Plot& star = figure.plots[1];
  EXPECT_EQ(star.title, "SoftMoE* (star-1.5)");
  EXPECT_TRUE(star.bars);
  ASSERT_EQ(star.series.size(), 3u);
  EXPECT_EQ(star.series[0].name, "layer 1");
  EXPECT_EQ(star.series[2].name, "layer 3");
  for (const Series& layer : star.series) {
    EXPECT_EQ(layer.x, (Numbers{0, 1, 2}));
    EXPECT_EQ(layer.y, (Numbers{0, 25, 75}));
  }
}

// Losses 1, 2 and 6: mean 3, deviation sqrt(14 / 2).
TEST(PaperFigures, BandsAreOneDeviationOverTheSeeds) {
  GridOutcome outcome = ExampleOutcome({.seeds = {1, 2, 3}});
  double losses[] = {1, 2, 6};
  const double* loss = losses;
  for (RunOutcome& run : outcome.runs) {
    if (run.run.row.id == "sparse-2") run.result->steps[7].loss = *loss++;
  }
  const std::vector<Figure> figures = PaperFigures(outcome);
  const Plot& plot =
      FigureOf(figures, "Sparse MoE and SoftMoE* during training, foldoc")
          .plots[0];
  EXPECT_EQ(plot.id, "hard_soft_loss_0");
  const Series& sparse = plot.series[0];
  EXPECT_EQ(sparse.name, "Sparse MoE (sparse-2)");
  EXPECT_EQ(sparse.x[7], 8);
  EXPECT_DOUBLE_EQ(sparse.y[7], 3);
  EXPECT_DOUBLE_EQ(sparse.low[7], 3 - std::sqrt(7.0));
  EXPECT_DOUBLE_EQ(sparse.high[7], 3 + std::sqrt(7.0));
}

TEST(PaperFigures, CaptionsFollowTheBands) {
  const std::string mean = " Mean over the finished seeds";
  for (const bool several : {false, true}) {
    ExampleOptions options;
    if (several) options.seeds = {1, 2};
    const std::vector<Figure> figures = PaperFigures(ExampleOutcome(options));
    ASSERT_EQ(figures.size(), 3u);
    const std::string points =
        several ? "; their standard deviation is with the points." : ".";
    const std::string bands =
        several ? "; bands: one standard deviation." : ".";
    EXPECT_TRUE(figures[0].caption.ends_with(mean + points))
        << figures[0].caption;
    for (const size_t lines : {1, 2}) {
      EXPECT_TRUE(figures[lines].caption.ends_with(mean + bands))
          << figures[lines].caption;
    }
    EXPECT_TRUE(Says(figures[2].caption, "of the model before its update"));
  }
}

TEST(PaperFigures, LayersOfTheAllocationCountFromOne) {
  const std::vector<Figure> figures = PaperFigures(ExampleOutcome());
  const Plot& plot =
      FigureOf(figures, "Learned allocation during training, foldoc").plots[0];
  ASSERT_EQ(plot.series.size(), 3u);
  EXPECT_EQ(plot.series[0].name, "layer 1");
  EXPECT_EQ(plot.series[2].name, "layer 3");
  EXPECT_EQ(plot.series[0].y.front(), 1.75);
  EXPECT_EQ(plot.series[2].y.front(), 2.25);
}

}  // namespace
}  // namespace softmoe::experiments

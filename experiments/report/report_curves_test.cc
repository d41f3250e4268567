// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_curves.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/errors.h"
#include "experiments/testing/report_test_util.h"

namespace softmoe::experiments {
namespace {

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
  const std::string svg = DrawSvg(plot);
  EXPECT_EQ(svg.find("<svg"), 0u);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  EXPECT_NE(svg.find("loss_0_plot_11"), std::string::npos);
  for (int s = 0; s < 11; ++s) {
    EXPECT_NE(svg.find("row " + std::to_string(s) + "<"), std::string::npos)
        << s;
  }
  EXPECT_EQ(svg, DrawSvg(plot));
}

TEST(Plot, ALineOfOnePointIsNoError) {
  Plot plot{"one", "x", "y", {{"a", {1}, {1}}}};
  plot.points = true;
  EXPECT_NE(DrawSvg(plot).find("</svg>"), std::string::npos);
}

TEST(Plot, WithoutGnuplotItSaysWhatToInstall) {
  const NoPrograms none;
  const Plot plot{"one", "x", "y", {{"a", {1}, {1}}}};
  try {
    DrawSvg(plot);
    FAIL() << "drew without gnuplot";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("gnuplot-nox"), std::string::npos)
        << error.what();
  }
}

const Plot& PlotOf(const std::vector<Curves>& curves, const std::string& id) {
  for (const Curves& c : curves) {
    if (c.plot.id == id) return c.plot;
  }
  ADD_FAILURE() << "no plot " << id;
  return curves.front().plot;
}

TEST(MakeCurves, LayersCountFromOne) {
  const std::vector<Curves> curves = MakeCurves(ExampleOutcome());
  const Plot& layers = PlotOf(curves, "layers_0");
  ASSERT_EQ(layers.series.size(), 1u);  // of the row that learns its allocation
  EXPECT_EQ(layers.series[0].name, "soft-2");
  EXPECT_EQ(layers.series[0].x, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(layers.series[0].y, (std::vector<double>{1.75, 2, 2.25}));
  // The curves during training carry the names, too.
  const Plot& steps = PlotOf(curves, "steps_0_0");
  ASSERT_EQ(steps.series.size(), 3u);
  EXPECT_EQ(steps.series[0].name, "layer 1");
  EXPECT_EQ(steps.series[2].name, "layer 3");
}

}  // namespace

}  // namespace softmoe::experiments

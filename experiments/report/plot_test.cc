// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/plot.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
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
  constexpr int kLines = 40;  // more than there are colours: dashes
  for (int s = 0; s < kLines; ++s) {
    plot.series.push_back({"it's row " + std::to_string(s),
                           {0, 1, 2},
                           {1.0 * s, std::nan(""), 2.0 * s}});
  }
  const std::string svg = DrawnAlone(plot);
  EXPECT_EQ(svg.find("<svg"), 0u);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  std::set<std::string> styles;
  for (int s = 0; s < kLines; ++s) {
    EXPECT_NE(svg.find("row " + std::to_string(s) + "<"), std::string::npos)
        << s;
    const size_t line = svg.find(fmt::format("\"loss_0_plot_{}\"", s + 1));
    ASSERT_NE(line, std::string::npos) << s;
    const size_t style = svg.find("<path stroke=", line);
    ASSERT_NE(style, std::string::npos) << s;
    styles.insert(svg.substr(style, svg.find(" d=", style) - style));
  }
  EXPECT_EQ(styles.size(), size_t{kLines});
  EXPECT_EQ(svg, DrawnAlone(plot));
}

TEST(Plot, KeepsEveryLetter) {
  Plot plot{"letters", "\u0142\u00F3d\u017A", "y", {{"caf\u00E9", {1}, {1}}}};
  plot.title = "Gr\u00F6\u00DFe";
  EXPECT_TRUE(Says(DrawnAlone(plot), "\u0142\u00F3d\u017A", "caf\u00E9",
                   "Gr\u00F6\u00DFe"));
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

// As that of a job is once the job has ended.
TEST(Plot, DrawsWhereTmpdirIsGone) {
  ASSERT_EQ(::setenv("TMPDIR", "/nonexistent/tmp", 1), 0);
  const Plot plot{"one", "x", "y", {{"a", {1}, {1}}}};
  EXPECT_TRUE(Says(DrawnAlone(plot), "</svg>"));
  ::unsetenv("TMPDIR");
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

TEST(Plot, HasBandsWhereTheyAreDrawn) {
  Plot plot{"bands", "x", "y", {{"a", {0, 1}, {1, 2}}}};
  EXPECT_FALSE(HasDeviations(plot) || HasBands(plot));
  plot.series.push_back({"b", {0, 1}, {1, 2}, {0, 1}, {2, 3}});
  EXPECT_TRUE(HasDeviations(plot) && HasBands(plot));
  plot.bars = true;
  EXPECT_TRUE(HasDeviations(plot) && !HasBands(plot));
  EXPECT_FALSE(Says(DrawnAlone(plot), "fill-opacity"));
  plot.bars = false;
  plot.series.resize(10, plot.series.front());
  EXPECT_TRUE(HasBands(plot));
  EXPECT_TRUE(Says(DrawnAlone(plot), "fill-opacity"));
  plot.series.resize(11, plot.series.front());
  EXPECT_TRUE(HasDeviations(plot) && !HasBands(plot));
  EXPECT_FALSE(Says(DrawnAlone(plot), "fill-opacity"));
}

// No drawing leaves a trace in the next.
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

TEST(Plot, ItsPointsAreACsv) {
  Plot plot{"one", "step", "nat/token", {{"a, b", {1}, {0.1}}}};
  plot.series.push_back({"c", {2}, {3}, {2.5}, {3.5}});
  EXPECT_EQ(PlotCsv(plot),
            "series,step,nat/token,low,high\n\"a, b\",1,0.1,,\n"
            "c,2,3,2.5,3.5\n");
}

}  // namespace
}  // namespace softmoe::experiments

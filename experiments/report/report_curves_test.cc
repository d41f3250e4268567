// SPDX-License-Identifier: Apache-2.0
#include "experiments/report/report_curves.h"

#include <gtest/gtest.h>

#include "experiments/testing/report_test_util.h"

namespace softmoe::experiments {
namespace {

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

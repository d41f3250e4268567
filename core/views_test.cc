// SPDX-License-Identifier: Apache-2.0
#include "core/views.h"

#include <gtest/gtest.h>

#include <numeric>
#include <type_traits>
#include <vector>

namespace softmoe {
namespace {

TEST(View, IndexesRowMajorByNamedExtents) {
  std::vector<int> data(2 * 3 * 4);
  std::iota(data.begin(), data.end(), 0);
  View<int, NumLayers, NumTokens, NumExperts> view(data.data(), NumLayers(2),
                                                   NumTokens(3), NumExperts(4));
  EXPECT_EQ(view(1, 2, 3), 23);
  EXPECT_EQ(view(0, 1, 2), 6);
  EXPECT_EQ(view.extent<NumTokens>(), 3);
  EXPECT_EQ(view.size(), 24);
}

TEST(View, RowsAreSpansOfTheLastExtent) {
  std::vector<double> data = {1, 2, 3, 4, 5, 6};
  View<double, NumTokens, DModel> view(data.data(), NumTokens(2), DModel(3));
  view.row(1)[0] = 40;
  EXPECT_EQ(data[3], 40);
  View<const double, NumTokens, DModel> readonly = view;
  EXPECT_EQ(readonly.row(1).size(), 3u);
}

TEST(View, SwappedExtentsDoNotCompile) {
  using Scores = View<double, NumTokens, NumExperts>;
  static_assert(
      std::is_constructible_v<Scores, double*, NumTokens, NumExperts>);
  static_assert(
      !std::is_constructible_v<Scores, double*, NumExperts, NumTokens>);
  static_assert(!std::is_constructible_v<Scores, double*, int, int>);
}

}  // namespace
}  // namespace softmoe

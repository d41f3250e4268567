// SPDX-License-Identifier: Apache-2.0
#include "kernels/routing_counts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace softmoe::kernels {
namespace {

struct Counts {
  std::vector<int64_t> histogram;
  int64_t below_cutoff = -1;
};

// Counts tokens that have at most two of three experts.
Counts Count(const std::vector<int32_t>& num_active,
             const std::vector<float>& gates, bool has_cutoff, float cutoff) {
  ThreadPool pool(2);
  Counts counts;
  counts.histogram.assign(5, -1);
  RoutingCounts({.num_tokens = static_cast<int64_t>(num_active.size()),
                 .num_experts = 3,
                 .max_active = 2,
                 .has_cutoff = has_cutoff,
                 .cutoff = cutoff,
                 .num_active = num_active.data(),
                 .gates = gates.data(),
                 .active_histogram = counts.histogram.data(),
                 .below_cutoff = &counts.below_cutoff},
                pool);
  return counts;
}

TEST(RoutingCounts, CountsTokensByTheirNumberOfExperts) {
  const Counts counts =
      Count({2, 0, 1, 2, 2}, {.4f, .5f, 0, 0, .7f, 0, .9f, .3f, .6f, .6f}, true,
            0.25f);
  EXPECT_EQ(counts.histogram, (std::vector<int64_t>{1, 1, 3, 0, -1}));
  EXPECT_EQ(counts.below_cutoff, 1);  // the token without an expert
}

// fallback = "top1" hides that no weight exceeded the cutoff; the weight tells.
TEST(RoutingCounts, CountsATokenThatFellBackAsBelowTheCutoff) {
  const std::vector<float> gates = {.25f, 0, .2501f, 0, .1f, 0, .2f, .2f};
  EXPECT_EQ(Count({1, 1, 1, 2}, gates, true, .25f).below_cutoff, 2);
  EXPECT_EQ(Count({1, 1, 1, 2}, gates, true, 0).below_cutoff, 0);
}

TEST(RoutingCounts, SparseRoutersHaveNoCutoff) {
  const Counts counts = Count({1, 0}, {0.1f, 0, 0, 0}, false, 0.5f);
  EXPECT_EQ(counts.below_cutoff, 0);
  EXPECT_EQ(counts.histogram, (std::vector<int64_t>{1, 1, 0, 0, -1}));
}

TEST(RoutingCounts, TellsTheScoreThatIsNotFinite) {
  ThreadPool pool(1);
  const std::vector<int32_t> num_active = {0, 0};
  const std::vector<float> gates = {0, 0}, scores = {1, 2, -INFINITY, 4};
  std::vector<int64_t> histogram(3);
  int64_t below = 0;
  const auto tell = [&](int64_t bad_score) {
    double value = -7;
    RoutingCounts({.num_tokens = 2,
                   .num_experts = 2,
                   .max_active = 1,
                   .has_cutoff = false,
                   .cutoff = 0,
                   .num_active = num_active.data(),
                   .gates = gates.data(),
                   .active_histogram = histogram.data(),
                   .below_cutoff = &below,
                   .scores = scores.data(),
                   .bad_score = &bad_score,
                   .bad_value = &value},
                  pool);
    return value;
  };
  EXPECT_EQ(tell(2), -INFINITY);
  EXPECT_EQ(tell(-1), 0);
}

TEST(RoutingCounts, NoTokenIsNoCount) {
  const Counts counts = Count({}, {}, true, 0.5f);
  EXPECT_EQ(counts.below_cutoff, 0);
  EXPECT_EQ(counts.histogram, (std::vector<int64_t>{0, 0, 0, 0, -1}));
}

}  // namespace
}  // namespace softmoe::kernels

// SPDX-License-Identifier: Apache-2.0
//
// "The router's start" in golden/RESULTS.md, with the section after it, is what
// was computed from the shipped runs.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "core/files/atomic_file.h"
#include "core/files/sha256.h"

namespace softmoe::experiments {
namespace {

constexpr char kRemedy[] =
    "experiments/router_start_test.cc of commit 47f8b5bc computes every table "
    "of these sections from the runs, by the rule of the regime experiment: "
    "run it there on the changed files, then write their hashes here";

TEST(RouterStart, IsWhatWasComputedFromTheShippedRuns) {
  EXPECT_EQ(Sha256OfFile("golden/runs/router_start_h200.csv"),
            "3499368b9df098cfbddcab9d9590ad2fcced8c4115f51a59106883e5f84d95a3")
      << kRemedy;
  EXPECT_EQ(Sha256OfFile("golden/runs/regime_h200.h5"),
            "bcac167319e3f1e4696dbc6b3186e9f2abcd4b6fc2f514a0f1644ef7655f15f2")
      << kRemedy;
  const std::string results = ReadWholeFile("golden/RESULTS.md");
  const size_t begin = results.find("### The router's start\n");
  const size_t end = results.find("### Limits of the frozen answer");
  ASSERT_LT(begin, end);
  ASSERT_LT(end, results.size());
  EXPECT_EQ(Sha256Hex(results.substr(begin, end - begin)),
            "a06f86e36315dc755af733fffd2359507c109a97b55ad8e9b3e50ec20d9d5288")
      << kRemedy;
}

}  // namespace
}  // namespace softmoe::experiments

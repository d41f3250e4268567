// SPDX-License-Identifier: Apache-2.0
#include "property_tests/routing_margin.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/testing/message_test_util.h"

namespace softmoe::property_tests {
namespace {

using reference::BoolMatrix;
using reference::Matrix;
using reference::RouterSettings;

// The two middle scores tie at a cap of 2.
std::string DefectOfTie(double cutoff, const BoolMatrix& got) {
  const RouterSettings settings = {.kind = RouterKind::kSoftFixed,
                                   .mean_active = 1,
                                   .cutoff = cutoff,
                                   .max_active = 2};
  return CheckSelection(settings, Matrix{{1, 0, 0, -1}}, got,
                        /*score_error=*/0)
      .defect;
}

TEST(RoutingMargin, ATieAtTheCapExcusesOnlyWhatMayCount) {
  const BoolMatrix first{{true, false, false, false}};
  const BoolMatrix lower{{true, true, false, false}};
  const BoolMatrix higher{{true, false, true, false}};
  // Both weights are far above the cutoff: one of the two it must be.
  EXPECT_EQ(DefectOfTie(0.1, lower), "");
  EXPECT_EQ(DefectOfTie(0.1, higher), "");
  EXPECT_TRUE(Says(DefectOfTie(0.1, first), "1 active experts instead of 2"));
  // Both are far below it.
  EXPECT_EQ(DefectOfTie(0.4, first), "");
  EXPECT_TRUE(Says(DefectOfTie(0.4, lower), "expert 1 is active"));
}

// A weight near 1 errs by about u, the small ones beside it by 60 u relative.
TEST(RoutingMargin, EachSoftWeightHasItsOwnBound) {
  RouterSettings settings = {
      .kind = RouterKind::kSoftFixed, .mean_active = 1.5, .max_active = 2};
  const Matrix scores{{9, 0, 0, 0}};
  const Bounded largest = SoftWeightBounds(settings, scores.row(0))[0];
  const BoolMatrix active{{true, false, false, false}};
  for (const double units : {2.0, 20.0}) {
    settings.cutoff = largest.value + units * kFloatUnit;
    const SelectionCheck check =
        CheckSelection(settings, scores, active, /*score_error=*/0);
    EXPECT_EQ(check.ambiguous, 1);
    EXPECT_EQ(check.defect.empty(), units == 2) << check.defect;
  }
}

}  // namespace
}  // namespace softmoe::property_tests

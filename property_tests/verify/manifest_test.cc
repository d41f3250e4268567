// SPDX-License-Identifier: Apache-2.0
//
// The manifest itself distinguishes too few cases, undeclared ones and what
// this machine lacks. (implementations_property_test compares it with what the
// tests run: every pair that can run here, so each must be declared.)
#include "property_tests/verify/manifest.h"

#include <gtest/gtest.h>

#include "core/testing/message_test_util.h"

namespace softmoe::verify {
namespace {

Suite Ran(const std::string& op, const std::string& impl, int64_t cases,
          Status status = Status::kPass) {
  Suite suite;
  for (int64_t i = 0; i < cases; ++i) {
    CaseResult result;
    result.c.op = op;
    result.c.impl = impl;
    result.status = status;
    suite.Add(result);
  }
  return suite;
}

TEST(Manifest, IsMetByAsManyCasesAndNoFewer) {
  const std::vector<Declared> manifest = {{{"lapsum", "cpu:v3"}, 5, ""}};
  EXPECT_TRUE(
      CheckManifest(manifest, Ran("lapsum", "cpu:v3", 5)).shortfalls.empty());
  const ManifestCheck check =
      CheckManifest(manifest, Ran("lapsum", "cpu:v3", 4));
  ASSERT_EQ(check.shortfalls.size(), 1u);
  EXPECT_EQ(check.shortfalls[0],
            "4 of 5 declared cases of lapsum on cpu:v3 ran");
  EXPECT_TRUE(Says(ManifestText(check), "manifest: 4 of 5 cases"));
  // A failing case ran; one that is not offered did not.
  EXPECT_TRUE(CheckManifest(manifest, Ran("lapsum", "cpu:v3", 5, Status::kFail))
                  .shortfalls.empty());
  EXPECT_EQ(
      CheckManifest(manifest, Ran("lapsum", "cpu:v3", 5, Status::kUnsupported))
          .ran,
      0);
}

TEST(Manifest, WhatAMachineLacksIsNotRunAndNotPassed) {
  const std::vector<Declared> manifest = {{{"lapsum", "cuda"}, 9, "gpu"}};
  const ManifestCheck check = CheckManifest(manifest, Suite());
  EXPECT_EQ(check.declared, 9);
  EXPECT_EQ(check.ran, 0);
  EXPECT_TRUE(check.shortfalls.empty());
  ASSERT_EQ(check.not_run.size(), 1u);
  EXPECT_TRUE(
      Says(check.not_run[0], "0 of 9 declared cases of lapsum on cuda"));
  // A unit that needs nothing, or whose need is met here, must run.
  for (const Declared& declared : {Declared{{"lapsum", "cuda"}, 9, ""},
                                   {{"lapsum", "cpu:v3"}, 9, "gpu"}}) {
    EXPECT_EQ(CheckManifest({declared}, Suite()).shortfalls.size(), 1u)
        << declared.unit.impl;
  }
}

TEST(Manifest, WhatRanMustBeDeclared) {
  // Cases of the reference do not count for the kernels.
  const ManifestCheck check = CheckManifest({{{"lapsum", "cpu:v3"}, 5, ""}},
                                            Ran("lapsum", "reference_f32", 5));
  EXPECT_EQ(check.shortfalls.size(), 2u) << ManifestText(check);
}

// What it declares may only become more: raise this with what is added.
TEST(Manifest, DeclaresNoFewerCasesThanBefore) {
  const ManifestCheck nothing_ran = CheckManifest(Manifest(), Suite());
  EXPECT_GE(nothing_ran.declared, 13300);
  EXPECT_EQ(nothing_ran.shortfalls.size() + nothing_ran.not_run.size(),
            Manifest().size());
}

}  // namespace
}  // namespace softmoe::verify

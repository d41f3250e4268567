// SPDX-License-Identifier: Apache-2.0
#include "golden/document/fingerprint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace softmoe::golden {
namespace {

using Differences = std::vector<FieldDifference>;

Field Must(const std::string& name, const std::string& value,
           Known known = Known::kStated) {
  return {name, value, FieldClass::kMustMatch, known};
}

TEST(SameValue, ComparesNumbersAsNumbersAndTextAsText) {
  EXPECT_TRUE(SameValue("0.001", "1e-3"));
  EXPECT_TRUE(SameValue("10", "10.0"));
  EXPECT_TRUE(SameValue("\"owt\"", "owt"));
  EXPECT_FALSE(SameValue("10", "10.5"));
  EXPECT_FALSE(SameValue("nan", "NaN"));
  EXPECT_FALSE(SameValue("1", "1 "));
  EXPECT_FALSE(SameValue("1e999", "2e999"));
  EXPECT_FALSE(SameValue("owt", "OWT"));
  EXPECT_FALSE(SameValue("e", "E"));
  // Calibration is a setting; its outcome is not.
  EXPECT_TRUE(SameValue("calibrated: 1.067, 1.068", "calibrated: 1.069"));
  EXPECT_TRUE(SameValue("calibrated", "calibrated: 1.067"));
  EXPECT_FALSE(SameValue("calibrated: 1.067", "1.067"));
  EXPECT_TRUE(SameValue("calibrated x 0.5: 0.53", "calibrated x 0.5: 0.54"));
  EXPECT_TRUE(SameValue("calibrated x 0.5", "calibrated x 0.5: 0.54"));
  EXPECT_FALSE(SameValue("calibrated x 0.5: 0.53", "calibrated x 2: 0.53"));
  EXPECT_FALSE(SameValue("calibrated: 1.067", "calibrated x 2: 1.067"));
}

TEST(SameValue, OnlyWholeQuotesAndWholeNumbersAreNone) {
  EXPECT_TRUE(SameValue("\"\"", ""));
  EXPECT_FALSE(SameValue("\"", ""));
  EXPECT_FALSE(SameValue("owt\"", "wt"));
  EXPECT_FALSE(SameValue("owt\"", "owt"));
  EXPECT_FALSE(SameValue("\"owt", "owt"));
  EXPECT_FALSE(SameValue("\"owt", "ow"));
  EXPECT_TRUE(SameValue("\"1e3\"", "1000"));
  EXPECT_TRUE(SameValue("-0", "+0"));
  // Only the beginnings are numbers.
  EXPECT_FALSE(SameValue("1-2", "1"));
  EXPECT_FALSE(SameValue("1e", "1"));
  EXPECT_FALSE(SameValue(".", "0"));
  EXPECT_FALSE(SameValue("", "0"));
  EXPECT_FALSE(SameValue("0x10", "16"));
}

TEST(FieldValue, RowsOverrideTheirDocument) {
  Document document;
  document.fields = {Must("a", "1"), Must("b", "2")};
  Row row;
  row.fields = {Must("b", "3"), Must("c", "4")};
  EXPECT_EQ(FieldValue(document, row, "a"), "1");
  EXPECT_EQ(FieldValue(document, row, "b"), "3");
  EXPECT_EQ(FieldValue(document, row, "c"), "4");
  EXPECT_EQ(FieldValue(document, row, "d"), "");
}

TEST(FieldsOf, RowsOverrideTheirDocument) {
  Document document;
  document.fields = {Must("a", "1"), Must("b", "2")};
  Row row;
  row.fields = {Must("b", "3"), Must("c", "4")};
  EXPECT_EQ(
      FieldsOf(document, row),
      (std::vector<Field>{Must("b", "3"), Must("c", "4"), Must("a", "1")}));
}

TEST(CompareFingerprints, ADifferenceInAStatedFieldForbids) {
  const auto comparison =
      CompareFingerprints({Must("d", "64"), Must("n", "10")},
                          {Must("d", "640"), Must("n", "10")}, Origin::kPaper);
  EXPECT_FALSE(comparison.comparable());
  EXPECT_EQ(comparison.differences, (Differences{{"d", "640", "64"}}));
  EXPECT_EQ(DescribeDifference(comparison.differences[0]),
            "640 in the golden, 64 here");
}

TEST(CompareFingerprints, SilenceIsNoAgreement) {
  const auto comparison =
      CompareFingerprints({}, {Must("d", "640")}, Origin::kPaper);
  EXPECT_FALSE(comparison.comparable());
  EXPECT_EQ(DescribeDifference(comparison.differences[0]),
            "640 in the golden, not said here");
}

TEST(CompareFingerprints, WhatTheGoldenLeavesOpenIsAssumed) {
  const auto comparison =
      CompareFingerprints({Must("tau", "calibrated"), Must("aux", "0.01")},
                          {Must("tau", "1.8", Known::kAssumed),
                           Must("aux", "0.01", Known::kAssumed),
                           Must("noise", "", Known::kUnknown)},
                          Origin::kPaper);
  EXPECT_TRUE(comparison.comparable());
  // Listed even if both agree: the paper's own value is unknown.
  EXPECT_EQ(comparison.open, (Differences{{"tau", "1.8", "calibrated"},
                                          {"aux", "0.01", "0.01"},
                                          {"noise", "", ""}}));
}

// The paper states noise without its kind: any kind is assumed; none at all
// departs from the statement, but forbids nothing.
TEST(CompareFingerprints, NoneOfWhatIsStatedWithoutAValueDeparts) {
  const auto describe = [](const Field& ours, const Field& golden) {
    const auto comparison =
        CompareFingerprints({ours}, {golden}, Origin::kPaper);
    EXPECT_TRUE(comparison.comparable());
    return DescribeDifference(comparison.open.at(0));
  };
  const Field stated = Must("noise", "small noise", Known::kUnknown);
  EXPECT_EQ(describe(Must("noise", "\"none\""), stated),
            "small noise in the golden, \"none\" here, which departs from a "
            "stated fact");
  EXPECT_EQ(describe(Must("noise", "logit_gauss"), stated),
            "small noise in the golden, logit_gauss here");
  EXPECT_EQ(describe(Must("noise", "none"), Must("noise", "", Known::kUnknown)),
            "not known in the golden, none here");
  EXPECT_EQ(describe(Must("fallback", "none"),
                     Must("fallback", "top1", Known::kAssumed)),
            "top1 in the golden, none here");
}

TEST(CompareFingerprints, ReportsAndIgnores) {
  const auto comparison = CompareFingerprints(
      {{"gpu", "none", FieldClass::kMustMatch, Known::kStated},
       {"time", "2", FieldClass::kMustMatch, Known::kStated},
       {"more", "3", FieldClass::kReport, Known::kStated}},
      {{"gpu", "GH200", FieldClass::kReport, Known::kStated},
       {"time", "1", FieldClass::kIgnore, Known::kStated}},
      Origin::kOurRun);
  EXPECT_TRUE(comparison.comparable());
  EXPECT_TRUE(comparison.open.empty());
  EXPECT_EQ(comparison.reported, (Differences{{"gpu", "GH200", "none"}}));
  // Agreement needs no mention, but an unknown value does.
  const auto silent = CompareFingerprints(
      {{"gpu", "GH200", FieldClass::kMustMatch, Known::kStated}},
      {{"gpu", "GH200", FieldClass::kReport, Known::kAssumed},
       {"cpu", "", FieldClass::kReport, Known::kUnknown}},
      Origin::kPaper);
  EXPECT_EQ(silent.reported, (Differences{{"cpu", "", ""}}));
  EXPECT_TRUE(silent.open.empty());
  EXPECT_EQ(DescribeDifference(silent.reported[0]),
            "not known in the golden, not said here");
}

// Whichever side has the keys, and whatever their class.
TEST(CompareFingerprints, KeysThatChangeNoResultAreIgnored) {
  const std::vector<Field> some = {
      Must("training.micro_batch_sequences", "8"),
      Must("training.eval_every", "100"),
      Must("training.balance_group_sequences", "4")};
  const std::vector<Field> others = {
      Must("training.micro_batch_sequences", "4", Known::kUnknown),
      Must("training.eval_every", "0"),
      Must("training.balance_group_sequences", "4")};
  const std::vector<Field> neither = {
      Must("training.balance_group_sequences", "4")};
  for (const Origin origin : {Origin::kOurRun, Origin::kOtherImplementation}) {
    for (const auto* golden : {&some, &others, &neither}) {
      for (const auto* ours : {&some, &others, &neither}) {
        const auto comparison = CompareFingerprints(*ours, *golden, origin);
        EXPECT_TRUE(comparison.comparable());
        EXPECT_TRUE(comparison.open.empty());
      }
    }
  }
  EXPECT_FALSE(
      CompareFingerprints(some, {Must("training.balance_group_sequences", "8")},
                          Origin::kOurRun)
          .comparable());
}

// The paper's rows lack whatever it leaves out. Defaults of such keys need no
// mention, but a value that was set is an assumption of every verdict.
TEST(CompareFingerprints, WhatOthersLackIsAssumedUnlessItIsTheDefault) {
  for (const Origin origin : {Origin::kPaper, Origin::kOtherImplementation}) {
    const auto comparison = CompareFingerprints(
        {Must("router.temperature_start", "5.0"),
         Must("router.fallback", "top1"),
         Must("router.tau", "calibrated: 1.067"),
         Must("data.normalise", "none"),
         Must("router.noise_amplitude", "0.05"),
         Must("no.key", "1"),
         Must("another", "", Known::kUnknown),
         {"hardware", "a CPU", FieldClass::kReport, Known::kStated},
         {"training.seed", "7", FieldClass::kIgnore, Known::kStated}},
        {}, origin);
    EXPECT_TRUE(comparison.comparable());
    EXPECT_EQ(comparison.open,
              (Differences{{"router.fallback", "", "top1"},
                           {"router.noise_amplitude", "", "0.05"},
                           {"no.key", "", "1"}}));
    EXPECT_TRUE(comparison.reported.empty());
  }
}

// Two runs of ours are comparable whichever is the golden. Results lack a key
// that was added later if they are older than it, or if it has its default.
TEST(CompareFingerprints, WhatOneOfOurRunsLacksForbidsBothWays) {
  struct Case {
    Field field;
    Differences as_golden, as_results;  // where the other has no such field
  };
  const std::vector<Case> cases = {
      {Must("data.normalise", "\"hf_openwebtext\""),
       {{"data.normalise", "\"hf_openwebtext\"", "\"none\""}},
       {{"data.normalise", "\"none\"", "\"hf_openwebtext\""}}},
      {Must("router.init_std", "0.177"),
       {{"router.init_std", "0.177", "0.0"}},
       {{"router.init_std", "0.0", "0.177"}}},
      {Must("data.normalise", "none"), {}, {}},
      {Must("router.init_std", "0"), {}, {}},
      // Every run states these, so what the other run had is unknown.
      {Must("model.d_model", "640"),
       {{"model.d_model", "640", ""}},
       {{"model.d_model", "", "640"}}},
      {Must("no.key", "1"), {{"no.key", "1", ""}}, {{"no.key", "", "1"}}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.field.name + " = " + c.field.value);
    const auto as_golden = CompareFingerprints({}, {c.field}, Origin::kOurRun);
    EXPECT_EQ(as_golden.differences, c.as_golden);
    EXPECT_TRUE(as_golden.open.empty());
    const auto as_results = CompareFingerprints({c.field}, {}, Origin::kOurRun);
    EXPECT_EQ(as_results.differences, c.as_results);
    EXPECT_TRUE(as_results.open.empty());
  }
  // An unknown value says as little as a missing field.
  EXPECT_TRUE(CompareFingerprints({Must("no.key", "", Known::kUnknown)}, {},
                                  Origin::kOurRun)
                  .comparable());
}

}  // namespace
}  // namespace softmoe::golden

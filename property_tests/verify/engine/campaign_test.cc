// SPDX-License-Identifier: Apache-2.0
//
// A campaign accepts correct results, shrinks failures, trusts no data that
// cannot tell right from wrong, and reports all that it has found. What it
// finds of planted faults is in planted_faults_test.
#include "property_tests/verify/engine/campaign.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/engine/report.h"
#include "property_tests/verify/engine/shrink.h"

namespace softmoe::verify {
namespace {

Suite Hunt(const std::string& impl, int64_t cases = 12,
           const CasePattern& fixed = {}) {
  CampaignOptions options;
  options.ops = {"lapsum"};
  options.impls = {impl};
  options.seed = 20260120;
  options.cases = cases;
  options.fixed = fixed;
  return RunCampaign(options);
}

TEST(Campaign, AcceptsWhatIsRight) {
  const Suite found = Hunt("faulty:none:d_scores:reference_f32", 100);
  EXPECT_EQ(found.exit_code(), ExitCode::kDone) << SuiteText(found);
  const UnitStatistics& unit = found.units().begin()->second;
  EXPECT_EQ(unit.ran(), 100);
  // By then, generic data and most of the directed fills have been drawn.
  EXPECT_GE(unit.fills.size(), 8u);
  EXPECT_GT(unit.outputs.at("d_scores").utilisation, 0);
}

TEST(Campaign, OneFaultIsReportedOnce) {
  const Suite found = Hunt("faulty:sign:d_scores:reference_f32", 40);
  ASSERT_EQ(found.failures().size(), 1u) << SuiteText(found);
  EXPECT_GE(found.failures().front().count, 30);
}

// The REPRO line of such a failure passes, and the report says why.
TEST(Campaign, SaysWhichFailuresNeedEarlierCases) {
  CampaignOptions options;
  options.ops = {"lapsum"};
  options.impls = {"reference_f32"};
  options.cases = 3;
  options.first = 6;
  options.max_shrunk = 1;
  std::set<const Implementation*> used;
  options.check = [&](const Case& c, Implementation& implementation) {
    CaseResult result = CheckCase(c, implementation);
    if (!used.insert(&implementation).second) {
      result.status = Status::kFail;
      result.output = "weights";
    }
    return result;
  };
  const Suite suite = RunCampaign(options);
  ASSERT_EQ(suite.failures().size(), 1u) << SuiteText(suite);
  EXPECT_TRUE(Says(FailureText(suite.failures()[0]), "passes alone",
                   "rerun from case=6"));
  // Other failures fail alone.
  const Suite found = Hunt("faulty:sign:weights:reference_f32");
  EXPECT_FALSE(Says(FailureText(found.failures().at(0)), "passes alone"));
}

// A dimension at its smallest size is left alone, so shrinking ends by itself.
TEST(Campaign, ShrinkingEnds) {
  CampaignOptions options;
  options.ops = {"router"};
  options.impls = {"faulty:twice:d_scores:reference_f32"};
  options.cases = 1;
  const Suite found = RunCampaign(options);
  ASSERT_EQ(found.failures().size(), 1u) << SuiteText(found);
  const Failure& failure = found.failures().front();
  EXPECT_LT(failure.shrink_runs, 200);
  EXPECT_EQ(failure.smallest.c.Size("num_experts"), 2);
}

// A window may lie far inside a large size; shrinking prints readable text.
TEST(Campaign, ShrinkingStaysWithinTheWindowsOfALine) {
  CaseResult found;
  found.c = ParseCase("op=embedding vocab_size=66000 rows=1 d_model=1");
  found.status = Status::kFail;
  // Only the last row of the table is wrong.
  const Checker check = [](const Case& c, Implementation&) {
    CaseResult result;
    result.c = c;
    const Window& rows = c.sizes.at("vocab_size");
    if (rows.first + rows.count == 66000) result.status = Status::kFail;
    return result;
  };
  const auto implementation = MakeImplementation("reference_f32");
  const Shrunk smallest = Shrink(found, *implementation, check);
  EXPECT_TRUE(smallest.result.failed());
  EXPECT_EQ(ParseCase(CaseText(smallest.result.c)), smallest.result.c);
}

// A truncated result is within 1 ulp, so within the bounds of f32: only the
// bias of the errors shows it.
TEST(Campaign, TruncationShowsAsBias) {
  for (const std::string fault : {"none", "truncate"}) {
    CampaignOptions options;
    options.ops = {"rmsnorm"};
    options.impls = {"faulty:" + fault + ":y:reference_f32"};
    options.fixed = {{"fill", "generic"}, {"rows", "9"}};
    options.cases = 50;
    const Suite suite = RunCampaign(options);
    EXPECT_EQ(suite.exit_code(), ExitCode::kDone) << SuiteText(suite);
    bool biased = false;
    for (const std::string& warning : suite.Warnings()) {
      biased = biased || (warning.starts_with("BIAS") &&
                          warning.find("y: errors lean towards zero") !=
                              std::string::npos);
    }
    EXPECT_EQ(biased, fault == "truncate") << SuiteText(suite);
  }
}

// Most gates of such a router are 0 without rounding and tell nothing; the
// others do tell right from wrong.
TEST(Campaign, ARouterOfFewExpertsAmongManyIsTrusted) {
  CampaignOptions options;
  options.ops = {"router"};
  options.impls = {"reference_f32"};
  options.fixed = {{"max_active", "2"}, {"num_experts", "16"}};
  options.cases = 30;
  const Suite suite = RunCampaign(options);
  EXPECT_EQ(suite.exit_code(), ExitCode::kDone) << SuiteText(suite);
}

// A sparse router has no k_l, so only 0 is right.
TEST(Campaign, ASparseRouterIsJudged) {
  for (const std::string fault : {"none", "one_nan"}) {
    CampaignOptions options;
    options.ops = {"router"};
    options.impls = {"faulty:" + fault + ":d_mean_active:reference_f32"};
    options.fixed = {{"kind", "sparse"}};
    options.cases = 20;
    options.shrink = false;
    const Suite suite = RunCampaign(options);
    EXPECT_EQ(suite.exit_code(),
              fault == "none" ? ExitCode::kDone : ExitCode::kFailed)
        << SuiteText(suite);
  }
}

TEST(Campaign, DegenerateDataIsMistrustedAndEmptyRunsAreNoSuccess) {
  // One expert: every weight is k and no gradient flows.
  const Suite found =
      Hunt("reference_f32", 5,
           {{"rows", "3"}, {"num_experts", "1"}, {"fill", "generic"}});
  EXPECT_EQ(found.exit_code(), ExitCode::kMistrusted) << SuiteText(found);
  EXPECT_TRUE(Says(SuiteJUnit(found), "failures=\"0\" errors=\"1\"",
                   "<error type=\"MISTRUSTED\"", "none of which can tell"));
  EXPECT_EQ(Suite().exit_code(), ExitCode::kInconclusive);
}

// Beside operations with elements, an operation without any is no error.
TEST(Campaign, NothingComparedIsNoSuccess) {
  CampaignOptions options;
  options.ops = {"add"};
  options.impls = {"reference_f32"};
  options.fixed = {{"size", "0"}};
  options.cases = 2;
  Suite suite = RunCampaign(options);
  EXPECT_EQ(suite.units().begin()->second.Count(Status::kPass), 2);
  EXPECT_EQ(suite.exit_code(), ExitCode::kInconclusive);
  EXPECT_TRUE(Says(SuiteText(suite),
                   "nothing compared: no output of add on "
                   "reference_f32 has elements in 2 cases"));
  EXPECT_TRUE(Says(SuiteJUnit(suite), "<error type=\"INCONCLUSIVE\""));
  const auto reference = MakeImplementation("reference_f32");
  suite.Add(CheckCase(
      ParseCase("op=add size=9 fill=generic case=1", reference->name()),
      *reference));
  suite.Add(CheckCase(ParseCase("op=lapsum rows=9 num_experts=5 fill=generic",
                                reference->name()),
                      *reference));
  EXPECT_EQ(suite.exit_code(), ExitCode::kDone) << SuiteText(suite);
  EXPECT_TRUE(Says(SuiteJUnit(suite), "errors=\"0\""));
}

TEST(Campaign, ReportsSayTheSame) {
  const Suite found = Hunt("faulty:sign:d_scores:reference_f32", 3);
  const nlohmann::ordered_json json = SuiteJson(found);
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["stopped"], false);
  EXPECT_TRUE(json["ended_early"].is_null() && json["in_flight"].is_null());
  EXPECT_EQ(json["units"][0]["ran"], 3);
  const std::string repro = json["failures"][0]["repro"];
  EXPECT_EQ(repro, ReproLine(found.failures()[0].smallest));
  const std::string junit = SuiteJUnit(found);
  EXPECT_TRUE(Says(junit, "failures=\"1\"", "REPRO v7 verify run op=lapsum"));
  EXPECT_TRUE(Says(SuiteText(found), repro));
}

// Nothing that was found is lost when something ends a campaign early.
TEST(Campaign, AnErrorLeavesWhatWasFound) {
  for (const bool log_fails : {true, false}) {
    for (const std::string fault : {"sign", "none"}) {
      CampaignOptions options;
      options.ops = {"lapsum"};
      options.impls = {"faulty:" + fault + ":d_scores:reference_f32"};
      options.cases = 5;
      int64_t results = 0;
      const EnvironmentError full("the disk is full");
      options.on_result = [&](const CaseResult&) {
        if (++results == 1 && log_fails) throw full;
      };
      options.check = [&](const Case& c, Implementation& implementation) {
        if (c.number == 1) throw full;
        return CheckCase(c, implementation);
      };
      options.max_shrunk = 0;
      Suite suite;
      EXPECT_THROW(RunCampaign(options, &suite), EnvironmentError);
      const bool failed = fault == "sign";
      EXPECT_FALSE(suite.stopped());
      EXPECT_EQ(suite.cases(), 1);
      EXPECT_EQ(suite.failures().size(), failed ? 1u : 0u);
      EXPECT_EQ(suite.exit_code(),
                failed ? ExitCode::kFailed : ExitCode::kEnvironment);
      EXPECT_TRUE(Says(SuiteText(suite), "ended early: the disk is full",
                       failed ? "FAIL: 1 cases" : "ERROR: 1 cases"));
      const nlohmann::ordered_json json = SuiteJson(suite);
      EXPECT_EQ(json["stopped"], false);
      EXPECT_EQ(json["ended_early"], "the disk is full");
      EXPECT_EQ(json["in_flight"].is_null(), log_fails);
      EXPECT_TRUE(Says(SuiteJUnit(suite), "tests=\"2\"", "errors=\"1\"",
                       "<error type=\"ERROR\" message=\"the disk is full\""));
    }
  }
}

// Acts as impl=cuda does once a case has cost this process its device
// (implementations/device_watch.h).
class LosesItsDevice : public Implementation {
 public:
  LosesItsDevice(Implementation& base, bool* lost)
      : base_(base), lost_(*lost) {}
  std::string name() const override { return base_.name(); }
  std::string WhyUnsupported(const Operation& op, Dtype dtype) const override {
    return base_.WhyUnsupported(op, dtype);
  }
  TensorMap Run(const Operation& op, const Case& c, const TensorMap& inputs,
                int schedule) override {
    if (lost_) throw EnvironmentError("the device is gone");
    lost_ = c.number == 2;
    if (lost_) throw NumericsError("an illegal address");
    return base_.Run(op, c, inputs, schedule);
  }

 private:
  Implementation& base_;
  bool& lost_;
};

// Neither a smaller case nor a later one is taken for a failure.
TEST(Campaign, OneCaseFailsOfThoseThatHaveNoDevice) {
  for (const bool shrink : {true, false}) {
    CampaignOptions options;
    options.ops = {"add"};
    options.impls = {"reference_f32"};
    options.cases = 5;
    options.shrink = shrink;
    int reported = 0;
    options.on_failure = [&](const Failure& failure) {
      ++reported;
      EXPECT_EQ(failure.first.c.number, 2);
      // While shrinking, another error is in flight: this must not replace it.
      if (shrink) throw DataError("the failure is not kept");
    };
    bool lost = false;
    options.check = [&](const Case& c, Implementation& implementation) {
      LosesItsDevice on_device(implementation, &lost);
      return CheckCase(c, on_device);
    };
    Suite suite;
    EXPECT_THROW(RunCampaign(options, &suite), EnvironmentError);
    EXPECT_EQ(suite.cases(), 3);
    EXPECT_EQ(reported, 1);
    ASSERT_EQ(suite.failures().size(), 1u) << SuiteText(suite);
    const Failure& failure = suite.failures().front();
    EXPECT_EQ(failure.count, 1);
    EXPECT_EQ(failure.smallest.c.number, 2);
    EXPECT_EQ(failure.smallest.c, failure.first.c);
    EXPECT_EQ(suite.exit_code(), ExitCode::kFailed);
    EXPECT_TRUE(Says(SuiteText(suite), "ended early: the device is gone",
                     "FAIL: 3 cases, 1 different failure\n"));
    // The case that had no device is no failure.
    EXPECT_EQ(SuiteJson(suite)["in_flight"].is_null(), shrink);
  }
}

TEST(Campaign, RefusesNamesBeforeAnythingRuns) {
  EXPECT_THROW(StripRepro("REPRO v2 verify run op=lapsum"), ConfigError);
  EXPECT_THROW(Hunt("cpu:v5"), ConfigError);
  EXPECT_THROW(Hunt("gpu"), ConfigError);
  EXPECT_THROW(Hunt("faulty:sing:d_scores:cpu:v3"), ConfigError);
  EXPECT_THROW(Hunt("faulty:sign"), ConfigError);
  EXPECT_THROW(Hunt("reference_f32:x"), ConfigError);
  EXPECT_THROW(Hunt("reference_f32", 1, {{"rowz", "3"}}), ConfigError);
}

TEST(Campaign, FaultsOfOutputsThatNobodyHasAreRefused) {
  EXPECT_TRUE(Says(MessageOf<ConfigError>([] {
                     MakeImplementation("faulty:zero:wieghts:cpu:v3");
                   }),
                   "no operation has an output 'wieghts'",
                   "did you mean 'weights'?"));
}

}  // namespace
}  // namespace softmoe::verify

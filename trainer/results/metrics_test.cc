// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace softmoe::trainer {
namespace {

// The content of a list, and the bytes of its record that it names.
template <typename Record>
class Listed {
 public:
  template <typename Value>
  void operator()(const Metric& metric, Value Record::*member) {
    metrics.push_back(&metric);
    const auto* at = reinterpret_cast<const char*>(&(record_.*member));
    places.insert(at - reinterpret_cast<const char*>(&record_));
  }
  std::vector<const Metric*> metrics;
  std::set<std::ptrdiff_t> places;

 private:
  const Record record_ = {};
};

struct List {
  std::string record;
  std::vector<const Metric*> metrics;
  size_t distinct_members;
};

template <typename Record, typename Visit>
List ListOf(const char* name, Visit&& visit) {
  Listed<Record> listed;
  visit(listed);
  return {name, listed.metrics, listed.places.size()};
}

std::vector<List> Lists() {
  return {
      ListOf<StepRecord>("StepRecord",
                         [](auto& visit) { VisitStepMetrics(visit); }),
      ListOf<Validation>("Validation",
                         [](auto& visit) { VisitValidationMetrics(visit); }),
      ListOf<EvaluationRecord>(
          "EvaluationRecord",
          [](auto& visit) { VisitEvaluationMetrics(visit); }),
      ListOf<TrainState>(
          "TrainState",
          [](auto& visit) { VisitCarriedMetrics<TrainState>(visit); }),
      ListOf<RouterHealth>("RouterHealth",
                           [](auto& visit) { VisitHealthMetrics(visit); }),
      ListOf<MeasuredAnswers>("MeasuredAnswers",
                              [](auto& visit) { VisitAnswerMetrics(visit); }),
      ListOf<RunResult>("RunResult",
                        [](auto& visit) { VisitRunMetrics(visit); }),
  };
}

// If a field were left out, metrics.h would not compile.
TEST(Metrics, NoFieldIsListedTwice) {
  for (const List& list : Lists()) {
    EXPECT_FALSE(list.metrics.empty()) << list.record;
    EXPECT_EQ(list.distinct_members, list.metrics.size()) << list.record;
  }
}

TEST(Metrics, NamesTellApartWhatARecordHolds) {
  for (const List& list : Lists()) {
    std::set<std::string> names;
    for (const Metric* metric : list.metrics) {
      EXPECT_TRUE(names.insert(metric->name).second)
          << list.record << ": " << metric->name;
    }
  }
}

TEST(Metrics, EveryMetricSaysWhatItIs) {
  for (const List& list : Lists()) {
    for (const Metric* metric : list.metrics) {
      const std::string name = metric->name;
      EXPECT_TRUE(std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::islower(c) || std::isdigit(c) || c == '_';
      })) << name;
      EXPECT_STRNE(metric->title, "") << name;
      EXPECT_STRNE(metric->unit, "") << name;
      const std::string definition = metric->definition;
      ASSERT_FALSE(definition.empty()) << name;
      EXPECT_NE(definition.back(), '.') << name;
      EXPECT_FALSE(ShownNumber(*metric, 1).empty()) << name;
    }
  }
}

TEST(Metrics, NumbersAreShownInTheUnitOfPeople) {
  EXPECT_EQ(ShownNumber(metrics::kZeroActiveFraction, 0.334), "33.4");
  EXPECT_EQ(Shown(metrics::kZeroActiveFraction, 0.334), "33.4%");
  EXPECT_EQ(Titled(metrics::kZeroActiveFraction, 0.334), "zero AE 33.4%");
  EXPECT_EQ(Titled(metrics::kLoss, 3.41268), "loss 3.4127");
  EXPECT_EQ(Shown(metrics::kActiveParameters, 298432), "0.298M");
  EXPECT_EQ(Titled(metrics::kLearningRate, 9.8e-4), "lr 9.8e-04");
  EXPECT_EQ(ReportLine(metrics::kLoss, 3.41268),
            "loss                  3.4127 nat/token\n");
  EXPECT_EQ(ReportLine(metrics::kZeroActiveFraction, 0.334),
            "zero AE               33.4%\n");
  EXPECT_EQ(ReportLine(metrics::kLoadCv, 0.25),
            "load sd/mean          0.2500\n");
  EXPECT_EQ(ReportLine(metrics::kRunSeconds, 12.34),
            "time                  12.3 s\n");
  EXPECT_EQ(Shown(metrics::kStepSeconds, 0.3852), "385 ms");
}

}  // namespace
}  // namespace softmoe::trainer

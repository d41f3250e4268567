// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/run_digest.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "core/files/sha256.h"
#include "trainer/results/metrics.h"

namespace softmoe::trainer {
namespace {

// Digests lines of text "NAME: BITS BITS ...", which are the same on every
// machine and keep a list apart from its neighbors.
class Digest {
 public:
  void Line(std::string_view text) { lines_.append(text).push_back('\n'); }

  template <typename Value>
  void Number(const char* name, const Value& value) {
    lines_ += fmt::format("{}:", name);
    Add(value);
    lines_ += '\n';
  }

  // Digests everything in `record` that Visit lists, except clocks and the
  // metrics that are not in the digests of older records.
  template <typename Record>
  auto Of(const Record& record) {
    return [this, &record](const Metric& metric, auto member) {
      if (metric.clock || metric.later) return;
      Number(metric.name, record.*member);
    };
  }

  void Tasks(const std::vector<TaskResult>& tasks) {
    for (const TaskResult& task : tasks) {
      Line(fmt::format("task {} {}", task.name, task.sha256));
      for (const MeasuredAnswers& answers : task.measures) {
        VisitAnswerMetrics(Of(answers));
      }
      Number("right",
             std::vector<int64_t>(task.right.begin(), task.right.end()));
    }
  }

  std::string Finish() const { return Sha256Hex(lines_); }

 private:
  void Add(double value) {
    fmt::format_to(std::back_inserter(lines_), " {:016x}",
                   std::bit_cast<uint64_t>(value));
  }
  void Add(int64_t value) {
    fmt::format_to(std::back_inserter(lines_), " {}", value);
  }
  void Add(const std::optional<double>& value) {
    if (value) Add(*value);
  }
  template <typename Value>
  void Add(const std::vector<Value>& values) {
    lines_ += " [";
    for (const Value& value : values) Add(value);
    lines_ += " ]";
  }

  std::string lines_;
};

template <typename Record, typename Visit>
void ForPairs(const std::vector<Record>& there, const std::vector<Record>& here,
              Visit visit) {
  const size_t size = std::min(there.size(), here.size());
  for (size_t i = 0; i < size; ++i) visit(there[i], here[i]);
}

// Compares records, number by number.
class Comparison {
 public:
  explicit Comparison(bool (*which)(const Metric&)) : which_(which) {}

  // Compares everything that Visit lists.
  template <typename Record>
  auto Of(const Record& there, const Record& here) {
    return [this, &there, &here](const Metric& metric, auto member) {
      if (!which_(metric)) return;
      static const Record lacks;
      same_ &= there.*member == lacks.*member || there.*member == here.*member;
    };
  }

  // Compares the steps that both have; a record has fewer than the run.
  void Steps(const std::vector<StepRecord>& there,
             const std::vector<StepRecord>& here) {
    for (const StepRecord& step : there) {
      const auto other =
          std::ranges::lower_bound(here, step.step, {}, &StepRecord::step);
      if (other == here.end() || other->step != step.step) continue;
      VisitStepMetrics(Of(step, *other));
    }
  }

  void Evaluations(const FinalEvaluations& there,
                   const FinalEvaluations& here) {
    ForPairs(there.inference_tau, here.inference_tau,
             [this](const InferenceTau& a, const InferenceTau& b) {
               VisitValidationMetrics(Of(a.validation, b.validation));
               Tasks(a.tasks, b.tasks);
             });
    ForPairs(there.router_health, here.router_health,
             [this](const RouterHealth& a, const RouterHealth& b) {
               VisitHealthMetrics(Of(a, b));
             });
    Tasks(there.tasks, here.tasks);
  }

  bool same() const { return same_; }

 private:
  void Tasks(const std::vector<TaskResult>& there,
             const std::vector<TaskResult>& here) {
    ForPairs(there, here, [this](const TaskResult& a, const TaskResult& b) {
      ForPairs(a.measures, b.measures,
               [this](const MeasuredAnswers& c, const MeasuredAnswers& d) {
                 VisitAnswerMetrics(Of(c, d));
               });
    });
  }

  bool (*which_)(const Metric&);
  bool same_ = true;
};

}  // namespace

std::string TrainingDigest(const RunResult& result) {
  Digest digest;
  VisitRunMetrics(digest.Of(result));
  for (const StepRecord& step : result.steps) {
    digest.Number("step", step.step);
    VisitStepMetrics(digest.Of(step));
  }
  digest.Line("final");
  VisitValidationMetrics(digest.Of(result.final_validation));
  digest.Line("schedule");
  VisitValidationMetrics(digest.Of(result.at_schedule_temperature));
  return digest.Finish();
}

std::string EvaluationsDigest(const FinalEvaluations& evaluations) {
  Digest digest;
  for (const InferenceTau& at : evaluations.inference_tau) {
    digest.Number(metrics::kTauFactor.name, at.factor);
    digest.Number(metrics::kTau.name, at.tau);
    VisitValidationMetrics(digest.Of(at.validation));
    digest.Tasks(at.tasks);
  }
  for (const RouterHealth& layer : evaluations.router_health) {
    digest.Line("layer");
    VisitHealthMetrics(digest.Of(layer));
  }
  digest.Tasks(evaluations.tasks);
  return digest.Finish();
}

bool SameMetrics(const RunResult& there, const RunResult& here,
                 bool (*which)(const Metric&)) {
  Comparison comparison(which);
  VisitRunMetrics(comparison.Of(there, here));
  comparison.Steps(there.steps, here.steps);
  VisitValidationMetrics(
      comparison.Of(there.final_validation, here.final_validation));
  VisitValidationMetrics(comparison.Of(there.at_schedule_temperature,
                                       here.at_schedule_temperature));
  if (there.final_evaluations && here.final_evaluations) {
    comparison.Evaluations(*there.final_evaluations, *here.final_evaluations);
  }
  return comparison.same();
}

}  // namespace softmoe::trainer

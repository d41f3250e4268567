// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/run_result_hdf5.h"

#include <fmt/format.h>

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/config/config_toml.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "trainer/identity/identity_attributes.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_hdf5.h"

namespace softmoe::trainer {
namespace {

struct ResultFlag {
  const char* name;
  bool RunResult::*member;
};
constexpr ResultFlag kResultFlags[] = {
    {"tau_calibrated", &RunResult::tau_calibrated},
    {"resumed", &RunResult::resumed},
};

template <typename Value>
bool IsHistogram(Value Validation::*member) {
  if constexpr (std::is_same_v<Value, std::vector<std::vector<int64_t>>>) {
    return member == &Validation::active_histogram;
  }
  return false;
}

// The path of the object `name` in a group, which may be the root.
std::string In(const std::string& group, const std::string& name) {
  return (group == "/" ? "" : group) + "/" + name;
}

constexpr char kFinalValidation[] = "validation/final";
constexpr char kScheduleValidation[] = "validation/schedule";
constexpr char kEvaluations[] = "final_evaluations";
constexpr char kInferenceTau[] = "inference_tau";
constexpr char kRouterHealth[] = "router_health";

void WriteValidation(const Validation& validation, const std::string& group,
                     Hdf5Writer& file) {
  file.CreateGroup(group);
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    if (IsHistogram(member) && validation.active_histogram.empty()) return;
    WriteMetric(metric, validation.*member, group, file);
  });
}

// `histogram`: whether one must be present.
Validation ReadValidation(const Hdf5Reader& file, const std::string& group,
                          const ModelConfig& model, bool histogram = true) {
  Validation validation;
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    const bool optional = !histogram && IsHistogram(member);
    if (optional && !file.Has(group + "/" + metric.name)) return;
    ReadMetric(file, group, metric, model, validation.*member);
  });
  return validation;
}

// Columns of one number for each layer.
class HealthWriter {
 public:
  HealthWriter(const std::vector<RouterHealth>& layers, std::string group,
               Hdf5Writer& file)
      : layers_(layers), group_(std::move(group)), file_(file) {
    file_.CreateGroup(group_);
  }

  void operator()(const Metric& metric, double RouterHealth::*member) {
    std::vector<double> values;
    for (const RouterHealth& layer : layers_) values.push_back(layer.*member);
    WriteMetric(metric, values, group_, file_);
  }
  void operator()(const Metric& metric, int64_t RouterHealth::*member) {
    std::vector<int64_t> values;
    for (const RouterHealth& layer : layers_) values.push_back(layer.*member);
    WriteMetric(metric, values, group_, file_);
  }
  void operator()(const Metric& metric,
                  std::optional<double> RouterHealth::*member) {
    std::vector<double> values;
    for (const RouterHealth& layer : layers_) {
      if (layer.*member) values.push_back(*(layer.*member));
    }
    if (!values.empty()) WriteMetric(metric, values, group_, file_);
  }

 private:
  const std::vector<RouterHealth>& layers_;
  const std::string group_;
  Hdf5Writer& file_;
};

class HealthReader {
 public:
  HealthReader(const Hdf5Reader& file, std::string group, const Config& config)
      : file_(file),
        group_(std::move(group)),
        config_(config),
        layers_(static_cast<size_t>(config.model.num_layers)) {}

  void operator()(const Metric& metric, double RouterHealth::*member) {
    Read<double>(metric, member);
  }
  void operator()(const Metric& metric, int64_t RouterHealth::*member) {
    Read<int64_t>(metric, member);
  }
  // Metrics that only soft routers have.
  void operator()(const Metric& metric,
                  std::optional<double> RouterHealth::*member) {
    if (!TraitsOf(config_).lapsum) return;
    Read<double>(metric, member);
  }

  const std::vector<RouterHealth>& layers() const { return layers_; }

 private:
  template <typename Value, typename Member>
  void Read(const Metric& metric, Member member) {
    std::vector<Value> values;
    ReadMetric(file_, group_, metric, config_.model, values);
    for (size_t l = 0; l < layers_.size(); ++l) {
      if constexpr (std::is_same_v<Value, int64_t>) {
        RequireExperts(metric, l, values[l]);
      }
      layers_[l].*member = values[l];
    }
  }

  void RequireExperts(const Metric& metric, size_t layer, int64_t count) {
    if (count >= 0 && count <= config_.model.num_experts) return;
    throw DataError(fmt::format(
        "{}: {}/{} is {} in layer {}, of {} experts; delete the file and run "
        "the row again",
        file_.path().string(), group_, metric.name, count, layer,
        config_.model.num_experts));
  }

  const Hdf5Reader& file_;
  const std::string group_;
  const Config& config_;
  std::vector<RouterHealth> layers_;
};

void WriteEvaluations(const FinalEvaluations& evaluations,
                      const std::string& parent, Hdf5Writer& file) {
  file.CreateGroup(parent);
  file.WriteAttribute(parent, "code_version", evaluations.code_version);
  for (size_t i = 0; i < evaluations.inference_tau.size(); ++i) {
    const InferenceTau& at = evaluations.inference_tau[i];
    const std::string group = fmt::format("{}/{}/{}", parent, kInferenceTau, i);
    WriteValidation(at.validation, group, file);
    WriteMetric(metrics::kTauFactor, at.factor, group, file);
    WriteMetric(metrics::kTau, at.tau, group, file);
  }
  if (!evaluations.router_health.empty()) {
    VisitHealthMetrics(HealthWriter(evaluations.router_health,
                                    In(parent, kRouterHealth), file));
  }
}

FinalEvaluations ReadEvaluations(const Hdf5Reader& file,
                                 const std::string& parent,
                                 const Config& config) {
  FinalEvaluations evaluations;
  evaluations.code_version = file.ReadString(parent, "code_version");
  for (size_t i = 0;; ++i) {
    const std::string group = fmt::format("{}/{}/{}", parent, kInferenceTau, i);
    if (!file.Has(group)) break;
    InferenceTau at;
    ReadMetric(file, group, metrics::kTauFactor, config.model, at.factor);
    ReadMetric(file, group, metrics::kTau, config.model, at.tau);
    at.validation =
        ReadValidation(file, group, config.model, /*histogram=*/false);
    evaluations.inference_tau.push_back(std::move(at));
  }
  if (file.Has(In(parent, kRouterHealth))) {
    HealthReader reader(file, In(parent, kRouterHealth), config);
    VisitHealthMetrics(reader);
    evaluations.router_health = reader.layers();
  }
  return evaluations;
}

}  // namespace

void WriteResultGroup(const RunResult& result, const std::string& group,
                      Hdf5Writer& file) {
  if (group != "/") file.CreateGroup(group);  // that is always there
  file.WriteAttribute(group, "config", ConfigToToml(result.config));
  WriteIdentity(result.identity, group, file);
  file.WriteAttribute(group, "code_version", result.code_version);
  VisitRunMetrics([&](const Metric& metric, auto member) {
    WriteMetric(metric, result.*member, group, file);
  });
  for (const ResultFlag& field : kResultFlags) {
    file.WriteAttribute(group, field.name, int64_t{result.*field.member});
  }
  WriteValidation(result.final_validation, In(group, kFinalValidation), file);
  WriteValidation(result.at_schedule_temperature,
                  In(group, kScheduleValidation), file);
  if (result.final_evaluations) {
    WriteEvaluations(*result.final_evaluations, In(group, kEvaluations), file);
  }
}

RunResult ReadResultGroup(const Hdf5Reader& file, const std::string& group) {
  RunResult result;
  result.config = ParseConfig(file.ReadString(group, "config"),
                              file.path().string() + ":config");
  const ModelConfig& model = result.config.model;
  result.code_version = file.ReadString(group, "code_version");
  VisitRunMetrics([&](const Metric& metric, auto member) {
    ReadMetric(file, group, metric, model, result.*member);
  });
  for (const ResultFlag& field : kResultFlags) {
    result.*field.member = file.ReadInt(group, field.name) != 0;
  }
  Config given = result.config;
  if (result.tau_calibrated) given.router.tau.reset();
  result.identity = ReadIdentity(file, group, given);
  result.final_validation =
      ReadValidation(file, In(group, kFinalValidation), model);
  result.at_schedule_temperature =
      ReadValidation(file, In(group, kScheduleValidation), model);
  if (file.Has(In(group, kEvaluations))) {
    result.final_evaluations =
        ReadEvaluations(file, In(group, kEvaluations), result.config);
  }
  return result;
}

}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
//
// run_result.cc - result.h5: kind "row-result".
//
//   /            attrs: config (TOML), config_hash, ..., isa, and the numbers
//                of metrics.h: VisitRunMetrics
//   /allocation  f64 [num_layers]
//   /steps/*     see step_table.h
//   /validation/{final,schedule}  VisitValidationMetrics: numbers are attrs,
//       layer_active_experts f64 [L], active_histogram i64 [L, E+1],
//       tokens_per_expert i64 [L, E]
//   /final_evaluations            where a plan asked; attrs: code_version
//     inference_tau/{0,1,...}     attrs: factor, tau; else as a validation, but
//         active_histogram only where asked for
//     router_health/*             [L], i64 dead_experts, f64 the rest;
//         truncated_mass of soft routers only
//
// Version 2 had other names for some (Metric::name_in_version_2); it is read.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/config_toml.h"
#include "core/errors.h"
#include "core/hdf5_file.h"
#include "trainer/identity_attributes.h"
#include "trainer/metrics.h"
#include "trainer/metrics_hdf5.h"
#include "trainer/step_table.h"
#include "trainer/trainer.h"

namespace softmoe::trainer {
namespace {

const Hdf5Kind kResultKind{
    .name = "row-result", .version = 3, .oldest_version = 2};

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

constexpr char kEvaluations[] = "/final_evaluations";
constexpr char kInferenceTau[] = "/final_evaluations/inference_tau";
constexpr char kRouterHealth[] = "/final_evaluations/router_health";

void WriteValidation(const Validation& validation, const std::string& group,
                     Hdf5Writer& file) {
  file.CreateGroup(group);
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    if (IsHistogram(member) && validation.active_histogram.empty()) return;
    WriteMetric(metric, validation.*member, group, file);
  });
}

// `histogram`: whether there must be one.
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
  HealthWriter(const std::vector<RouterHealth>& layers, Hdf5Writer& file)
      : layers_(layers), file_(file) {
    file_.CreateGroup(kRouterHealth);
  }

  void operator()(const Metric& metric, double RouterHealth::*member) {
    std::vector<double> values;
    for (const RouterHealth& layer : layers_) values.push_back(layer.*member);
    WriteMetric(metric, values, kRouterHealth, file_);
  }
  void operator()(const Metric& metric, int64_t RouterHealth::*member) {
    std::vector<int64_t> values;
    for (const RouterHealth& layer : layers_) values.push_back(layer.*member);
    WriteMetric(metric, values, kRouterHealth, file_);
  }
  void operator()(const Metric& metric,
                  std::optional<double> RouterHealth::*member) {
    std::vector<double> values;
    for (const RouterHealth& layer : layers_) {
      if (layer.*member) values.push_back(*(layer.*member));
    }
    if (!values.empty()) WriteMetric(metric, values, kRouterHealth, file_);
  }

 private:
  const std::vector<RouterHealth>& layers_;
  Hdf5Writer& file_;
};

class HealthReader {
 public:
  HealthReader(const Hdf5Reader& file, const Config& config)
      : file_(file),
        config_(config),
        layers_(static_cast<size_t>(config.model.num_layers)) {}

  void operator()(const Metric& metric, double RouterHealth::*member) {
    Read<double>(metric, member);
  }
  void operator()(const Metric& metric, int64_t RouterHealth::*member) {
    Read<int64_t>(metric, member);
  }
  // Of soft routers only.
  void operator()(const Metric& metric,
                  std::optional<double> RouterHealth::*member) {
    if (config_.router.kind == RouterKind::kSparse) return;
    Read<double>(metric, member);
  }

  const std::vector<RouterHealth>& layers() const { return layers_; }

 private:
  template <typename Value, typename Member>
  void Read(const Metric& metric, Member member) {
    std::vector<Value> values;
    ReadMetric(file_, kRouterHealth, metric, config_.model, values);
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
        file_.path().string(), kRouterHealth, metric.name, count, layer,
        config_.model.num_experts));
  }

  const Hdf5Reader& file_;
  const Config& config_;
  std::vector<RouterHealth> layers_;
};

void WriteEvaluations(const FinalEvaluations& evaluations, Hdf5Writer& file) {
  file.CreateGroup(kEvaluations);
  file.WriteAttribute(kEvaluations, "code_version", evaluations.code_version);
  for (size_t i = 0; i < evaluations.inference_tau.size(); ++i) {
    const InferenceTau& at = evaluations.inference_tau[i];
    const std::string group = fmt::format("{}/{}", kInferenceTau, i);
    WriteValidation(at.validation, group, file);
    WriteMetric(metrics::kTauFactor, at.factor, group, file);
    WriteMetric(metrics::kTau, at.tau, group, file);
  }
  if (!evaluations.router_health.empty()) {
    VisitHealthMetrics(HealthWriter(evaluations.router_health, file));
  }
}

FinalEvaluations ReadEvaluations(const Hdf5Reader& file, const Config& config) {
  FinalEvaluations evaluations;
  evaluations.code_version = file.ReadString(kEvaluations, "code_version");
  for (size_t i = 0;; ++i) {
    const std::string group = fmt::format("{}/{}", kInferenceTau, i);
    if (!file.Has(group)) break;
    InferenceTau at;
    ReadMetric(file, group, metrics::kTauFactor, config.model, at.factor);
    ReadMetric(file, group, metrics::kTau, config.model, at.tau);
    at.validation =
        ReadValidation(file, group, config.model, /*histogram=*/false);
    evaluations.inference_tau.push_back(std::move(at));
  }
  if (file.Has(kRouterHealth)) {
    HealthReader reader(file, config);
    VisitHealthMetrics(reader);
    evaluations.router_health = reader.layers();
  }
  return evaluations;
}

}  // namespace

void WriteRunResult(const RunResult& result,
                    const std::filesystem::path& path) {
  Hdf5Writer file(path, kResultKind);
  file.WriteAttribute("/", "config", ConfigToToml(result.config));
  WriteIdentity(result.identity, file);
  file.WriteAttribute("/", "code_version", result.code_version);
  VisitRunMetrics([&](const Metric& metric, auto member) {
    WriteMetric(metric, result.*member, "/", file);
  });
  for (const ResultFlag& field : kResultFlags) {
    file.WriteAttribute("/", field.name, int64_t{result.*field.member});
  }
  WriteStepTable(result.steps, result.config.model.num_layers, "/steps", file);
  WriteValidation(result.final_validation, "/validation/final", file);
  WriteValidation(result.at_schedule_temperature, "/validation/schedule", file);
  if (result.final_evaluations) {
    WriteEvaluations(*result.final_evaluations, file);
  }
  file.Commit();
}

RunResult ReadRunResult(const std::filesystem::path& path) {
  const Hdf5Reader file(path, kResultKind);
  RunResult result;
  result.config =
      ParseConfig(file.ReadString("/", "config"), path.string() + ":config");
  result.code_version = file.ReadString("/", "code_version");
  VisitRunMetrics([&](const Metric& metric, auto member) {
    ReadMetric(file, "/", metric, result.config.model, result.*member);
  });
  for (const ResultFlag& field : kResultFlags) {
    result.*field.member = file.ReadInt("/", field.name) != 0;
  }
  Config given = result.config;
  if (result.tau_calibrated) given.router.tau.reset();
  result.identity = ReadIdentity(file, given);
  const ModelConfig& model = result.config.model;
  result.steps = ReadStepTable(file, "/steps", model.num_layers);
  if (static_cast<int64_t>(result.steps.size()) !=
      result.config.training.steps) {
    throw DataError(fmt::format(
        "{}: holds {} steps, its configuration says {}; delete the file and "
        "run the row again: a checkpoint beside it saves the training",
        path.string(), result.steps.size(), result.config.training.steps));
  }
  result.final_validation = ReadValidation(file, "/validation/final", model);
  result.at_schedule_temperature =
      ReadValidation(file, "/validation/schedule", model);
  if (file.Has(kEvaluations)) {
    result.final_evaluations = ReadEvaluations(file, result.config);
  }
  return result;
}

}  // namespace softmoe::trainer

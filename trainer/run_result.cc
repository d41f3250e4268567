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
//     inference_tau/{0,1,...}     attrs: VisitInferenceTauMetrics; else as a
//         validation, but active_histogram only where asked for
//     router_health/*             f64 [L], VisitRouterHealthMetrics;
//         truncated_mass of soft routers only
//
// Version 2 had other names for some (Metric::name_in_version_2); it is read.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/config_toml.h"
#include "core/errors.h"
#include "core/hdf5_file.h"
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

struct ResultText {
  const char* name;
  std::string RunResult::*member;
};
constexpr ResultText kResultTexts[] = {
    {"config_hash", &RunResult::config_hash},
    {"data_sha256", &RunResult::data_sha256},
    {"tokenizer_sha256", &RunResult::tokenizer_sha256},
    {"isa", &RunResult::isa},
    {"code_version", &RunResult::code_version},
};

// Files of before it was recorded lack this one.
constexpr char kIndexHash[] = "index_sha256";

constexpr char kEvaluations[] = "/final_evaluations";
constexpr char kInferenceTau[] = "/final_evaluations/inference_tau";
constexpr char kRouterHealth[] = "/final_evaluations/router_health";

// The one list that a validation with another tau need not have.
bool IsHistogram(const Metric& metric) {
  return &metric == &metrics::kActiveHistogram;
}

void WriteValidation(const Validation& validation, const std::string& group,
                     Hdf5Writer& file) {
  file.CreateGroup(group);
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    if (IsHistogram(metric) && validation.active_histogram.empty()) return;
    WriteMetric(metric, validation.*member, group, file);
  });
}

// `histogram`: whether there must be one.
Validation ReadValidation(const Hdf5Reader& file, const std::string& group,
                          const ModelConfig& model, bool histogram = true) {
  Validation validation;
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    if (!histogram && IsHistogram(metric) &&
        !file.Has(group + "/" + metric.name)) {
      return;
    }
    ReadMetric(file, group, metric, model, validation.*member);
  });
  return validation;
}

// A column of each number, [num_layers].
void WriteRouterHealth(const std::vector<RouterHealth>& layers,
                       Hdf5Writer& file) {
  file.CreateGroup(kRouterHealth);
  VisitRouterHealthMetrics([&](const Metric& metric, auto member) {
    std::vector<double> values;
    for (const RouterHealth& layer : layers) {
      const std::optional<double> value = AsNumber(layer.*member);
      if (value) values.push_back(*value);
    }
    if (values.empty()) return;
    WriteColumn(metric, values, {static_cast<int64_t>(values.size())},
                kRouterHealth, file);
  });
}

std::vector<RouterHealth> ReadRouterHealth(const Hdf5Reader& file,
                                           const Config& config) {
  const ModelConfig& model = config.model;
  std::vector<RouterHealth> layers(static_cast<size_t>(model.num_layers));
  VisitRouterHealthMetrics([&](const Metric& metric, auto member) {
    if (&metric == &metrics::kTruncatedMass &&
        config.router.kind == RouterKind::kSparse) {
      return;
    }
    const std::vector<double> values =
        ReadColumn(file, kRouterHealth, metric, {model.num_layers});
    for (size_t l = 0; l < layers.size(); ++l) {
      using Value = std::remove_reference_t<decltype(layers[l].*member)>;
      if constexpr (std::is_same_v<Value, int64_t>) {
        if (!(values[l] >= 0 &&
              values[l] <= static_cast<double>(model.num_experts))) {
          throw DataError(
              fmt::format("{}: {}/{} is {} in layer {}, of {} experts; delete "
                          "the file and run the row again",
                          file.path().string(), kRouterHealth, metric.name,
                          values[l], l, model.num_experts));
        }
      }
      layers[l].*member = static_cast<Value>(values[l]);
    }
  });
  return layers;
}

void WriteEvaluations(const FinalEvaluations& evaluations, Hdf5Writer& file) {
  file.CreateGroup(kEvaluations);
  file.WriteAttribute(kEvaluations, "code_version", evaluations.code_version);
  for (size_t i = 0; i < evaluations.inference_tau.size(); ++i) {
    const InferenceTau& at = evaluations.inference_tau[i];
    const std::string group = fmt::format("{}/{}", kInferenceTau, i);
    WriteValidation(at.validation, group, file);
    VisitInferenceTauMetrics([&](const Metric& metric, auto member) {
      WriteMetric(metric, at.*member, group, file);
    });
  }
  if (!evaluations.router_health.empty()) {
    WriteRouterHealth(evaluations.router_health, file);
  }
}

FinalEvaluations ReadEvaluations(const Hdf5Reader& file, const Config& config) {
  FinalEvaluations evaluations;
  evaluations.code_version = file.ReadString(kEvaluations, "code_version");
  for (size_t i = 0;; ++i) {
    const std::string group = fmt::format("{}/{}", kInferenceTau, i);
    if (!file.Has(group)) break;
    InferenceTau at;
    VisitInferenceTauMetrics([&](const Metric& metric, auto member) {
      ReadMetric(file, group, metric, config.model, at.*member);
    });
    at.validation =
        ReadValidation(file, group, config.model, /*histogram=*/false);
    evaluations.inference_tau.push_back(std::move(at));
  }
  if (file.Has(kRouterHealth)) {
    evaluations.router_health = ReadRouterHealth(file, config);
  }
  return evaluations;
}

}  // namespace

void WriteRunResult(const RunResult& result,
                    const std::filesystem::path& path) {
  Hdf5Writer file(path, kResultKind);
  file.WriteAttribute("/", "config", ConfigToToml(result.config));
  for (const ResultText& field : kResultTexts) {
    file.WriteAttribute("/", field.name, result.*field.member);
  }
  file.WriteAttribute("/", kIndexHash, result.index_sha256);
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
  for (const ResultText& field : kResultTexts) {
    result.*field.member = file.ReadString("/", field.name);
  }
  if (file.HasAttribute("/", kIndexHash)) {
    result.index_sha256 = file.ReadString("/", kIndexHash);
  }
  VisitRunMetrics([&](const Metric& metric, auto member) {
    ReadMetric(file, "/", metric, result.config.model, result.*member);
  });
  for (const ResultFlag& field : kResultFlags) {
    result.*field.member = file.ReadInt("/", field.name) != 0;
  }
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

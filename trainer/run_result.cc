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
//
// Version 2 had other names for some (Metric::name_in_version_2); it is read.
#include <fmt/format.h>

#include <string>

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

void WriteValidation(const Validation& validation, const std::string& group,
                     Hdf5Writer& file) {
  file.CreateGroup(group);
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    WriteMetric(metric, validation.*member, group, file);
  });
}

Validation ReadValidation(const Hdf5Reader& file, const std::string& group,
                          const ModelConfig& model) {
  Validation validation;
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    ReadMetric(file, group, metric, model, validation.*member);
  });
  return validation;
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
  return result;
}

}  // namespace softmoe::trainer

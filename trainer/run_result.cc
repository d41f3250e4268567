// SPDX-License-Identifier: Apache-2.0
//
// run_result.cc - result.h5: kind "row-result".
//
//   /            attrs: config (TOML), config_hash, tau, ..., isa
//   /allocation  f64 [num_layers]
//   /steps/*     see step_table.h
//   /validation/{final,schedule}  attrs: loss, num_tokens, ...
//       layer_active f64 [L], active_histogram i64 [L, E+1],
//       tokens_per_expert i64 [L, E]
//   /final_evaluations            where a plan asked; attrs: code_version
//     inference_tau/{0,1,...}     attrs: factor, tau; else as a validation, but
//         active_histogram only where asked for
//     router_health/*             [L], i64 dead_experts, f64 the rest;
//         truncated_mass of soft routers only
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "core/config_toml.h"
#include "core/errors.h"
#include "core/hdf5_file.h"
#include "trainer/step_table.h"
#include "trainer/trainer.h"

namespace softmoe::trainer {
namespace {

const Hdf5Kind kResultKind{.name = "row-result", .version = 2};

struct ValidationScalar {
  const char* name;
  double Validation::*member;
};
constexpr ValidationScalar kValidationScalars[] = {
    {"loss", &Validation::loss},
    {"active_experts", &Validation::active_experts},
    {"zero_active_fraction", &Validation::zero_active_fraction},
    {"load_variance", &Validation::load_variance},
    {"load_cv", &Validation::load_cv},
    {"load_var_over_mean", &Validation::load_var_over_mean},
};

struct HealthScalar {
  const char* name;
  double RouterHealth::*member;
};
constexpr HealthScalar kHealthScalars[] = {
    {"load_entropy", &RouterHealth::load_entropy},
    {"relative_load_entropy", &RouterHealth::relative_load_entropy},
    {"at_cap_fraction", &RouterHealth::at_cap_fraction},
    {"zero_active_fraction", &RouterHealth::zero_active_fraction},
};

struct ResultScalar {
  const char* name;
  double RunResult::*member;
};
constexpr ResultScalar kResultScalars[] = {
    {"tau", &RunResult::tau},
    {"unigram_loss", &RunResult::unigram_loss},
    {"train_active_experts", &RunResult::train_active_experts},
    {"seconds", &RunResult::seconds},
};

struct ResultCount {
  const char* name;
  int64_t RunResult::*member;
};
constexpr ResultCount kResultCounts[] = {
    {"parameters", &RunResult::parameters},
    {"max_active", &RunResult::max_active},
    {"most_active_in_a_token", &RunResult::most_active_in_a_token},
};

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

[[noreturn]] void Refuse(const Hdf5Reader& file, const std::string& what) {
  throw DataError(fmt::format(
      "{}: {}; delete the file and run the row again: a checkpoint beside it "
      "saves the training",
      file.path().string(), what));
}

double ReadFinite(const Hdf5Reader& file, const std::string& object,
                  const std::string& name) {
  const double value = file.ReadDouble(object, name);
  if (!std::isfinite(value)) {
    Refuse(file, fmt::format("attribute {} of {} is {}, expected a finite "
                             "number",
                             name, object, value));
  }
  return value;
}

// [layer][i] as one rectangle.
void WriteCounts(const std::vector<std::vector<int64_t>>& rows,
                 const std::string& path, Hdf5Writer& file) {
  std::vector<int64_t> values;
  for (const std::vector<int64_t>& row : rows) {
    values.insert(values.end(), row.begin(), row.end());
  }
  const int64_t height = static_cast<int64_t>(rows.size());
  const int64_t width = static_cast<int64_t>(values.size()) / height;
  file.WriteDataset<int64_t>(path, values, {height, width});
}

std::vector<std::vector<int64_t>> ReadCounts(const Hdf5Reader& file,
                                             const std::string& path,
                                             int64_t height, int64_t width) {
  const Hdf5Array<int64_t> array = file.ReadDataset<int64_t>(path);
  if (array.shape != std::vector<int64_t>{height, width}) {
    Refuse(file,
           fmt::format("dataset {} is not [{}, {}]", path, height, width));
  }
  std::vector<std::vector<int64_t>> rows;
  for (int64_t i = 0; i < height; ++i) {
    rows.emplace_back(array.values.begin() + i * width,
                      array.values.begin() + (i + 1) * width);
  }
  return rows;
}

std::vector<double> ReadLayers(const Hdf5Reader& file, const std::string& path,
                               int64_t num_layers) {
  const Hdf5Array<double> array = file.ReadDataset<double>(path);
  if (array.shape != std::vector<int64_t>{num_layers}) {
    Refuse(file, fmt::format("dataset {} is not [{}]", path, num_layers));
  }
  for (double value : array.values) {
    if (!std::isfinite(value)) {
      Refuse(file, fmt::format("dataset {} holds {}", path, value));
    }
  }
  return array.values;
}

void WriteValidation(const Validation& validation, const std::string& group,
                     Hdf5Writer& file) {
  file.CreateGroup(group);
  for (const ValidationScalar& field : kValidationScalars) {
    file.WriteAttribute(group, field.name, validation.*field.member);
  }
  file.WriteAttribute(group, "num_tokens", validation.num_tokens);
  file.WriteDataset(group + "/layer_active", validation.layer_active);
  if (!validation.active_histogram.empty()) {
    WriteCounts(validation.active_histogram, group + "/active_histogram", file);
  }
  WriteCounts(validation.tokens_per_expert, group + "/tokens_per_expert", file);
}

// `histogram`: whether there must be one.
Validation ReadValidation(const Hdf5Reader& file, const std::string& group,
                          const ModelConfig& model, bool histogram = true) {
  Validation validation;
  for (const ValidationScalar& field : kValidationScalars) {
    validation.*field.member = ReadFinite(file, group, field.name);
  }
  validation.num_tokens = file.ReadInt(group, "num_tokens");
  validation.layer_active =
      ReadLayers(file, group + "/layer_active", model.num_layers);
  if (histogram || file.Has(group + "/active_histogram")) {
    validation.active_histogram =
        ReadCounts(file, group + "/active_histogram", model.num_layers,
                   model.num_experts + 1);
  }
  validation.tokens_per_expert = ReadCounts(
      file, group + "/tokens_per_expert", model.num_layers, model.num_experts);
  return validation;
}

std::string HealthPath(const char* name) {
  return fmt::format("{}/{}", kRouterHealth, name);
}

void WriteRouterHealth(const std::vector<RouterHealth>& layers,
                       Hdf5Writer& file) {
  file.CreateGroup(kRouterHealth);
  for (const HealthScalar& field : kHealthScalars) {
    std::vector<double> values;
    for (const RouterHealth& layer : layers) {
      values.push_back(layer.*field.member);
    }
    file.WriteDataset(HealthPath(field.name), values);
  }
  std::vector<int64_t> dead;
  std::vector<double> mass;
  for (const RouterHealth& layer : layers) {
    dead.push_back(layer.dead_experts);
    if (layer.truncated_mass) mass.push_back(*layer.truncated_mass);
  }
  file.WriteDataset(HealthPath("dead_experts"), dead);
  if (!mass.empty()) file.WriteDataset(HealthPath("truncated_mass"), mass);
}

std::vector<RouterHealth> ReadRouterHealth(const Hdf5Reader& file,
                                           const Config& config) {
  const int64_t num_layers = config.model.num_layers;
  std::vector<RouterHealth> layers(static_cast<size_t>(num_layers));
  for (const HealthScalar& field : kHealthScalars) {
    const std::vector<double> values =
        ReadLayers(file, HealthPath(field.name), num_layers);
    for (size_t l = 0; l < layers.size(); ++l) {
      layers[l].*field.member = values[l];
    }
  }
  const Hdf5Array<int64_t> dead =
      file.ReadDataset<int64_t>(HealthPath("dead_experts"));
  if (dead.shape != std::vector<int64_t>{num_layers}) {
    Refuse(file, fmt::format("dataset {} is not [{}]",
                             HealthPath("dead_experts"), num_layers));
  }
  for (size_t l = 0; l < layers.size(); ++l) {
    layers[l].dead_experts = dead.values[l];
  }
  if (config.router.kind != RouterKind::kSparse) {
    const std::vector<double> mass =
        ReadLayers(file, HealthPath("truncated_mass"), num_layers);
    for (size_t l = 0; l < layers.size(); ++l) {
      layers[l].truncated_mass = mass[l];
    }
  }
  return layers;
}

void WriteEvaluations(const FinalEvaluations& evaluations, Hdf5Writer& file) {
  file.CreateGroup(kEvaluations);
  file.WriteAttribute(kEvaluations, "code_version", evaluations.code_version);
  for (size_t i = 0; i < evaluations.inference_tau.size(); ++i) {
    const InferenceTau& at = evaluations.inference_tau[i];
    const std::string group = fmt::format("{}/{}", kInferenceTau, i);
    WriteValidation(at.validation, group, file);
    file.WriteAttribute(group, "factor", at.factor);
    file.WriteAttribute(group, "tau", at.tau);
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
    evaluations.inference_tau.push_back(
        {.factor = ReadFinite(file, group, "factor"),
         .tau = ReadFinite(file, group, "tau"),
         .validation =
             ReadValidation(file, group, config.model, /*histogram=*/false)});
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
  for (const ResultScalar& field : kResultScalars) {
    file.WriteAttribute("/", field.name, result.*field.member);
  }
  for (const ResultCount& field : kResultCounts) {
    file.WriteAttribute("/", field.name, result.*field.member);
  }
  for (const ResultFlag& field : kResultFlags) {
    file.WriteAttribute("/", field.name, int64_t{result.*field.member});
  }
  file.WriteDataset("/allocation", result.allocation);
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
  for (const ResultScalar& field : kResultScalars) {
    result.*field.member = ReadFinite(file, "/", field.name);
  }
  for (const ResultCount& field : kResultCounts) {
    result.*field.member = file.ReadInt("/", field.name);
  }
  for (const ResultFlag& field : kResultFlags) {
    result.*field.member = file.ReadInt("/", field.name) != 0;
  }
  const ModelConfig& model = result.config.model;
  result.allocation = ReadLayers(file, "/allocation", model.num_layers);
  result.steps = ReadStepTable(file, "/steps", model.num_layers);
  if (static_cast<int64_t>(result.steps.size()) !=
      result.config.training.steps) {
    Refuse(file,
           fmt::format("holds {} steps, its configuration says {}",
                       result.steps.size(), result.config.training.steps));
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

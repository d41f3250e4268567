// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/run_result_file.h"

#include <fmt/core.h>

#include <vector>

#include "core/config/config_toml.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_hdf5.h"
#include "trainer/results/step_table.h"

namespace softmoe::trainer {
namespace {

constexpr char kFinalValidation[] = "validation/final";
constexpr char kScheduleValidation[] = "validation/schedule";
constexpr char kEvaluations[] = "final_evaluations";
constexpr char kInferenceTau[] = "inference_tau";
constexpr char kRouterHealth[] = "router_health";
constexpr char kTasks[] = "tasks";
constexpr char kDevices[] = "devices";

// Each function writes or reads what it lists; if it writes, that is const.

// Leaves out an active_histogram that is empty. `histogram` says whether a file
// that is read must have one.
template <typename File, typename Values>
void VisitValidation(File& file, const std::string& group,
                     const ModelConfig& model, bool histogram,
                     Values& validation) {
  file.Group(group);
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    if (metric.shape == MetricShape::kLayersAndCounts) {
      if constexpr (File::kReads) {
        if (!histogram && !file.Has(Hdf5Path(group, metric.name))) return;
      } else {
        if (validation.active_histogram.empty()) return;
      }
    }
    VisitMetric(file, group, metric, model, validation.*member);
  });
}

// Throws DataError for more dead experts than there are experts.
void CheckHealth(const Hdf5Reader& file, const std::string& group,
                 const ModelConfig& model,
                 const std::vector<RouterHealth>& layers) {
  for (size_t l = 0; l < layers.size(); ++l) {
    const int64_t dead = layers[l].dead_experts;
    if (dead >= 0 && dead <= model.num_experts) continue;
    throw DataError(fmt::format(
        "{}: {}/{} is {} in layer {}, of {} experts; delete the file and run "
        "the row again",
        file.path().string(), group, metrics::kDeadExperts.name, dead, l + 1,
        model.num_experts));
  }
}

// Writes or reads columns of one number for each layer.
template <typename File, typename Layers>
void VisitHealth(File& file, const std::string& group, const Config& config,
                 Layers& layers) {
  if constexpr (File::kReads) {
    if (!file.Has(group)) return;
    RouterHealth health;
    if (TraitsOf(config).lapsum) health.truncated_mass = 0;
    layers.assign(static_cast<size_t>(config.model.num_layers), health);
  }
  if (layers.empty()) return;
  file.Group(group);
  VisitHealthMetrics(MetricColumns(file, group, 1, layers));
  if constexpr (File::kReads) CheckHealth(file, group, config.model, layers);
}

// Throws DataError unless the counts of right answers are those of the items.
void CheckTask(const Hdf5Reader& file, const std::string& group,
               const TaskResult& task) {
  std::vector<int64_t> correct(kNumTaskMeasures);
  bool bits = task.right.size() > 1;
  for (const uint8_t right : task.right) {
    bits &= right >> kNumTaskMeasures == 0;
    for (int m = 0; m < kNumTaskMeasures; ++m) correct[m] += right >> m & 1;
  }
  for (int m = 0; m < kNumTaskMeasures; ++m) {
    bits &= correct[m] == task.measures[m].correct;
  }
  if (bits) return;
  throw DataError(fmt::format(
      "{}: {}/right does not have the right answers that {} counts; delete the "
      "file and run the row again",
      file.path().string(), group, metrics::kCorrect.name));
}

// Writes or reads the groups PARENT/tasks/{0,1,...}; none without tasks.
template <typename File, typename Tasks>
void VisitTasks(File& file, const std::string& parent, Tasks& tasks) {
  for (size_t i = 0;; ++i) {
    const std::string group = fmt::format("{}/{}/{}", parent, kTasks, i);
    const std::string right = Hdf5Path(group, "right");
    if constexpr (File::kReads) {
      if (!file.Has(group)) break;
      tasks.emplace_back();
      tasks[i].measures.resize(kNumTaskMeasures);
    }
    if (i == tasks.size()) break;
    auto& task = tasks[i];
    file.Group(group);
    file.Attribute(group, "name", task.name);
    file.Attribute(group, "sha256", task.sha256);
    VisitAnswerMetrics(MetricColumns(file, group, 1, task.measures));
    if constexpr (File::kReads) {
      task.right = file.template ReadDataset<uint8_t>(right).values;
      CheckTask(file, group, task);
    } else {
      file.WriteDataset(right, task.right);
    }
  }
}

template <typename File, typename Evaluations>
void VisitEvaluations(File& file, const std::string& parent,
                      const Config& config, Evaluations& evaluations) {
  file.Group(parent);
  file.Attribute(parent, "code_version", evaluations.code_version);
  for (size_t i = 0;; ++i) {
    const std::string group = fmt::format("{}/{}/{}", parent, kInferenceTau, i);
    if constexpr (File::kReads) {
      if (!file.Has(group)) break;
      evaluations.inference_tau.emplace_back();
    }
    if (i == evaluations.inference_tau.size()) break;
    auto& at = evaluations.inference_tau[i];
    VisitValidation(file, group, config.model, /*histogram=*/false,
                    at.validation);
    VisitMetric(file, group, metrics::kTauFactor, config.model, at.factor);
    VisitMetric(file, group, metrics::kTau, config.model, at.tau);
    VisitTasks(file, group, at.tasks);
  }
  VisitHealth(file, Hdf5Path(parent, kRouterHealth), config,
              evaluations.router_health);
  VisitTasks(file, parent, evaluations.tasks);
}

// Writes or reads everything except the configuration and the identity.
template <typename File, typename Result>
void VisitResult(File& file, const std::string& group, Result& result) {
  const ModelConfig& model = result.config.model;
  file.Attribute(group, "code_version", result.code_version);
  VisitRunMetrics([&](const Metric& metric, auto member) {
    VisitMetric(file, group, metric, model, result.*member);
  });
  file.Attribute(group, "tau_calibrated", result.tau_calibrated);
  file.Attribute(group, "resumed", result.resumed);
  // Files of CPU runs lack the number of devices.
  if constexpr (File::kReads) {
    if (file.HasAttribute(group, kDevices)) {
      file.Attribute(group, kDevices, result.devices);
    }
  } else if (result.devices > 0) {
    file.Attribute(group, kDevices, result.devices);
  }
  VisitValidation(file, Hdf5Path(group, kFinalValidation), model,
                  /*histogram=*/true, result.final_validation);
  VisitValidation(file, Hdf5Path(group, kScheduleValidation), model,
                  /*histogram=*/true, result.at_schedule_temperature);
  if constexpr (File::kReads) {
    if (file.Has(Hdf5Path(group, kEvaluations)))
      result.final_evaluations.emplace();
  }
  if (result.final_evaluations) {
    VisitEvaluations(file, Hdf5Path(group, kEvaluations), result.config,
                     *result.final_evaluations);
  }
}

const Hdf5Kind kResultKind{.name = "row-result", .version = 3};

}  // namespace

void WriteResultGroup(const RunResult& result, const std::string& group,
                      Hdf5Writer& file) {
  file.Group(group);
  file.WriteAttribute(group, "config", ConfigToToml(result.config));
  WriteIdentity(result.identity, group, file);
  VisitResult(file, group, result);
}

RunResult ReadResultGroup(const Hdf5Reader& file, const std::string& group) {
  RunResult result;
  result.config = ParseConfig(file.ReadString(group, "config"),
                              file.path().string() + ":config");
  VisitResult(file, group, result);
  Config given = result.config;
  if (result.tau_calibrated) given.router.tau.reset();
  result.identity = ReadIdentity(file, group, given);
  return result;
}

void WriteRunResult(const RunResult& result,
                    const std::filesystem::path& path) {
  Hdf5Writer file(path, kResultKind);
  WriteResultGroup(result, "/", file);
  WriteStepTable(result.steps, result.config.model.num_layers, "/steps", file);
  file.Commit();
}

RunResult ReadRunResult(const std::filesystem::path& path) {
  const Hdf5Reader file(path, kResultKind);
  RunResult result = ReadResultGroup(file, "/");
  result.steps = ReadStepTable(file, "/steps", result.config.model.num_layers);
  if (static_cast<int64_t>(result.steps.size()) !=
      result.config.training.steps) {
    throw DataError(fmt::format(
        "{}: holds {} steps, its configuration says {}; delete the file and "
        "run the row again: a checkpoint beside it saves the training",
        path.string(), result.steps.size(), result.config.training.steps));
  }
  return result;
}

}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/checkpoint.h"

#include <fmt/core.h>

#include "core/config/config_toml.h"
#include "core/errors.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_hdf5.h"
#include "trainer/results/run_digest.h"
#include "trainer/results/step_table.h"

namespace softmoe::trainer {
namespace {

const Hdf5Kind kCheckpointKind{.name = "checkpoint", .version = 3};

// Writes or reads everything except the tables; if it writes, State is const.
template <typename File, typename State>
void VisitState(File& file, const ModelConfig& model, State& state) {
  file.Attribute("/", "code_version", state.code_version);
  file.Attribute("/", "step", state.step);
  VisitCarriedMetrics<TrainState>([&](const Metric& metric, auto member) {
    VisitMetric(file, "/", metric, model, state.*member);
  });
  file.Attribute("/", "tau_calibrated", state.tau_calibrated);
}

}  // namespace

void WriteCheckpoint(const std::filesystem::path& path,
                     const RunIdentity& identity,
                     const std::filesystem::path& tokens,
                     const TrainState& state,
                     const CheckpointTensors& tensors) {
  SOFTMOE_CHECK(static_cast<int64_t>(state.history.size()) == state.step);
  Hdf5Writer file(path, kCheckpointKind);
  file.WriteAttribute("/", "config", ConfigToToml(identity.config));
  WriteIdentity(identity, "/", file);
  file.WriteAttribute("/", "tokens", tokens.string());
  VisitState(file, identity.config.model, state);
  WriteStepTable(state.history, identity.config.model.num_layers, "/history",
                 file);
  WriteEvaluationTable(state.evaluations, "/evaluations", file);
  const auto write = [&](const char* name, std::span<const float> values) {
    file.WriteDataset<float>(name, values,
                             {static_cast<int64_t>(values.size())});
  };
  write("/parameters", tensors.parameters);
  write("/first_moment", tensors.first_moment);
  write("/second_moment", tensors.second_moment);
  file.Commit();
}

Checkpoint::Checkpoint(const std::filesystem::path& path)
    : file_(path, kCheckpointKind) {
  identity_ = ReadIdentity(
      file_, "/", ParseConfig(file_.ReadString("/", "config"), path.string()));
  tokens_ = file_.ReadString("/", "tokens");
  const ModelConfig& model = identity_.config.model;
  VisitState(file_, model, state_);
  state_.history = ReadStepTable(file_, "/history", model.num_layers);
  state_.evaluations = ReadEvaluationTable(file_, "/evaluations");
  if (static_cast<int64_t>(state_.history.size()) != state_.step) {
    throw DataError(
        fmt::format("{}: says step {} but holds the records of {} steps; "
                    "delete it to begin anew",
                    path.string(), state_.step, state_.history.size()));
  }
}

void Checkpoint::RequireSameRun(const RunIdentity& identity) const {
  trainer::RequireSameRun(
      file_.path(), identity_, identity,
      {.config = "Use another output folder, or delete the checkpoint to begin "
                 "anew",
       .tokens = fmt::format("Give those it was trained on ({}), or use "
                             "another output folder",
                             tokens_.string()),
       .place = fmt::format("{}, or use another output folder",
                            HowToGoOn(identity_, identity))});
}

std::vector<float> Checkpoint::ReadTensor(const char* name,
                                          int64_t total) const {
  std::vector<float> values(static_cast<size_t>(total));
  file_.ReadDatasetInto(name, values, {total});
  return values;
}

std::vector<float> Checkpoint::ReadParameters(int64_t total) const {
  return ReadTensor("/parameters", total);
}

CheckpointTensors Checkpoint::ReadTensors(int64_t total) const {
  return {.parameters = ReadParameters(total),
          .first_moment = ReadTensor("/first_moment", total),
          .second_moment = ReadTensor("/second_moment", total)};
}

std::string WhyNotFinal(const RunResult& result, const Checkpoint& checkpoint) {
  const TrainState& state = checkpoint.state();
  if (!CompareIdentities(result.identity, checkpoint.identity()).empty()) {
    return "the checkpoint and the result are of different runs";
  }
  if (state.step != result.config.training.steps) {
    return fmt::format("the checkpoint is of step {} of {}", state.step,
                       result.config.training.steps);
  }
  RunResult trained;  // with what both have; SameMetrics ignores the rest
  trained.tau = state.tau;
  trained.steps = state.history;
  if (!SameMetrics(trained, result,
                   [](const Metric& metric) { return !metric.clock; })) {
    return "the checkpoint and the result are of different trainings of this "
           "run: tau or metrics of steps differ";
  }
  return "";
}

}  // namespace softmoe::trainer

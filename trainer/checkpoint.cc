// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint.h"

#include <fmt/format.h>

#include <vector>

#include "core/config_toml.h"
#include "core/errors.h"
#include "core/mutant.h"
#include "trainer/identity_attributes.h"
#include "trainer/step_table.h"

namespace softmoe::trainer {
namespace {

const Hdf5Kind kCheckpointKind{.name = "checkpoint", .version = 2};

struct EvaluationColumn {
  const char* name;
  double EvaluationRecord::*member;
};
constexpr EvaluationColumn kEvaluationColumns[] = {
    {"temperature", &EvaluationRecord::temperature},
    {"schedule_loss", &EvaluationRecord::schedule_loss},
    {"schedule_active", &EvaluationRecord::schedule_active_experts},
    {"loss", &EvaluationRecord::loss},
    {"active_experts", &EvaluationRecord::active_experts},
    {"zero_active_fraction", &EvaluationRecord::zero_active_fraction},
    {"load_variance", &EvaluationRecord::relative_load_variance},
};

void WriteEvaluations(const std::vector<EvaluationRecord>& records,
                      Hdf5Writer& file) {
  file.CreateGroup("/evaluations");
  if (records.empty()) return;
  std::vector<int64_t> steps;
  for (const EvaluationRecord& record : records) steps.push_back(record.step);
  file.WriteDataset("/evaluations/step", steps);
  for (const EvaluationColumn& column : kEvaluationColumns) {
    std::vector<double> values;
    for (const EvaluationRecord& record : records) {
      values.push_back(record.*column.member);
    }
    file.WriteDataset(std::string("/evaluations/") + column.name, values);
  }
}

std::vector<EvaluationRecord> ReadEvaluations(const Hdf5Reader& file) {
  if (!file.Has("/evaluations/step")) return {};
  const auto steps = file.ReadDataset<int64_t>("/evaluations/step").values;
  std::vector<EvaluationRecord> records(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) records[i].step = steps[i];
  for (const EvaluationColumn& column : kEvaluationColumns) {
    std::vector<double> values(steps.size());
    file.ReadDatasetInto<double>(std::string("/evaluations/") + column.name,
                                 values, {static_cast<int64_t>(steps.size())});
    for (size_t i = 0; i < steps.size(); ++i) {
      records[i].*column.member = values[i];
    }
  }
  return records;
}

}  // namespace

void WriteCheckpoint(const std::filesystem::path& path,
                     const RunIdentity& identity,
                     const std::filesystem::path& tokens,
                     const TrainState& state,
                     const CheckpointTensors<const float>& tensors) {
  SOFTMOE_CHECK(static_cast<int64_t>(state.history.size()) == state.step);
  Hdf5Writer file(path, kCheckpointKind);
  file.WriteAttribute("/", "config", ConfigToToml(identity.config));
  WriteIdentity(identity, file);
  file.WriteAttribute("/", "tokens", tokens.string());
  file.WriteAttribute("/", "code_version", state.code_version);
  file.WriteAttribute("/", "step", state.step);
  file.WriteAttribute("/", "tau", state.tau);
  file.WriteAttribute("/", "tau_calibrated", int64_t{state.tau_calibrated});
  file.WriteAttribute("/", "max_active", state.max_active);
  file.WriteAttribute("/", "most_active_in_a_token",
                      state.most_active_in_a_token);
  file.WriteAttribute("/", "seconds", state.seconds);
  WriteStepTable(state.history, identity.config.model.num_layers, "/history",
                 file);
  WriteEvaluations(state.evaluations, file);
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
      file_, ParseConfig(file_.ReadString("/", "config"), path.string()));
  tokens_ = file_.ReadString("/", "tokens");
  state_.code_version = file_.ReadString("/", "code_version");
  state_.step = file_.ReadInt("/", "step");
  state_.tau = file_.ReadDouble("/", "tau");
  state_.tau_calibrated = file_.ReadInt("/", "tau_calibrated") != 0;
  state_.max_active = file_.ReadInt("/", "max_active");
  state_.most_active_in_a_token = file_.ReadInt("/", "most_active_in_a_token");
  state_.seconds = file_.ReadDouble("/", "seconds");
  state_.history =
      ReadStepTable(file_, "/history", identity_.config.model.num_layers);
  state_.evaluations = ReadEvaluations(file_);
  if (static_cast<int64_t>(state_.history.size()) != state_.step) {
    throw DataError(fmt::format(
        "{}: says step {} but holds the records of {}; delete it to begin anew",
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
       .isa = fmt::format("Go on with --isa {}, or use another output folder",
                          identity_.isa)});
}

void Checkpoint::ReadParameters(std::span<float> parameters) const {
  file_.ReadDatasetInto<float>("/parameters", parameters,
                               {static_cast<int64_t>(parameters.size())});
}

void Checkpoint::ReadTensors(const CheckpointTensors<float>& tensors) const {
  ReadParameters(tensors.parameters);
  file_.ReadDatasetInto<float>(
      "/first_moment", tensors.first_moment,
      {static_cast<int64_t>(tensors.first_moment.size())});
  file_.ReadDatasetInto<float>(
      SOFTMOE_MUTANT("training.resume_loses_the_second_moment",
                     "/second_moment", "/first_moment"),
      tensors.second_moment,
      {static_cast<int64_t>(tensors.second_moment.size())});
}

}  // namespace softmoe::trainer

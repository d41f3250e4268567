// SPDX-License-Identifier: Apache-2.0
//
// checkpoint.h - a run on disk. Resuming from it gives the bits of a run that
// nothing interrupts. Kind "checkpoint":
//
//   /                 attrs: config (TOML), config_hash, data_sha256,
//                     index_sha256, tokenizer_sha256, isa (for a GPU also
//                     backend, device, libraries; ranks if they add in an
//                     order of their own), tokens, code_version, step, tau,
//                     tau_calibrated, max_active, most_active_in_a_token,
//                     seconds
//   /parameters       f32 [total]  by core/config/parameter_layout.h
//   /first_moment     f32 [total]  Adam's m
//   /second_moment    f32 [total]  Adam's v
//   /history/*        i64 step, f64 the rest; see step_table.h
//   /evaluations/*    i64 step, f64 the rest; [evaluations]
//
// The noise, the order of the batches and the schedules are functions of the
// step, so no generator state is stored.
#ifndef SOFTMOE_TRAINER_RESULTS_CHECKPOINT_H_
#define SOFTMOE_TRAINER_RESULTS_CHECKPOINT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/hdf5/hdf5_file.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/run_result.h"
#include "trainer/results/train_state.h"

namespace softmoe::trainer {

// The file's name in the folder of the run.
inline constexpr char kCheckpointName[] = "checkpoint.h5";

// The large arrays; all [total].
struct CheckpointTensors {
  std::vector<float> parameters;
  std::vector<float> first_moment;
  std::vector<float> second_moment;
};

// Replaces the checkpoint at `path` atomically. `tokens` is the prefix of the
// token file, for evaluation without arguments. If it throws EnvironmentError
// (disk full, ...), the old checkpoint is intact.
void WriteCheckpoint(const std::filesystem::path& path,
                     const RunIdentity& identity,
                     const std::filesystem::path& tokens,
                     const TrainState& state, const CheckpointTensors& tensors);

class Checkpoint {
 public:
  // Opens and checks the file. Throws EnvironmentError if there is none,
  // DataError if it is damaged, or of another kind or version.
  explicit Checkpoint(const std::filesystem::path& path);

  const RunIdentity& identity() const { return identity_; }
  const TrainState& state() const { return state_; }
  const std::filesystem::path& tokens() const { return tokens_; }

  // Throws a ConfigError that names the keys and both values if the checkpoint
  // has another configuration, ISA level, device or number of ranks, and
  // DataError if it has other data.
  void RequireSameRun(const RunIdentity& identity) const;

  // Read arrays of `total` numbers. Throw DataError if there are more or fewer.
  std::vector<float> ReadParameters(int64_t total) const;
  CheckpointTensors ReadTensors(int64_t total) const;

 private:
  std::vector<float> ReadTensor(const char* name, int64_t total) const;

  Hdf5Reader file_;
  RunIdentity identity_;
  TrainState state_;
  std::filesystem::path tokens_;
};

// Returns why `checkpoint` is not that of the last step of the training that
// gave `result`, since copied folders may mix files of several runs; "" if it
// is, i.e. if both have the same identity, tau and metrics of all steps, except
// clocks. Their code versions may differ.
std::string WhyNotFinal(const RunResult& result, const Checkpoint& checkpoint);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_CHECKPOINT_H_

// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/checkpoint.h"

#include <gtest/gtest.h>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "core/testing/bits_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

RunIdentity Identity() {
  return {.config = TinyConfig(RouterKind::kSoftLearned),
          .tokens = {"data", "index", "tokenizer"},
          .isa = "v3"};
}

TrainState State() {
  TrainState state;
  state.step = 3;
  state.tau = 1.0 / 3;
  state.code_version = "0123456789ab";
  state.tau_calibrated = true;
  state.max_active = 5;
  state.most_active_in_a_token = 4;
  state.seconds = 2.0 / 3;
  for (int64_t i = 1; i <= 3; ++i) {
    state.history.push_back(NumberedRecord(i, 2));
  }
  state.evaluations.push_back(NumberedEvaluation(2));
  return state;
}

// Returns tensors of a few elements, with values that text would lose.
CheckpointTensors Tensors() {
  return {.parameters = {0.1f, -0.0f, 1e-40f, 3e38f},
          .first_moment = {0.2f, 1.0f, 2.0f, -3.0f},
          .second_moment = {0.3f, 4.0f, 5.0f, 6.0f}};
}

TEST(Checkpoint, ReadsBackEveryBit) {
  const auto path = FreshFolder("checkpoint") / "checkpoint.h5";
  const CheckpointTensors written = Tensors();
  WriteCheckpoint(path, Identity(), "/some/tokens", State(), written);

  const Checkpoint checkpoint(path);
  EXPECT_NO_THROW(checkpoint.RequireSameRun(Identity()));
  EXPECT_EQ(checkpoint.tokens(), "/some/tokens");
  const TrainState& state = checkpoint.state();
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.tau, 1.0 / 3);
  EXPECT_EQ(state.code_version, "0123456789ab");
  EXPECT_TRUE(state.tau_calibrated);
  EXPECT_EQ(state.max_active, 5);
  EXPECT_EQ(state.most_active_in_a_token, 4);
  EXPECT_EQ(state.seconds, 2.0 / 3);
  ExpectSameRecords(State().history, state.history);
  ExpectSameEvaluations(State().evaluations, state.evaluations);

  const CheckpointTensors read = checkpoint.ReadTensors(4);
  EXPECT_TRUE(SameBits(read.parameters, written.parameters));
  EXPECT_TRUE(SameBits(read.first_moment, written.first_moment));
  EXPECT_TRUE(SameBits(read.second_moment, written.second_moment));
}

// Only runs on a device record one; the CPU's files have no such attributes.
TEST(Checkpoint, NamesADeviceWhereThereIsOne) {
  const auto path = FreshFolder("device") / "checkpoint.h5";
  const auto has = [&](const char* name) {
    return Hdf5Reader(path, {.name = "checkpoint", .version = 3})
        .HasAttribute("/", name);
  };
  WriteCheckpoint(path, Identity(), "", TrainState(), Tensors());
  for (const char* name : {"backend", "device", "libraries"}) {
    EXPECT_FALSE(has(name)) << name;
  }
  RunIdentity device = Identity();
  device.isa = "sm_90";
  device.backend = "cuda";
  device.device = "NVIDIA H100 80GB HBM3";
  device.libraries = "driver 13.0, CUDA runtime 13.0, cuBLASLt 13.1.0";
  WriteCheckpoint(path, device, "", TrainState(), Tensors());
  for (const char* name : {"backend", "device", "libraries"}) {
    EXPECT_TRUE(has(name)) << name;
  }
  EXPECT_NO_THROW(Checkpoint(path).RequireSameRun(device));
  EXPECT_THROW(Checkpoint(path).RequireSameRun(Identity()), ConfigError);
}

TEST(Checkpoint, MayBeOfTheStart) {
  const auto path = FreshFolder("start") / "checkpoint.h5";
  WriteCheckpoint(path, Identity(), "", TrainState(), Tensors());
  EXPECT_EQ(Checkpoint(path).state().step, 0);
  EXPECT_TRUE(Checkpoint(path).state().history.empty());
}

// Writes a checkpoint of Identity() and returns what RequireSameRun(other)
// says, which names the file.
template <typename ErrorType>
std::string Refusal(const RunIdentity& other) {
  const auto path = FreshFolder("refusal") / "checkpoint.h5";
  WriteCheckpoint(path, Identity(), "/old/tokens", State(), Tensors());
  const std::string message =
      MessageOf<ErrorType>([&] { Checkpoint(path).RequireSameRun(other); });
  EXPECT_TRUE(Says(message, path.string()));
  return message;
}

TEST(Checkpoint, RefusesAnotherConfigurationAndNamesTheKeys) {
  RunIdentity other = Identity();
  other.config.training.learning_rate = 0.5;
  other.config.router.tau = 1.25;
  const std::string message = Refusal<ConfigError>(other);
  EXPECT_TRUE(Says(message, "training.learning_rate is 0.01 there and 0.5 here",
                   "router.tau", "1.25"));
  EXPECT_FALSE(Says(message, "model."));
  EXPECT_TRUE(Says(message, "another output folder"));
}

TEST(Checkpoint, RefusesOtherDataVocabularyAndInstructionSet) {
  RunIdentity other = Identity();
  other.tokens.data_sha256 = "other";
  std::string message = Refusal<DataError>(other);
  EXPECT_TRUE(Says(message, "other tokens", "/old/tokens"));

  other = Identity();
  other.tokens.index_sha256 = "other";
  message = Refusal<DataError>(other);
  EXPECT_TRUE(Says(message, "another split"));

  other = Identity();
  other.tokens.tokenizer_sha256 = "other";
  message = Refusal<DataError>(other);
  EXPECT_TRUE(Says(message, "another tokenizer"));

  other = Identity();
  other.isa = "v4";
  message = Refusal<ConfigError>(other);
  EXPECT_TRUE(Says(message, "--isa v3"));
}

TEST(Checkpoint, RefusesAnotherSize) {
  const auto path = FreshFolder("size") / "checkpoint.h5";
  WriteCheckpoint(path, Identity(), "", State(), Tensors());
  EXPECT_THROW(Checkpoint{path}.ReadParameters(5), DataError);
  EXPECT_THROW(Checkpoint{path}.ReadTensors(3), DataError);
}

}  // namespace
}  // namespace softmoe::trainer

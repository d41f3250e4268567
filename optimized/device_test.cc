// SPDX-License-Identifier: Apache-2.0
#include "optimized/device.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/testing/message_test_util.h"

namespace softmoe::optimized {
namespace {

RuntimeConfig On(const std::string& device, const std::string& isa = "") {
  RuntimeConfig runtime;
  runtime.device = device;
  runtime.isa = isa;
  return runtime;
}

TEST(MakeDevice, TheCpuIsItsInstructionSet) {
  for (const char* name : {"", "cpu"}) {
    const DeviceIdentity identity = MakeDevice(On(name, "v3"))->identity();
    EXPECT_EQ(identity.isa, "v3");
    EXPECT_EQ(identity.backend + identity.model + identity.libraries, "");
    EXPECT_EQ(Cpu().identity().isa, "v3");
  }
}

TEST(MakeDevice, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(MakeDevice(On("tpu")), ConfigError);
  EXPECT_THROW(MakeDevice(On("cpu", "v9")), ConfigError);
  EXPECT_THROW(MakeDevice(On("cuda", "v3")), ConfigError);
}

std::string PrecisionError(const Config& config, const std::string& device) {
  return MessageOf<ConfigError>([&] { CheckPrecision(config, On(device)); });
}

TEST(CheckPrecision, Bf16IsForDevicesAndSizesThatSuitIt) {
  Config config;
  config.model.d_model = 20;
  config.model.num_heads = 5;
  for (const char* device : {"", "cpu", "cuda"}) {
    EXPECT_EQ(PrecisionError(config, device), kNoError);
  }
  config.training.precision = Precision::kBf16;
  for (const char* device : {"", "cpu"}) {
    const std::string text = PrecisionError(config, device);
    EXPECT_TRUE(Says(text, "training.precision = \"bf16\"", "the CPU",
                     "--device=cuda", "leave"));
  }
  const auto expect_names = [&](const std::string& key) {
    const std::string text = PrecisionError(config, "cuda");
    EXPECT_TRUE(Says(text, key, "must be a multiple of 8"));
  };
  expect_names("model.d_model is 20");
  config.model.d_model = 40;
  config.model.num_heads = 10;
  expect_names("model.num_heads is 4");
  config.model.num_heads = 5;
  config.model.d_ffn = 12;
  expect_names("model.d_ffn is 12");
  config.model.d_ffn = 16;
  config.model.vocab_size = 30;
  expect_names("model.vocab_size is 30");
  config.model.vocab_size = 32;
  EXPECT_EQ(PrecisionError(config, "cuda"), kNoError);
}

// Where the machine has a device, MakeDevice finds it.
TEST(MakeDevice, WithoutACudaDeviceSaysWhatElseThereIs) {
  try {
    EXPECT_EQ(MakeDevice(On("cuda"))->identity().backend, "cuda");
  } catch (const EnvironmentError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("device \"cuda\": ")) << text;
    EXPECT_TRUE(text.ends_with("Without --device the CPU is used")) << text;
  }
}

}  // namespace
}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
//
// The test has its own reader, written from the format's README. What the
// format's own library makes of such a file: golden/oracles/README.md.
#include "trainer/results/safetensors.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/process/stop_signal.h"
#include "core/testing/bits_test_util.h"
#include "core/testing/config_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/run_result.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

struct ReadTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

struct ReadFile {
  std::map<std::string, std::string> metadata;
  std::map<std::string, ReadTensor> tensors;
};

// Fails unless the tensors cover the bytes after the header, each byte once.
ReadFile Read(const std::filesystem::path& path) {
  const std::string bytes = ReadWholeFile(path);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) {
    length = length << 8 | static_cast<uint8_t>(bytes.at(i));
  }
  EXPECT_EQ((8 + length) % 8, 0u);
  EXPECT_EQ(bytes.at(8), '{');
  const std::string data = bytes.substr(8 + length);
  ReadFile file;
  std::set<std::pair<size_t, size_t>> places;
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      file.metadata = entry.get<std::map<std::string, std::string>>();
      continue;
    }
    EXPECT_EQ(entry.size(), 3u);
    EXPECT_EQ(entry.at("dtype"), "F32");
    ReadTensor& tensor = file.tensors[name];
    tensor.shape = entry.at("shape").get<std::vector<int64_t>>();
    const auto begin = entry.at("data_offsets").at(0).get<size_t>();
    const auto end = entry.at("data_offsets").at(1).get<size_t>();
    EXPECT_TRUE(places.insert({begin, end}).second);
    size_t elements = 1;
    for (const int64_t extent : tensor.shape) {
      elements *= static_cast<size_t>(extent);
    }
    EXPECT_EQ(end - begin, 4 * elements) << name;
    const std::string part = data.substr(begin, end - begin);
    tensor.values.resize(elements);
    std::memcpy(tensor.values.data(), part.data(), part.size());
  }
  size_t at = 0;
  for (const auto& [begin, end] : places) {
    EXPECT_EQ(begin, at);
    at = end;
  }
  EXPECT_EQ(at, data.size());
  return file;
}

class Safetensors : public testing::Test {
 protected:
  // Writes a finished run whose parameters are all different.
  void WriteNumbered(RouterKind kind) {
    RunIdentity identity{.config = TinyConfig(kind),
                         .tokens = {"data", "index", "tokenizer"},
                         .isa = "v3"};
    TrainState state;
    state.tau = 1.0 / 3;
    state.code_version = "0123456789ab";
    while (state.step < identity.config.training.steps) {
      state.history.push_back(
          NumberedRecord(++state.step, identity.config.model.num_layers));
    }
    result_.identity = identity;
    result_.config = identity.config;
    result_.tau = state.tau;
    result_.steps = state.history;
    const ParameterLayout layout(identity.config);
    CheckpointTensors tensors;
    for (int64_t i = 0; i < layout.total; ++i) {
      tensors.parameters.push_back(static_cast<float>(i) / 7);
    }
    tensors.first_moment.resize(tensors.parameters.size(), -1);
    tensors.second_moment = tensors.first_moment;
    config_ = identity.config;
    parameters_ = tensors.parameters;
    WriteCheckpoint(folder_ / "checkpoint.h5", identity, "", state, tensors);
  }

  const std::filesystem::path folder_ = FreshFolder("safetensors");
  const std::filesystem::path path_ = folder_ / "model.safetensors";
  RunResult result_;
  Config config_;
  std::vector<float> parameters_;
};

TEST_F(Safetensors, HasEveryParameterByItsName) {
  for (const RouterKind kind : kRouterKinds) {
    WriteNumbered(kind);
    ExportSafetensors(result_, folder_ / "checkpoint.h5", path_);
    const ReadFile file = Read(path_);
    const ParameterLayout layout(config_);
    EXPECT_EQ(file.tensors.size(), layout.tensors.size());
    for (const ParameterTensor& tensor : layout.tensors) {
      const ReadTensor& read = file.tensors.at(tensor.name);
      EXPECT_EQ(read.shape, tensor.shape) << tensor.name;
      const auto first = parameters_.begin() + tensor.offset;
      EXPECT_TRUE(
          SameBits(read.values, std::vector<float>(first, first + tensor.size)))
          << tensor.name;
    }
    EXPECT_EQ(file.tensors.contains("budget_logits"),
              kind == RouterKind::kSoftLearned);
    EXPECT_EQ(file.metadata.at("config"), ConfigToToml(config_));
    EXPECT_EQ(file.metadata.at("config_hash"), ConfigHash(config_));
    EXPECT_EQ(std::stod(file.metadata.at("tau")), 1.0 / 3);
    EXPECT_EQ(file.metadata.at("step"), "12");
    EXPECT_EQ(file.metadata.at("tokenizer_sha256"), "tokenizer");
  }
}

TEST_F(Safetensors, IsWrittenWholeOrNotAtAll) {
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] {
                     ExportSafetensors(result_, folder_ / "none.h5", path_);
                   }),
                   "none.h5"));
  WriteNumbered(RouterKind::kSparse);
  {
    const FullDisk full(4000);
    EXPECT_THROW(ExportSafetensors(result_, folder_ / "checkpoint.h5", path_),
                 EnvironmentError);
  }
  EXPECT_EQ(FilesIn(folder_), std::vector<std::string>{"checkpoint.h5"});
}

TEST_F(Safetensors, ASignalLeavesNoHalfOfIt) {
  WriteNumbered(RouterKind::kSparse);
  const StopSignal stop;
  std::raise(SIGTERM);
  EXPECT_EQ(MessageOf<StoppedError>([&] {
              ExportSafetensors(result_, folder_ / "checkpoint.h5", path_);
            }),
            "SIGTERM: the run is finished, but its parameters were not written "
            "to " +
                path_.string() + "; the same command writes them");
  EXPECT_EQ(FilesIn(folder_), std::vector<std::string>{"checkpoint.h5"});
}

TEST_F(Safetensors, IsOfTheResultThatItComesWith) {
  WriteNumbered(RouterKind::kSoftFixed);
  result_.identity.config.training.seed += 1;
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     ExportSafetensors(result_, folder_ / "checkpoint.h5",
                                       path_);
                   }),
                   (folder_ / "checkpoint.h5").string(),
                   "are of different runs", "train the run again"));
  EXPECT_EQ(FilesIn(folder_), std::vector<std::string>{"checkpoint.h5"});
}

TEST_F(Safetensors, ReplacesOnlyItsKindAndNoFileOfTheRun) {
  const auto refusal = [&](const std::string& name) {
    return MessageOf<ConfigError>(
        [&] { RequireExportable(folder_ / name, folder_ / "run"); });
  };
  for (const std::string name :
       {"checkpoint.h5", "metrics.jsonl", "result.h5"}) {
    EXPECT_TRUE(Says(refusal("run/" + name), "the same command", name));
  }
  // Folders that do not exist yet, and so would be found to be ones only after
  // the training.
  for (const std::string name : {"run", "run/"}) {
    EXPECT_EQ(refusal(name), "--export " + (folder_ / name).string() +
                                 ": the run makes a folder of that name for "
                                 "its files; choose another name");
  }
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] {
                     RequireExportable(folder_ / "runs", folder_ / "runs/a/b");
                   }),
                   "runs: the run makes a folder of that name"));
  WriteNumbered(RouterKind::kSparse);
  WriteFileAtomically(folder_ / "empty", "");
  WriteFileAtomically(folder_ / "text", "a text of more than nine bytes");
  // One byte too short for its header, and a header that is no JSON.
  std::string header("\5\0\0\0\0\0\0\0{   ", 12);
  WriteFileAtomically(folder_ / "short", header);
  header.replace(8, 4, "[   ]");
  WriteFileAtomically(folder_ / "array", header);
  // Headers of one byte and of 256, and one whose last byte is missing.
  WriteFileAtomically(folder_ / "least", std::string("\1\0\0\0\0\0\0\0{", 9));
  header.assign("\0\1\0\0\0\0\0\0{", 9);
  header.resize(8 + 256, ' ');
  WriteFileAtomically(folder_ / "larger", header);
  WriteFileAtomically(folder_ / "cut", header.substr(0, 8 + 255));
  for (const char* name :
       {"checkpoint.h5", "empty", "text", "short", "array", "cut"}) {
    EXPECT_TRUE(Says(refusal(name), "not a safetensors file")) << name;
  }
  ExportSafetensors(result_, folder_ / "checkpoint.h5", path_);
  for (const char* name :
       {"model.safetensors", "least", "larger", "new", "run/new"}) {
    EXPECT_NO_THROW(RequireExportable(folder_ / name, folder_ / "run")) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] {
                     RequireExportable(folder_ / "none/x", folder_ / "run");
                   }),
                   "none/x"));
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>(
                       [&] { RequireExportable(folder_, folder_ / "run"); }),
                   "cannot write"));
}

}  // namespace
}  // namespace softmoe::trainer

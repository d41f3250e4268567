// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/safetensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/input_file.h"
#include "core/files/replacing.h"
#include "core/process/stop_signal.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result_file.h"

namespace softmoe::trainer {
namespace {

constexpr size_t kAlignment = 8;
constexpr int kLengthBytes = 8;  // of the header, before it

std::string Header(const ParameterLayout& layout,
                   const Checkpoint& checkpoint) {
  const RunIdentity& identity = checkpoint.identity();
  const TrainState& state = checkpoint.state();
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"config", ConfigToToml(identity.config)},
                            {"config_hash", ConfigHash(identity.config)},
                            {"tau", nlohmann::json(state.tau).dump()},
                            {"step", std::to_string(state.step)},
                            {"code_version", state.code_version}};
  VisitTokenTexts(identity.tokens,
                  [&](IdentityPart, const char* name, const std::string& text) {
                    header["__metadata__"][name] = text;
                  });
  for (const ParameterTensor& tensor : layout.tensors) {
    const auto at = [](int64_t number) {
      return number * static_cast<int64_t>(sizeof(float));
    };
    header[tensor.name] = {
        {"dtype", "F32"},
        {"shape", tensor.shape},
        {"data_offsets", {at(tensor.offset), at(tensor.offset + tensor.size)}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

// Judges by the first bytes. Throws EnvironmentError if it cannot be read.
bool IsSafetensors(const std::filesystem::path& path) {
  const InputFile file(path);
  constexpr int64_t kBegin = kLengthBytes + 1;
  if (file.size() < kBegin) return false;
  unsigned char begin[kBegin];
  file.Read(0, kBegin, begin);
  uint64_t length = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i) length = length << 8 | begin[i];
  return length <= static_cast<uint64_t>(file.size() - kLengthBytes) &&
         begin[kLengthBytes] == '{';
}

}  // namespace

void ExportSafetensors(const RunResult& result,
                       const std::filesystem::path& checkpoint,
                       const std::filesystem::path& path) {
  static_assert(std::endian::native == std::endian::little);
  const Checkpoint from(checkpoint);
  if (const std::string other = WhyNotFinal(result, from); !other.empty()) {
    throw DataError(
        checkpoint.string() + ": " + other +
        "; put back the checkpoint that was there, or delete the result and "
        "this file to have the same command train the run again");
  }
  const ParameterLayout layout(from.identity().config);
  const std::vector<float> parameters = from.ReadParameters(layout.total);
  const std::string header = Header(layout, from);
  const uint64_t length = header.size();
  static_assert(sizeof(length) == kLengthBytes);
  // A process that a signal ends leaves its temporary file, which may be large.
  const StopSignal stop;
  AtomicFile file(path);
  file.Write(&length, sizeof(length));
  file.Write(header);
  constexpr size_t kBlock = size_t{1} << 20;
  for (size_t begin = 0; begin < parameters.size(); begin += kBlock) {
    stop.ThrowIfRequested(fmt::format(
        "the run is finished, but its parameters were not written to {}; the "
        "same command writes them",
        path.string()));
    const size_t count = std::min(kBlock, parameters.size() - begin);
    file.Write(parameters.data() + begin, count * sizeof(float));
  }
  file.Commit();
}

void RequireExportable(const std::filesystem::path& path,
                       const std::filesystem::path& run_folder) {
  RefuseReplacing("--export", path,
                  {run_folder / kCheckpointName, run_folder / kMetricsName,
                   run_folder / kResultName});
  RequireRegularOrAbsent(path);
  if (std::filesystem::exists(path) && !IsSafetensors(path)) {
    throw ConfigError("--export " + path.string() +
                      ": that file exists and is not a safetensors file; "
                      "choose another name, or delete it");
  }
  for (std::filesystem::path folder = run_folder; folder.has_relative_path();
       folder = folder.parent_path()) {
    if (!IsSameFile(path, folder)) continue;
    throw ConfigError("--export " + path.string() +
                      ": the run makes a folder of that name for its files; "
                      "choose another name");
  }
  // If `path` lies in the run's folder, the run itself makes that folder.
  if (!IsSameFile(path.parent_path(), run_folder)) AtomicFile{path};
}

}  // namespace softmoe::trainer

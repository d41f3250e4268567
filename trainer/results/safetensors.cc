// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/safetensors.h"

#include <bit>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "core/files/atomic_file.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"

namespace softmoe::trainer {
namespace {

constexpr size_t kAlignment = 8;

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

}  // namespace

void ExportSafetensors(const std::filesystem::path& checkpoint,
                       const std::filesystem::path& path) {
  static_assert(std::endian::native == std::endian::little);
  const Checkpoint from(checkpoint);
  const ParameterLayout layout(from.identity().config);
  const std::vector<float> parameters = from.ReadParameters(layout.total);
  const std::string header = Header(layout, from);
  const uint64_t length = header.size();
  AtomicFile file(path);
  file.Write(&length, sizeof(length));
  file.Write(header);
  file.Write(parameters.data(), parameters.size() * sizeof(float));
  file.Commit();
}

}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
#include "optimized/initialize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/errors.h"
#include "core/philox.h"

namespace softmoe::optimized {
namespace {

// Elements [begin, end) of one tensor; `begin` is a multiple of 4.
void FillNormal(const RandomKey& key, double std, int64_t begin, int64_t end,
                float* tensor) {
  for (int64_t e = begin; e < end; e += 4) {
    const std::array<uint32_t, 4> words = PhiloxWords(key, e / 4);
    const std::array<double, 2> low = NormalsFromWords(words[0], words[1]);
    const std::array<double, 2> high = NormalsFromWords(words[2], words[3]);
    const double z[4] = {low[0], low[1], high[0], high[1]};
    for (int64_t i = e; i < std::min(e + 4, end); ++i) {
      tensor[i] = static_cast<float>(std * z[i - e]);
    }
  }
}

// The standard deviation of a tensor that is drawn.
double InitialDeviation(const Config& config, InitKind init) {
  const ModelConfig& m = config.model;
  switch (init) {
    case InitKind::kScaledNormal:
      return m.init_std / std::sqrt(2.0 * static_cast<double>(m.num_layers));
    case InitKind::kRouterNormal:
      return config.router_init_std();
    default:
      return m.init_std;
  }
}

}  // namespace

void InitializeTensor(const Config& config, const ParameterLayout& layout,
                      size_t tensor_index, uint64_t seed,
                      std::span<float> values, ThreadPool& pool) {
  const ParameterTensor& tensor = layout.tensors[tensor_index];
  SOFTMOE_CHECK(static_cast<int64_t>(values.size()) == tensor.size)
      << values.size() << " of " << tensor.size << " values";
  constexpr int64_t kBlock = 4096;
  switch (tensor.init) {
    case InitKind::kOnes:
      std::ranges::fill(values, 1.0f);
      break;
    case InitKind::kZeros:
      std::ranges::fill(values, 0.0f);
      break;
    case InitKind::kNormal:
    case InitKind::kScaledNormal:
    case InitKind::kRouterNormal: {
      const double std = InitialDeviation(config, tensor.init);
      const RandomKey key = {.seed = seed,
                             .stream = RandomStream::kParameters,
                             .step = 0,
                             .layer = static_cast<uint32_t>(tensor_index)};
      pool.ParallelForBlocks(tensor.size, kBlock,
                             [&](int64_t begin, int64_t end) {
                               FillNormal(key, std, begin, end, values.data());
                             });
      break;
    }
  }
}

void InitializeParameters(Model& model, uint64_t seed, ThreadPool& pool) {
  for (size_t i = 0; i < model.layout().tensors.size(); ++i) {
    const ParameterTensor& tensor = model.layout().tensors[i];
    std::vector<float> values(static_cast<size_t>(tensor.size));
    InitializeTensor(model.config(), model.layout(), i, seed, values, pool);
    model.WriteParameters(values, tensor.offset);
  }
}

}  // namespace softmoe::optimized

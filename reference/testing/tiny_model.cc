// SPDX-License-Identifier: Apache-2.0
#include "reference/testing/tiny_model.h"

#include <cmath>

#include "core/config/parameter_layout.h"
#include "core/philox.h"
#include "reference/testing/random_matrix.h"

namespace softmoe::reference::testing {

Config TinyConfig(RouterKind kind) {
  Config config;
  config.model.num_layers = 2;
  config.model.d_model = 8;
  config.model.num_heads = 2;
  config.model.d_ffn = 12;
  config.model.num_experts = 5;
  config.model.vocab_size = 11;
  config.model.sequence_length = 6;
  config.model.rope_base = 100;
  config.router.kind = kind;
  config.router.mean_active_experts = kind == RouterKind::kSparse ? 2 : 1.5;
  config.router.expansion_factor = 1.3;  // cap 2
  config.router.noise_amplitude = 0.1;
  config.router.aux_loss_coeff = 0.5;
  config.router.z_loss_coeff = 0.25;
  config.training.seed = 7;
  return config;
}

RoutingState TinyRouting() {
  return {.temperature = 1.25, .tau = 1.25, .noise = true, .step = 3};
}

Vector TinyParameters(const Config& config, uint64_t seed) {
  const ParameterLayout layout(config);
  Vector parameters(layout.total);
  uint32_t which = 0;
  for (const ParameterTensor& tensor : layout.tensors) {
    // The last two dimensions are a matrix [in, out]; tables have width 1.
    const bool table = tensor.offset == layout.embedding;
    const double rows =
        tensor.shape.size() < 2
            ? 1
            : static_cast<double>(tensor.shape[tensor.shape.size() - 2]);
    const double columns = static_cast<double>(tensor.shape.back());
    const bool head = tensor.offset == layout.head_weight;
    double scale = 1 / std::sqrt(head ? columns : rows);
    if (table) scale = 1;
    if (tensor.init == InitKind::kOnes) scale = 0.25;
    if (tensor.init == InitKind::kZeros) scale = 0.75;  // budget logits
    Vector values = RandomVector(tensor.size, seed, ++which, scale);
    if (tensor.init == InitKind::kOnes) values.array() += 1;
    parameters.segment(tensor.offset, tensor.size) = values;
  }
  return parameters;
}

TinyTokens::TinyTokens(const Config& config, int64_t num_sequences,
                       uint64_t seed)
    : num_sequences(num_sequences) {
  const int64_t num_tokens = num_sequences * config.model.sequence_length;
  const RandomKey key{seed, RandomStream::kTestData, 500000};
  const uint32_t vocab = static_cast<uint32_t>(config.model.vocab_size);
  for (int64_t t = 0; t < num_tokens; ++t) {
    const auto words = PhiloxWords(key, static_cast<uint64_t>(t));
    inputs.push_back(static_cast<int32_t>(words[0] % vocab));
    targets.push_back(static_cast<int32_t>(words[1] % vocab));
  }
}

BalanceGroup TinyTokens::Group() const {
  return {.num_sequences = num_sequences,
          .inputs = inputs,
          .targets = targets,
          .first_token = 48};
}

}  // namespace softmoe::reference::testing

// SPDX-License-Identifier: Apache-2.0
#include "optimized/testing/ranked_training.h"

#include <limits>

#include "core/errors.h"
#include "core/files/sha256.h"
#include "optimized/initialize.h"

namespace softmoe::optimized {
namespace {

constexpr int64_t kLength = 5, kVocabulary = 17;

Trained Train(Model& model, Updater& updater, ThreadPool& pool, int begin,
              int end, const TrainedState* from) {
  if (from != nullptr) {
    model.WriteParameters(from->parameters, 0);
    updater.WriteMoments(from->first_moment, from->second_moment);
  } else {
    InitializeParameters(model, 4, pool);
  }
  Trained trained;
  for (int update = begin; update < end; ++update) {
    trained.updates.push_back(TrainUpdate(updater, update));
  }
  trained.last_gradient = updater.ReadGradient();
  trained.state = {model.ReadParameters(), updater.ReadFirstMoment(),
                   updater.ReadSecondMoment()};
  return trained;
}

template <typename T>
void Add(const std::vector<T>& values, Sha256* hash) {
  hash->Update(values.data(), values.size() * sizeof(T));
}
template <typename T>
void Add(T value, Sha256* hash) {
  hash->Update(&value, sizeof(value));
}

}  // namespace

Config GroupsOfOneSequence(int64_t groups) {
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 8,
                  .num_heads = 2,
                  .d_ffn = 6,
                  .num_experts = 3,
                  .vocab_size = kVocabulary,
                  .sequence_length = kLength};
  config.model.init_std = 0.3;
  config.router.kind = RouterKind::kSoftLearned;
  config.router.mean_active_experts = 1.5;
  config.router.noise = NoiseKind::kLogitGauss;
  config.router.noise_amplitude = 0.1;
  config.training.global_batch_sequences = groups;
  config.training.balance_group_sequences = 1;
  return config;
}

Config LargerConfig(int64_t groups) {
  Config config = GroupsOfOneSequence(groups);
  config.model.d_model = 32;
  config.model.d_ffn = 40;
  config.model.num_experts = 4;
  config.model.init_std = 0.1;
  return config;
}

UpdateText::UpdateText(int64_t update, int64_t groups) {
  for (int64_t i = 0; i <= groups * kLength; ++i) {
    tokens_.push_back(
        static_cast<int32_t>((i * i * 7 + update * i) % kVocabulary));
  }
}

Batch UpdateText::Group(int64_t group) const {
  const auto tokens = std::span<const int32_t>(tokens_).subspan(
      static_cast<size_t>(group * kLength), kLength + 1);
  return {1, tokens.first(kLength), tokens.subspan(1), group * kLength};
}

UpdateGradient TrainUpdate(Updater& updater, int update) {
  const UpdateText text(update, updater.num_groups());
  const RoutingState routing{
      .temperature = 1.5, .tau = 1.0, .noise = true, .step = update};
  UpdateGradient gradient = updater.ComputeGradient(
      routing, [&](int64_t group) { return text.Group(group); });
  updater.Apply(0.05, update);
  return gradient;
}

Trained TrainAlone(const Config& config, int threads, int begin, int end,
                   const TrainedState* from, Device& device) {
  ThreadPool pool(threads);
  const auto model = MakeModel(config, 1, pool, device);
  const auto updater = model->MakeUpdater();
  return Train(*model, *updater, pool, begin, end, from);
}

Trained TrainRank(const Config& config, int threads, Communicator& communicator,
                  int begin, int end, const TrainedState* from, Device& device,
                  CarrierKind carrier) {
  ThreadPool pool(threads);
  const auto model =
      MakeModel(config, 1, pool, device, Recompute::kNone, &communicator);
  const auto updater = model->MakeUpdater(communicator, carrier);
  return Train(*model, *updater, pool, begin, end, from);
}

void UpdateWithInfinity(Model& model, Communicator& communicator,
                        std::span<int> unchanged) {
  ThreadPool pool(1);
  InitializeParameters(model, 4, pool);
  const auto updater = model.MakeUpdater(communicator, CarrierKind::kHost);
  if (communicator.rank() == 1) {
    const float infinity[] = {std::numeric_limits<float>::infinity()};
    model.WriteParameters(infinity, model.layout().head_weight + 2);
  }
  const std::vector<float> before = model.ReadParameters();
  const UpdateText text(0, 4);
  try {
    updater->ComputeGradient({.tau = 1.0},
                             [&](int64_t group) { return text.Group(group); });
  } catch (const Error& error) {
    unchanged[static_cast<size_t>(communicator.rank())] =
        model.ReadParameters() == before && error.code() == ExitCode::kFailed;
    throw;
  }
}

void WriteHugeLastNorm(Model& model) {
  const std::vector<float> weights(
      static_cast<size_t>(model.config().model.d_model), 1e25f);
  model.WriteParameters(weights, model.layout().final_norm);
}

std::string Digest(const Trained& trained) {
  Sha256 hash;
  Add(trained.state.parameters, &hash);
  Add(trained.state.first_moment, &hash);
  Add(trained.state.second_moment, &hash);
  Add(trained.last_gradient, &hash);
  for (const UpdateGradient& update : trained.updates) {
    Add(update.norm, &hash);
    for (const StepStats& group : update.groups) {
      Add(group.num_tokens, &hash);
      Add(group.loss_sum, &hash);
      for (const LayerStats& layer : group.layers) {
        Add(layer.tokens_per_expert, &hash);
        Add(layer.active_histogram, &hash);
        Add(layer.tokens_below_cutoff, &hash);
        Add(layer.load_balance_loss, &hash);
        Add(layer.z_loss, &hash);
      }
    }
  }
  return Sha256Hex(hash.Finish());
}

}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
//
// ranked_training.h - a small model that tests train, alone or as one of
// several ranks, and the results that must then have the same bits.
#ifndef SOFTMOE_OPTIMIZED_TESTING_RANKED_TRAINING_H_
#define SOFTMOE_OPTIMIZED_TESTING_RANKED_TRAINING_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "optimized/communicator/communicator.h"
#include "optimized/device.h"
#include "optimized/model.h"
#include "optimized/step.h"
#include "optimized/updater.h"

namespace softmoe::optimized {

// A configuration of `groups` balance groups of one sequence, with noise, whose
// parameters fill less than one block of the norm.
Config GroupsOfOneSequence(int64_t groups);
// The same configuration with parameters that fill more than five blocks, so
// that each of a few ranks has a shard.
Config LargerConfig(int64_t groups);

// The text of one update; any 17 updates in a row have different ones.
class UpdateText {
 public:
  UpdateText(int64_t update, int64_t groups);
  Batch Group(int64_t group) const;

 private:
  std::vector<int32_t> tokens_;
};

// What a checkpoint holds.
struct TrainedState {
  std::vector<float> parameters, first_moment, second_moment;
  friend bool operator==(const TrainedState&, const TrainedState&) = default;
};

struct Trained {
  TrainedState state;
  std::vector<float> last_gradient;
  std::vector<UpdateGradient> updates;
};

inline constexpr int kUpdates = 20;

// Updates [begin, end), from the initial parameters or from `from`, by one
// process, or by the rank of `communicator`.
Trained TrainAlone(const Config& config, int threads, int begin = 0,
                   int end = kUpdates, const TrainedState* from = nullptr,
                   Device& device = Cpu());
Trained TrainRank(const Config& config, int threads, Communicator& communicator,
                  int begin = 0, int end = kUpdates,
                  const TrainedState* from = nullptr, Device& device = Cpu(),
                  CarrierKind carrier = CarrierKind::kHost);

// Does one of those updates.
UpdateGradient TrainUpdate(Updater& updater, int update);

// Does one update of four groups, with a weight that is infinite on rank 1.
// Throws the resulting error; sets the rank's element of `unchanged` to 1 if
// that is an Error that left its parameters as they were.
void UpdateWithInfinity(Model& model, Communicator& communicator,
                        std::span<int> unchanged);

// Writes 1e25 for the weights of the last norm: all gradients stay finite, but
// not their squares as floats.
void WriteHugeLastNorm(Model& model);

// SHA-256 of all of it.
std::string Digest(const Trained& trained);

// Whether two passes counted the same, bit for bit.
inline bool SameStats(const StepStats& a, const StepStats& b) {
  return a.num_tokens == b.num_tokens && a.loss_sum == b.loss_sum &&
         std::ranges::equal(
             a.layers, b.layers, [](const LayerStats& x, const LayerStats& y) {
               return x.tokens_per_expert == y.tokens_per_expert &&
                      x.active_histogram == y.active_histogram &&
                      x.tokens_below_cutoff == y.tokens_below_cutoff &&
                      x.load_balance_loss == y.load_balance_loss &&
                      x.z_loss == y.z_loss;
             });
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_TESTING_RANKED_TRAINING_H_

// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/shards.h"
#include "optimized/rank_groups.h"
#include "optimized/step.h"
#include "trainer/run/resources.h"
#include "trainer/run/schedules.h"

namespace softmoe::trainer {
namespace {

// Replaces each rank's values by those of all ranks, in the order of the ranks.
void GatherValues(optimized::Communicator& communicator,
                  std::vector<float>* values) {
  const int ranks = communicator.size();
  std::vector<int64_t> sizes(static_cast<size_t>(ranks));
  const auto self = static_cast<size_t>(communicator.rank());
  sizes[self] = std::ssize(*values);
  communicator.Gather<int64_t>(optimized::ShareOut(ranks, 1, ranks), sizes);
  optimized::Shards shards;
  int64_t end = 0;
  for (const int64_t size : sizes) {
    shards.push_back({end, end + size});
    end += size;
  }
  values->resize(static_cast<size_t>(end));
  std::move_backward(values->begin(), values->begin() + sizes[self],
                     values->begin() + shards[self].end);
  communicator.Gather<float>(shards, *values);
}

// No tau separates equal values. Moves the rank to the nearer end of those that
// equal the rank-th value, or to the lower end if no value is above them.
void PassTies(std::span<const float> values, RankMidpoint& result) {
  const float tied = result.larger;
  float above = std::numeric_limits<float>::infinity(), below = 0;
  int64_t num_above = 0, num_tied = 0;
  for (const float value : values) {
    num_above += value > tied;
    num_tied += value == tied;
    if (value > tied) above = std::min(above, value);
    if (value < tied) below = std::max(below, value);
  }
  const int64_t surplus = num_above + num_tied - result.rank;
  if (num_above > 0 && (tied == 0 || result.rank - num_above < surplus)) {
    result.larger = above;
    result.rank = num_above;
  } else {
    result.smaller = below;
    result.rank = num_above + num_tied;
  }
}

}  // namespace

RankMidpoint FindRankMidpoint(std::span<float> values, int64_t rank) {
  for (const float value : values) {
    if (value >= 0.0f && !std::isinf(value)) continue;
    throw optimized::DivergedError(fmt::format(
        "calibrating tau: a soft weight ratio is {}, expected a finite number "
        ">= 0; the initial parameters or the router are broken",
        value));
  }
  if (values.size() < 2) {
    throw DataError(fmt::format(
        "calibrating tau needs at least 2 soft weights, found {}; use more "
        "calibration_batches or longer sequences",
        values.size()));
  }
  RankMidpoint result;
  result.rank = std::clamp<int64_t>(rank, 1, std::ssize(values) - 1);
  const auto nth = values.begin() + (result.rank - 1);
  std::nth_element(values.begin(), nth, values.end(), std::greater<>());
  result.larger = *nth;
  result.smaller = *std::max_element(nth + 1, values.end());
  if (result.smaller == result.larger) PassTies(values, result);
  result.midpoint = 0.5 * (static_cast<double>(result.larger) +
                           static_cast<double>(result.smaller));
  return result;
}

TauCalibration CalibrateTau(optimized::Model& model, const Dataset& data,
                            const StopPoll& poll) {
  optimized::SingleCommunicator alone;
  return CalibrateTau(model, data, alone, poll);
}

TauCalibration CalibrateTau(optimized::Model& model, const Dataset& data,
                            optimized::Communicator& communicator,
                            const StopPoll& poll) {
  const Config& config = model.config();
  SOFTMOE_CHECK(TraitsOf(config).cutoff);
  const int64_t length = config.model.sequence_length;
  const int64_t group = config.training.balance_group_sequences;
  const int64_t batch_sequences = config.training.global_batch_sequences;
  const optimized::RoutingState routing{.temperature = Temperature(config, 0),
                                        .tau = 0,
                                        .noise = false,
                                        .step = 0};

  std::vector<int32_t> inputs(group * length), targets(group * length);
  const optimized::GroupRange own =
      optimized::GroupsOfRank(optimized::NumGroups(config.training),
                              communicator.size(), communicator.rank());
  std::vector<float> ratios;
  ratios.reserve(static_cast<size_t>(NumCalibrationRatios(config)));
  for (int64_t batch = 0; batch < config.router.calibration_batches; ++batch) {
    for (int64_t g = own.begin; g < own.end; ++g) {
      poll();
      const int64_t first = g * group;
      data.FillBatch(batch, first, group, inputs, targets);
      const std::vector<float> more =
          model.CollectSoftWeightRatios({.num_sequences = group,
                                         .inputs = inputs,
                                         .targets = targets,
                                         .first_token = first * length},
                                        routing);
      ratios.insert(ratios.end(), more.begin(), more.end());
    }
  }
  GatherValues(communicator, &ratios);
  const double token_layers =
      static_cast<double>(config.router.calibration_batches) *
      static_cast<double>(batch_sequences * length * config.model.num_layers);
  const int64_t wanted =
      std::llround(config.router.mean_active_experts * token_layers);
  const RankMidpoint found = FindRankMidpoint(ratios, wanted);
  return {.tau = found.midpoint,
          .num_ratios = std::ssize(ratios),
          .rank = found.rank,
          .wanted = wanted};
}

}  // namespace softmoe::trainer

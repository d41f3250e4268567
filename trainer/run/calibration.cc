// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/calibration.h"

#include <cmath>
#include <iterator>
#include <vector>

#include "core/errors.h"
#include "trainer/run/rank_midpoint.h"
#include "trainer/run/resources.h"
#include "trainer/run/schedules.h"

namespace softmoe::trainer {

TauCalibration CalibrateTau(optimized::Model& model, const Dataset& data,
                            const StopPoll& poll) {
  const Config& config = model.config();
  SOFTMOE_CHECK(config.router.kind != RouterKind::kSparse);
  const int64_t length = config.model.sequence_length;
  const int64_t group = config.training.balance_group_sequences;
  const int64_t batch_sequences = config.training.global_batch_sequences;
  const optimized::RoutingState routing{.temperature = Temperature(config, 0),
                                        .tau = 0,
                                        .noise = false,
                                        .step = 0};

  std::vector<int32_t> inputs(group * length), targets(group * length);
  std::vector<float> ratios;
  ratios.reserve(static_cast<size_t>(NumCalibrationRatios(config)));
  for (int64_t batch = 0; batch < config.router.calibration_batches; ++batch) {
    for (int64_t first = 0; first < batch_sequences; first += group) {
      poll();
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
  const double token_layers =
      static_cast<double>(config.router.calibration_batches) *
      static_cast<double>(batch_sequences * length * config.model.num_layers);
  const RankMidpoint found = FindRankMidpoint(
      ratios, std::llround(config.router.mean_active_experts * token_layers));
  return {.tau = found.midpoint,
          .num_ratios = std::ssize(ratios),
          .rank = found.rank};
}

}  // namespace softmoe::trainer

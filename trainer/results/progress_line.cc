// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/config/router_traits.h"
#include "core/text/progress.h"
#include "trainer/results/metrics.h"

namespace softmoe::trainer {
namespace {

// "AE 1.61 (min 1.00@L1 max 2.90@L10)": the mean and the layers at the ends.
std::string ActivePart(const StepRecord& record) {
  const std::vector<double>& layers = record.layer_active_experts;
  const auto [low, high] = std::minmax_element(layers.begin(), layers.end());
  return fmt::format(
      "{} (min {}@L{} max {}@L{})",
      Titled(metrics::kActiveExperts, record.active_experts),
      Shown(metrics::kLayerActiveExperts, *low), low - layers.begin() + 1,
      Shown(metrics::kLayerActiveExperts, *high), high - layers.begin() + 1);
}

// "k_l 1.00..2.70".
std::string AllocationPart(const StepRecord& record) {
  const auto [low, high] =
      std::minmax_element(record.allocation.begin(), record.allocation.end());
  return fmt::format("{}..{}", Titled(metrics::kAllocation, *low),
                     Shown(metrics::kAllocation, *high));
}

}  // namespace

std::string ProgressLine(const Config& config, const StepRecord& record,
                         double seconds_per_step) {
  std::vector<std::string> parts = {
      fmt::format("step {}/{}", record.step, config.training.steps),
      Titled(metrics::kLoss, record.loss),
      // What the objective adds to the loss.
      "aux " + Shown(metrics::kLoadBalanceLoss,
                     record.load_balance_loss + record.z_loss),
      ActivePart(record)};
  if (record.zero_active_fraction > 0) {
    parts.push_back(
        Titled(metrics::kZeroActiveFraction, record.zero_active_fraction));
  }
  const RouterTraits traits = TraitsOf(config);
  if (traits.lapsum) parts.push_back(AllocationPart(record));
  if (traits.temperature) {
    parts.push_back(Titled(metrics::kTemperature, record.temperature));
  }
  parts.push_back(Titled(metrics::kGradientNorm, record.gradient_norm));
  parts.push_back(Titled(metrics::kLearningRate, record.learning_rate));
  parts.push_back(Shown(metrics::kStepSeconds, record.seconds));
  parts.push_back(ShortCount(record.tokens_per_second) +
                  metrics::kTokensPerSecond.shown_unit);
  parts.push_back(
      "eta " +
      FormatDuration(seconds_per_step *
                     static_cast<double>(config.training.steps - record.step)));
  return fmt::format("{}", fmt::join(parts, " | "));
}

std::string ShortCount(double count) {
  const char* suffix = "";
  for (const char* next : {"k", "M", "G", "T"}) {
    // 999.5 and above would print as 1000.
    if (count < 999.5) break;
    count /= 1000;
    suffix = next;
  }
  const int decimals = *suffix == '\0' || count >= 99.95 ? 0
                       : count >= 9.995                  ? 1
                                                         : 2;
  return fmt::format("{:.{}f}{}", count, decimals, suffix);
}

}  // namespace softmoe::trainer

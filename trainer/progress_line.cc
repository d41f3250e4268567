// SPDX-License-Identifier: Apache-2.0
#include "trainer/progress_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/progress.h"

namespace softmoe::trainer {
namespace {

// "AE 1.61 (min 1.00@L0 max 2.90@L9)": the mean and the layers at the ends.
std::string ActivePart(const StepRecord& record) {
  const auto [low, high] = std::minmax_element(
      record.layer_active_experts.begin(), record.layer_active_experts.end());
  return fmt::format("AE {:.2f} (min {:.2f}@L{} max {:.2f}@L{})",
                     record.active_experts, *low,
                     low - record.layer_active_experts.begin(), *high,
                     high - record.layer_active_experts.begin());
}

}  // namespace

std::string ProgressLine(const Config& config, const StepRecord& record,
                         double seconds_per_step) {
  std::string line =
      fmt::format("step {}/{} | loss {:.4f} | aux {:.3g} | {}", record.step,
                  config.training.steps, record.loss,
                  record.load_balance_loss + record.z_loss, ActivePart(record));
  if (record.zero_active_fraction > 0) {
    line += " | " + ZeroActiveText(config, record.zero_active_fraction);
  }
  if (config.router.kind != RouterKind::kSparse) {
    const auto [low, high] =
        std::minmax_element(record.allocation.begin(), record.allocation.end());
    line += fmt::format(" | k_l {:.2f}..{:.2f} | T {:.2f}", *low, *high,
                        record.temperature);
  }
  const double remaining =
      seconds_per_step *
      static_cast<double>(config.training.steps - record.step);
  line += fmt::format(
      " | gnorm {:.2f} | lr {:.1e} | {:.0f} ms | {} tok/s | "
      "eta {}",
      record.gradient_norm, record.learning_rate, 1e3 * record.seconds,
      ShortCount(record.tokens_per_second), FormatDuration(remaining));
  return line;
}

std::string ZeroActiveText(const Config& config, double zero_active_fraction) {
  return fmt::format(
      "{} {:.1f}%",
      config.router.fallback == Fallback::kTop1 ? "fallback" : "no expert",
      100 * zero_active_fraction);
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

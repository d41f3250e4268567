// SPDX-License-Identifier: Apache-2.0
#include "trainer/progress_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace softmoe::trainer {
namespace {

// "AE 1.61 (min 1.00@L0 max 2.90@L9)": the mean and the layers at the ends.
std::string ActivePart(const StepRecord& record) {
  const auto [low, high] = std::minmax_element(record.layer_active.begin(),
                                               record.layer_active.end());
  return fmt::format("AE {:.2f} (min {:.2f}@L{} max {:.2f}@L{})",
                     record.active_experts, *low,
                     low - record.layer_active.begin(), *high,
                     high - record.layer_active.begin());
}

}  // namespace

std::string ProgressLine(const Config& config, const StepRecord& record,
                         double seconds_per_step) {
  std::string line =
      fmt::format("step {}/{} | loss {:.4f} | aux {:.3g} | {}", record.step,
                  config.training.steps, record.loss,
                  record.load_balance_loss + record.z_loss, ActivePart(record));
  if (record.zero_active_fraction > 0) {
    line +=
        fmt::format(" | no expert {:.1f}%", 100 * record.zero_active_fraction);
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
      ShortCount(record.tokens_per_second), ShortDuration(remaining));
  return line;
}

std::string ShortDuration(double seconds) {
  const int64_t total = std::llround(seconds);
  if (total < 60) return fmt::format("{}s", total);
  if (total < 3600) return fmt::format("{}m{:02}", total / 60, total % 60);
  const int64_t minutes = std::llround(seconds / 60);
  if (minutes < 24 * 60) {
    return fmt::format("{}h{:02}", minutes / 60, minutes % 60);
  }
  const int64_t hours = std::llround(seconds / 3600);
  return fmt::format("{}d{:02}h", hours / 24, hours % 24);
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

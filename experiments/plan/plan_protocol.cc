// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_protocol.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "core/config/router_traits.h"
#include "core/text/text_table.h"
#include "experiments/plan/initial_activity.h"
#include "experiments/plan/plan_tables.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {

std::string DescribeStillRuns(const std::vector<RowEstimate>& rows) {
  using trainer::metrics::kZeroActiveFraction;
  const std::string zero = kZeroActiveFraction.title;
  TextTable table({"row", "tau", "fallback", "start", zero, "middle", zero,
                   "end", "Train-AE"});
  std::map<std::string, StillRun> known;  // most rows are on several corpora
  std::set<std::string> shown;
  for (const RowEstimate& row : rows) {
    const Config& config = row.run.config;
    if (TraitsOf(config).exact_k) continue;
    Config key;
    key.model = config.model;
    key.router = config.router;
    // The corpora's steps differ by less than the printed digits.
    const std::string hash = ConfigHash(key);
    if (!shown.insert(row.run.row.id + "/" + hash).second) continue;
    const auto [entry, is_new] = known.try_emplace(hash);
    if (is_new) entry->second = EstimateStillRun(config);
    const StillRun& run = entry->second;
    std::vector<std::string> line = {
        row.run.row.id,
        fmt::format("{}{:.3f}", config.router.tau ? "" : "~", run.start.tau),
        config.router.fallback == Fallback::kTop1 ? "top1" : "none"};
    for (const InitialActivity* at : {&run.start, &run.middle}) {
      line.push_back(fmt::format("{:.2f}", at->active_experts));
      line.push_back(Shown(kZeroActiveFraction, at->zero_active_fraction));
    }
    line.push_back(fmt::format("{:.2f}", run.end.active_experts));
    line.push_back(fmt::format("{:.2f}", run.train.active_experts));
    table.Add(std::move(line));
  }
  if (table.num_rows() == 0) return "";
  return "Protocol\n" +
         Paragraph(
             "What soft rows would activate if their scores kept the spread "
             "with which they are drawn and every layer its allocation, by "
             "quadrature: where T starts, halfway, where it ends (without "
             "noise, as in Infer-AE), and in the mean of all steps.") +
         "\n" + table.Text();
}

}  // namespace softmoe::experiments

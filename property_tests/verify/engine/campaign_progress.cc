// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/campaign_progress.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace softmoe::verify {
namespace {

constexpr double kLogSeconds = 10;

}  // namespace

CampaignProgress::CampaignProgress(double seconds)
    : seconds_(seconds), progress_("verify", 0) {}

void CampaignProgress::Tell(const CaseResult& result) {
  ++cases_;
  const std::chrono::duration<double> passed = Clock::now() - start_;
  const double now = passed.count();
  const bool in_logs = now - last_in_logs_ >= kLogSeconds;
  if (in_logs) last_in_logs_ = now;
  std::string line = std::isfinite(seconds_)
                         ? fmt::format("fuzz {} of {}", FormatDuration(now),
                                       FormatDuration(seconds_))
                         : "run " + FormatDuration(now);
  line += fmt::format(" | {} cases", cases_);
  if (failures_ > 0) line += fmt::format(" | {} failures", failures_);
  progress_.Show(line + fmt::format(" | {} on {}", result.c.op, result.c.impl),
                 in_logs);
}

void CampaignProgress::TellFailure(const CaseResult& smallest) {
  ++failures_;
  progress_.Note(fmt::format("failure {}: {} on {}", failures_, smallest.c.op,
                             smallest.c.impl));
}

}  // namespace softmoe::verify

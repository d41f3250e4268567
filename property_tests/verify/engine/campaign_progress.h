// SPDX-License-Identifier: Apache-2.0
//
// campaign_progress.h - one line on stderr about a running campaign.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CAMPAIGN_PROGRESS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CAMPAIGN_PROGRESS_H_

#include <chrono>
#include <cstdint>

#include "core/text/progress.h"
#include "property_tests/verify/engine/check.h"

namespace softmoe::verify {

// "fuzz 42s of 10m00 | 1234 cases | lapsum on cpu:v4", rewritten in place on a
// terminal; elsewhere a new line every 10 seconds.
class CampaignProgress {
 public:
  // seconds: how long the campaign will take; infinity if it counts cases.
  explicit CampaignProgress(double seconds);

  void Tell(const CaseResult& result);
  // Call it before a new failure is printed on stdout.
  void TellFailure(const CaseResult& smallest);

 private:
  using Clock = std::chrono::steady_clock;

  double seconds_;
  Clock::time_point start_ = Clock::now();
  double last_in_logs_ = 0;  // seconds since the start
  int64_t cases_ = 0, failures_ = 0;
  Progress progress_;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CAMPAIGN_PROGRESS_H_

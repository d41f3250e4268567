// SPDX-License-Identifier: Apache-2.0
//
// campaign.h - runs many cases, one after the other: a given number of each
// (`verify run` and `grad`), or as many as time allows (`verify fuzz`).
//
// A campaign continues after a failure, shrinks new failures, counts known
// ones, and passes every result on at once, so that a crash loses nothing. When
// its time is over, it still judges the answers already received
// (Implementation::Holds).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CAMPAIGN_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CAMPAIGN_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/suite.h"

namespace softmoe::verify {

struct CampaignOptions {
  std::vector<std::string> ops;    // empty: all
  std::vector<std::string> impls;  // at least one
  CasePattern fixed;               // keys shared by all cases
  uint64_t seed = 0;
  uint32_t first = 0;  // the number of the first case
  // The number of cases of each operation on each implementation, and a time
  // limit in seconds.
  int64_t cases = std::numeric_limits<int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  // The most that sizes left open by `fixed` may be, unless what `fixed` gives
  // needs larger ones.
  int64_t max_size = std::numeric_limits<int64_t>::max();
  // Which cases of operations with edges come from DrawEdge: none; the first
  // ones, two per edge; or all.
  enum class Edges { kNone, kFirst, kAll };
  Edges edges = Edges::kNone;
  std::string command = "run";  // of verify, which checks a case again
  // How a case is checked.
  Checker check = [](const Case& c, Implementation& implementation) {
    return CheckCase(c, implementation);
  };
  bool shrink = true;
  // How many failures of one operation, implementation and output are shrunk;
  // further ones are only counted.
  int max_shrunk = 3;
  std::function<void(const CaseResult&)> on_result;
  std::function<void(const Failure&)> on_failure;  // each new one, once
  std::function<bool()> stop;                      // asked between cases
};

// Throws ConfigError for unknown names and keys, and as MakeImplementation
// does.
void CheckCampaign(const CampaignOptions& options);

// Makes the same checks before anything runs. Throws what CheckCase and the
// functions of the options throw, except StoppedError; Suite::ended_early says
// why not all was run.
Suite RunCampaign(const CampaignOptions& options);
// Does the same. *suite, which must be new, holds what was found so far even if
// this throws.
void RunCampaign(const CampaignOptions& options, Suite* suite);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_CAMPAIGN_H_

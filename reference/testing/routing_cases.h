// SPDX-License-Identifier: Apache-2.0
//
// routing_cases.h - the cases of the tiny model's gradient tests: every router,
// fallback, reading of the load balance and kind of noise.
#ifndef SOFTMOE_REFERENCE_TESTING_ROUTING_CASES_H_
#define SOFTMOE_REFERENCE_TESTING_ROUTING_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/router_traits.h"
#include "core/testing/config_test_util.h"
#include "reference/testing/tiny_model.h"

namespace softmoe::reference::testing {

struct RoutingCase {
  RouterKind kind;
  Fallback fallback;
  LoadBalanceKind load_balance;
  NoiseKind noise;

  uint64_t Seed() const {
    const int others = static_cast<int>(fallback) +
                       2 * static_cast<int>(load_balance) +
                       4 * static_cast<int>(noise);
    return 1 + static_cast<uint64_t>(kind) + kNumRouterKinds * others;
  }

  // "soft_learnedTop1MegatronInputJitter".
  std::string Name() const {
    const char* noises[] = {"NoNoise", "InputJitter", "LogitGauss"};
    return std::string(TraitsOf(kind).name) +
           (fallback == Fallback::kTop1 ? "Top1" : "None") +
           (load_balance == LoadBalanceKind::kSoft ? "Soft" : "Megatron") +
           noises[static_cast<int>(noise)];
  }
};

inline Config CaseConfig(const RoutingCase& c) {
  Config config = TinyConfig(c.kind);
  config.router.fallback = c.fallback;
  config.router.load_balance = c.load_balance;
  config.router.noise = c.noise;
  return config;
}

// With a low cutoff some tokens are at the cap, with a high one some have no
// active expert; both cutoffs meet every router, fallback and noise.
inline RoutingState CaseRouting(const RoutingCase& c) {
  RoutingState routing = TinyRouting();
  routing.tau = c.load_balance == LoadBalanceKind::kSoft ? 1.7 : 0.9;
  return routing;
}

inline std::vector<RoutingCase> AllRoutingCases() {
  std::vector<RoutingCase> cases;
  for (const RouterKind kind : kRouterKinds) {
    for (Fallback fallback : {Fallback::kNone, Fallback::kTop1}) {
      for (LoadBalanceKind balance :
           {LoadBalanceKind::kMegatron, LoadBalanceKind::kSoft}) {
        for (NoiseKind noise : {NoiseKind::kNone, NoiseKind::kInputJitter,
                                NoiseKind::kLogitGauss}) {
          cases.push_back({kind, fallback, balance, noise});
        }
      }
    }
  }
  return cases;
}

}  // namespace softmoe::reference::testing

#endif  // SOFTMOE_REFERENCE_TESTING_ROUTING_CASES_H_

// SPDX-License-Identifier: Apache-2.0
//
// router_traits.h - what each kind of router has, and the cap that follows.
//
// A new kind is an enumerator in config.h and a row here. Code that depends on
// whether there is a cutoff, a cap or a temperature asks for that trait, never
// for the kind. The reference is the exception: so as not to share the errors
// of this table, it asks for kinds and computes its caps itself.
#ifndef SOFTMOE_CORE_CONFIG_ROUTER_TRAITS_H_
#define SOFTMOE_CORE_CONFIG_ROUTER_TRAITS_H_

#include <cmath>
#include <cstdint>

#include "core/config/config.h"

namespace softmoe {

struct RouterTraits {
  const char* name;  // as TOML files and reports spell it
  bool exact_k;      // k experts for every token; otherwise on average
  bool lapsum;       // a token's weights sum to k_l; otherwise to 1 (softmax)
  bool learned_budget;  // k_l from budget logits; otherwise k in every layer
  bool temperature;     // T falls over the run; otherwise there is none, or 1
  bool cutoff;          // only weights above tau k_l / E; otherwise any
  bool cap;             // ceil(alpha k_l) experts at most; otherwise k
};

// Returns the row of `kind`; its name is nullptr if there is no such kind.
constexpr RouterTraits TraitsOf(RouterKind kind) {
  switch (kind) {  // a missing row, or a missing trait, does not compile
    case RouterKind::kSparse:
      return {.name = "sparse",
              .exact_k = true,
              .lapsum = false,
              .learned_budget = false,
              .temperature = false,
              .cutoff = false,
              .cap = false};
    case RouterKind::kSoftFixed:
      return {.name = "soft_fixed",
              .exact_k = false,
              .lapsum = true,
              .learned_budget = false,
              .temperature = true,
              .cutoff = true,
              .cap = true};
    case RouterKind::kSoftLearned:
      return {.name = "soft_learned",
              .exact_k = false,
              .lapsum = true,
              .learned_budget = true,
              .temperature = true,
              .cutoff = true,
              .cap = true};
  }
  return {};
}

constexpr RouterTraits TraitsOf(const Config& config) {
  return TraitsOf(config.router.kind);
}

inline constexpr int kNumRouterKinds = [] {
  int kinds = 0;
  while (TraitsOf(static_cast<RouterKind>(kinds)).name != nullptr) ++kinds;
  return kinds;
}();

// Whether the router has `trait`, a field of RouterTraits; true for nullptr.
constexpr bool HasTrait(const Config& config, bool RouterTraits::*trait) {
  return trait == nullptr || TraitsOf(config).*trait;
}

// Rounds the real number `experts` up to a whole number in [1, num_experts].
// The slack absorbs what rounding adds to k_l: 1.5000001 is no reason for a cap
// of 4, nor 6 + 2^-50 for counting 7 experts (DESIGN.md, rulings 5 and 22). NaN
// gives 1.
inline int64_t WholeExperts(double experts, int64_t num_experts) {
  constexpr double kSlack = 1e-6;
  const double whole = std::ceil(experts - kSlack);
  return static_cast<int64_t>(
      std::fmin(std::fmax(whole, 1), static_cast<double>(num_experts)));
}

// Returns c_l, the most experts of a token in a layer with k_l = mean_active.
inline int64_t MaxActive(const Config& config, double mean_active) {
  const double factor =
      TraitsOf(config).cap ? config.router.expansion_factor : 1.0;
  return WholeExperts(factor * mean_active, config.model.num_experts);
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_ROUTER_TRAITS_H_

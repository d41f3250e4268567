// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_names.h"

namespace softmoe::golden {

template <>
const NamedValues<Quantity>& Names() {
  static const NamedValues<Quantity> kNames = {
      {Quantity::kLoss, "loss"},
      {Quantity::kInferAe, "infer_ae"},
      {Quantity::kLogLoadVariance, "log_load_variance"},
      {Quantity::kHellaswag, "hellaswag"},
      {Quantity::kLateShare, "late_share"},
      {Quantity::kDepthOrder, "depth_order"},
      {Quantity::kEarlyMovement, "early_movement"},
      {Quantity::kHalvingCost, "halving_cost"},
      {Quantity::kLogThroughput, "log_throughput"}};
  return kNames;
}

template <>
const NamedValues<Against>& Names() {
  static const NamedValues<Against> kNames = {
      {Against::kZero, "zero"},
      {Against::kBudgetGroup, "budget_group"},
      {Against::kSparseCurve, "sparse_curve"},
      {Against::kRows, "rows"},
      {Against::kHalfOfSparseRange, "half_of_sparse_range"},
      {Against::kNextActiveExperts, "next_active_experts"}};
  return kNames;
}

template <>
const NamedValues<Holds>& Names() {
  static const NamedValues<Holds> kNames = {{Holds::kBelow, "below"},
                                            {Holds::kAbove, "above"},
                                            {Holds::kWithin, "within"}};
  return kNames;
}

template <>
const NamedValues<OfCases>& Names() {
  static const NamedValues<OfCases> kNames = {{OfCases::kEvery, "every"},
                                              {OfCases::kMost, "most"},
                                              {OfCases::kMean, "mean"},
                                              {OfCases::kNone, "none"}};
  return kNames;
}

template <>
const NamedValues<Noise>& Names() {
  static const NamedValues<Noise> kNames = {{Noise::kPaired, "paired"},
                                            {Noise::kPlain, "plain"}};
  return kNames;
}

}  // namespace softmoe::golden

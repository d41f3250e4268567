// SPDX-License-Identifier: Apache-2.0
//
// row_bounds.h - the error bounds of one row of scores, for LapSum weights,
// softmax and their gradients. Shared by the operations that contain these.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROW_BOUNDS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROW_BOUNDS_H_

#include <span>
#include <vector>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/operation.h"
#include "reference/lapsum.h"

namespace softmoe::verify {

struct LapSumRow {
  reference::LapSum solution;
  std::vector<Bounded> arguments;  // u
  std::vector<Bounded> weights;    // F(u)
  std::vector<Bounded> densities;  // f(u)
  std::vector<Bounded> shares;     // f / sum f, also where every f underflows
};
LapSumRow BoundLapSumRow(const reference::Vector& scores, double mean_active,
                         double temperature);

// S(r_j) of the definition: the mean_active for which the root equals score j.
double LapSumAtScore(const reference::Vector& scores, int64_t j,
                     double temperature);

// 1 where a weight is above 1/2, that is, where its score is above the root;
// this identifies the piece on which the weights are smooth. -1 for k <= 0 and
// 2 for k >= n, which hold the weights constant.
Tensor AboveRoot(const reference::Matrix& weights, double mean_active);

struct SoftmaxRow {
  std::vector<Bounded> weights;
  Bounded log_sum_exp;
};
SoftmaxRow BoundSoftmaxRow(const reference::Vector& scores);

// A gradient with respect to a row's scores, for the cotangents v of its
// weights, and to k and T if there are any: the reference's formula over shares
// that are divided by their sum, as an implementation may do at the end, and
// times 1/T.
struct WeightedGradient {
  Bounded mean;  // sum_i q_i v_i
  std::vector<Bounded> gradient;
  Bounded d_temperature;
};
WeightedGradient BoundLapSumGradient(const LapSumRow& row,
                                     std::span<const Bounded> v,
                                     double temperature);
WeightedGradient BoundSoftmaxGradient(std::span<const Bounded> weights,
                                      std::span<const Bounded> v);

// Adds to the errors of a gradient what it may lose because float may flush
// small weights to 0: such an expert may count as inactive, and its v as 0.
void AddFlushed(const LapSumRow& row, std::span<const Bounded> v,
                double temperature, WeightedGradient* gradient);

// The derivations of these bounds.
const Derivation& LapSumWeightsDerivation();
const Derivation& LapSumGradientDerivation();
const Derivation& SoftmaxDerivation();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_OPERATIONS_ROW_BOUNDS_H_

// SPDX-License-Identifier: Apache-2.0
#include "reference/load_balance.h"

#include <fmt/core.h>

#include "core/errors.h"
#include "reference/router.h"
#include "reference/softmax.h"

namespace softmoe::reference {
namespace {

void CheckGroup(const Matrix& rows) {
  if (rows.rows() < 1 || rows.cols() < 1) {
    throw ConfigError(
        fmt::format("load balance: the group has {} tokens and {} experts; it "
                    "needs at least one of each",
                    rows.rows(), rows.cols()));
  }
}

}  // namespace

LoadBalance SoftLoadBalance(double coeff, double mean_active,
                            const Matrix& soft_weights,
                            const BoolMatrix& active) {
  CheckGroup(soft_weights);
  SOFTMOE_CHECK(active.rows() == soft_weights.rows() &&
                active.cols() == soft_weights.cols());
  SOFTMOE_CHECK(mean_active > 0) << "mean_active=" << mean_active;
  LoadBalance balance;
  balance.fractions = formula::Fractions(active);
  balance.probabilities =
      formula::SoftProbabilities<double>(soft_weights, mean_active);
  balance.loss = formula::BalanceLoss<double>(coeff, balance.fractions,
                                              balance.probabilities);
  return balance;
}

Matrix SoftLoadBalanceGradient(double coeff, double mean_active,
                               const LoadBalance& balance, int64_t num_tokens) {
  const Vector per_token = formula::SoftLoadBalanceGradient<double>(
      coeff, mean_active, balance.fractions, num_tokens);
  return per_token.transpose().replicate(num_tokens, 1);
}

LoadBalance MegatronLoadBalance(double coeff, int64_t top,
                                const Matrix& scores) {
  CheckGroup(scores);
  // The sparse router is what is being counted: same order, same ties.
  const RouterSaved routed =
      RouterForward({.kind = RouterKind::kSparse, .max_active = top}, scores);
  LoadBalance balance;
  balance.fractions = formula::Fractions(routed.active);
  balance.probabilities =
      formula::MegatronProbabilities<double>(routed.soft_weights);
  balance.loss = formula::BalanceLoss<double>(coeff, balance.fractions,
                                              balance.probabilities);
  return balance;
}

Matrix MegatronLoadBalanceGradient(double coeff, const LoadBalance& balance,
                                   const Matrix& scores) {
  SOFTMOE_CHECK(balance.fractions.size() == scores.cols());
  Matrix d_scores(scores.rows(), scores.cols());
  for (Eigen::Index t = 0; t < scores.rows(); ++t) {
    d_scores.row(t) = formula::MegatronLoadBalanceGradient<double>(
        coeff, balance.fractions, Softmax(scores.row(t)), scores.rows());
  }
  return d_scores;
}

double ZLoss(double coeff, const Matrix& scores) {
  CheckGroup(scores);
  return formula::ZLoss<double>(coeff, scores);
}

Matrix ZLossGradient(double coeff, const Matrix& scores) {
  CheckGroup(scores);
  Matrix d_scores(scores.rows(), scores.cols());
  for (Eigen::Index t = 0; t < scores.rows(); ++t) {
    const Vector row = scores.row(t);
    d_scores.row(t) = formula::SquaredLogSumExpGradient<double>(
        2 * coeff / static_cast<double>(scores.rows()), LogSumExp(row),
        Softmax(row));
  }
  return d_scores;
}

int64_t BalanceTop(double mean_active, int64_t num_experts) {
  return MaxActive(/*expansion_factor=*/1, mean_active, num_experts);
}

}  // namespace softmoe::reference

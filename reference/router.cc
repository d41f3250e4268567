// SPDX-License-Identifier: Apache-2.0
#include "reference/router.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/errors.h"
#include "reference/lapsum.h"
#include "reference/softmax.h"

namespace softmoe::reference {
namespace {

void CheckSettings(const RouterSettings& settings, int64_t num_experts) {
  if (settings.max_active < 1 || settings.max_active > num_experts) {
    throw ConfigError(
        fmt::format("router: max_active is {}; it must be in [1, {}]",
                    settings.max_active, num_experts));
  }
  if (settings.kind == RouterKind::kSparse) return;
  // A learned allocation may exceed the experts; then every weight is 1.
  if (!(settings.mean_active > 0) || !std::isfinite(settings.mean_active)) {
    throw ConfigError(
        fmt::format("router: mean_active is {}; it must be above 0 and finite",
                    settings.mean_active));
  }
  if (!(settings.temperature > 0) || !std::isfinite(settings.temperature)) {
    throw ConfigError(
        fmt::format("router: temperature is {}; it must be finite and above 0",
                    settings.temperature));
  }
  if (!(settings.cutoff >= 0)) {
    throw ConfigError(fmt::format("router: cutoff is {}; it must be at least 0",
                                  settings.cutoff));
  }
}

void CheckScores(const Matrix& scores) {
  for (Eigen::Index t = 0; t < scores.rows(); ++t) {
    for (Eigen::Index e = 0; e < scores.cols(); ++e) {
      if (!std::isfinite(scores(t, e))) {
        throw NumericsError(fmt::format(
            "router: the score of token {}, expert {} is {}; scores "
            "must be finite: lower the learning rate, or look for "
            "the layer that diverged first",
            t, e, scores(t, e)));
      }
    }
  }
}

template <typename N>
void CheckSize(const Matrix& scores, const MatrixOf<N>& other) {
  SOFTMOE_CHECK(other.rows() == scores.rows() && other.cols() == scores.cols())
      << "[" << other.rows() << ", " << other.cols() << "] for scores ["
      << scores.rows() << ", " << scores.cols() << "]";
}

// The experts of one token, largest score first, ties: lower index first.
std::vector<Eigen::Index> ExpertsByScore(const Vector& scores) {
  std::vector<Eigen::Index> experts(scores.size());
  std::iota(experts.begin(), experts.end(), Eigen::Index{0});
  std::stable_sort(
      experts.begin(), experts.end(),
      [&](Eigen::Index a, Eigen::Index b) { return scores[a] > scores[b]; });
  return experts;
}

// T(z) = z 1[z > cutoff], at most max_active experts, and the fallback.
std::vector<Eigen::Index> ActiveExperts(const RouterSettings& settings,
                                        const Vector& scores,
                                        const Vector& soft_weights) {
  const std::vector<Eigen::Index> by_score = ExpertsByScore(scores);
  std::vector<Eigen::Index> active;
  for (int64_t rank = 0; rank < settings.max_active; ++rank) {
    const Eigen::Index expert = by_score[rank];
    if (settings.kind == RouterKind::kSparse ||
        soft_weights[expert] > settings.cutoff) {
      active.push_back(expert);
    }
  }
  if (active.empty() && settings.fallback == Fallback::kTop1) {
    active.push_back(by_score.front());
  }
  return active;
}

}  // namespace

RouterSaved RouterForward(const RouterSettings& settings,
                          const Matrix& scores) {
  CheckSettings(settings, scores.cols());
  CheckScores(scores);
  RouterSaved saved;
  saved.soft_weights.resize(scores.rows(), scores.cols());
  saved.active = BoolMatrix::Constant(scores.rows(), scores.cols(), false);

  for (Eigen::Index t = 0; t < scores.rows(); ++t) {
    const Vector row = scores.row(t);
    Vector soft_weights;
    if (settings.kind == RouterKind::kSparse) {
      soft_weights = Softmax(row);
    } else {
      soft_weights =
          SolveLapSum(row, settings.mean_active, settings.temperature).weights;
    }
    saved.soft_weights.row(t) = soft_weights;
    for (Eigen::Index e : ActiveExperts(settings, row, soft_weights)) {
      saved.active(t, e) = true;
    }
  }
  saved.gates = formula::Gates<double>(saved.active, saved.soft_weights);
  return saved;
}

RouterGradients RouterBackward(const RouterSettings& settings,
                               const Matrix& scores, const RouterSaved& saved,
                               const Matrix& d_gates) {
  CheckSize(scores, saved.active);
  CheckSize(scores, d_gates);
  RouterGradients gradients;
  gradients.d_scores.resize(scores.rows(), scores.cols());
  gradients.d_mean_active = 0;
  const Matrix d_weights = formula::Gates<double>(saved.active, d_gates);
  for (Eigen::Index t = 0; t < scores.rows(); ++t) {
    const Vector d_soft_weights = d_weights.row(t);
    if (settings.kind == RouterKind::kSparse) {
      gradients.d_scores.row(t) =
          SoftmaxVjp(saved.soft_weights.row(t), d_soft_weights);
    } else {
      const LapSumGradient row =
          LapSumVjp(SolveLapSum(scores.row(t), settings.mean_active,
                                settings.temperature),
                    d_soft_weights);
      gradients.d_scores.row(t) = row.d_scores;
      gradients.d_mean_active += row.d_mean_active;
    }
  }
  return gradients;
}

Matrix SoftWeightsBackward(const RouterSettings& settings, const Matrix& scores,
                           const Matrix& d_soft_weights) {
  CheckSize(scores, d_soft_weights);
  Matrix d_scores(scores.rows(), scores.cols());
  for (Eigen::Index t = 0; t < scores.rows(); ++t) {
    d_scores.row(t) = LapSumVjp(SolveLapSum(scores.row(t), settings.mean_active,
                                            settings.temperature),
                                d_soft_weights.row(t))
                          .d_scores;
  }
  return d_scores;
}

double Cutoff(double tau, double mean_active, int64_t num_experts) {
  return formula::Cutoff<double>(tau, mean_active, num_experts);
}

int64_t MaxActive(double expansion_factor, double mean_active,
                  int64_t num_experts) {
  const double cap = std::ceil(expansion_factor * mean_active - 1e-6);
  return static_cast<int64_t>(
      std::clamp(cap, 1.0, static_cast<double>(num_experts)));
}

}  // namespace softmoe::reference

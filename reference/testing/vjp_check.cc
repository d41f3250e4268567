// SPDX-License-Identifier: Apache-2.0
#include "reference/testing/vjp_check.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "reference/testing/random_matrix.h"

namespace softmoe::reference::testing {
namespace {

constexpr int kJointDirections = 3;
constexpr int kDirectionsPerInput = 2;
constexpr double kStep = 0x1p-5;  // inputs and directions are of size 1
// A curvature that jumps close by, as LapSum's does where a score crosses the
// root, leaves the verdict open; a smaller stencil lies on one side of it.
constexpr double kSmallestStep = 0x1p-17;

// Rounding of an analytic derivative relative to its scale: a gradient element
// is a chain of sums of fewer than 4096 terms here, each adding half an ulp.
constexpr double kAnalyticRounding =
    4096 * std::numeric_limits<double>::epsilon() / 2;
constexpr double kBlurred = 1e-6;

DerivativeEstimate Differentiate(const std::function<double(double)>& phi) {
  DerivativeEstimate estimate;
  for (double step = kStep; step >= kSmallestStep; step /= 16) {
    estimate = DifferentiateAtZero(phi, step);
    if (estimate.smoothness != Smoothness::kInconclusive) break;
  }
  return estimate;
}

double Dot(const Matrix& a, const Matrix& b) { return a.cwiseProduct(b).sum(); }

}  // namespace

std::string DerivativeMismatch(const DerivativeEstimate& estimate,
                               double analytic, double analytic_scale) {
  const double allowed = estimate.error + kAnalyticRounding * analytic_scale;
  std::ostringstream text;
  text.precision(17);
  if (estimate.smoothness != Smoothness::kSmooth) {
    text << "not smooth: " << SmoothnessName(estimate.smoothness)
         << ", observed order " << estimate.observed_order << ", slopes "
         << estimate.left_slope << " and " << estimate.right_slope;
  } else if (!(std::abs(analytic - estimate.value) <= allowed)) {
    text << "analytic derivative " << analytic << ", finite differences "
         << estimate.value << ", difference " << analytic - estimate.value
         << ", allowed " << allowed;
  } else if (!(estimate.error <= kBlurred * analytic_scale)) {
    text << "finite differences are too blurred to test anything: error "
         << estimate.error << " at a scale of " << analytic_scale;
  }
  return text.str();
}

std::string VjpMismatch(
    const std::function<Matrix(const Matrices&)>& f,
    const std::function<Matrices(const Matrices&, const Matrix&)>& vjp,
    const Matrices& inputs, uint64_t seed) {
  const int num_inputs = static_cast<int>(inputs.size());
  const Matrix output = f(inputs);
  const int total = kJointDirections + kDirectionsPerInput * num_inputs;
  for (int trial = 0; trial < total; ++trial) {
    // -1: all inputs move.
    const int only = trial < kJointDirections
                         ? -1
                         : (trial - kJointDirections) / kDirectionsPerInput;
    uint32_t draw = 1000u * (trial + 1);
    const Matrix cotangent =
        RandomMatrix(output.rows(), output.cols(), seed, draw);
    const Matrices gradients = vjp(inputs, cotangent);
    if (gradients.size() != inputs.size()) return "wrong number of gradients";
    Matrices direction;
    double analytic = 0, scale = 0;
    for (int i = 0; i < num_inputs; ++i) {
      const bool moves = only < 0 || only == i;
      direction.push_back(RandomMatrix(inputs[i].rows(), inputs[i].cols(), seed,
                                       ++draw, moves ? 1 : 0));
      if (gradients[i].rows() != inputs[i].rows() ||
          gradients[i].cols() != inputs[i].cols()) {
        return "gradient " + std::to_string(i) + " has the wrong shape";
      }
      analytic += Dot(gradients[i], direction[i]);
      scale += Dot(gradients[i].cwiseAbs(), direction[i].cwiseAbs());
    }
    auto phi = [&](double h) {
      Matrices moved = inputs;
      for (int i = 0; i < num_inputs; ++i) moved[i] += h * direction[i];
      return Dot(cotangent, f(moved));
    };
    const std::string mismatch =
        DerivativeMismatch(Differentiate(phi), analytic, scale);
    if (!mismatch.empty()) {
      return (only < 0 ? "all inputs: "
                       : "input " + std::to_string(only) + ": ") +
             mismatch;
    }
  }
  return "";
}

}  // namespace softmoe::reference::testing

// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/gradients/slope.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/errors.h"
#include "reference/testing/finite_difference.h"

namespace softmoe::verify {
namespace {

using reference::testing::DerivativeEstimate;
using reference::testing::OneSidedEstimate;
using reference::testing::Smoothness;

constexpr double kSmallestStep = 0x1p-34;
// A table halves its step ten times; tables overlap by six halvings.
constexpr double kNextStep = 1.0 / 16;

using Phi = std::function<Sample(double)>;

// The pieces that were found at 0 and on either side of it.
struct Pieces {
  std::set<uint64_t> left, right, centre;

  // The values of `phi`; records the piece of each.
  std::function<double(double)> Watch(const Phi& phi) {
    return [this, &phi](double h) {
      const Sample sample = phi(h);
      (h < 0 ? left : h > 0 ? right : centre).insert(sample.piece);
      return sample.value;
    };
  }
  bool OneOnEitherSide() const { return left.size() <= 1 && right.size() <= 1; }
  bool One() const {
    return OneOnEitherSide() && left == right && centre == right;
  }
};

Slope TwoSided(const Phi& phi, double step, double rounding_error) {
  Pieces pieces;
  const DerivativeEstimate found = reference::testing::DifferentiateAtZero(
      pieces.Watch(phi), step, rounding_error);
  if (found.smoothness != Smoothness::kSmooth || !pieces.One()) return {};
  return {Slope::Kind::kSmooth, found.value, found.error, found.observed_order};
}

Slope FromBothSides(const Phi& phi, double step, double rounding_error) {
  Pieces pieces;
  const OneSidedEstimate right = reference::testing::DifferentiateFromOneSide(
      pieces.Watch(phi), step, rounding_error);
  const OneSidedEstimate left = reference::testing::DifferentiateFromOneSide(
      pieces.Watch(phi), -step, rounding_error);
  if (!right.converges || !left.converges || !pieces.OneOnEitherSide()) {
    return {};
  }
  const double low =
      std::min(right.value - right.error, left.value - left.error);
  const double high =
      std::max(right.value + right.error, left.value + left.error);
  return {Slope::Kind::kKink, (low + high) / 2, (high - low) / 2, 0};
}

// Whether both have converged to the same slope within their errors.
bool Agree(const Slope& a, const Slope& b) {
  return a.kind != Slope::Kind::kUndecided &&
         b.kind != Slope::Kind::kUndecided &&
         std::abs(a.value - b.value) <= a.error + b.error;
}

}  // namespace

Slope MeasureSlope(const Phi& phi, double sharp, double rounding_error,
                   double largest_step) {
  // Tables that overlap, and the two sides, ask for the same points again.
  std::map<double, Sample> samples;
  const Phi once = [&](double h) {
    const auto known = samples.find(h);
    return known != samples.end() ? known->second
                                  : samples.emplace(h, phi(h)).first->second;
  };
  Slope best, before;
  for (double step = largest_step; step >= kSmallestStep; step *= kNextStep) {
    Slope found;
    try {
      found = TwoSided(once, step, rounding_error);
      if (found.kind == Slope::Kind::kUndecided) {
        found = FromBothSides(once, step, rounding_error);
      }
    } catch (const NumericsError&) {
      continue;  // the step leaves the domain
    }
    if (Agree(found, before)) {
      Slope sharper = found.error < before.error ? found : before;
      // The smallest of many estimates is often too small; the distance between
      // two tables is independent of the estimate of either.
      sharper.error += std::abs(found.value - before.value);
      if (best.kind == Slope::Kind::kUndecided || sharper.error < best.error) {
        best = sharper;
      }
      if (best.error <= sharp) break;
    }
    before = found;
  }
  return best;
}

}  // namespace softmoe::verify

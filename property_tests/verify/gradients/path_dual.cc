// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/gradients/path_dual.h"

#include <initializer_list>

#include "core/errors.h"

namespace softmoe::verify {
namespace {

// d result / d operand.
struct Partial {
  reference::Approximate factor;
  const PathDual& operand;
};

// `result` and the paths that lead to it.
PathDual Chain(reference::Dual result,
               std::initializer_list<Partial> partials) {
  PathDual y;
  y.dual = result;
  for (const auto& [factor, x] : partials) {
    const double phi = std::abs(factor.value) + factor.error;
    y.magnitude += phi * x.magnitude;
    y.slack += phi * x.slack + factor.error * (x.magnitude + x.slack);
  }
  return y;
}

}  // namespace

double BackwardError(const PathDual& x, double roundings) {
  const double units = roundings * reference::Approximate::kRoundoff;
  // Covers products of two errors, which dual.h counts for one computation
  // where there are two here, and the roundings of the bound itself.
  constexpr double kSecondOrder = 1 + 0x1p-10;
  return kSecondOrder *
         (x.slack + units / (1 - units) * (x.magnitude + x.slack));
}

PathDual Frozen(const PathDual& x) {
  PathDual frozen;
  frozen.dual.value = x.value();
  return frozen;
}

PathDual operator-(const PathDual& a) { return Chain(-a.dual, {{-1, a}}); }
PathDual operator+(const PathDual& a, const PathDual& b) {
  return Chain(a.dual + b.dual, {{1, a}, {1, b}});
}
PathDual operator-(const PathDual& a, const PathDual& b) {
  return Chain(a.dual - b.dual, {{1, a}, {-1, b}});
}
PathDual operator*(const PathDual& a, const PathDual& b) {
  return Chain(a.dual * b.dual, {{b.value(), a}, {a.value(), b}});
}
PathDual operator/(const PathDual& a, const PathDual& b) {
  const reference::Dual quotient = a.dual / b.dual;
  return Chain(quotient,
               {{1 / b.value(), a}, {-quotient.value / b.value(), b}});
}

PathDual exp(const PathDual& a) {
  const reference::Dual e = exp(a.dual);
  return Chain(e, {{e.value, a}});
}
PathDual log(const PathDual& a) {
  return Chain(log(a.dual), {{1 / a.value(), a}});
}
PathDual sqrt(const PathDual& a) {
  const reference::Dual root = sqrt(a.dual);
  return Chain(root, {{1 / (2 * root.value), a}});
}
PathDual hypot(const PathDual& a, const PathDual& b) {
  const reference::Dual h = hypot(a.dual, b.dual);
  return Chain(h, {{a.value() / h.value, a}, {b.value() / h.value, b}});
}

bool operator<(const PathDual& a, const PathDual& b) {
  const double difference = ValueOf(b) - ValueOf(a);
  SOFTMOE_CHECK(std::abs(difference) > a.value().error + b.value().error)
      << "a branch compares " << ValueOf(a) << " and " << ValueOf(b)
      << ", which rounding may swap: take other data";
  return difference > 0;
}

}  // namespace softmoe::verify

namespace softmoe::reference {

void CompensatedSum<verify::PathDual>::Add(const verify::PathDual& term) {
  sum_.Add(term.dual);
  magnitude_ += term.magnitude;
  slack_ += term.slack;
  terms_ += 1;
  absolute_ += std::abs(term.value().value) + 2 * term.value().error;
}

verify::PathDual CompensatedSum<verify::PathDual>::Get() const {
  verify::PathDual total;
  total.dual = sum_.Get();
  total.dual.value.error += terms_ * Approximate::kRoundoff * absolute_;
  total.magnitude = magnitude_;
  total.slack = slack_;
  return total;
}

}  // namespace softmoe::reference

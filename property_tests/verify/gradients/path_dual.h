// SPDX-License-Identifier: Apache-2.0
//
// path_dual.h - dual numbers that also bound how far a reverse pass over the
// same formula may be from their slope.
//
// The exact slope is a sum over all paths from a seeded input to the result.
// Each term is the seed v times the factors (partial derivatives) along the
// path. Reverse mode multiplies the same factors in another order, each as
// inexact as the values that it is computed from, and rounds its products and
// sums at most D times on any path. So with |factor| <= phi and its error <= e
//
//   |reverse - exact| <= sum |v| ((1+u)^D prod (phi + e) - prod phi)
//                     <= slack + gamma_D (magnitude + slack)
//   magnitude = sum |v| prod phi,   slack = sum |v| (prod (phi + e) - prod phi)
//   gamma_D = D u / (1 - D u),  u = 2^-53
//
// Unlike the error of `dual.slope`, neither is ever reduced by a cancellation:
// paths that cancel on the way forward need not cancel on the way back. A
// hand-written derivative is covered if each of its terms is the product of
// factors of paths here, or smaller, and is computed from the same values.
//
// For the same reason the error of a value holds for every computation by the
// same formula: sums are bounded in any order.
//
// A branch that rounding could change is an error, because its slope is
// unknown.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_PATH_DUAL_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_PATH_DUAL_H_

#include <cmath>

#include "reference/dual.h"
#include "reference/scalar.h"

namespace softmoe::verify {

struct PathDual {
  reference::Dual dual;
  double magnitude = 0, slack = 0;

  PathDual() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a constant of a formula
  PathDual(double v) : dual(v) {}
  // An input that is known exactly and moves by `seed`.
  PathDual(double v, double seed) : dual(v, seed), magnitude(std::abs(seed)) {}

  reference::Approximate value() const { return dual.value; }
  PathDual& operator+=(const PathDual& b);
  PathDual& operator/=(const PathDual& b);
};

// Bounds |reverse - exact| for at most `roundings` roundings on any path, with
// gamma_D as above.
double BackwardError(const PathDual& x, double roundings);

inline double ValueOf(const PathDual& x) { return x.value().value; }
inline PathDual Constant(const PathDual& x) { return ValueOf(x); }
// The form of e^z / (1 + e^z) that has the right paths (model_dual.h).
inline bool PositiveForm(const PathDual&) { return false; }

// The value alone, for numbers that are constant by definition.
PathDual Frozen(const PathDual& x);

PathDual operator-(const PathDual& a);
PathDual operator+(const PathDual& a, const PathDual& b);
PathDual operator-(const PathDual& a, const PathDual& b);
PathDual operator*(const PathDual& a, const PathDual& b);
PathDual operator/(const PathDual& a, const PathDual& b);
inline PathDual& PathDual::operator+=(const PathDual& b) {
  return *this = *this + b;
}
inline PathDual& PathDual::operator/=(const PathDual& b) {
  return *this = *this / b;
}

PathDual exp(const PathDual& a);
PathDual log(const PathDual& a);
PathDual sqrt(const PathDual& a);
PathDual hypot(const PathDual& a, const PathDual& b);

// Errors  InternalError where rounding decides.
bool operator<(const PathDual& a, const PathDual& b);
inline bool operator>(const PathDual& a, const PathDual& b) { return b < a; }
inline bool operator<=(const PathDual& a, const PathDual& b) {
  return !(b < a);
}
inline bool operator>=(const PathDual& a, const PathDual& b) {
  return !(a < b);
}

}  // namespace softmoe::verify

namespace softmoe::reference {

// The value's error holds for any order of summation: n terms are rounded n - 1
// times, and gamma_(n-1) <= n u for any n < 2^26.
template <>
class CompensatedSum<verify::PathDual> {
 public:
  void Add(const verify::PathDual& term);
  verify::PathDual Get() const;

 private:
  CompensatedSum<Dual> sum_;
  double magnitude_ = 0, slack_ = 0, terms_ = 0, absolute_ = 0;
};

template <>
class Sum<verify::PathDual> : public CompensatedSum<verify::PathDual> {
 public:
  void AddProduct(const verify::PathDual& a, const verify::PathDual& b) {
    Add(a * b);
  }
};

}  // namespace softmoe::reference

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_PATH_DUAL_H_

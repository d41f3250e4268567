// SPDX-License-Identifier: Apache-2.0
//
// bounded.h - the number types that the naive formulas of the kernels' tests
// run over: float arithmetic with its error bound, doubles, and dual numbers
// (tests only).
#ifndef SOFTMOE_KERNELS_TESTING_BOUNDED_H_
#define SOFTMOE_KERNELS_TESTING_BOUNDED_H_

#include <cmath>

#include "core/testing/bounded.h"

namespace softmoe::kernels {

// A number as float arithmetic might compute it.
using Bounded = BoundedNumber<FloatRounding>;
inline constexpr double kFlushed = FloatRounding::kUnderflow;

inline Bounded Exp(Bounded x) { return exp(x); }
inline Bounded Log(Bounded x) { return log(x); }
inline double Exp(double x) { return std::exp(x); }
inline double Log(double x) { return std::log(x); }
inline double Value(Bounded x) { return x.value; }
inline double Value(double x) { return x; }

// A derivative along one direction: value + epsilon * slope.
struct Dual {
  double value = 0;
  double slope = 0;
  Dual() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a constant of a formula
  Dual(double v, double s = 0) : value(v), slope(s) {}
};
inline Dual operator+(Dual a, Dual b) {
  return {a.value + b.value, a.slope + b.slope};
}
inline Dual operator-(Dual a, Dual b) {
  return {a.value - b.value, a.slope - b.slope};
}
inline Dual operator*(Dual a, Dual b) {
  return {a.value * b.value, a.value * b.slope + a.slope * b.value};
}
inline Dual operator/(Dual a, Dual b) {
  return {a.value / b.value, (a.slope - a.value / b.value * b.slope) / b.value};
}
inline Dual Exp(Dual x) {
  return {std::exp(x.value), std::exp(x.value) * x.slope};
}
inline Dual Log(Dual x) { return {std::log(x.value), x.slope / x.value}; }
inline double Value(Dual x) { return x.value; }

// Sum of terms in any order.
template <typename T>
class Sum {
 public:
  void Add(T term) { total_ = total_ + term; }
  void AddProduct(T a, T b) { Add(a * b); }
  T Get() const { return total_; }

 private:
  T total_ = 0;
};
template <>
class Sum<Bounded> : public BoundedSum<Bounded> {};

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_TESTING_BOUNDED_H_

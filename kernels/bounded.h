// SPDX-License-Identifier: Apache-2.0
//
// bounded.h - numbers that carry their own error bound, and dual numbers: a
// formula that is written once over a template runs as value, bound or
// derivative (tests only).
#ifndef SOFTMOE_KERNELS_BOUNDED_H_
#define SOFTMOE_KERNELS_BOUNDED_H_

#include <cmath>

namespace softmoe::kernels {

// Unit roundoff of float.
inline constexpr double kUnit = 0x1p-24;

// A number as float arithmetic might compute it: |computed - value| <= error,
// by the standard model fl(a op b) = (a op b)(1 + d), |d| <= u, applied to
// every operation (DESIGN.md, "Verification"). Products of two errors are kept.
struct Bounded {
  double value = 0;
  double error = 0;

  Bounded() = default;
  Bounded(double v, double e = 0) : value(v), error(e) {}
  // What one more rounding, or `count` of them, does.
  Bounded Rounded(double count = 1) const {
    return {value, error + count * kUnit * (std::abs(value) + error)};
  }
};
inline Bounded operator+(Bounded a, Bounded b) {
  return Bounded(a.value + b.value, a.error + b.error).Rounded();
}
inline Bounded operator-(Bounded a, Bounded b) {
  return Bounded(a.value - b.value, a.error + b.error).Rounded();
}
inline Bounded operator*(Bounded a, Bounded b) {
  return Bounded(a.value * b.value, std::abs(a.value) * b.error +
                                        a.error * std::abs(b.value) +
                                        a.error * b.error)
      .Rounded();
}
inline Bounded operator/(Bounded a, Bounded b) {
  const double least = std::abs(b.value) - b.error;
  // A divisor that may be 0 leaves no bound.
  if (!(least > 0)) return {a.value / b.value, HUGE_VAL};
  return Bounded(a.value / b.value,
                 (a.error + std::abs(a.value / b.value) * b.error) / least)
      .Rounded();
}
// Exp and Log of vector_math.h are within 1 ulp, at most 2 u relative; Exp
// flushes results below 1.7e-38 to 0.
inline constexpr double kFlushed = 0x1p-125;
inline Bounded Exp(Bounded x) {
  const double value = std::exp(x.value);
  Bounded result = Bounded(value, value * std::expm1(x.error)).Rounded(2);
  result.error += kFlushed;
  return result;
}
inline Bounded Log(Bounded x) {
  return Bounded(std::log(x.value), x.error / (x.value - x.error)).Rounded(2);
}
inline double Exp(double x) { return std::exp(x); }
inline double Log(double x) { return std::log(x); }
inline double Value(Bounded x) { return x.value; }
inline double Value(double x) { return x; }

// A derivative along one direction: value + epsilon * slope.
struct Dual {
  double value = 0;
  double slope = 0;
  Dual() = default;
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

// How the roundings of a sum of n terms, each at most u S for S = sum |x|, add
// up, in units of u S:
//   kWorstCase  n: always
//   kRandom     lambda sqrt(n), if less: where the terms are random numbers of
//               either sign, so that roundings have mean 0 whatever went before
//               (Azuma and Hoeffding's inequality for the martingale of the
//               errors; Higham and Mary 2019, Ipsen and Zhou 2020). It fails
//               with probability 2 e^(-lambda^2/2) for each sum.
enum class Roundings { kWorstCase, kRandom };
// At most once in 1e9 suites of 1e9 sums each: sqrt(2 ln(2 * 1e9 * 1e9)).
inline constexpr double kFalseAlarm = 1e-9, kSumsOfASuite = 1e9;
inline double Lambda() {
  static const double lambda =
      std::sqrt(2 * std::log(2 * kSumsOfASuite / kFalseAlarm));
  return lambda;
}
inline double CountRoundings(double terms, Roundings roundings) {
  return roundings == Roundings::kWorstCase
             ? terms
             : std::fmin(terms, Lambda() * std::sqrt(terms));
}

// Sum of n terms in any order, by additions or a chain of fused multiply-adds:
// at most n roundings of partial sums, none larger than the sum of magnitudes.
template <typename T>
class Sum {
 public:
  void Add(T term) { total_ = total_ + term; }
  void AddProduct(T a, T b) { Add(a * b); }
  T Get(Roundings = Roundings::kWorstCase) const { return total_; }

 private:
  T total_;
};
template <>
class Sum<double> {
 public:
  void Add(double term) { total_ += term; }
  void AddProduct(double a, double b) { Add(a * b); }
  double Get(Roundings = Roundings::kWorstCase) const { return total_; }

 private:
  double total_ = 0;
};
template <>
class Sum<Bounded> {
 public:
  void Add(Bounded term) {
    value_ += term.value;
    error_ += term.error;
    magnitude_ += std::abs(term.value) + term.error;
    ++terms_;
  }
  void AddProduct(Bounded a, Bounded b) { Add(a * b); }
  Bounded Get(Roundings roundings = Roundings::kWorstCase) const {
    return {value_,
            error_ + CountRoundings(terms_, roundings) * kUnit * magnitude_};
  }

 private:
  double value_ = 0, error_ = 0, magnitude_ = 0;
  double terms_ = 0;
};

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_BOUNDED_H_

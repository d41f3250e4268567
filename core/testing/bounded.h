// SPDX-License-Identifier: Apache-2.0
//
// bounded.h - numbers that carry their own error bound (tests only): a formula
// that is a template, evaluated with them, says how far a computation in float
// or in double may be from the exact result.
//
// The standard model is fl(a op b) = (a op b)(1 + d) + e, |d| <= u, where e is
// what a product, a quotient or an exponential may lose by underflow. Products
// of two errors are kept. `value` is computed in double.
#ifndef SOFTMOE_CORE_TESTING_BOUNDED_H_
#define SOFTMOE_CORE_TESTING_BOUNDED_H_

#include <algorithm>
#include <cmath>

namespace softmoe {

// The arithmetic that is bounded: its unit roundoff u and its underflow.
struct FloatRounding {
  static constexpr double kRoundoff = 0x1p-24;
  // Results below 1.7e-38 may be flushed to 0, as Exp of vector_math.h does.
  static constexpr double kUnderflow = 0x1p-125;
};
struct DoubleRounding {
  static constexpr double kRoundoff = 0x1p-53;
  static constexpr double kUnderflow = 0x1p-1074;
};

// The unit roundoffs, u, of the two types.
inline constexpr double kFloatUnit = FloatRounding::kRoundoff;
inline constexpr double kDoubleUnit = DoubleRounding::kRoundoff;
// From 1 to the next double.
inline constexpr double kUlp = 2 * kDoubleUnit;

// How the roundings of a sum of n terms, each at most u S for S = sum |x|, add
// up, in units of u S:
//   kWorstCase  n: always
//   kRandom     lambda sqrt(n), if less: where the terms are random numbers of
//               either sign, so that roundings have mean 0 whatever went before
//               (the Azuma-Hoeffding inequality for the martingale of the
//               errors; Higham and Mary 2019, Ipsen and Zhou 2020). It fails
//               with probability 2 e^(-lambda^2/2) for each sum.
enum class Roundings { kWorstCase, kRandom };
// At most one false alarm in 1e9 suites of 1e9 sums each: lambda = sqrt(2 ln(2
// * 1e9 * 1e9)).
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

// |computed - value| <= error. `kSums` is how its sums (BoundedSum) round.
template <typename Rounding, Roundings kSums = Roundings::kWorstCase>
struct BoundedNumber {
  static constexpr double kRoundoff = Rounding::kRoundoff;
  static constexpr double kUnderflow = Rounding::kUnderflow;

  double value = 0, error = 0;

  BoundedNumber() = default;
  // NOLINTBEGIN(google-explicit-constructor): formulas mix them with numbers
  BoundedNumber(double v, double e = 0) : value(v), error(e) {}
  // Converts the same number from one with the other kind of sums.
  template <Roundings kOther>
  BoundedNumber(const BoundedNumber<Rounding, kOther>& x)
      : value(x.value), error(x.error) {}
  // NOLINTEND(google-explicit-constructor)

  // Returns this number after one more rounding, or `count` of them.
  BoundedNumber Rounded(double count = 1) const {
    return {value, error + count * kRoundoff * (std::abs(value) + error)};
  }
  bool IsExactZero() const { return value == 0 && error == 0; }

  friend BoundedNumber operator-(const BoundedNumber& a) {
    return {-a.value, a.error};
  }
  friend BoundedNumber operator+(const BoundedNumber& a,
                                 const BoundedNumber& b) {
    return BoundedNumber(a.value + b.value, a.error + b.error).Rounded();
  }
  friend BoundedNumber operator-(const BoundedNumber& a,
                                 const BoundedNumber& b) {
    return BoundedNumber(a.value - b.value, a.error + b.error).Rounded();
  }
  friend BoundedNumber operator*(const BoundedNumber& a,
                                 const BoundedNumber& b) {
    if (a.IsExactZero() || b.IsExactZero()) return a.value * b.value;
    return BoundedNumber(a.value * b.value, std::abs(a.value) * b.error +
                                                a.error * std::abs(b.value) +
                                                a.error * b.error + kUnderflow)
        .Rounded();
  }
  friend BoundedNumber operator/(const BoundedNumber& a,
                                 const BoundedNumber& b) {
    const double quotient = a.value / b.value;
    const double least = std::abs(b.value) - b.error;
    // A divisor that may be 0 leaves no bound.
    if (!(least > 0)) return {quotient, HUGE_VAL};
    if (a.IsExactZero()) return quotient;
    return BoundedNumber(
               quotient,
               (a.error + std::abs(quotient) * b.error) / least + kUnderflow)
        .Rounded();
  }

  // Within 1 ulp, which is at most 2 u relative.
  friend BoundedNumber exp(const BoundedNumber& x) {
    const double value = std::exp(x.value);
    BoundedNumber result =
        BoundedNumber(value, value * std::expm1(x.error)).Rounded(2);
    result.error += kUnderflow;
    return result;
  }
  friend BoundedNumber log(const BoundedNumber& x) {
    double error = 0;
    if (x.error > 0) {
      const double least = x.value - x.error;
      error = least > 0 ? x.error / least : HUGE_VAL;
    }
    return BoundedNumber(std::log(x.value), error).Rounded(2);
  }
  // |sqrt(a) - sqrt(b)| = |a - b| / (sqrt(a) + sqrt(b)), and <= sqrt(|a - b|).
  friend BoundedNumber sqrt(const BoundedNumber& x) {
    const double root = std::sqrt(x.value), least = x.value - x.error;
    const double error =
        least > 0 ? x.error / (root + std::sqrt(least)) : std::sqrt(x.error);
    return BoundedNumber(root, error).Rounded();
  }
  friend BoundedNumber abs(const BoundedNumber& x) {
    return {std::abs(x.value), x.error};
  }

  // Branches are taken as in double.
  friend bool operator<(const BoundedNumber& a, const BoundedNumber& b) {
    return a.value < b.value;
  }
  friend bool operator>(const BoundedNumber& a, const BoundedNumber& b) {
    return b < a;
  }
  friend bool operator<=(const BoundedNumber& a, const BoundedNumber& b) {
    return a.value <= b.value;
  }
  friend bool operator>=(const BoundedNumber& a, const BoundedNumber& b) {
    return b <= a;
  }
  friend double ValueOf(const BoundedNumber& x) { return x.value; }
};

// A sum of n terms in any order, by additions or a chain of fused
// multiply-adds: at most n roundings of partial sums, none larger than the sum
// of magnitudes. Adding a 0 rounds nothing.
template <typename Number>
class BoundedSum;
template <typename Rounding, Roundings kSums>
class BoundedSum<BoundedNumber<Rounding, kSums>> {
 public:
  using Number = BoundedNumber<Rounding, kSums>;

  void Add(const Number& term) {
    if (term.IsExactZero()) return;
    value_ += term.value;
    error_ += term.error;
    magnitude_ += std::abs(term.value) + term.error;
    ++terms_;
  }
  void AddProduct(const Number& a, const Number& b) { Add(a * b); }
  Number Get(Roundings roundings = kSums) const {
    return {value_, error_ + CountRoundings(terms_, roundings) *
                                 Rounding::kRoundoff * magnitude_};
  }

 private:
  double value_ = 0, error_ = 0, magnitude_ = 0;
  double terms_ = 0;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_BOUNDED_H_

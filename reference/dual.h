// SPDX-License-Identifier: Apache-2.0
//
// dual.h - dual numbers: a formula of the reference that is run over them also
// says how its result moves when its inputs move, and how well that is known.
//
//   f(x + epsilon v) = f(x) + epsilon f'(x) v,   epsilon^2 = 0
//
// There is no step, no truncation and no hand-written derivative. The value is
// computed by the operations of double, so it has the bits that the formula has
// in double. Value and slope carry a bound of their rounding errors by the
// standard model, u = 2^-53: every operation adds u |result|, exp and log
// within 1 ulp add 2 u, and the errors of the operands are carried through.
#ifndef SOFTMOE_REFERENCE_DUAL_H_
#define SOFTMOE_REFERENCE_DUAL_H_

#include <algorithm>
#include <cmath>

#include "core/testing/bounded.h"
#include "reference/scalar.h"

namespace softmoe::reference {

// A double and how far it may be from the exact result.
using Approximate = BoundedNumber<DoubleRounding>;

struct Dual {
  Approximate value, slope;

  Dual() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a constant of a formula
  Dual(double v) : value(v) {}
  Dual(Approximate v, Approximate s) : value(v), slope(s) {}
  Dual& operator+=(Dual b);
  Dual& operator-=(Dual b);
  Dual& operator*=(Dual b);
  Dual& operator/=(Dual b);
};

inline Dual operator-(Dual a) { return {-a.value, -a.slope}; }
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
  const Approximate quotient = a.value / b.value;
  return {quotient, (a.slope - quotient * b.slope) / b.value};
}
inline Dual& Dual::operator+=(Dual b) { return *this = *this + b; }
inline Dual& Dual::operator-=(Dual b) { return *this = *this - b; }
inline Dual& Dual::operator*=(Dual b) { return *this = *this * b; }
inline Dual& Dual::operator/=(Dual b) { return *this = *this / b; }

// Branches are taken as in double.
inline bool operator<(Dual a, Dual b) { return a.value.value < b.value.value; }
inline bool operator>(Dual a, Dual b) { return b < a; }
inline bool operator<=(Dual a, Dual b) {
  return a.value.value <= b.value.value;
}
inline bool operator>=(Dual a, Dual b) { return b <= a; }
inline bool operator==(Dual a, Dual b) {
  return a.value.value == b.value.value;
}
inline bool operator!=(Dual a, Dual b) { return !(a == b); }

inline Dual abs(Dual a) { return std::signbit(a.value.value) ? -a : a; }

inline Dual exp(Dual a) {
  const Approximate value = exp(a.value);
  return {value, value * a.slope};
}
inline Dual log(Dual a) { return {log(a.value), a.slope / a.value}; }
inline Dual sqrt(Dual a) {
  const Approximate value = sqrt(a.value);
  return {value, a.slope / (2 * value)};
}
inline Dual hypot(Dual a, Dual b) {
  const Approximate value =
      Approximate(std::hypot(a.value.value, b.value.value),
                  a.value.error + b.value.error)  // its slopes are <= 1
          .Rounded(2);
  return {value, (a.value * a.slope + b.value * b.slope) / value};
}

inline double ValueOf(Dual x) { return x.value.value; }
inline double Constant(Dual x) { return x.value.value; }
inline bool PositiveForm(Dual z) { return z >= 0; }

// Both parts are summed with compensation; their errors add up to those of the
// terms and u |sum| + n^2 u^2 sum |terms|.
template <>
class CompensatedSum<Dual> {
 public:
  void Add(Dual term) {
    value_.Add(term.value);
    slope_.Add(term.slope);
  }
  Dual Get() const { return {value_.Get(), slope_.Get()}; }

 private:
  class Part {
   public:
    void Add(Approximate term) {
      sum_.Add(term.value);
      error_ += term.error;
      magnitude_ += std::abs(term.value);
      terms_ += Approximate::kRoundoff;
    }
    Approximate Get() const {
      return Approximate(sum_.Get(), error_ + terms_ * terms_ * magnitude_)
          .Rounded();
    }

   private:
    CompensatedSum<double> sum_;
    double error_ = 0, magnitude_ = 0, terms_ = 0;
  };
  Part value_, slope_;
};

template <>
class Sum<Dual> : public CompensatedSum<Dual> {
 public:
  void AddProduct(Dual a, Dual b) { Add(a * b); }
};

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_DUAL_H_

// SPDX-License-Identifier: Apache-2.0
//
// scalar.h - what the formulas (namespace formula) ask of their number type N,
// besides + - * /, comparisons, abs, exp, log, sqrt and hypot.
//
//   double      computes: what the functions of this package return
//   Dual        differentiates (dual.h)
//   others      bound errors, or round as bf16 does (//property_tests)
//
// What depends on the kind of number is defined here or beside its type:
//
//   Sum<N>             a plain sum; of doubles in the order of the terms
//   CompensatedSum<N>  a sum whose error does not grow with its length
//   ValueOf(x)         the double that decides a branch
//   Constant(x)        x, where the result does not depend on it: a derivative
//                      by it is 0
//   PositiveForm(z)    which of two forms of the same number is taken: for
//                      doubles z >= 0, so that e^-|z| cannot overflow
#ifndef SOFTMOE_REFERENCE_SCALAR_H_
#define SOFTMOE_REFERENCE_SCALAR_H_

#include <cmath>

namespace softmoe::reference {

// Neumaier's variant of Kahan summation: the rounding error of every addition
// is computed exactly and added at the end. With u = 2^-53
//
//   |result - sum| <= u |sum| + n^2 u^2 sum|terms|
//
// (Ogita, Rump, Oishi 2005, Prop. 4.5).
template <typename Scalar = double>
class CompensatedSum {
 public:
  void Add(Scalar term) {
    const Scalar sum = sum_ + term;
    // Exact error of sum_ + term, whichever of the two is larger.
    error_ += std::abs(sum_) >= std::abs(term) ? (sum_ - sum) + term
                                               : (term - sum) + sum_;
    sum_ = sum;
  }
  Scalar Get() const { return sum_ + error_; }

 private:
  Scalar sum_ = 0;
  Scalar error_ = 0;
};

inline double ValueOf(double x) { return x; }
inline double Constant(double x) { return x; }
inline bool PositiveForm(double z) { return z >= 0; }

// 0 if there are no terms.
template <typename N>
class Sum;

template <>
class Sum<double> {
 public:
  void Add(double term) {
    sum_ = empty_ ? term : sum_ + term;
    empty_ = false;
  }
  void AddProduct(double a, double b) { Add(a * b); }
  double Get() const { return sum_; }

 private:
  double sum_ = 0;
  bool empty_ = true;
};

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_SCALAR_H_

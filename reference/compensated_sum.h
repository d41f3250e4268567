// SPDX-License-Identifier: Apache-2.0
//
// compensated_sum.h - a sum whose error does not grow with its length.
//
// Neumaier's variant of Kahan summation: the rounding error of every addition
// is computed exactly and added at the end. With u = 2^-53
//
//   |result - sum| <= u |sum| + n^2 u^2 sum|terms|
//
// (Ogita, Rump, Oishi 2005, Prop. 4.5). For dual numbers see dual.h.
#ifndef SOFTMOE_REFERENCE_COMPENSATED_SUM_H_
#define SOFTMOE_REFERENCE_COMPENSATED_SUM_H_

#include <cmath>

namespace softmoe::reference {

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

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_COMPENSATED_SUM_H_

// SPDX-License-Identifier: Apache-2.0
//
// naive.h - a number as a plain bf16 program computes it: every operation's
// result is stored as bf16; sums are accumulated in float, as matrix units do,
// and stored once. A formula that is written once over a template (Bounded
// gives its bound) gives with this type what the rule for bf16 compares with:
//
//   |got - reference| <= 2 max |naive - reference| + one rounding of the output
//
// FlashAttention's rule (README.md): no derived bound of bf16
// means much where an intermediate result has 8 bits.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_NAIVE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_NAIVE_H_

#include <cmath>

#include "kernels/bounded.h"
#include "property_tests/verify/tensor.h"

namespace softmoe::verify {

struct Naive {
  double value = 0;

  Naive() = default;
  Naive(double v) : value(RoundTo(Dtype::kBf16, v)) {}
  // Bounded counts roundings that are the formula's own; here they happen.
  Naive Rounded(double = 1) const { return *this; }
};
inline Naive operator+(Naive a, Naive b) { return a.value + b.value; }
inline Naive operator-(Naive a, Naive b) { return a.value - b.value; }
inline Naive operator*(Naive a, Naive b) { return a.value * b.value; }
inline Naive operator/(Naive a, Naive b) { return a.value / b.value; }
inline Naive Negate(Naive x) { return -x.value; }
inline Naive Sqrt(Naive x) { return std::sqrt(x.value); }
inline Naive Exp(Naive x) { return std::exp(x.value); }
inline Naive Log(Naive x) { return std::log(x.value); }

}  // namespace softmoe::verify

namespace softmoe::kernels {

// Products of bf16 numbers are exact in float: what is added is rounded once,
// into the accumulator. (A term that is no such product was stored before.)
template <>
class Sum<verify::Naive> {
 public:
  void Add(verify::Naive term) { total_ += static_cast<float>(term.value); }
  void AddProduct(verify::Naive a, verify::Naive b) {
    total_ += static_cast<float>(a.value * b.value);
  }
  verify::Naive Get(Roundings = Roundings::kWorstCase) const {
    return static_cast<double>(total_);
  }

 private:
  float total_ = 0;
};

}  // namespace softmoe::kernels

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_NAIVE_H_

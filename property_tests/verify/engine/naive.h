// SPDX-License-Identifier: Apache-2.0
//
// naive.h - a number as a plain bf16 program computes it: the result of every
// operation is stored as bf16; sums are accumulated in float, as matrix units
// do, and stored once. Over it, the reference's formulas (reference/scalar.h)
// give the results that the rule for bf16 compares with:
//
//   |got - reference| <= 2 max |naive - reference| + one rounding of the output
//
// This is FlashAttention's rule (README.md), for programs of which nobody knows
// what they store: a bound that lets them store every intermediate result in 8
// bits would not mean much. Where the roundings of this one program cancel, it
// says nothing of others: they also have the bound of a program that stores
// what plain ones do (stored.h). Our own kernels have that of what they store.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_NAIVE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_NAIVE_H_

#include <cmath>

#include "property_tests/verify/engine/tensor.h"
#include "reference/scalar.h"

namespace softmoe::verify {

struct Naive {
  double value = 0;

  Naive() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a constant of a formula
  Naive(double v) : value(RoundTo(Dtype::kBf16, v)) {}
};
inline Naive operator-(Naive a) { return -a.value; }
inline Naive operator+(Naive a, Naive b) { return a.value + b.value; }
inline Naive operator-(Naive a, Naive b) { return a.value - b.value; }
inline Naive operator*(Naive a, Naive b) { return a.value * b.value; }
inline Naive operator/(Naive a, Naive b) { return a.value / b.value; }
inline Naive sqrt(Naive x) { return std::sqrt(x.value); }
inline Naive exp(Naive x) { return std::exp(x.value); }
inline Naive log(Naive x) { return std::log(x.value); }

inline double ValueOf(Naive x) { return x.value; }
inline Naive Constant(Naive x) { return x; }
inline bool PositiveForm(Naive z) { return z.value >= 0; }

}  // namespace softmoe::verify

namespace softmoe::reference {

// Products of bf16 numbers are exact in float, so each term is rounded once,
// into the accumulator. (Any other term was stored before.)
template <>
class Sum<verify::Naive> {
 public:
  void Add(verify::Naive term) { total_ += static_cast<float>(term.value); }
  void AddProduct(verify::Naive a, verify::Naive b) {
    total_ += static_cast<float>(a.value * b.value);
  }
  verify::Naive Get() const { return static_cast<double>(total_); }

 private:
  float total_ = 0;
};
template <>
class CompensatedSum<verify::Naive> : public Sum<verify::Naive> {};

}  // namespace softmoe::reference

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_NAIVE_H_

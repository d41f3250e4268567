// SPDX-License-Identifier: Apache-2.0
//
// stored.h - numbers of a program that computes in float and stores operands of
// products as bf16; each carries a bound of its error. A computed number counts
// as stored, once,
//
//   StoredOperands  whenever it becomes a factor in a sum of products
//   StoredResults   there, and when it is the result of such a sum
//
// Our kernels, which are held to these (Implementation::stores_as_ours), are of
// the first kind, except those of experts, which are of the second. So are
// plain programs of others, of matrix products with nothing fused. Storing adds
// 2^-8 |x|: half of the gap between bf16 numbers, or more. So programs that
// round a part of such a product instead, or reorder its factors, are covered
// too. Formulas (formula.h) are run over these numbers.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_STORED_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_STORED_H_

#include <cmath>

#include "property_tests/error_bounds.h"

namespace softmoe::verify {

struct OperandRounding : FloatRounding {
  static constexpr bool kResults = false;
};
struct ResultRounding : FloatRounding {
  static constexpr bool kResults = true;
};
using StoredOperands = BoundedNumber<OperandRounding>;
using StoredResults = BoundedNumber<ResultRounding>;

// A number without an error is an input, which is stored as it is.
template <typename Rounding>
BoundedNumber<Rounding> AsStored(const BoundedNumber<Rounding>& x) {
  if (x.error == 0) return x;
  constexpr double kUnitBf16 = 0x1p-8, kTiniest = 0x1p-134;
  return {x.value,
          x.error + kUnitBf16 * (std::abs(x.value) + x.error) + kTiniest};
}

template <typename Rounding>
class StoredSum : public BoundedSum<BoundedNumber<Rounding>> {
 public:
  using Number = BoundedNumber<Rounding>;

  void AddProduct(const Number& a, const Number& b) {
    this->Add(AsStored(a) * AsStored(b));
    of_products_ = true;
  }
  Number Get() const {
    const Number sum = BoundedSum<Number>::Get();
    return Rounding::kResults && of_products_ ? AsStored(sum) : sum;
  }

 private:
  bool of_products_ = false;
};

}  // namespace softmoe::verify

namespace softmoe::reference {

template <>
class Sum<verify::StoredOperands>
    : public verify::StoredSum<verify::OperandRounding> {};
template <>
class Sum<verify::StoredResults>
    : public verify::StoredSum<verify::ResultRounding> {};

}  // namespace softmoe::reference

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_STORED_H_

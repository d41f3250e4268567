// SPDX-License-Identifier: Apache-2.0
//
// bounded_scalar.h - the formulas of the reference (scalar.h) over numbers that
// carry their error (tests only). Sums are bounded in whatever order they are
// taken, with compensation or without.
#ifndef SOFTMOE_REFERENCE_TESTING_BOUNDED_SCALAR_H_
#define SOFTMOE_REFERENCE_TESTING_BOUNDED_SCALAR_H_

#include "core/testing/bounded.h"
#include "reference/scalar.h"

namespace softmoe {

// The score that a softmax subtracts cancels: only the error of the differences
// from it matters, not its own.
template <typename Rounding, Roundings kSums>
BoundedNumber<Rounding, kSums> Constant(
    const BoundedNumber<Rounding, kSums>& x) {
  return x;
}
template <typename Rounding, Roundings kSums>
bool PositiveForm(const BoundedNumber<Rounding, kSums>& z) {
  return z.value >= 0;
}

}  // namespace softmoe

namespace softmoe::reference {

template <typename Rounding, Roundings kSums>
class Sum<BoundedNumber<Rounding, kSums>>
    : public BoundedSum<BoundedNumber<Rounding, kSums>> {};
template <typename Rounding, Roundings kSums>
class CompensatedSum<BoundedNumber<Rounding, kSums>>
    : public BoundedSum<BoundedNumber<Rounding, kSums>> {};

}  // namespace softmoe::reference

#endif  // SOFTMOE_REFERENCE_TESTING_BOUNDED_SCALAR_H_

// SPDX-License-Identifier: Apache-2.0
//
// slope.h - what differences say about the derivative of a function of one
// variable, and how much they cannot say.
//
// Ridders tables (reference/testing/finite_difference.h) at several steps: one
// counts if it converges and agrees with the one at the step before or behind,
// for with steps that do not resolve the function one alone may converge to
// nothing that is there. The sharpest that counts is taken. Where no step does
// from both sides, as at a breakpoint of LapSum, each side is extrapolated by
// itself: the derivative lies between the two. A function that is put together
// from smooth pieces says which one it is on: a table that reaches into another
// is not believed, for a kink that is small can pass for smooth.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_SLOPE_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_SLOPE_H_

#include <cstdint>
#include <functional>

namespace softmoe::verify {

struct Slope {
  enum class Kind {
    kSmooth,     // central differences converge with an even order
    kKink,       // the two sides converge, each to its own slope
    kUndecided,  // neither, at any step
  };
  Kind kind = Kind::kUndecided;
  // The derivative is within `error` of `value`: what the table could not
  // extrapolate, the rounding error of the function (the bound, or six standard
  // deviations of the measured noise if that is more), and at a kink half the
  // distance of the two sides.
  double value = 0, error = 0;
  double order = 0;  // observed, if smooth; NaN where rounding hides it
};

struct Sample {
  double value = 0;
  uint64_t piece = 0;  // equal numbers: the same smooth piece
};

// The derivative of `phi` at 0. `phi` varies on a scale of 1, or on a smaller
// one: steps go from `largest_step` down to 2^-34. An error below `sharp` is
// good enough to stop at; `rounding_error` bounds that of phi's values, if it
// is known.
Slope MeasureSlope(const std::function<Sample(double)>& phi, double sharp,
                   double rounding_error = 0, double largest_step = 0x1p-2);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_SLOPE_H_

// SPDX-License-Identifier: Apache-2.0
//
// slope.h - what differences say about the derivative of a function of one
// variable, and how uncertain that is.
//
// Ridders tables (reference/testing/finite_difference.h) at several steps: a
// table counts if it converges and agrees with the one at the next larger or
// smaller step, because with steps that do not resolve the function a single
// table may converge to a meaningless value. The most accurate table that
// counts is used. Where none counts from both sides, as at a breakpoint of
// LapSum, each side is extrapolated by itself, and the derivative lies between
// the two. A function made of smooth pieces says which piece it is on: a table
// that reaches into another piece is not trusted, because a small kink can pass
// for smooth.
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
  // The derivative is within `error` of `value`. The error is what the table
  // could not extrapolate, plus the rounding error of the function (its bound,
  // or six standard deviations of the measured noise if that is more), plus the
  // distance to the table that agrees and, at a kink, half of that between the
  // two sides.
  double value = 0, error = 0;
  double order = 0;  // observed, if smooth; NaN if rounding hides it
};

struct Sample {
  double value = 0;
  uint64_t piece = 0;  // equal numbers mean the same smooth piece
};

// The derivative of `phi` at 0. `phi` varies on a scale of 1 or less; steps go
// from `largest_step` down to 2^-34. The search stops at an error below
// `sharp`; `rounding_error` bounds that of phi's values, if it is known.
Slope MeasureSlope(const std::function<Sample(double)>& phi, double sharp,
                   double rounding_error = 0, double largest_step = 0x1p-2);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_SLOPE_H_

// SPDX-License-Identifier: Apache-2.0
//
// finite_difference.h - the derivative of a function of one variable from its
// values alone, with an error estimate, and with a verdict on whether there is
// a derivative at all.
//
// A gradient test must not guess its step or its tolerance. Central differences
// at steps h, h/2, h/4, ... are extrapolated in a Ridders table (Richardson:
// each column removes one more even power of h); the table's own spread plus
// the measured rounding noise of the function is the tolerance. The observed
// order of convergence tells a smooth point (differences shrink fourfold) from
// a kink or a jump inside the stencil, where the extrapolation means nothing.
#ifndef SOFTMOE_REFERENCE_TESTING_FINITE_DIFFERENCE_H_
#define SOFTMOE_REFERENCE_TESTING_FINITE_DIFFERENCE_H_

#include <functional>

namespace softmoe::reference::testing {

enum class Smoothness {
  kSmooth,        // central differences converge with order 2
  kKink,          // continuous, but the slopes from left and right differ
  kJump,          // the function itself jumps at 0
  kInconclusive,  // none of the three: a kink close by, or the wrong step
};

struct DerivativeEstimate {
  double value = 0;  // extrapolated derivative at 0
  double error = 0;  // estimate of |value - derivative|: truncation + rounding
  // log2 of the ratio of successive changes of the central differences, at the
  // finest steps that rounding does not blur: 2 if smooth, NaN if there are no
  // such steps (a function that is quadratic to within rounding).
  double observed_order = 0;
  double left_slope = 0;  // at the finest step that is above the noise
  double right_slope = 0;
  double noise = 0;  // standard deviation of the rounding error of the function
  Smoothness smoothness = Smoothness::kInconclusive;
};

// The derivative of `phi` at 0 from ten steps: step, step/2, ..., step/512.
//
//   phi   finite on [-step, step]
//   step  > 0, a fraction of the scale on which phi varies; too large a step
//         costs a few halvings, too small a one costs accuracy
//   rounding_error  a bound of the rounding error of phi, if one is known: it
//         counts where it is more than six times the measured noise, which is
//         blind to a coarse grid of values
// Errors  NumericsError if phi is not finite where it is evaluated.
DerivativeEstimate DifferentiateAtZero(const std::function<double(double)>& phi,
                                       double step, double rounding_error = 0);

struct OneSidedEstimate {
  double value = 0;           // extrapolated slope at 0, from one side
  double error = 0;           // as DerivativeEstimate::error
  double observed_order = 0;  // of the slopes: 1 if smooth; NaN as above
  bool converges = false;
};

// The derivative of `phi` at 0 from one side alone, from ten steps as above; a
// negative `step` asks for the left side. At a kink the two sides differ; at a
// jump of the curvature, where central differences converge too slowly to be
// extrapolated, they agree; at a jump of phi they do not converge.
OneSidedEstimate DifferentiateFromOneSide(
    const std::function<double(double)>& phi, double step,
    double rounding_error = 0);

// The standard deviation of the rounding error of `phi` close to 0: Hamming's
// difference table over closely spaced points, as in ECnoise (More and Wild,
// SIAM J. Sci. Comput. 33, 2011). The smaller of the estimates left and right
// of 0, so that a jump or kink at 0 is not taken for noise. Never below half an
// ulp of the values.
double RoundingNoise(const std::function<double(double)>& phi, double spacing);

}  // namespace softmoe::reference::testing

#endif  // SOFTMOE_REFERENCE_TESTING_FINITE_DIFFERENCE_H_

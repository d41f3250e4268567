// SPDX-License-Identifier: Apache-2.0
//
// model_dual.h - the forward pass of the whole model over dual numbers: the
// function that reference::TransformerLossAndGradients claims to differentiate,
// and how far roundings may take it from the derivative. The formulas are the
// reference's own (reference::formula), without any of its backward code;
// LapSum is the closed form (reference/lapsum_root.h), not the implicit
// function theorem by which the reference's backward pass is written.
//
// As in the definition of the gradient (SPEC.md 2.2 and 2.5), these are held
// constant: the active sets and the fractions of the load balance, both taken
// from the reference's own result, and k_l in the auxiliary losses.
//
// The bound. Stages y = F_s(x): budget, embedding, each half of each block, the
// head. Between stages, the reference's computed x is taken as exact, so that
// J_s is the Jacobian at the point where the reference evaluated it. The
// computed tangents x' and gradients g_x,
//
//   y' = J_s x' + t_s   (dual numbers)      g_x = J_s^T g_y + r_s   (reference)
//
// give <g_y, y'> - <g_x, x'> = <g_y, t_s> - <r_s, x'>. These add up to the
// slope of the objective minus <gradients, v>, so no stage amplifies the
// rounding of another. Dual gives |t_s|; with paths that are seeded with x'
// again (path_dual.h), |<r_s, x'>| <= <|g_y|, BackwardError(y)>.
//
// This covers the reference's backward pass because its terms are products of
// the factors of these paths, grouped differently.
//   matrix products, rotation, gating, sums: the same factors
//   RMSNorm   r w_i (delta_ij - n_i n_j / d): the paths x_i and r(x); n = r x
//   softmax   p_i (delta_ij - p_j): the paths e_i and 1 / sum e
//   z loss    2 lse p_j
//   SiLU      s (1 + z (1 - s)) = s + z s - z s^2: s is taken in its form
//             e^z / (1 + e^z) for either sign of z (PositiveForm), which has
//             these paths: 1 - s may round
//   LapSum    (f_j/T)(delta_ij - q_i) = (f_i/T)(delta_ij - q_j), and q_i for
//             k_l. f_i is the factor of F(u_i); the paths of the root add up to
//             dx~/dr_j = q_j and dx~/dk = -q_i T / f_i, so their magnitude is
//             no less.
// The closed form of the root does not tell how accurately the reference knows
// q. With every u known to within U, f_j is wrong by a factor of at most e^U,
// and e^-|u_i| in q_i by e^2U (nearest - |u_i| rounds once more, and
// u |u_i| <= U); so q_i, a quotient, by e^4U: e^5U in all. So u is given an
// error of 5U before F is applied: the factor f_i, on every path, carries it
// into `slack`. The roundings between factors are counted (BackwardRoundings).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_MODEL_DUAL_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_MODEL_DUAL_H_

#include "core/config/config.h"
#include "reference/dual.h"
#include "reference/matrix.h"
#include "reference/transformer.h"

namespace softmoe::verify {

// The point at which the model is examined.
struct ModelPoint {
  Config config;
  reference::Vector parameters;  // [ParameterLayout(config).total]
  reference::BalanceGroup group;
  reference::RoutingState routing;
  double loss_scale = 1, group_scale = 1;
  reference::GroupResultAndGradients found;  // of this point and these scales
};

struct ObjectiveSlope {
  reference::Approximate value;  // of the objective: GroupResult::Objective
  double slope = 0;              // along the direction
  double error = 0;  // |<gradients, direction> - slope| if products are exact
};

// `direction` is [layout.total]. Takes from `at.found` the choices, the values
// between the stages and, for `error`, the gradients there.
// Errors  InternalError if a stage computes something else than the reference
//         does, or if a branch of LapSum depends on rounding or its root lies
//         in a gap, at a whole k_l.
ObjectiveSlope SlopeAlong(const ModelPoint& at,
                          const reference::Vector& direction);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_GRADIENTS_MODEL_DUAL_H_

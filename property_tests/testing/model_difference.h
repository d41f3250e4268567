// SPDX-License-Identifier: Apache-2.0
//
// model_difference.h - holds one pass of optimized::Model against the
// reference: loss, statistics, routing and the gradient of every tensor.
//
// Tolerance. To first order a float pass is the exact pass with every operand
// of every operation moved by a relative perturbation of u = 2^-24 or less, and
// a sum of n terms collects n of them: sqrt(n) u if they are independent, times
// lambda = 8 for a false-alarm rate below 1e-9 (Higham and Mary;
// core/testing/bounded.h). How far such perturbations carry is not estimated
// but measured on the reference: it is run again with every parameter moved by
// +-u (random signs), and the root mean square of the change of each output is
// its response s. So
//
//   |got - expected|_2 <= lambda sqrt(n_max) s + 4 u |expected|_2
//
// per tensor, n_max being the longest sum in the model. The second term is the
// rounding of the output and of the scale factors, which no parameter carries.
// A tolerance above 1e-3 of its tensor's norm says nothing: MISTRUSTED. An
// example is the z loss of a single token whose logsumexp is near 0.
//
// In bf16 it is storage that rounds, not sums: every stored number by 2^-8 or
// less, once. How far that carries is also measured, by a program in which each
// stored number is moved by a random relative amount, uniform within 2^-8
// (moved_transformer.h): no less than rounding moves it, and at no fewer
// places. Its runs are samples of the same distribution as the model's error,
// or of a wider one, so
//
//   |got - expected|_2 <= lambda s + 4 u |expected|_2
//
// with s the root mean square distance of 16 runs from the exact pass: for a
// scalar, whose error is normal, that fails once in 2 million (Student's t with
// 16 degrees of freedom), for a tensor hardly ever. This is too wide to show
// where a number was rounded; a tolerance above half of its tensor's norm could
// not tell the tensor from zero: MISTRUSTED.
//
// Routing. Selections may differ from the reference's own only where a score or
// a soft weight is within its tolerance of the boundary, and in no more than 2
// % of all plus two: near-ties are rare. The response and the size that give
// the tolerance of a score are the largest in its layer. The reference
// then replays the model's selection, so that everything downstream is compared
// with the same choice. In bf16 the boundary is that of the model's own scores,
// which are floats in both precisions. So are soft weights: in either precision
// each is within the bounds of the kernels' router (error_bounds.h) of what the
// reference makes of the model's own scores.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_MODEL_DIFFERENCE_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_MODEL_DIFFERENCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/parallel_for.h"
#include "optimized/model.h"
#include "reference/matrix.h"
#include "reference/transformer.h"

namespace softmoe::property_tests {

// The input of one pass, for both sides.
struct ModelCase {
  Config config;
  std::vector<float> parameters;  // [ParameterLayout(config).total]
  int64_t num_sequences = 1;
  std::vector<int32_t> inputs, targets;
  int64_t first_token = 0;
  // Exact in float, so that both sides use the same number.
  double temperature = 1.25;
  double tau = 1.25;
  bool noise = false;
  int64_t step = 3;
};

// A case with parameters so large that activations stay of size 1 and every
// routing case occurs; determined by `config` and `seed`.
ModelCase MakeModelCase(const Config& config, int64_t num_sequences,
                        uint64_t seed);

struct ModelDifference {
  std::vector<std::string> defects;     // empty: all outputs agree
  std::vector<std::string> mistrusted;  // outputs that could not tell
  int64_t outputs = 0;                  // compared, including mistrusted
  int64_t decisions = 0;                // (token, layer) pairs
  int64_t ambiguous = 0;   // of them, selected differently near a tie
  double utilisation = 0;  // largest |error| / tolerance
  std::string loosest;     // where the utilisation was reached

  bool ok() const { return defects.empty(); }
  bool trusted() const { return mistrusted.empty(); }
  std::string Text() const;
};

// Makes the model to compare, for groups of this many sequences.
using ModelMaker = std::function<std::unique_ptr<optimized::Model>(
    const Config& config, int64_t group_sequences)>;

// Runs the model on `pool` and the reference, and compares them.
ModelDifference CompareModels(const ModelCase& model_case, ThreadPool& pool);
// Does the same for a model on any backend.
ModelDifference CompareModels(const ModelCase& model_case,
                              const ModelMaker& make_model);

// Does the same with another case for the reference, to show how the comparison
// judges a model that computes something else.
ModelDifference CompareModels(const ModelCase& model_case,
                              const ModelCase& reference_case,
                              ThreadPool& pool);

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_MODEL_DIFFERENCE_H_

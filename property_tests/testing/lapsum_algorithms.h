// SPDX-License-Identifier: Apache-2.0
//
// lapsum_algorithms.h - four other algorithms for the LapSum weights, as
// oracles.
//
// SPEC.md 1.4. The reference sorts and walks the segments; these share no code
// with it, and none with each other. Plain double, plain sums.
//   B  monotone iteration from the softmax bound, no sort
//   C  all pairs: S at every score decides the segment, no sort
//   D  the ceil(2k) largest by repeated maximum, the rest as one sum
//   bisection on the definition
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_LAPSUM_ALGORITHMS_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_LAPSUM_ALGORITHMS_H_

#include <vector>

namespace softmoe::property_tests {

// The weights [n], and how the algorithm got there.
struct AlgorithmResult {
  std::vector<double> weights;
  int steps = 0;         // iterations of B
  double overshoot = 0;  // B: how far an iterate turned back, in units of T
};

// All of these require finite scores, 0 < k < n and temperature > 0.
AlgorithmResult MonotoneIteration(const std::vector<double>& scores, double k,
                                  double temperature);
AlgorithmResult AllPairs(const std::vector<double>& scores, double k,
                         double temperature);
AlgorithmResult PartialSelection(const std::vector<double>& scores, double k,
                                 double temperature);
AlgorithmResult Bisection(const std::vector<double>& scores, double k,
                          double temperature);

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_LAPSUM_ALGORITHMS_H_

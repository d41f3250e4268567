// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/case_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace softmoe::verify {

void Convergence::Add(const Convergence& other) {
  smooth += other.smooth;
  kinks += other.kinks;
  undecided += other.undecided;
  lowest_order = std::fmin(lowest_order, other.lowest_order);
  highest_order = std::fmax(highest_order, other.highest_order);
}

double CaseResult::utilisation() const {
  double largest = 0;
  for (const OutputResult& each : outputs) {
    largest = std::max(largest, each.comparison.utilisation);
  }
  return largest;
}

std::string CaseResult::Place() const {
  for (const OutputResult& each : outputs) {
    if (each.output != output || each.comparison.failures == 0) continue;
    return fmt::format("{}[{}]", output, each.comparison.worst);
  }
  return output;
}

}  // namespace softmoe::verify

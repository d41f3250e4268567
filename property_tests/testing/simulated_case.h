// SPDX-License-Identifier: Apache-2.0
//
// simulated_case.h - runs CUDA kernels in the simulator (kernels/simt/shim) in
// three schedules and demands equal bits.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_

#include <rapidcheck.h>

#include <cstring>
#include <vector>

#include "kernels/simt/shim/simulator.h"
#include "property_tests/testing/kernel_case.h"

namespace softmoe::property_tests {

inline bool SameBits(const std::vector<Floats>& a,
                     const std::vector<Floats>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    if (!a[i].empty() && std::memcmp(a[i].data(), b[i].data(),
                                     a[i].size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

// body() launches kernels of isa_shim and returns all their outputs.
template <typename Body>
std::vector<Floats> RunInTheSimulator(const Body& body) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const std::vector<Floats> outputs = body();
  for (const simt::Schedule schedule :
       {simt::Schedule::kDescending, simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule, 3);
    RC_ASSERT(SameBits(body(), outputs));
  }
  return outputs;
}

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_

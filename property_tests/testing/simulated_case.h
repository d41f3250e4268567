// SPDX-License-Identifier: Apache-2.0
//
// simulated_case.h - runs CUDA kernels on a simulated device
// (kernels/simt/device) in three schedules and demands equal bits.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_

#include <rapidcheck.h>

#include <functional>

#include "kernels/simt/shim/simulator.h"
#include "property_tests/testing/kernel_case.h"
#include "property_tests/verify/implementations/device_kernels.h"

namespace softmoe::property_tests {

// The CUDA kernels on the simulated device, to be called with host pointers.
inline const verify::RowKernels& SimulatedKernels() {
  static const verify::RowKernels kernels =
      SOFTMOE_DEVICE_KERNELS(isa_shim, float);
  return kernels;
}

// body() calls simulated kernels and returns all its outputs, as for
// RunAtEveryLevel.
template <typename Body>
auto RunInTheSimulator(const Body& body) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const auto outputs = body();
  for (const simt::Schedule schedule :
       {simt::Schedule::kDescending, simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule, 3);
    RC_ASSERT(SameBits(body(), outputs));
  }
  return outputs;
}

// Demands that the CUDA kernel gives the CPU kernel's bits at every level.
// run(kernel) calls kernel(args) once and returns all outputs, as above.
template <typename Args, typename Run>
void ExpectTheBitsOfTheCpu(void (*on_cpu)(const Args&, ThreadPool&),
                           const std::function<void(const Args&)>& simulated,
                           const Run& run) {
  const auto expected = RunInTheSimulator([&] { return run(simulated); });
  const auto levels = RunAtEveryLevel([&](ThreadPool& pool) {
    return run([&](const Args& args) { on_cpu(args, pool); });
  });
  for (const auto& level : levels) RC_ASSERT(SameBits(expected, level));
}

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_

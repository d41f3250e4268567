// SPDX-License-Identifier: Apache-2.0
//
// cpu_implementation.h - our CPU kernels at one ISA level, as "cpu:v3" and
// "cpu:v4". Its schedules are numbers of threads: all must give the same bits.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_CPU_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_CPU_IMPLEMENTATION_H_

#include <memory>
#include <string>

#include "core/parallel_for.h"
#include "property_tests/verify/implementation.h"

namespace softmoe::verify {

// `level` is "v3", "v4", "double" (double_implementation.h) or "" for the best
// level of this machine.
std::unique_ptr<Implementation> MakeCpuImplementation(const std::string& level);

// One operation on the CPU kernels; the ISA level has been selected.
using CpuRunner = TensorMap (*)(const Case& c, const TensorMap& inputs,
                                ThreadPool& pool);

// The operations that are no row kernels (cpu_model.cc, cpu_step.cc).
TensorMap RunEmbeddingOnCpu(const Case& c, const TensorMap& inputs,
                            ThreadPool& pool);
TensorMap RunLmHeadOnCpu(const Case& c, const TensorMap& inputs,
                         ThreadPool& pool);
TensorMap RunAttentionOnCpu(const Case& c, const TensorMap& inputs,
                            ThreadPool& pool);
TensorMap RunExpertsOnCpu(const Case& c, const TensorMap& inputs,
                          ThreadPool& pool);
TensorMap RunBudgetOnCpu(const Case& c, const TensorMap& inputs,
                         ThreadPool& pool);
TensorMap RunAdamWOnCpu(const Case& c, const TensorMap& inputs,
                        ThreadPool& pool);
TensorMap RunSumOfSquaresOnCpu(const Case& c, const TensorMap& inputs,
                               ThreadPool& pool);
TensorMap RunGemmOnCpu(const Case& c, const TensorMap& inputs,
                       ThreadPool& pool);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_CPU_IMPLEMENTATION_H_

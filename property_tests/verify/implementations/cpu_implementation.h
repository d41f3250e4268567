// SPDX-License-Identifier: Apache-2.0
//
// cpu_implementation.h - our CPU kernels at one ISA level, as "cpu:v3" and
// "cpu:v4". Its schedules are numbers of threads, which must all give the same
// bits.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_CPU_IMPLEMENTATION_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_CPU_IMPLEMENTATION_H_

#include <memory>
#include <string>

#include "core/parallel_for.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/implementations/adapters.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

// The kernels of the level that is selected (kernels/isa.h). `pool` must
// outlive the result.
RowKernels CpuKernels(ThreadPool& pool);

// `level` is "v3", "v4", "double" (double_implementation.h) or "" for the best
// level of this machine. `adapters` must outlive the result.
std::unique_ptr<Implementation> MakeCpuImplementation(const std::string& level,
                                                      const Adapters& adapters);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_CPU_IMPLEMENTATION_H_

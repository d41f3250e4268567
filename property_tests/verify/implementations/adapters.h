// SPDX-License-Identifier: Apache-2.0
//
// adapters.h - how operations are computed by kernels: an adapter takes named
// tensors to a kernel's arguments and back. An implementation is given a table
// of them (adapter_table.h) and knows no operation.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ADAPTERS_H_

#include <map>
#include <string>

#include "core/parallel_for.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

// On the kernels that exist as CUDA source too: CPU, simulator, device.
using RowAdapter = TensorMap (*)(const Case& c, const TensorMap& inputs,
                                 const RowKernels& run);
// On the CPU alone; the ISA level has been selected.
using CpuAdapter = TensorMap (*)(const Case& c, const TensorMap& inputs,
                                 ThreadPool& pool);
// On the bodies of the kernels, at double.
using DoubleAdapter = TensorMap (*)(const Case& c, const TensorMap& inputs);

// By the name of the operation. On the CPU `cpu` goes before `rows`.
struct Adapters {
  std::map<std::string, RowAdapter> rows;
  std::map<std::string, CpuAdapter> cpu;
  std::map<std::string, DoubleAdapter> at_double;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ADAPTERS_H_

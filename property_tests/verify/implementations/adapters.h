// SPDX-License-Identifier: Apache-2.0
//
// adapters.h - how kernels compute operations: an adapter converts named
// tensors to the arguments of a kernel and its outputs back. An implementation
// takes a table of adapters (operation_table.h) and knows no operation.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ADAPTERS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ADAPTERS_H_

#include <map>
#include <string>
#include <type_traits>

#include "core/parallel_for.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::verify {

// Calls the kernels that also exist as CUDA source: on the CPU, in the
// simulator and on a device.
using RowAdapter = TensorMap (*)(const Case& c, const TensorMap& inputs,
                                 const RowKernels& run);
// Calls the kernels whose activations are bf16, at dtype bf16: in the simulator
// and on a device.
using Bf16Adapter = TensorMap (*)(const Case& c, const TensorMap& inputs,
                                  const Bf16Kernels& run);
// Calls what computes the operation on the CPU only, at the selected ISA level.
using CpuAdapter = TensorMap (*)(const Case& c, const TensorMap& inputs,
                                 ThreadPool& pool);
// Calls the bodies of the kernels, at double.
using DoubleAdapter = TensorMap (*)(const Case& c, const TensorMap& inputs);

// Keyed by the operation's name. On the CPU, `cpu` takes precedence over
// `rows`.
struct Adapters {
  std::map<std::string, RowAdapter> rows;
  std::map<std::string, Bf16Adapter> bf16;
  std::map<std::string, CpuAdapter> cpu;
  std::map<std::string, DoubleAdapter> at_double;
};

// Adapters for kernels whose activations have this type.
template <typename Activation>
const auto& DeviceAdapters(const Adapters& adapters) {
  if constexpr (std::is_same_v<Activation, float>) {
    return adapters.rows;
  } else {
    return adapters.bf16;
  }
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ADAPTERS_H_

// SPDX-License-Identifier: Apache-2.0
//
// implementations.h - our own implementations, one function for each family,
// the part of impl= before a colon. Those with `adapters` keep a reference to
// them: the adapters must outlive the result. All throw ConfigError for an
// argument that they do not know.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_IMPLEMENTATIONS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_IMPLEMENTATIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "core/parallel_for.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/implementations/adapters.h"
#include "property_tests/verify/implementations/row_kernels.h"

namespace softmoe::ptx {
class PtxDevice;
}

namespace softmoe::verify {

// "reference_f32", "reference_bf16": the reference's results, each rounded once
// to that dtype, the best that any implementation can return. They show that
// the harness accepts correct results, and serve as the base for planted
// faults. "reference_f64" rounds nothing, and accepts float data as well. It is
// not among ImplementationNames(): `verify grad` looks for faults in the
// reference's own derivatives, and `run` has nothing to compare it with.
std::unique_ptr<Implementation> MakeReferenceImplementation(Dtype dtype);

// "cpu:v3", "cpu:v4": our CPU kernels at one ISA level; "" is the best level of
// this machine. Schedules are numbers of threads, which must all give the same
// bits. "cpu:double": the bodies of our kernels, CPU and CUDA alike,
// instantiated at double, where no float error hides a wrong epsilon or a wrong
// formula. Where kernels multiply matrices, it uses plain loops.
std::unique_ptr<Implementation> MakeCpuImplementation(const std::string& level,
                                                      const Adapters& adapters);

// The kernels of the selected ISA level (kernels/isa.h). `pool` must outlive
// the result.
RowKernels CpuKernels(ThreadPool& pool);

// "shim", and with bf16 activations "shim:bf16": our CUDA source on a simulated
// device (kernels/simt/device). Schedules are orders of the simulated threads
// and of queued work, which must all give the same bits.
std::unique_ptr<Implementation> MakeShimImplementation(
    const std::string& activations, const Adapters& adapters);

// "ptx", "ptx:bf16": what nvcc makes of that source, executed without a GPU
// (kernels/simt/ptx). Everything else, such as the simulated device and the
// matrix products, is as in "shim".
std::unique_ptr<Implementation> MakePtxImplementation(
    const std::string& activations, const Adapters& adapters);

// Why this program has no PTX beside it; "" if it has.
std::string WhyNoPtx();

// The PTX, read at the first call; counts what all implementations execute.
ptx::PtxDevice& Ptx();

// "cuda", "cuda:bf16": our CUDA kernels on device 0 of this machine. Without a
// device, or if the program was built without the CUDA toolkit, every operation
// is reported as UNSUPPORTED: not run, and never passed. Each case runs twice
// and must give the same bits. After an illegal address this process can no
// longer use the device: that case fails, unshrunk, and the next call throws
// EnvironmentError.
std::unique_ptr<Implementation> MakeCudaImplementation(
    const std::string& activations, const Adapters& adapters);

// "same:IMPL,IMPL": one held to the bits of another. "same:cuda,shim" computes
// on a device, and fails where the simulated device computes anything else,
// however small the difference. The first computes, in all of its schedules;
// the second provides the required bits, in its first schedule. An output that
// only one of them has is not compared. Also throws as MakeImplementation does.
std::unique_ptr<Implementation> MakeSameBitsImplementation(
    const std::string& argument);

// "faulty:FAULT:OUTPUT:BASE" computes with BASE and then spoils OUTPUT. Such
// implementations prove that the harness finds, shrinks and explains what it
// should, and show a user what a failure looks like.
std::unique_ptr<Implementation> MakeFaultyImplementation(
    const std::string& argument);

struct FaultInfo {
  std::string name, text;
};
const std::vector<FaultInfo>& Faults();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_IMPLEMENTATIONS_H_

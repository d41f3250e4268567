// SPDX-License-Identifier: Apache-2.0
//
// What a failed call of CUDA or cuBLASLt means to the user: a device's failure,
// a mistake of the program, or something that the machine lacks.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/queue.h"
#include "kernels/simt/device/device.h"

namespace softmoe::kernels {
namespace {

struct Meaning {
  int error;  // a cudaError_t or cublasStatus_t
  ExitCode code;
  std::string says;
};

// The next `call`, which call_it makes, fails with each.
void ExpectMeanings(const char* call, const std::function<void()>& call_it,
                    const std::vector<Meaning>& meanings) {
  for (const Meaning& meaning : meanings) {
    SCOPED_TRACE(testing::Message() << call << ": " << meaning.error);
    simt::FailCall(call, 1, meaning.error);
    try {
      call_it();
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), meaning.code) << error.what();
      EXPECT_NE(std::string(error.what()).find(meaning.says), std::string::npos)
          << error.what();
    }
  }
  call_it();  // nothing sticks
}

TEST(CallErrors, OfCuda) {
  const std::vector<Meaning> meanings = {
      // A kernel's: an illegal, a misaligned address, its stack, instruction,
      // address space, program counter, a failed launch.
      {700, ExitCode::kFailed, "on the device: "},
      {716, ExitCode::kFailed, "on the device: "},
      {714, ExitCode::kFailed, "on the device: "},
      {715, ExitCode::kFailed, "on the device: "},
      {717, ExitCode::kFailed, "on the device: "},
      {718, ExitCode::kFailed, "on the device: "},
      {719, ExitCode::kFailed, "on the device: "},
      // A call that cannot be: value, configuration, direction, handle, more
      // resources than a block can have.
      {1, ExitCode::kSelfCheck, ": "},
      {9, ExitCode::kSelfCheck, ": "},
      {21, ExitCode::kSelfCheck, ": "},
      {400, ExitCode::kSelfCheck, ": "},
      {701, ExitCode::kSelfCheck, ": "},
      // The machine's: memory, a device in use by others, one that is broken,
      // one that ends what takes long, one that was taken away.
      {2, ExitCode::kEnvironment, "take a device with more memory"},
      {46, ExitCode::kEnvironment, "nvidia-smi"},
      {214, ExitCode::kEnvironment, "nvidia-smi"},
      {702, ExitCode::kEnvironment, "nvidia-smi"},
      {999, ExitCode::kEnvironment, "nvidia-smi"},
  };
  ExpectMeanings(
      "cudaStreamCreateWithFlags",
      [] { isa_shim::FreeStream(isa_shim::MakeStream()); }, meanings);
  // Where the host waits, as where it asks for something.
  ExpectMeanings(
      "cudaStreamSynchronize",
      [] { isa_shim::FinishStream(isa_shim::DeviceStream()); }, meanings);
}

// It is not the device that lacks it.
TEST(CallErrors, OfMemoryOfTheHost) {
  ExpectMeanings(
      "cudaMallocHost",
      [] { isa_shim::FreeOnHost(isa_shim::AllocateOnHost(24)); },
      {{2, ExitCode::kEnvironment, "memory of the host: 24 bytes more"},
       {999, ExitCode::kEnvironment, "nvidia-smi"}});
}

TEST(CallErrors, OfCublasLt) {
  ExpectMeanings(
      "cublasLtCreate",
      [] { (void)isa_shim::MakeQueue(isa_shim::DeviceStream(), 64); },
      {// not initialised, no memory, another architecture, its own
       {1, ExitCode::kEnvironment, "nvidia-smi"},
       {3, ExitCode::kEnvironment, "nvidia-smi"},
       {8, ExitCode::kEnvironment, "nvidia-smi"},
       {14, ExitCode::kEnvironment, "nvidia-smi"},
       // a value that cannot be, a product that it does not compute
       {7, ExitCode::kSelfCheck, "cuBLASLt: "},
       {15, ExitCode::kSelfCheck, "cuBLASLt: "},
       // on the device
       {13, ExitCode::kFailed, "on the device: "}});
}

}  // namespace
}  // namespace softmoe::kernels

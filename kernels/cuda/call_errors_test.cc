// SPDX-License-Identifier: Apache-2.0
//
// What a failed call of CUDA or cuBLASLt means to the user: a device's failure,
// a mistake of the program, or something that the machine lacks.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/queue.h"
#include "kernels/simt/device/device.h"

namespace softmoe::kernels {
namespace {

struct Meaning {
  int error;  // a cudaError_t or cublasStatus_t
  ExitCode code;
  std::string says;
};

// Makes the next `call`, within call_it, fail with each error in turn.
void ExpectMeanings(const char* call, const std::function<void()>& call_it,
                    const std::vector<Meaning>& meanings) {
  for (const Meaning& meaning : meanings) {
    SCOPED_TRACE(testing::Message() << call << ": " << meaning.error);
    simt::FailCall(call, 1, meaning.error);
    EXPECT_TRUE(Says(MessageOf(meaning.code, call_it), meaning.says));
  }
  call_it();  // the failure does not stay
}

TEST(CallErrors, OfCuda) {
  const std::vector<Meaning> meanings = {
      // Failures of a kernel: illegal or misaligned address, stack,
      // instruction, address space, program counter, launch.
      {700, ExitCode::kFailed, "on the device: "},
      {716, ExitCode::kFailed, "on the device: "},
      {714, ExitCode::kFailed, "on the device: "},
      {715, ExitCode::kFailed, "on the device: "},
      {717, ExitCode::kFailed, "on the device: "},
      {718, ExitCode::kFailed, "on the device: "},
      {719, ExitCode::kFailed, "on the device: "},
      // Invalid calls: value, configuration, direction, handle, more resources
      // than a block can have.
      {1, ExitCode::kSelfCheck, ": "},
      {9, ExitCode::kSelfCheck, ": "},
      {21, ExitCode::kSelfCheck, ": "},
      {400, ExitCode::kSelfCheck, ": "},
      {701, ExitCode::kSelfCheck, ": "},
      // Failures of the machine: out of memory; a device in use by others,
      // broken, with a time limit, or taken away.
      {2, ExitCode::kEnvironment, "take a device with more memory"},
      {46, ExitCode::kEnvironment, "nvidia-smi"},
      {214, ExitCode::kEnvironment, "nvidia-smi"},
      {702, ExitCode::kEnvironment, "nvidia-smi"},
      {999, ExitCode::kEnvironment, "nvidia-smi"},
  };
  ExpectMeanings(
      "cudaStreamCreateWithFlags",
      [] { isa_shim::FreeStream(isa_shim::MakeStream()); }, meanings);
  // Errors mean the same where the host waits.
  ExpectMeanings(
      "cudaStreamSynchronize",
      [] { isa_shim::FinishStream(isa_shim::DeviceStream()); }, meanings);
}

// The host lacks memory, not the device.
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
      {// not initialised, no memory, another architecture, internal error
       {1, ExitCode::kEnvironment, "nvidia-smi"},
       {3, ExitCode::kEnvironment, "nvidia-smi"},
       {8, ExitCode::kEnvironment, "nvidia-smi"},
       {14, ExitCode::kEnvironment, "nvidia-smi"},
       // invalid value, unsupported product
       {7, ExitCode::kSelfCheck, "cuBLASLt: "},
       {15, ExitCode::kSelfCheck, "cuBLASLt: "},
       // on the device
       {13, ExitCode::kFailed, "on the device: "}});
}

// In bf16 flash attention needs no blocks of queries; fp32 does.
TEST(CallErrors, OfAttentionInBlocksOfNoQuery) {
  const auto queue = isa_shim::MakeQueue(isa_shim::DeviceStream(), 64);
  const AttentionForwardArgs args = {.num_sequences = 1,
                                     .sequence_length = 8,
                                     .num_heads = 1,
                                     .head_dim = 8,
                                     .qkv = nullptr,
                                     .out = nullptr,
                                     .log_sum_exp = nullptr};
  EXPECT_TRUE(Says(MessageOf<InternalError>(
                       [&] { isa_shim::AttentionForward(args, *queue); }),
                   "weights of no query"));
  EXPECT_THROW(isa_shim::HeadCrossEntropy(HeadCrossEntropyArgs{}, *queue),
               InternalError);  // logits of no token
}

TEST(CallErrors, OfAlgorithmsThatNoHeuristicHas) {
  const auto make = [](int choice) {
    (void)isa_shim::MakeQueueOfChoice(isa_shim::DeviceStream(), choice, 64);
  };
  EXPECT_THROW(make(-1), InternalError);
  EXPECT_NO_THROW(make(0));
  EXPECT_THROW(make(kProductChoices), InternalError);
}

}  // namespace
}  // namespace softmoe::kernels

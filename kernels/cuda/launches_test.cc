// SPDX-License-Identifier: Apache-2.0
//
// Launches ask a device for no more than their kernels use.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/errors.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/device_probes.h"
#include "kernels/cuda/flat_kernels.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/noise_kernels.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/queue.h"
#include "kernels/cuda/routing_kernels.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/simt/bf16.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/device/kernel_launch.h"
#include "kernels/simt/shim/simulator.h"

// Arguments that are not given are null.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace softmoe::kernels {
namespace {

// Takes the simulator's place and notes what each launch asks for: blocks,
// threads of each, bytes of dynamic shared memory. Runs nothing.
class Launches : public simt::KernelRunner {
 public:
  Launches() { simt::SetKernelRunner(this); }
  ~Launches() override { simt::SetKernelRunner(nullptr); }
  const char* Run(const simt::Grid& grid, const simt::KernelCall&) override {
    const size_t size = std::strlen(text_);  // nothing from the heap in here
    std::snprintf(text_ + size, sizeof(text_) - size, "%ux%u+%zu ",
                  grid.blocks.x, grid.threads.x, grid.dynamic_shared);
    return nullptr;
  }
  // What was noted since the last call.
  std::string Take() {
    isa_shim::FinishStream(isa_shim::DeviceStream());
    const std::string text = text_;
    text_[0] = '\0';
    return text;
  }

 private:
  char text_[1000] = "";
};

// Sizes are such that one more of anything would need one more block.
TEST(Launches, AskForWhatKernelsUse) {
  using namespace isa_shim;
  CUstream_st* const stream = DeviceStream();
  const auto queue = MakeQueue(stream, /*workspace=*/64);
  float* const memory = static_cast<float*>(AllocateOnDevice(1 << 16));
  Launches launches;
  const std::string one = "1x256+0 ";

  (void)AskDevice();
  EXPECT_EQ(launches.Take(), "1x256+166912 16x256+0 ");
  SumOfSquares({64 * 4096}, stream);
  Add({1024, memory + 1, memory}, stream);  // one element to a thread
  Add({1024, memory, memory + 1024}, stream);
  CastToBf16({2048}, stream);
  AdamW({1024}, stream);
  InputJitter(InputJitterArgs{64, 32}, stream);
  InputJitter(InputJitterArgs{256, 4}, stream);
  LogitNoise({64, 16}, stream);
  EXPECT_EQ(launches.Take(),
            one + "1x1024+0 4x256+0 " + one + one + one + one + one + one);
  const RoutePlan plan = {.num_tokens = 8, .num_routed = 8};
  Permute(PermuteArgsOf<float>{plan, 8}, stream);
  Unpermute(UnpermuteArgsOf<float>{plan, 8}, stream);
  SwigluForward(SwigluForwardArgsOf<float>{plan}, stream);
  SwigluBackward(SwigluBackwardArgsOf<float>{plan}, stream);
  Rope(RopeArgsOf<float>{2, 4, 1, 16}, stream);
  RmsNormForward(RmsNormForwardArgsOf<float>{8, 8}, stream);
  TokenCrossEntropy(TokenCrossEntropyArgsOf<float>{3}, stream);
  EXPECT_EQ(launches.Take(), one + one + one + one + one + one + "3x256+0 ");
  BuildRoutePlan({256, 32, 1}, stream);
  GatherGateGradients({256, 1}, stream);
  RoutingCounts({}, stream);
  BalanceLoss({}, stream);
  BudgetGradient({}, stream);
  EXPECT_EQ(launches.Take(), one + "1x1024+0 " + one + one + one + one +
                                 "1x1024+0 1x1+0 1x1+0 ");

  // Three times 32 rows with a float more than experts and, for more than four
  // experts of a token, 32 rows of 2 * 5 + 1. Sums: 3 * 10 + 2 and 3 * 21 + 2.
  RouterForward({{.num_tokens = 64, .num_experts = 10, .max_active = 4}},
                stream);
  RouterForward({{.num_tokens = 64, .num_experts = 10, .max_active = 5}},
                stream);
  RouterBackward({{.num_tokens = 64, .num_experts = 21}}, stream);
  RouterForward({{.num_tokens = 64, .num_experts = 21, .max_active = 5}},
                stream);
  EXPECT_EQ(launches.Take(), "1x32+4224 " + one + "1x32+5632 " + one +
                                 "1x32+8448 " + one + "1x32+9856 3x256+0 ");

  // A row for each warp, as many as 48 KiB hold, at least one.
  const int before = simt::CallsOf("cudaFuncSetAttribute");
  for (const int64_t d_model : {1024, 1025, 1537, 12289}) {
    RmsNormBackward(RmsNormBackwardArgsOf<float>{64, d_model}, stream);
  }
  EXPECT_EQ(launches.Take(),
            "1x256+32768 32x1024+0 1x256+32800 33x1024+0 "
            "1x224+43036 49x1024+0 1x32+49156 385x1024+0 ");
  EXPECT_EQ(simt::CallsOf("cudaFuncSetAttribute") - before, 3);  // > 32 KiB

  // 128 or 64 rows of a block and four tiles of 64, of 2 head_dim bytes; then
  // twice as many rows, and two floats for each of them or of two tiles' rows.
  using Backward = AttentionBackwardArgsOf<Bf16>;
  AttentionForward(AttentionForwardArgsOf<Bf16>{1, 128, 1, 64}, *queue);
  AttentionBackward(Backward{1, 128, 1, 128}, *queue);
  AttentionBackward(Backward{(1 << 23) - 1, 128, 1, 64}, *queue);
  EXPECT_EQ(launches.Take(),
            "1x128+49152 2x128+98816 2x128+99344 "
            "8388607x128+66560 8388607x128+66576 ");
  EXPECT_THROW(AttentionBackward(Backward{1 << 23, 128, 1, 64}, *queue),
               InternalError);  // 2^31 numbers
  FreeOnDevice(memory);
}

}  // namespace
}  // namespace softmoe::kernels

// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/bf16_sizes.h"

#include <gtest/gtest.h>

#include <string>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::kernels {
namespace {

std::string Complaint(const Bf16Sizes& sizes) {
  return MessageOf<ConfigError>([&] { CheckBf16Sizes(sizes); });
}

TEST(Bf16Sizes, ThePapersAreAccepted) {
  EXPECT_EQ(Complaint({640, 10, 2560, 32768}), kNoError);
  EXPECT_EQ(Complaint({8, 1, 8, 8}), kNoError);
}

TEST(Bf16Sizes, OthersAreRefusedByKeyAndRemedy) {
  EXPECT_EQ(Complaint({644, 7, 2560, 32768}),
            "model.d_model is 644, and in bf16 it must be a multiple of 8: "
            "change it, or train in fp32");
  EXPECT_EQ(Complaint({640, 32, 2560, 32768}),
            "model.d_model / model.num_heads is 20, and in bf16 it must be a "
            "multiple of 8: change model.num_heads, or train in fp32");
  EXPECT_TRUE(Says(Complaint({640, 10, 2561, 32768}), "model.d_ffn is 2561"));
  EXPECT_TRUE(
      Says(Complaint({640, 10, 2560, 50257}), "model.vocab_size is 50257"));
}

}  // namespace
}  // namespace softmoe::kernels

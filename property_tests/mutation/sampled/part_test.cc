// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/part.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::mutation {
namespace {

TEST(Part, HasWhatLiesUnderItsPaths) {
  const Part part({"kernels/cuda", "optimized/model.cc"});
  EXPECT_FALSE(part.IsAll());
  EXPECT_TRUE(part.Has("kernels/cuda/queue.cu"));
  EXPECT_TRUE(part.Has("kernels/cuda/deeper/a.h"));
  EXPECT_TRUE(part.Has("optimized/model.cc"));
  EXPECT_FALSE(part.Has("kernels/cuda_more/a.h"));
  EXPECT_FALSE(part.Has("kernels/adamw.cc"));
  EXPECT_FALSE(part.Has("optimized/model.cc.orig"));
  EXPECT_FALSE(part.Has("trainer/kernels/cuda/a.cc"));
}

TEST(Part, OfNothingIsAll) {
  const Part asked{std::vector<std::string>()};
  EXPECT_TRUE(asked.IsAll());
  EXPECT_TRUE(asked.Has("golden/a.cc"));
  EXPECT_EQ(asked.Text(), "");
  EXPECT_EQ(Part().Text(), "");
}

// One text however the part was given, since it identifies a list.
TEST(Part, HasOneText) {
  const std::string text = "kernels/cuda,kernels/simt,optimized";
  EXPECT_EQ(Part({text}).Text(), text);
  EXPECT_EQ(Part({"optimized", "kernels/simt", "kernels/cuda"}).Text(), text);
  EXPECT_EQ(Part({"optimized/,kernels/simt", "kernels/cuda//"}).Text(), text);
  EXPECT_EQ(Part({text, "optimized", "kernels/cuda/queue.cu"}).Text(), text);
  EXPECT_EQ(Part({Part({text}).Text()}).Text(), text);
}

TEST(Part, RefusesPathsThatAreNone) {
  for (const char* text : {"", ",", "optimized,", "/", "optimized,,kernels"}) {
    EXPECT_THROW(Part({text}), ConfigError) << text;
  }
  const Part part({"kernels/cuda,kernels/cudda"});
  EXPECT_TRUE(
      Says(MessageOf<ConfigError>([&] {
             part.RequireIn({"kernels/cuda/queue.cu", "optimized/model.cc"});
           }),
           "--in kernels/cudda: no source"));
  Part({"kernels"}).RequireIn({"kernels/cuda/queue.cu"});
  Part().RequireIn({});
}

}  // namespace
}  // namespace softmoe::mutation

// SPDX-License-Identifier: Apache-2.0
#include "core/config/parameter_layout.h"

#include <gtest/gtest.h>

#include <set>

namespace softmoe {
namespace {

// Paper: Table tab:model-size-params ("1.631B"); exact count: SPEC.md 3.1.
TEST(ParameterLayout, PaperSizesGiveTheExactParameterCount) {
  Config config;
  EXPECT_EQ(ParameterLayout(config).total, 1'631'409'280);
  config.router.kind = RouterKind::kSoftLearned;
  EXPECT_EQ(ParameterLayout(config).total, 1'631'409'280 + 10);
}

TEST(ParameterLayout, TensorsTileTheBufferAndNamesAreUnique) {
  Config config;
  config.router.kind = RouterKind::kSoftLearned;
  const ParameterLayout layout(config);
  int64_t next = 0;
  std::set<std::string> names;
  for (const ParameterTensor& tensor : layout.tensors) {
    EXPECT_EQ(tensor.offset, next) << tensor.name;
    int64_t size = 1;
    for (int64_t extent : tensor.shape) size *= extent;
    EXPECT_EQ(tensor.size, size) << tensor.name;
    EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
    EXPECT_EQ(tensor.weight_decay, tensor.shape.size() > 1) << tensor.name;
    next += tensor.size;
  }
  EXPECT_EQ(next, layout.total);
  EXPECT_EQ(layout.budget_logits, layout.total - 10);
}

}  // namespace
}  // namespace softmoe

// SPDX-License-Identifier: Apache-2.0
#include "reference/flat_parameters.h"

#include <gtest/gtest.h>

#include "core/errors.h"
#include "reference/testing/tiny_model.h"

namespace softmoe::reference {
namespace {

class FlatParametersTest : public ::testing::Test {
 protected:
  const Config config_ = testing::TinyConfig(RouterKind::kSoftLearned);
  const ParameterLayout layout_{config_};
  const Vector flat_ = testing::TinyParameters(config_, 1);
};

// Outside the blocks are the embedding, final norm, head and budget logits.
TEST_F(FlatParametersTest, BlocksRoundTripAndCoverTheirTensors) {
  Vector copy = Vector::Zero(layout_.total);
  for (int64_t l = 0; l < config_.model.num_layers; ++l) {
    WriteBlock(ReadBlock(config_.model, layout_, l, flat_), layout_, l, &copy);
  }
  for (const ParameterTensor& tensor : layout_.tensors) {
    const bool in_block = tensor.name.rfind("layers.", 0) == 0;
    EXPECT_EQ(TensorElements(tensor, copy),
              in_block ? TensorElements(tensor, flat_)
                       : Vector::Zero(tensor.size).eval())
        << tensor.name;
  }
}

// Row-major [expert, row, column], as the layout's comment says.
TEST_F(FlatParametersTest, ReadsRowMajorAndByExpert) {
  const ModelConfig& model = config_.model;
  const DecoderBlockWeights block = ReadBlock(model, layout_, 1, flat_);
  const LayerOffsets& at = layout_.layers[1];
  EXPECT_EQ(block.qkv_weight(2, 5),
            flat_[at.qkv_weight + 2 * 3 * model.d_model + 5]);
  EXPECT_EQ(block.moe.router_weight(3, 4),
            flat_[at.router_weight + 3 * model.num_experts + 4]);
  EXPECT_EQ(
      block.moe.gate_up_weight[2](1, 7),
      flat_[at.gate_up_weight + (2 * model.d_model + 1) * 2 * model.d_ffn + 7]);
  EXPECT_EQ(block.moe.down_weight[4](6, 3),
            flat_[at.down_weight + (4 * model.d_ffn + 6) * model.d_model + 3]);
}

TEST_F(FlatParametersTest, TensorsAreFoundByName) {
  EXPECT_EQ(TensorNamed(layout_, "layers.1.moe_norm").offset,
            layout_.layers[1].moe_norm);
  EXPECT_THROW(TensorNamed(layout_, "layers.2.moe_norm"), InternalError);
}

TEST_F(FlatParametersTest, ReadingPastTheEndIsRefused) {
  EXPECT_THROW(ReadMatrix(flat_, layout_.total - 3, 2, 2), InternalError);
  Vector copy = flat_;
  EXPECT_THROW(WriteMatrix(Matrix::Ones(2, 2), layout_.total - 3, &copy),
               InternalError);
  EXPECT_THROW(TensorElements(layout_.tensors.back(), flat_.head(5)),
               InternalError);
}

}  // namespace
}  // namespace softmoe::reference

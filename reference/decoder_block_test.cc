// SPDX-License-Identifier: Apache-2.0
#include "reference/decoder_block.h"

#include <gtest/gtest.h>

#include "core/config/parameter_layout.h"
#include "reference/flat_parameters.h"
#include "reference/testing/random_matrix.h"
#include "reference/testing/tiny_model.h"
#include "reference/testing/vjp_check.h"

namespace softmoe::reference {
namespace {

using testing::Matrices;
using testing::RandomMatrix;

class DecoderBlockTest : public ::testing::Test {
 protected:
  DecoderBlockTest() {
    settings_.num_sequences = 2;
    settings_.num_heads = config_.model.num_heads;
    settings_.rope_base = config_.model.rope_base;
    settings_.moe.router = {.kind = RouterKind::kSoftFixed,
                            .mean_active = 1.5,
                            .temperature = 1.25,
                            .cutoff = 0.35,
                            .max_active = 2};
    settings_.moe.aux_loss_coeff = 0.5;
    settings_.moe.z_loss_coeff = 0.25;
  }

  const Config config_ = testing::TinyConfig(RouterKind::kSoftFixed);
  const ParameterLayout layout_{config_};
  const Vector flat_ = testing::TinyParameters(config_, 1);
  const DecoderBlockWeights weights_ =
      ReadBlock(config_.model, layout_, 0, flat_);
  const Matrix hidden_ = RandomMatrix(12, config_.model.d_model, 1, 900);
  DecoderBlockSettings settings_;
};

TEST_F(DecoderBlockTest, WithZeroOutputProjectionsIsTheIdentity) {
  DecoderBlockWeights weights = weights_;
  weights.output_weight.setZero();
  for (Matrix& down : weights.moe.down_weight) down.setZero();
  EXPECT_EQ(DecoderBlockForward(settings_, weights, hidden_).out, hidden_);
}

TEST_F(DecoderBlockTest, LaterTokensDoNotChangeEarlierOnes) {
  const Matrix out = DecoderBlockForward(settings_, weights_, hidden_).out;
  Matrix changed = hidden_;
  changed.row(4) *= -2;  // the fifth token of the first sequence
  const Matrix after = DecoderBlockForward(settings_, weights_, changed).out;
  EXPECT_EQ(after.topRows(4), out.topRows(4));
  EXPECT_NE(after.row(4), out.row(4));
  EXPECT_NE(after.row(5), out.row(5));
  EXPECT_EQ(after.bottomRows(6), out.bottomRows(6));
}

// All weights as one row, the hidden states as a matrix; the selection is
// replayed, so that the block is smooth.
TEST_F(DecoderBlockTest, GradientMatchesFiniteDifferences) {
  const MoeLayerSaved saved =
      DecoderBlockForward(settings_, weights_, hidden_).saved.moe;
  const RoutingReplay replay{saved.routing.active, saved.balance.fractions};
  const int64_t first = layout_.layers[0].attention_norm;
  const int64_t size = layout_.layers[1].attention_norm - first;
  auto unpack = [&](const Matrices& x) {
    Vector flat = flat_;
    flat.segment(first, size) = x[1].row(0);
    return ReadBlock(config_.model, layout_, 0, flat);
  };
  auto f = [&](const Matrices& x) {
    const DecoderBlockResult result =
        DecoderBlockForward(settings_, unpack(x), x[0], &replay);
    Matrix all = Matrix::Zero(x[0].rows() + 1, x[0].cols());
    all.topRows(x[0].rows()) = result.out;
    all(x[0].rows(), 0) =
        result.saved.moe.balance.loss + result.saved.moe.z_loss;
    return all;
  };
  auto vjp = [&](const Matrices& x, const Matrix& cotangent) -> Matrices {
    const DecoderBlockWeights weights = unpack(x);
    const DecoderBlockGradients g = DecoderBlockBackward(
        settings_, weights, x[0],
        DecoderBlockForward(settings_, weights, x[0], &replay).saved,
        cotangent.topRows(x[0].rows()), cotangent(x[0].rows(), 0));
    Vector flat = Vector::Zero(layout_.total);
    WriteBlock(g.d_weights, layout_, 0, &flat);
    return {g.d_hidden, flat.segment(first, size).transpose()};
  };
  EXPECT_EQ(testing::VjpMismatch(
                f, vjp, {hidden_, flat_.segment(first, size).transpose()}, 2),
            "");
}

}  // namespace
}  // namespace softmoe::reference

// SPDX-License-Identifier: Apache-2.0
//
// What the whole model refuses, and what its messages name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "reference/decoder_block.h"
#include "reference/flat_parameters.h"
#include "reference/testing/tiny_model.h"
#include "reference/transformer.h"

namespace softmoe::reference {
namespace {

using testing::TinyConfig;
using testing::TinyParameters;
using testing::TinyRouting;
using testing::TinyTokens;

class BadInputTest : public ::testing::Test {
 protected:
  // The message of the exception of type E that a forward pass ends with.
  template <typename E>
  std::string Message(const Vector& parameters) {
    return MessageOf<E>([&] {
      TransformerForward(config_, parameters, tokens_.Group(), TinyRouting());
    });
  }

  const Config config_ = TinyConfig(RouterKind::kSoftFixed);
  const ParameterLayout layout_{config_};
  const Vector parameters_ = TinyParameters(config_, 12);
  TinyTokens tokens_{config_, 2, 12};
};

TEST_F(BadInputTest, TokensOutsideTheVocabularyAreNamed) {
  tokens_.inputs[3] = 11;
  EXPECT_TRUE(Says(Message<DataError>(parameters_), "token 3 has id 11"));
  tokens_.inputs[3] = 0;
  tokens_.targets[7] = -1;
  EXPECT_TRUE(Says(Message<DataError>(parameters_), "token 7 has id -1"));
}

TEST_F(BadInputTest, NonFiniteRouterWeightsNameLayerTokenAndExpert) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    Vector parameters = parameters_;
    parameters[layout_.layers[1].router_weight + 2] = bad;  // row 0, expert 2
    const std::string message = Message<NumericsError>(parameters);
    EXPECT_TRUE(Says(message, "layer 1", "token 0, expert 2"));
  }
}

TEST_F(BadInputTest, NonFiniteEmbeddingNamesTheFirstTokenThatUsesIt) {
  Vector parameters = parameters_;
  const int32_t id = tokens_.inputs[8];
  parameters[layout_.embedding + id * config_.model.d_model] = std::nan("");
  const auto first =
      std::find(tokens_.inputs.begin(), tokens_.inputs.end(), id) -
      tokens_.inputs.begin();
  const std::string message = Message<NumericsError>(parameters);
  EXPECT_TRUE(Says(message, "layer 0", "token " + std::to_string(first) + ","));
}

TEST_F(BadInputTest, NonFiniteHeadNamesTheVocabularyEntry) {
  Vector parameters = parameters_;
  parameters[layout_.head_weight + 4 * config_.model.d_model] = std::nan("");
  const std::string message = Message<NumericsError>(parameters);
  EXPECT_TRUE(Says(message, "token 0 for vocabulary entry 4"));
}

TEST_F(BadInputTest, SizesThatDoNotFitAreRefused) {
  EXPECT_TRUE(Says(Message<InternalError>(parameters_.head(layout_.total - 1)),
                   "parameters"));
  tokens_.targets.pop_back();
  EXPECT_TRUE(Says(Message<InternalError>(parameters_), "11 targets"));
  tokens_.targets.push_back(0);
  tokens_.num_sequences = 3;
  EXPECT_TRUE(Says(Message<InternalError>(parameters_), "3 sequences"));
}

// A ninth weight is never read: nothing else would notice it.
TEST_F(BadInputTest, ABlockWithTooWideANormIsRefused) {
  DecoderBlockWeights weights =
      ReadBlock(config_.model, layout_, 0, parameters_);
  weights.attention_norm = Vector::Ones(9);
  EXPECT_THROW(DecoderBlockForward({}, weights, Matrix::Ones(12, 8)),
               InternalError);
}

}  // namespace
}  // namespace softmoe::reference

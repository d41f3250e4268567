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
    try {
      TransformerForward(config_, parameters, tokens_.Group(), TinyRouting());
    } catch (const E& error) {
      return error.what();
    }
    return "no exception of that type";
  }

  const Config config_ = TinyConfig(RouterKind::kSoftFixed);
  const ParameterLayout layout_{config_};
  const Vector parameters_ = TinyParameters(config_, 12);
  TinyTokens tokens_{config_, 2, 12};
};

TEST_F(BadInputTest, TokensOutsideTheVocabularyAreNamed) {
  tokens_.inputs[3] = 11;
  EXPECT_NE(Message<DataError>(parameters_).find("token 3 has id 11"),
            std::string::npos);
  tokens_.inputs[3] = 0;
  tokens_.targets[7] = -1;
  EXPECT_NE(Message<DataError>(parameters_).find("token 7 has id -1"),
            std::string::npos);
}

TEST_F(BadInputTest, NonFiniteRouterWeightsNameLayerTokenAndExpert) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    Vector parameters = parameters_;
    parameters[layout_.layers[1].router_weight + 2] = bad;  // row 0, expert 2
    const std::string message = Message<NumericsError>(parameters);
    EXPECT_NE(message.find("layer 1"), std::string::npos) << message;
    EXPECT_NE(message.find("token 0, expert 2"), std::string::npos) << message;
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
  EXPECT_NE(message.find("layer 0"), std::string::npos) << message;
  EXPECT_NE(message.find("token " + std::to_string(first) + ","),
            std::string::npos)
      << message;
}

TEST_F(BadInputTest, NonFiniteHeadNamesTheVocabularyEntry) {
  Vector parameters = parameters_;
  parameters[layout_.head_weight + 4 * config_.model.d_model] = std::nan("");
  const std::string message = Message<NumericsError>(parameters);
  EXPECT_NE(message.find("token 0 for vocabulary entry 4"), std::string::npos)
      << message;
}

TEST_F(BadInputTest, SizesThatDoNotFitAreRefused) {
  EXPECT_NE(Message<InternalError>(parameters_.head(layout_.total - 1))
                .find("parameters"),
            std::string::npos);
  tokens_.targets.pop_back();
  EXPECT_NE(Message<InternalError>(parameters_).find("11 targets"),
            std::string::npos);
  tokens_.targets.push_back(0);
  tokens_.num_sequences = 3;
  EXPECT_NE(Message<InternalError>(parameters_).find("3 sequences"),
            std::string::npos);
}

}  // namespace
}  // namespace softmoe::reference

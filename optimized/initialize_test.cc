// SPDX-License-Identifier: Apache-2.0
#include "optimized/initialize.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/philox.h"
#include "core/testing/config_test_util.h"
#include "optimized/model.h"

namespace softmoe::optimized {
namespace {

Config TwoLayers() {
  Config config = SmallConfig(RouterKind::kSoftLearned);
  config.model.num_layers = 2;
  config.model.init_std = 0.02;
  config.router.init_std = 0.07;
  return config;
}

std::vector<float> Initial(const Config& config, uint64_t seed, int threads) {
  ThreadPool pool(threads);
  const auto model = MakeModel(config, /*group_sequences=*/1, pool);
  InitializeParameters(*model, seed, pool);
  return model->ReadParameters();
}

// The key changes the router's weights, and nothing if it equals the model's.
TEST(InitializeParameters, RouterFollowsTheModelUnlessItHasItsOwn) {
  Config config = TwoLayers();
  config.router.init_std = 0;
  const std::vector<float> as_model = Initial(config, 7, 1);
  config.router.init_std = config.model.init_std;
  EXPECT_EQ(Initial(config, 7, 1), as_model);
  config.router.init_std = 0.04;
  const std::vector<float> own = Initial(config, 7, 1);
  for (const ParameterTensor& tensor : ParameterLayout(config).tensors) {
    const bool router = tensor.name.ends_with("router_weight");
    for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      ASSERT_EQ(own[i], as_model[i] * (router ? 2 : 1)) << tensor.name;
    }
  }
}

// ParametersAreTheSame (property_tests/optimizer_oracle_test.cc) checks values
// of tensors of one block. An element's draw depends only on its place in the
// tensor, whichever block it is in and whichever thread draws it.
TEST(InitializeParameters, BlocksChangeNothing) {
  Config config = TwoLayers();
  config.model.vocab_size = 2000;
  const std::vector<float> parameters = Initial(config, 7, 1);
  EXPECT_EQ(Initial(config, 7, 4), parameters);
  EXPECT_NE(Initial(config, 8, 1), parameters);
  const RandomKey embedding = {.seed = 7, .stream = RandomStream::kParameters};
  for (const size_t e : {size_t{4096}, size_t{40000}}) {
    const auto words = PhiloxWords(embedding, e / 4);
    EXPECT_EQ(
        parameters[e],
        static_cast<float>(0.02 * NormalsFromWords(words[0], words[1])[0]));
  }
}

}  // namespace
}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
//
// What only updaters ask of a model; model_test.cc has everything else.
#include "optimized/backend_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "optimized/testing/ranked_training.h"

namespace softmoe::optimized {
namespace {

// On the CPU, work is done as soon as it is enqueued.
TEST(StartGradients, TellsWhichGradientsAreThere) {
  for (const RouterKind router :
       {RouterKind::kSparse, RouterKind::kSoftLearned}) {
    Config config = LargerConfig(1);
    config.router.kind = router;
    ThreadPool pool(2);
    BackendModel model(config, 1, Recompute::kNone, pool, nullptr);
    const ParameterLayout& layout = model.layout();
    model.WriteParameters(
        std::vector<float>(static_cast<size_t>(layout.total), 0.1f), 0);
    const UpdateText text(3, 1);
    std::vector<float> gradients(static_cast<size_t>(layout.total), NAN);
    std::vector<int64_t> told;
    std::vector<std::vector<float>> there;
    model.StartGroups({.tau = 1.0});
    model.StartGradients(text.Group(0), 1.0, 1.0, 0, gradients.data(),
                         [&](int64_t parameter) {
                           told.push_back(parameter);
                           there.push_back(gradients);
                         });
    EXPECT_EQ(told, (std::vector<int64_t>{layout.final_norm,
                                          layout.layers[1].attention_norm,
                                          layout.layers[0].attention_norm, 0}));
    for (size_t i = 0; i < told.size(); ++i) {
      const int64_t end = told[i] == 0 || layout.budget_logits < 0
                              ? layout.total
                              : layout.budget_logits;
      for (int64_t p = told[i]; p < end; ++p) {
        ASSERT_FALSE(std::isnan(gradients[p])) << p;
        ASSERT_EQ(there[i][p], gradients[p]) << p << " of " << told[i];
      }
    }
  }
}

}  // namespace
}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
//
// The whole model against the reference: loss, statistics, routing and the
// gradient of every tensor, for all routers and options. See
// model_difference.h for the tolerance.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/testing/config_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/random_test_util.h"
#include "kernels/isa.h"
#include "optimized/model.h"
#include "property_tests/testing/model_difference.h"

namespace softmoe::property_tests {
namespace {

Config BaseConfig(RouterKind kind) {
  Config config;
  config.model = {.num_layers = 3,
                  .d_model = 32,
                  .num_heads = 2,
                  .d_ffn = 40,
                  .num_experts = 8,
                  .vocab_size = 50,
                  .sequence_length = 24};
  config.router.kind = kind;
  config.router.mean_active_experts = kind == RouterKind::kSparse ? 2 : 1.5;
  config.router.expansion_factor = 2;
  config.router.aux_loss_coeff = 0.25;
  config.router.z_loss_coeff = 0.125;
  config.router.noise_amplitude = 0.25;
  config.training.seed = 11;
  return config;
}

void ExpectAgreement(const ModelCase& model_case) {
  ThreadPool pool(3);
  const ModelDifference difference = CompareModels(model_case, pool);
  EXPECT_TRUE(difference.ok() && difference.trusted()) << difference.Text();
  ::testing::Test::RecordProperty("utilisation",
                                  std::to_string(difference.utilisation));
}

using Options = std::tuple<RouterKind, LoadBalanceKind, Fallback, NoiseKind>;

std::string OptionsName(const ::testing::TestParamInfo<Options>& info) {
  const auto [router, balance, fallback, noise] = info.param;
  std::string name = RouterKindName(router);
  name += balance == LoadBalanceKind::kSoft ? "SoftBalance" : "MegatronBalance";
  name += fallback == Fallback::kNone ? "" : "Top1";
  name += noise == NoiseKind::kNone          ? ""
          : noise == NoiseKind::kInputJitter ? "Jitter"
                                             : "Gauss";
  return name;
}

class ModelAgainstReference : public ::testing::TestWithParam<Options> {};

INSTANTIATE_TEST_SUITE_P(
    Options, ModelAgainstReference,
    ::testing::Combine(
        ::testing::ValuesIn(kRouterKinds),
        ::testing::Values(LoadBalanceKind::kSoft, LoadBalanceKind::kMegatron),
        ::testing::Values(Fallback::kNone, Fallback::kTop1),
        ::testing::Values(NoiseKind::kNone, NoiseKind::kInputJitter,
                          NoiseKind::kLogitGauss)),
    OptionsName);

TEST_P(ModelAgainstReference, LossRoutingAndGradientsAgree) {
  const auto [router, balance, fallback, noise] = GetParam();
  Config config = BaseConfig(router);
  config.router.load_balance = balance;
  config.router.fallback = fallback;
  config.router.noise = noise;
  for (const uint64_t seed : {1, 2}) {
    ModelCase model_case = MakeModelCase(config, 2, seed);
    model_case.noise = true;
    ExpectAgreement(model_case);
  }
}

// DESIGN.md, ruling 9: instruction sets have their own bits, within the same
// bounds. Free-running runs would drift apart, so at both levels each of five
// updates starts from the state that v3 reached.
class AcrossInstructionSets : public ::testing::TestWithParam<RouterKind> {
 protected:
  void TearDown() override { kernels::SelectIsa(""); }
};

INSTANTIATE_TEST_SUITE_P(Routers, AcrossInstructionSets,
                         ::testing::ValuesIn(kRouterKinds), NameOfRouter);

TEST_P(AcrossInstructionSets, EveryUpdateOfARunAgrees) {
  if (!kernels::IsaAvailable(kernels::Isa::kV4)) {
    GTEST_SKIP() << "this processor has no AVX-512 to compare with";
  }
  Config config = BaseConfig(GetParam());
  config.training.global_batch_sequences = 2;
  config.training.balance_group_sequences = 2;
  ThreadPool pool(2);
  const auto model = optimized::MakeModel(config, 2, pool);
  const auto updater = model->MakeUpdater();
  ModelCase state = MakeModelCase(config, 2, 1);
  model->WriteParameters(state.parameters, 0);
  for (int64_t update = 0; update < 5; ++update) {
    ModelCase batch = MakeModelCase(config, 2, 10 + update);
    batch.parameters = model->ReadParameters();
    batch.step = update;
    for (const char* level : {"v3", "v4"}) {
      kernels::SelectIsa(level);
      SCOPED_TRACE(std::string(level) + ", update " + std::to_string(update));
      ExpectAgreement(batch);
    }
    kernels::SelectIsa("v3");
    updater->ComputeGradient(
        {.temperature = batch.temperature, .tau = batch.tau, .step = update},
        [&](int64_t) {
          return optimized::Batch{.num_sequences = 2,
                                  .inputs = batch.inputs,
                                  .targets = batch.targets,
                                  .first_token = batch.first_token};
        });
    updater->Apply(1e-2, update);
    EXPECT_NE(model->ReadParameters(), batch.parameters);
  }
}

// Shapes that fill no vector, tile or block.
ModelDifference CompareAnyShape() {
  const auto kind = *rc::gen::elementOf(kRouterKinds);
  Config config = BaseConfig(kind);
  ModelConfig& m = config.model;
  m.num_layers = *rc::gen::inRange<int64_t>(1, 4);
  m.num_heads = *rc::gen::inRange<int64_t>(1, 4);
  m.d_model = m.num_heads * 2 * *rc::gen::inRange<int64_t>(2, 10);
  m.d_ffn = *rc::gen::inRange<int64_t>(1, 50);
  m.num_experts = *rc::gen::inRange<int64_t>(2, 20);
  m.vocab_size = *rc::gen::inRange<int64_t>(2, 70);
  m.sequence_length = *rc::gen::inRange<int64_t>(1, 40);
  config.router.expansion_factor = *rc::gen::inRange(2, 7) / 2.0;
  config.router.load_balance =
      *rc::gen::element(LoadBalanceKind::kSoft, LoadBalanceKind::kMegatron);
  if (kind == RouterKind::kSparse) {
    config.router.mean_active_experts =
        static_cast<double>(*rc::gen::inRange<int64_t>(1, m.num_experts + 1));
  } else {
    // Below num_experts, so that the weights are not all 1.
    config.router.mean_active_experts =
        1 + 0.125 * *rc::gen::inRange<int>(
                        0, static_cast<int>(4 * (m.num_experts - 1)));
  }
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  ModelCase model_case =
      MakeModelCase(config, *rc::gen::inRange<int64_t>(1, 4), seed);
  ThreadPool pool(2);
  return CompareModels(model_case, pool);
}

TEST(ModelAgainstReferenceProperty, HoldsForAllShapes) {
  int64_t outputs = 0;
  std::vector<std::string> mistrusted;
  EXPECT_TRUE(rc::check([&] {
    const ModelDifference difference = CompareAnyShape();
    outputs += difference.outputs;
    mistrusted.insert(mistrusted.end(), difference.mistrusted.begin(),
                      difference.mistrusted.end());
    RC_LOG() << difference.Text();
    RC_ASSERT(difference.ok());
  }));
  // Uninformative data occurs by chance, but seldom.
  EXPECT_LE(100 * static_cast<int64_t>(mistrusted.size()), outputs)
      << outputs << " outputs; the last: " << mistrusted.back();
}

// As many active experts as there are experts, and budgets under which a
// layer's allocation exceeds their number: every soft weight is then 1 (SPEC.md
// 1.2, edge cases).
TEST(ModelAgainstReferenceEdge, AllocationsMayReachAndExceedTheExperts) {
  for (const RouterKind kind :
       {RouterKind::kSoftFixed, RouterKind::kSoftLearned}) {
    Config config = BaseConfig(kind);
    config.model.num_experts = 3;
    config.router.expansion_factor = 1;
    for (const double k : {2.0, 2.75, 3.0}) {
      config.router.mean_active_experts = k;
      ModelCase model_case = MakeModelCase(config, 2, 8);
      model_case.tau = 0.5;
      ExpectAgreement(model_case);
    }
  }
}

// A cutoff that no weight reaches: no expert computes anything, and the balance
// loss assumes an even load (SPEC.md 2.5).
TEST(ModelAgainstReferenceEdge, AGroupMayBeRoutedNowhere) {
  for (const RouterKind kind :
       {RouterKind::kSoftFixed, RouterKind::kSoftLearned}) {
    ModelCase model_case = MakeModelCase(BaseConfig(kind), 2, 9);
    model_case.tau = 1e3;
    ExpectAgreement(model_case);
  }
}

// The comparison must detect a small fault on one side, in any constant or in
// one parameter of a tensor.
class ModelDifferenceMeta : public ::testing::Test {
 protected:
  void ExpectCaught(const char* fault, const ModelCase& faulty) {
    EXPECT_FALSE(CompareModels(good_, faulty, pool_).ok()) << fault;
  }

  ThreadPool pool_{2};
  ModelCase good_ = MakeModelCase(BaseConfig(RouterKind::kSoftLearned), 2, 3);
};

TEST_F(ModelDifferenceMeta, AcceptsTheRightModel) {
  const ModelDifference difference = CompareModels(good_, pool_);
  EXPECT_TRUE(difference.ok() && difference.trusted()) << difference.Text();
}

TEST_F(ModelDifferenceMeta, CatchesOneParameterOfAnyTensor) {
  for (const ParameterTensor& tensor : ParameterLayout(good_.config).tensors) {
    ModelCase faulty = good_;
    const auto move = [&](int64_t element) {
      float& parameter = faulty.parameters[tensor.offset + element];
      parameter = parameter * 1.1f + 0.01f;
    };
    if (tensor.offset == 0) {
      // The embedding of a token that occurs.
      move(good_.inputs[5] * good_.config.model.d_model);
    } else if (tensor.shape.size() == 3) {
      // One element of every expert, since one of them may have no token.
      for (int64_t e = 0; e < tensor.shape[0]; ++e) {
        move(e * (tensor.size / tensor.shape[0]));
      }
    } else {
      move(0);
    }
    ExpectCaught(tensor.name.c_str(), faulty);
  }
}

TEST_F(ModelDifferenceMeta, CatchesWrongConstants) {
  const auto catches = [&](const char* fault, auto change) {
    ModelCase faulty = good_;
    change(faulty);
    ExpectCaught(fault, faulty);
  };
  catches("norm epsilon", [](auto& c) { c.config.model.norm_epsilon *= 3; });
  catches("rope base", [](auto& c) { c.config.model.rope_base *= 1.001; });
  catches("temperature", [](auto& c) { c.temperature *= 1.0001; });
  catches("balance", [](auto& c) { c.config.router.aux_loss_coeff *= 1.001; });
  catches("z loss", [](auto& c) { c.config.router.z_loss_coeff *= 1.001; });
  catches("budget",
          [](auto& c) { c.config.router.mean_active_experts *= 1.0001; });
  catches("one target",
          [](auto& c) { c.targets[7] = (c.targets[7] + 1) % 50; });
  catches("one input", [](auto& c) { c.inputs[7] = (c.inputs[7] + 1) % 50; });
  catches("noise", [](auto& c) {
    c.config.router.noise = NoiseKind::kInputJitter;
    c.config.router.noise_amplitude = 1e-3;
    c.noise = true;
  });
}

// All experts score alike, so the reference, whose weights differ from the
// model's by one step, may choose any. Each choice is within its tolerance.
TEST_F(ModelDifferenceMeta, NearTiesExcuseFewTokens) {
  Config config = BaseConfig(RouterKind::kSparse);
  config.router.mean_active_experts = 1;
  good_ = MakeModelCase(config, 2, 3);
  ModelCase faulty = good_;
  const int64_t experts = config.model.num_experts;
  const int64_t size = config.model.d_model * experts;
  const std::vector<int32_t> up = RandomIds(size, 2, /*seed=*/1, /*which=*/1);
  for (const auto& layer : ParameterLayout(config).layers) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t element = layer.router_weight + i;
      const float weight = good_.parameters[element - i % experts];
      good_.parameters[element] = weight;
      faulty.parameters[element] =
          std::nextafter(weight, up[i] == 1 ? HUGE_VALF : -HUGE_VALF);
    }
  }
  const ModelDifference difference = CompareModels(good_, faulty, pool_);
  ASSERT_EQ(difference.defects.size(), 1u) << difference.Text();
  EXPECT_TRUE(Says(difference.defects[0], "are called near-ties"));
}

TEST_F(ModelDifferenceMeta, CatchesAWrongSelection) {
  ModelCase faulty = good_;
  faulty.tau *= 1.02;  // some token's weight lies between the two cutoffs
  ExpectCaught("tau", faulty);
  faulty = good_;
  faulty.config.router.expansion_factor = 1.25;
  ExpectCaught("cap", faulty);
  good_.tau = 3;  // tokens without an active expert
  ASSERT_TRUE(CompareModels(good_, pool_).ok());
  faulty = good_;
  faulty.config.router.fallback = Fallback::kTop1;
  ExpectCaught("fallback", faulty);
}

}  // namespace
}  // namespace softmoe::property_tests

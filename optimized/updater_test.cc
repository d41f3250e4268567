// SPDX-License-Identifier: Apache-2.0
//
// An update put together from its parts, which have tests of their own.
#include "optimized/updater.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "optimized/allocation.h"
#include "optimized/initialize.h"
#include "optimized/model.h"
#include "optimized/optimizer.h"
#include "optimized/testing/ranked_training.h"

namespace softmoe::optimized {
namespace {

using Floats = std::vector<float>;

// Three balance groups of one sequence each.
constexpr int64_t kGroups = 3, kLength = 5;

Config WithoutNoise() {
  Config config = GroupsOfOneSequence(kGroups);
  config.router.noise = NoiseKind::kNone;
  config.router.noise_amplitude = 0;
  return config;
}

const RoutingState kRouting{.temperature = 1.5, .tau = 1.0};

class UpdaterTest : public ::testing::Test {
 protected:
  UpdaterTest() {
    InitializeParameters(*model_, 4, pool_);
    for (int64_t i = 0; i <= kGroups * kLength; ++i) {
      text_.push_back(static_cast<int32_t>(i * i * 7 % 17));
    }
  }
  Batch GroupText(int64_t group) const {
    const auto tokens = std::span<const int32_t>(text_).subspan(
        static_cast<size_t>(group * kLength), kLength + 1);
    return {1, tokens.first(kLength), tokens.subspan(1), group * kLength};
  }
  UpdateGradient Compute() {
    return updater_->ComputeGradient(
        kRouting, [&](int64_t group) { return GroupText(group); });
  }

  ThreadPool pool_{2};
  const Config config_ = WithoutNoise();
  const std::unique_ptr<Model> model_ = MakeModel(config_, 1, pool_);
  const std::unique_ptr<Updater> updater_ = model_->MakeUpdater();
  std::vector<int32_t> text_;
};

TEST_F(UpdaterTest, SumsGroupsAlongTheTreeAndClipsByTheNorm) {
  const int64_t total = model_->layout().total;
  std::vector<Floats> groups(kGroups, Floats(total));
  for (int64_t g = 0; g < kGroups; ++g) {
    model_->ForwardBackward(GroupText(g), kRouting, 1.0 / (kGroups * kLength),
                            1.0 / kGroups, groups[g]);
  }
  Floats sum(total);  // g0 + (g1 + g2)
  for (int64_t i = 0; i < total; ++i) {
    sum[i] = groups[0][i] + (groups[1][i] + groups[2][i]);
  }
  const UpdateGradient gradient = Compute();
  EXPECT_EQ(updater_->ReadGradient(), sum);

  Optimizer optimizer(config_.training, model_->layout(), pool_);
  const double norm = optimizer.GradientNorm(sum);
  EXPECT_EQ(gradient.norm, norm);
  ASSERT_GT(norm, config_.training.clip_norm);
  Floats parameters = model_->ReadParameters();
  optimizer.Update(0.5, 7, norm, sum, parameters);
  updater_->Apply(0.5, 7);
  EXPECT_EQ(model_->ReadParameters(), parameters);
  const std::span<const float> first = optimizer.first_moment();
  const std::span<const float> second = optimizer.second_moment();
  EXPECT_EQ(updater_->ReadFirstMoment(), Floats(first.begin(), first.end()));
  EXPECT_EQ(updater_->ReadSecondMoment(), Floats(second.begin(), second.end()));
}

TEST_F(UpdaterTest, AsksForTheGroupsInOrderAndReportsEach) {
  std::vector<int64_t> asked;
  const UpdateGradient gradient =
      updater_->ComputeGradient(kRouting, [&](int64_t group) {
        asked.push_back(group);
        return GroupText(group);
      });
  EXPECT_EQ(asked, (std::vector<int64_t>{0, 1, 2}));
  ASSERT_EQ(gradient.groups.size(), kGroups);
  for (int64_t g = 0; g < kGroups; ++g) {
    EXPECT_EQ(gradient.groups[g].loss_sum,
              model_->Forward(GroupText(g), kRouting).loss_sum);
  }
}

TEST_F(UpdaterTest, GoesOnFromWrittenParametersAndMoments) {
  Compute();
  updater_->Apply(0.5, 0);
  const auto other_model = MakeModel(config_, 1, pool_);
  const auto other = other_model->MakeUpdater();
  other_model->WriteParameters(model_->ReadParameters(), 0);
  other->WriteMoments(updater_->ReadFirstMoment(),
                      updater_->ReadSecondMoment());
  Compute();
  updater_->Apply(0.25, 1);
  other->ComputeGradient(kRouting,
                         [&](int64_t group) { return GroupText(group); });
  other->Apply(0.25, 1);
  EXPECT_EQ(other_model->ReadParameters(), model_->ReadParameters());
  EXPECT_EQ(other->ReadSecondMoment(), updater_->ReadSecondMoment());
}

// Caps are computed from the host's copy of the budget logits.
TEST_F(UpdaterTest, AllocatesByTheBudgetLogitsAsTheyAre) {
  const auto expect_same = [&](Model& model) {
    const Floats parameters = model.ReadParameters();
    const auto expected = ComputeAllocations(
        config_, {parameters.data() + model.layout().budget_logits, 2}, 1.0);
    const auto allocations = model.Allocations(kRouting);
    ASSERT_EQ(allocations.size(), expected.size());
    for (size_t l = 0; l < expected.size(); ++l) {
      EXPECT_EQ(allocations[l].mean_active, expected[l].mean_active);
    }
    EXPECT_NE(expected[0].mean_active, expected[1].mean_active);
  };
  for (int64_t update = 0; update < 3; ++update) {
    Compute();
    updater_->Apply(0.1, update);
    expect_same(*model_);
  }
  const auto other = MakeModel(config_, 1, pool_);
  const auto other_updater = other->MakeUpdater();
  other->WriteParameters(model_->ReadParameters(), 0);
  other_updater->WriteMoments(updater_->ReadFirstMoment(),
                              updater_->ReadSecondMoment());
  expect_same(*other);
  other_updater->ComputeGradient(
      kRouting, [&](int64_t group) { return GroupText(group); });
  other_updater->Apply(0.1, 3);
  expect_same(*other);
}

TEST_F(UpdaterTest, ANumberThatIsNotFiniteChangesNothing) {
  const float infinity[] = {std::numeric_limits<float>::infinity()};
  model_->WriteParameters(infinity, model_->layout().head_weight + 2);
  const Floats before = model_->ReadParameters();
  EXPECT_THROW(Compute(), DivergedError);
  EXPECT_EQ(model_->ReadParameters(), before);
  for (const float m : updater_->ReadFirstMoment()) ASSERT_EQ(m, 0.0f);
}

// Where clipping does not help: all numbers are finite, their squares are not.
TEST_F(UpdaterTest, ANormThatIsTooLargeForTheSecondMomentChangesNothing) {
  for (const double clip_norm : {0.0, 1.0}) {
    Config config = config_;
    config.training.clip_norm = clip_norm;
    const auto model = MakeModel(config, 1, pool_);
    InitializeParameters(*model, 4, pool_);
    WriteHugeLastNorm(*model);
    const auto updater = model->MakeUpdater();
    const Floats before = model->ReadParameters();
    const std::string message = MessageOf<DivergedError>([&] {
      updater->ComputeGradient(kRouting,
                               [&](int64_t group) { return GroupText(group); });
    });
    EXPECT_EQ(model->ReadParameters(), before);
    if (clip_norm == 0) {
      EXPECT_TRUE(Says(message, "set training.clip_norm"));
    } else {
      EXPECT_EQ(message, kNoError);
    }
  }
}

TEST_F(UpdaterTest, RefusesArraysOfAnotherSize) {
  const int64_t total = model_->layout().total;
  EXPECT_THROW(updater_->WriteMoments(Floats(total), Floats(total - 1)),
               InternalError);
  EXPECT_THROW(updater_->WriteMoments(Floats(total + 1), Floats(total)),
               InternalError);
  EXPECT_THROW(model_->WriteParameters(Floats(2), total - 1), InternalError);
  EXPECT_THROW(model_->WriteParameters(Floats(1), -1), InternalError);
}

}  // namespace
}  // namespace softmoe::optimized

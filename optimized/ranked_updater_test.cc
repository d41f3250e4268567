// SPDX-License-Identifier: Apache-2.0
//
// Ranks train to the bits of one process.
#include "optimized/ranked_updater.h"

#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "optimized/communicator/in_process.h"
#include "optimized/model.h"
#include "optimized/same_stats.h"
#include "optimized/updater.h"

namespace softmoe::optimized {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kLength = 5;
constexpr int kUpdates = 20;

Config GroupsOfOneSequence(int64_t groups) {
  Config config;
  config.model = {.num_layers = 2,
                  .d_model = 8,
                  .num_heads = 2,
                  .d_ffn = 6,
                  .num_experts = 3,
                  .vocab_size = 17,
                  .sequence_length = kLength};
  config.model.init_std = 0.3;
  config.router.kind = RouterKind::kSoftLearned;
  config.router.mean_active_experts = 1.5;
  config.router.noise = NoiseKind::kLogitGauss;
  config.router.noise_amplitude = 0.1;
  config.training.global_batch_sequences = groups;
  config.training.balance_group_sequences = 1;
  return config;
}

// More than ten blocks of the norm, so that every rank has a shard.
Config LargerConfig(int64_t groups) {
  Config config = GroupsOfOneSequence(groups);
  config.model.d_model = 32;
  config.model.d_ffn = 40;
  config.model.num_experts = 4;
  config.model.init_std = 0.1;
  return config;
}

// Another text for every update.
class Text {
 public:
  explicit Text(int64_t update, int64_t groups) {
    for (int64_t i = 0; i <= groups * kLength; ++i) {
      tokens_.push_back(static_cast<int32_t>((i * i * 7 + update * i) % 17));
    }
  }
  Batch Group(int64_t group) const {
    const auto tokens = std::span<const int32_t>(tokens_).subspan(
        static_cast<size_t>(group * kLength), kLength + 1);
    return {1, tokens.first(kLength), tokens.subspan(1), group * kLength};
  }

 private:
  std::vector<int32_t> tokens_;
};

// What a checkpoint holds.
struct State {
  Floats parameters, first_moment, second_moment;
  friend bool operator==(const State&, const State&) = default;
};

// What one rank, or one process, has seen and has in the end.
struct Trained {
  State state;
  Floats last_gradient;
  std::vector<UpdateGradient> updates;
};

State Read(const Model& model, const Updater& updater) {
  return {model.ReadParameters(), updater.ReadFirstMoment(),
          updater.ReadSecondMoment()};
}

Trained Train(Model& model, Updater& updater, const State* from, int begin,
              int end) {
  if (from != nullptr) {
    model.WriteParameters(from->parameters);
    updater.WriteMoments(from->first_moment, from->second_moment);
  } else {
    model.InitializeParameters(4);
  }
  Trained trained;
  for (int update = begin; update < end; ++update) {
    const Text text(update, updater.num_groups());
    const RoutingState routing{
        .temperature = 1.5, .tau = 1.0, .noise = true, .step = update};
    trained.updates.push_back(updater.ComputeGradient(
        routing, [&](int64_t group) { return text.Group(group); }));
    updater.Apply(0.05, update);
  }
  trained.last_gradient = updater.ReadGradient();
  trained.state = Read(model, updater);
  return trained;
}

Trained TrainAlone(const Config& config, int begin = 0, int end = kUpdates,
                   const State* from = nullptr) {
  ThreadPool pool(2);
  Model model(config, 1, pool);
  Updater updater(model);
  return Train(model, updater, from, begin, end);
}

// That of every rank. Their pools have different numbers of threads.
std::vector<Trained> TrainRanks(const Config& config, int ranks, int begin = 0,
                                int end = kUpdates,
                                const State* from = nullptr) {
  std::vector<Trained> trained(static_cast<size_t>(ranks));
  RunInProcessRanks(ranks, [&](Communicator& communicator) {
    ThreadPool pool(1 + communicator.rank() % 2);
    Model model(config, 1, pool);
    Updater updater(model, communicator);
    trained[static_cast<size_t>(communicator.rank())] =
        Train(model, updater, from, begin, end);
  });
  return trained;
}

void ExpectSameUpdates(const std::vector<UpdateGradient>& got,
                       const std::vector<UpdateGradient>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t m = 0; m < got.size(); ++m) {
    EXPECT_EQ(got[m].norm, want[m].norm) << "update " << m;
    ASSERT_EQ(got[m].groups.size(), want[m].groups.size());
    for (size_t g = 0; g < got[m].groups.size(); ++g) {
      EXPECT_TRUE(SameStats(got[m].groups[g], want[m].groups[g]))
          << "update " << m << ", group " << g;
    }
  }
}

void ExpectTheBitsOfOneProcess(const Config& config, int ranks) {
  const Trained alone = TrainAlone(config);
  for (const Trained& rank : TrainRanks(config, ranks)) {
    EXPECT_TRUE(rank.state == alone.state) << ranks << " ranks";
    EXPECT_EQ(rank.last_gradient, alone.last_gradient);
    ExpectSameUpdates(rank.updates, alone.updates);
  }
}

TEST(RankedUpdater, RanksThatAreSubtreesTrainToTheBitsOfOneProcess) {
  for (const int ranks : {1, 2, 4}) {
    ExpectTheBitsOfOneProcess(GroupsOfOneSequence(4), ranks);
    ExpectTheBitsOfOneProcess(LargerConfig(8), ranks);
  }
  ExpectTheBitsOfOneProcess(LargerConfig(5), 5);
}

TEST(RankedUpdater, TheBitsWouldShowAnotherOrder) {
  const Config config = LargerConfig(6);
  const Trained alone = TrainAlone(config);
  const std::vector<Trained> ranks = TrainRanks(config, 3);  // no subtrees
  EXPECT_FALSE(ranks[0].state == alone.state);
  EXPECT_TRUE(ranks[2].state == ranks[0].state);
}

TEST(RankedUpdater, GoesOnWithAnotherNumberOfRanks) {
  const Config config = LargerConfig(4);
  const State unbroken = TrainAlone(config).state;
  constexpr int kHalf = kUpdates / 2;
  for (const auto& [first, second] :
       {std::pair{1, 2}, {2, 4}, {4, 1}, {4, 2}}) {
    const State half = TrainRanks(config, first, 0, kHalf)[0].state;
    EXPECT_TRUE(TrainAlone(config, 0, kHalf).state == half);
    for (const Trained& rank :
         TrainRanks(config, second, kHalf, kUpdates, &half)) {
      EXPECT_TRUE(rank.state == unbroken) << first << ", then " << second;
    }
  }
}

TEST(RankedUpdater, AsksForTheGroupsOfItsRankOnly) {
  const Config config = GroupsOfOneSequence(6);
  RunInProcessRanks(3, [&](Communicator& communicator) {
    ThreadPool pool(1);
    Model model(config, 1, pool);
    model.InitializeParameters(4);
    Updater updater(model, communicator);
    const Text text(0, 6);
    std::vector<int64_t> asked;
    const UpdateGradient gradient =
        updater.ComputeGradient({.tau = 1.0}, [&](int64_t group) {
          asked.push_back(group);
          return text.Group(group);
        });
    const int64_t first = 2 * communicator.rank();
    SOFTMOE_CHECK((asked == std::vector<int64_t>{first, first + 1}));
    SOFTMOE_CHECK(gradient.groups.size() == 6 && updater.num_groups() == 6);
    SOFTMOE_CHECK(gradient.model_seconds > 0);
  });
}

TEST(RankedUpdater, ANumberThatIsNotFiniteChangesNothingOnAnyRank) {
  const Config config = LargerConfig(4);
  std::vector<int> unchanged(2, 0);
  EXPECT_THROW(
      RunInProcessRanks(
          2,
          [&](Communicator& communicator) {
            ThreadPool pool(1);
            Model model(config, 1, pool);
            model.InitializeParameters(4);
            Updater updater(model, communicator);
            if (communicator.rank() == 1) {
              const float infinity[] = {std::numeric_limits<float>::infinity()};
              model.WriteParameters(infinity, model.layout().head_weight + 2);
            }
            const Floats before = model.ReadParameters();
            const Text text(0, 4);
            try {
              updater.ComputeGradient({.tau = 1.0}, [&](int64_t group) {
                return text.Group(group);
              });
            } catch (const Error& error) {
              unchanged[static_cast<size_t>(communicator.rank())] =
                  model.ReadParameters() == before &&
                  error.code() == ExitCode::kFailed;
              throw;
            }
          }),
      NumericsError);
  EXPECT_EQ(unchanged, (std::vector<int>{1, 1}));
}

TEST(RankedUpdater, RefusesGroupsThatDoNotDivideAndArraysOfAnotherSize) {
  const Config config = GroupsOfOneSequence(4);
  EXPECT_THROW(TrainRanks(config, 3), ConfigError);
  const auto write = [&](int64_t first, int64_t second) {
    RunInProcessRanks(2, [&](Communicator& communicator) {
      ThreadPool pool(1);
      Model model(config, 1, pool);
      Updater updater(model, communicator);
      const int64_t total = model.layout().total;
      updater.WriteMoments(Floats(static_cast<size_t>(total + first)),
                           Floats(static_cast<size_t>(total + second)));
    });
  };
  write(0, 0);
  EXPECT_THROW(write(0, -1), InternalError);
  EXPECT_THROW(write(1, 0), InternalError);
}

}  // namespace
}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
//
// Ranks train to the bits of one process.
#include "optimized/ranked_updater.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"
#include "optimized/communicator/in_process.h"
#include "optimized/initialize.h"
#include "optimized/model.h"
#include "optimized/step.h"
#include "optimized/testing/ranked_training.h"
#include "optimized/updater.h"

namespace softmoe::optimized {
namespace {

using Floats = std::vector<float>;

// What every rank has in the end; their pools differ in numbers of threads.
std::vector<Trained> TrainRanks(const Config& config, int ranks, int begin = 0,
                                int end = kUpdates,
                                const TrainedState* from = nullptr) {
  std::vector<Trained> trained(static_cast<size_t>(ranks));
  RunInProcessRanks(ranks, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    trained[static_cast<size_t>(rank)] =
        TrainRank(config, 1 + rank % 2, communicator, begin, end, from);
  });
  return trained;
}

void ExpectTheBitsOfOneProcess(const Config& config, int ranks) {
  const Trained alone = TrainAlone(config, 2);
  for (const Trained& rank : TrainRanks(config, ranks)) {
    EXPECT_EQ(Digest(rank), Digest(alone)) << ranks << " ranks";
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
  const Trained alone = TrainAlone(config, 2);
  const std::vector<Trained> ranks = TrainRanks(config, 3);  // no subtrees
  EXPECT_FALSE(ranks[0].state == alone.state);
  EXPECT_TRUE(ranks[2].state == ranks[0].state);
}

TEST(RankedUpdater, GoesOnWithAnotherNumberOfRanks) {
  const Config config = LargerConfig(4);
  const TrainedState unbroken = TrainAlone(config, 2).state;
  constexpr int kHalf = kUpdates / 2;
  for (const auto& [first, second] :
       {std::pair{1, 2}, {2, 4}, {4, 1}, {4, 2}}) {
    const TrainedState half = TrainRanks(config, first, 0, kHalf)[0].state;
    EXPECT_TRUE(TrainAlone(config, 2, 0, kHalf).state == half);
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
    const auto model = MakeModel(config, 1, pool);
    InitializeParameters(*model, 4, pool);
    const auto updater = model->MakeUpdater(communicator, CarrierKind::kHost);
    const UpdateText text(0, 6);
    std::vector<int64_t> asked;
    const UpdateGradient gradient =
        updater->ComputeGradient({.tau = 1.0}, [&](int64_t group) {
          asked.push_back(group);
          return text.Group(group);
        });
    const int64_t first = 2 * communicator.rank();
    SOFTMOE_CHECK((asked == std::vector<int64_t>{first, first + 1}));
    SOFTMOE_CHECK(gradient.groups.size() == 6 && updater->num_groups() == 6);
  });
}

TEST(RankedUpdater, ANumberThatIsNotFiniteChangesNothingOnAnyRank) {
  const Config config = LargerConfig(4);
  std::vector<int> unchanged(2, 0);
  EXPECT_THROW(
      RunInProcessRanks(2,
                        [&](Communicator& communicator) {
                          ThreadPool pool(1);
                          const auto model = MakeModel(config, 1, pool);
                          UpdateWithInfinity(*model, communicator, unchanged);
                        }),
      NumericsError);
  EXPECT_EQ(unchanged, (std::vector<int>{1, 1}));
}

TEST(RankedUpdater, RefusesANormThatIsTooLargeForTheSecondMoment) {
  const auto update = [](double clip_norm) {
    Config config = LargerConfig(4);
    config.training.clip_norm = clip_norm;
    RunInProcessRanks(2, [&](Communicator& communicator) {
      ThreadPool pool(1);
      const auto model = MakeModel(config, 1, pool);
      InitializeParameters(*model, 4, pool);
      WriteHugeLastNorm(*model);
      const auto updater = model->MakeUpdater(communicator, CarrierKind::kHost);
      TrainUpdate(*updater, 0);
    });
  };
  EXPECT_TRUE(Says(MessageOf<DivergedError>([&] { update(0); }),
                   "set training.clip_norm"));
  EXPECT_NO_THROW(update(1));
}

TEST(RankedUpdater, RefusesGroupsThatDoNotDivideAndArraysOfAnotherSize) {
  const Config config = GroupsOfOneSequence(4);
  EXPECT_THROW(TrainRanks(config, 3), ConfigError);
  const auto write = [&](int64_t first, int64_t second) {
    RunInProcessRanks(2, [&](Communicator& communicator) {
      ThreadPool pool(1);
      const auto model = MakeModel(config, 1, pool);
      const auto updater = model->MakeUpdater(communicator, CarrierKind::kHost);
      const int64_t total = model->layout().total;
      updater->WriteMoments(Floats(static_cast<size_t>(total + first)),
                            Floats(static_cast<size_t>(total + second)));
    });
  };
  write(0, 0);
  EXPECT_THROW(write(0, -1), InternalError);
  EXPECT_THROW(write(1, 0), InternalError);
}

}  // namespace
}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
//
// How a rank waits. What it exchanges is tested in in_process_test.cc.
#include "optimized/communicator/communicator.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/message_test_util.h"

namespace softmoe::optimized {
namespace {

// One of two ranks, whose neighbour says nothing.
class LonelyCommunicator : public Communicator {
 public:
  explicit LonelyCommunicator(const WaitOptions& waits)
      : Communicator(0, 2, waits) {}

  bool has_given_up() const { return has_given_up_; }

 private:
  std::vector<Call> ShareCalls(const Call& /*mine*/) override {
    for (StartWaiting();;) KeepWaiting("rank 1");
  }
  bool AnotherHasFailed() override { return false; }
  void Move(std::span<const Outgoing> /*sends*/,
            std::span<const Incoming> /*receives*/) override {}
  void GiveUp() override { has_given_up_ = true; }

  bool has_given_up_ = false;
};

// Ends a wait that has no end of its own.
struct Enough {};

// A limit of a quarter of a second. A rank that does not keep it throws Enough
// after two seconds.
WaitOptions WithALimit() {
  return {.silence_limit = 0.25,
          .words_every = 2,
          .say = [](const std::string&) { throw Enough(); }};
}

TEST(Patience, CountsTimeInWhichTheRankRan) {
  Patience patience;
  EXPECT_EQ(patience.Pass(0.125), 0.125);
  EXPECT_EQ(patience.Pass(600), 0.375);
  EXPECT_EQ(patience.Pass(0.125), 0.5);
}

TEST(Waiting, InAStepEndsAtTheLimitWithStepExchangeAndRank) {
  LonelyCommunicator rank(WithALimit());
  rank.Begin({.name = "step 7", .limited = true});
  const std::string error =
      MessageOf<EnvironmentError>([&] { rank.Barrier(); });
  EXPECT_TRUE(
      error.starts_with("step 7: waits at a barrier: nothing from rank "
                        "1 within 0.25 s; "))
      << error;
  EXPECT_TRUE(rank.has_given_up());
  // Nobody is asked again.
  EXPECT_EQ(MessageOf<EnvironmentError>([&] { rank.Barrier(); }), error);
}

TEST(Waiting, ElsewhereInAStepEndsAtTheLimit) {
  LonelyCommunicator rank(WithALimit());
  rank.Begin({.name = "step 7", .limited = true});
  rank.WaitElsewhere("exchanges over NCCL");
  const std::string error = MessageOf<EnvironmentError>([&] {
    for (;;) rank.CheckOthers();
  });
  EXPECT_TRUE(
      error.starts_with("step 7: exchanges over NCCL: nothing from "
                        "another rank within 0.25 s; "))
      << error;
  EXPECT_TRUE(rank.has_given_up());
}

TEST(Waiting, OutsideOfAStepHasNoLimitAndSaysForWhat) {
  std::vector<std::string> said;
  LonelyCommunicator rank({.silence_limit = 0.25,
                           .words_every = 0.5,
                           .say = [&](const std::string& words) {
                             said.push_back(words);
                             EXPECT_FALSE(rank.has_given_up());
                             if (said.size() == 2) throw Enough();
                           }});
  rank.Begin({.name = "the validation after step 7"});
  ASSERT_THROW(rank.Barrier(), Enough);
  const std::string words =
      "the validation after step 7: waits at a barrier: waits for rank 1, ";
  // Rounded.
  EXPECT_EQ(said.front(), words + "1 s so far");
  EXPECT_EQ(said.back(), words + "1 s so far");
  // This rank has left the others alone at the barrier.
  EXPECT_TRUE(rank.has_given_up());
}

TEST(Waiting, WithoutALimitNeverEnds) {
  int said = 0;
  LonelyCommunicator rank(
      {.silence_limit = 0, .words_every = 0.25, .say = [&](const std::string&) {
         if (++said == 3) throw Enough();
       }});
  rank.Begin({.name = "step 7", .limited = true});
  EXPECT_THROW(rank.Barrier(), Enough);
}

}  // namespace
}  // namespace softmoe::optimized

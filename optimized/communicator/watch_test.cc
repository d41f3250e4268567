// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "optimized/communicator/frame.h"
#include "optimized/communicator/testing/tcp_test_util.h"

namespace softmoe::optimized {
namespace {

TEST(Silence, IsTooLongEarlyEnoughForAllToEndWithinTheLimit) {
  Silence silence(16);
  EXPECT_EQ(silence.beat(), 2);
  for (int beat = 0; beat < 5; ++beat) {
    silence.Pass(2);
    EXPECT_FALSE(silence.too_long()) << beat;
  }
  silence.Pass(2);
  EXPECT_TRUE(silence.too_long());
  EXPECT_EQ(silence.seconds(), 12);
}

TEST(Silence, EndsWithAnyWord) {
  Silence silence(16);
  for (int beat = 0; beat < 100; ++beat) {
    silence.Pass(2);
    EXPECT_FALSE(silence.too_long()) << beat;
    silence.Hear();
  }
}

TEST(Silence, IsNotWhatPassesWhileThisProcessStandsStill) {
  Silence silence(16);
  silence.Pass(1e6);
  EXPECT_EQ(silence.seconds(), 2);
  EXPECT_FALSE(silence.too_long());
}

TEST(Silence, IsNeverTooLongWithoutALimit) {
  Silence silence(0);
  for (int beat = 0; beat < 1000; ++beat) silence.Pass(1);
  EXPECT_FALSE(silence.too_long());
  EXPECT_GT(silence.beat(), 0);
}

constexpr int kRanks = 4;
// s. Where silence has to be noticed; elsewhere nothing waits for the limit.
constexpr double kShort = 2, kLong = 600;

class Watches : public testing::Test {
 protected:
  // Ranks without a watch say nothing: `silent`.
  void Start(double limit, const std::vector<int>& silent = {}) {
    meetings_ = MeetInThreads(kRanks);
    watches_.resize(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      if (std::ranges::find(silent, rank) != silent.end()) continue;
      watches_[static_cast<size_t>(rank)] = std::make_unique<Watch>(
          std::move(meetings_[static_cast<size_t>(rank)]),
          endings_.Options(rank, limit));
    }
  }

  Watch& Of(int rank) { return *watches_[static_cast<size_t>(rank)]; }
  void Kill(int rank) { watches_[static_cast<size_t>(rank)].reset(); }
  // The connection of a silent rank to rank 0.
  Socket& ConnectionOf(int rank) {
    return meetings_[static_cast<size_t>(rank)].connections[0];
  }

  // All ranks but `culprit` end with `code`, and the text names it.
  void ExpectEndings(int culprit, ExitCode code, const std::string& words) {
    const auto endings = endings_.Await(kRanks - 1);
    EXPECT_EQ(endings.size(), kRanks - 1u);
    const std::string name = "rank " + std::to_string(culprit) + " of 4 (";
    for (const auto& [rank, ending] : endings) {
      EXPECT_NE(rank, culprit);
      EXPECT_EQ(ending.first, code);
      EXPECT_NE(ending.second.find(name), std::string::npos) << ending.second;
      EXPECT_NE(ending.second.find(", process "), std::string::npos);
      EXPECT_NE(ending.second.find(words), std::string::npos) << ending.second;
    }
  }

  std::vector<Meeting> meetings_;
  std::vector<std::unique_ptr<Watch>> watches_;
  Endings endings_;
};

TEST_F(Watches, LetRanksLeaveInAnyOrder) {
  for (const std::vector<int>& order :
       std::vector<std::vector<int>>{{0, 1, 2, 3}, {3, 1, 0, 2}}) {
    Start(kLong);
    {
      // Each waits until the others have noticed.
      std::vector<std::jthread> leaving;
      for (const int rank : order) {
        leaving.emplace_back([&, rank] { Of(rank).Leave(ExitCode::kDone); });
      }
    }
    watches_.clear();
    EXPECT_EQ(endings_.count(), 0u);
  }
}

TEST_F(Watches, NameARankThatEndsWithoutAWord) {
  for (const int dead : {0, 1, 3}) {
    endings_ = Endings();
    Start(kLong);
    Kill(dead);
    ExpectEndings(dead, ExitCode::kEnvironment, "has ended without a word");
  }
}

TEST_F(Watches, NameASilentRank) {
  Start(kShort, {2});
  ExpectEndings(2, ExitCode::kEnvironment, "has been silent for 1.");
  // Should it speak again, it reads why the others are gone.
  std::optional<Frame> frame;
  do {
    frame = ReceiveFrame(ConnectionOf(2), After(60));
    ASSERT_TRUE(frame);
  } while (frame->kind == Frame::Kind::kBeat);
  EXPECT_EQ(frame->kind, Frame::Kind::kEnd);
  EXPECT_EQ(frame->text, endings_.Await(3).at(1).second);
}

TEST_F(Watches, NameASilentRankZero) {
  Start(kShort, {0});
  ExpectEndings(0, ExitCode::kEnvironment, "has been silent for 1.");
}

TEST_F(Watches, NameARankWhoseConnectionIsLost) {
  Start(kLong, {1, 2});
  // Rank 1 says so of rank 2, which is there.
  ASSERT_TRUE(SendFrame({Frame::Kind::kLost, 2}, ConnectionOf(1), After(60)));
  const auto endings = endings_.Await(2);
  for (const int rank : {0, 3}) {
    EXPECT_EQ(endings.at(rank).first, ExitCode::kEnvironment);
    EXPECT_EQ(endings.at(rank).second.find(
                  "rank 1 has lost its connection to rank 2 of 4 ("),
              0u)
        << endings.at(rank).second;
  }
}

TEST_F(Watches, ARankThatIsMissedAndDeadIsDead) {
  Start(kLong, {1, 2});
  // Whichever rank 0 learns first.
  SendFrame({Frame::Kind::kLost, 2}, ConnectionOf(1), After(60));
  ConnectionOf(2).Close();
  const auto endings = endings_.Await(2);
  EXPECT_NE(endings.at(3).second.find("rank 2 of 4"), std::string::npos);
  EXPECT_NE(endings.at(3).second.find("has ended without a word"),
            std::string::npos)
      << endings.at(3).second;
}

TEST_F(Watches, EndThoseThatDoNotFollowOneThatLeft) {
  for (const int first : {0, 2}) {
    for (const auto& [left_with, end_with] :
         {std::pair{ExitCode::kUsage, ExitCode::kUsage},
          {ExitCode::kDone, ExitCode::kSelfCheck}}) {
      endings_ = Endings();
      Start(kShort);
      Of(first).Leave(left_with);
      ExpectEndings(first, end_with,
                    "has ended with exit code " +
                        std::to_string(static_cast<int>(left_with)) +
                        ", and others have not followed for 1.");
    }
  }
}

TEST_F(Watches, TakeNoiseForAnEnd) {
  Start(kLong, {3});
  const std::string noise(100, '\xff');
  ConnectionOf(3).Send(std::as_bytes(std::span(noise)), After(60));
  ExpectEndings(3, ExitCode::kEnvironment, "");
}

TEST_F(Watches, OnlyRankZeroEndsOthers) {
  Start(kLong, {3});
  SendFrame({Frame::Kind::kEnd, 0, "all done"}, ConnectionOf(3), After(60));
  SendFrame({Frame::Kind::kLost, 99}, ConnectionOf(3), After(60));
  SendFrame({Frame::Kind::kLost, -1}, ConnectionOf(3), After(60));
  ConnectionOf(3).Close();
  ExpectEndings(3, ExitCode::kEnvironment, "has ended without a word");
}

}  // namespace
}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/tcp.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/errors.h"
#include "optimized/communicator/testing/communicator_checks.h"
#include "optimized/communicator/testing/tcp_test_util.h"

namespace softmoe::optimized {
namespace {

using Body = std::function<void(TcpSession&)>;

// How the ranks of a test begin; a case changes one thing.
struct Start {
  int size = 1;
  std::function<LaunchedRank(LaunchedRank)> launched = [](LaunchedRank rank) {
    return rank;
  };
  std::function<std::string(int rank)> secret = [](int) { return kTestSecret; };
  double join_limit = 60;  // s; where all come, it takes less
};

// Runs body(session) for each rank, and returns with what the others ended.
std::map<int, Ending> RunTcpRanks(const Start& start, const Body& body) {
  std::promise<int> listening;
  const std::shared_future<int> port = listening.get_future().share();
  const Endings watches;
  const auto endings = InThreads(start.size, [&](int rank) {
    const LaunchedRank launched =
        start.launched({.rank = rank,
                        .size = start.size,
                        .address = "127.0.0.1",
                        .port = rank == 0 ? 0 : port.get()});
    TcpSession session(
        launched, start.secret(rank),
        {.join_limit = start.join_limit,
         .watch = watches.Options(rank, /*silence_limit=*/600),
         .on_listening = [&](int at) { listening.set_value(at); }});
    body(session);
    session.watch().Leave(ExitCode::kDone);
  });
  EXPECT_EQ(watches.count(), 0u);
  return endings;
}

void ExpectNoEndings(const std::map<int, Ending>& endings) {
  for (const auto& [rank, ending] : endings) {
    ADD_FAILURE() << "rank " << rank << ": " << ending.second;
  }
}

RC_GTEST_PROP(TcpRanks, GiveWhatEveryOperationPromises, ()) {
  const int ranks = *rc::gen::inRange(1, 6);
  const auto seed = *rc::gen::arbitrary<uint32_t>();
  const auto endings = RunTcpRanks({.size = ranks}, [&](TcpSession& session) {
    const std::unique_ptr<Communicator> world = session.World();
    world->Run([&] { CheckOperations(*world, seed); });
  });
  RC_ASSERT(endings.empty());
}

TEST(TcpRanks, NameEveryMistakeOnEveryRank) {
  for (const int ranks : {2, 3, 5}) {
    ExpectNoEndings(RunTcpRanks({.size = ranks}, [&](TcpSession& session) {
      for (const Mistake& mistake : Mistakes(ranks)) {
        EXPECT_EQ(CheckMistake(*session.World(), mistake), "");
      }
    }));
  }
}

// More than the sockets' buffers hold, both ways at the same time.
TEST(TcpRanks, ExchangeArraysOfManyMegabytes) {
  constexpr int64_t kSize = int64_t{3} << 22;  // of 4 bytes
  ExpectNoEndings(RunTcpRanks({.size = 3}, [](TcpSession& session) {
    const std::unique_ptr<Communicator> world = session.World();
    const int rank = world->rank();
    const Shards shards = ShareOut(kSize, 1, 3);
    const int64_t own = shards[static_cast<size_t>(rank)].size();
    std::vector<int32_t> data(kSize), received(static_cast<size_t>(3 * own));
    for (int64_t i = 0; i < kSize; ++i) {
      data[static_cast<size_t>(i)] = static_cast<int32_t>(i * 3 + rank);
    }
    world->Exchange<int32_t>(PartsOf(std::span<const int32_t>(data), shards),
                             PartsOf(std::span(received), Rows(own, 3)));
    int64_t wrong = 0;
    for (int64_t r = 0; r < 3; ++r) {
      if (r == rank) continue;
      for (int64_t i = 0; i < own; ++i) {
        const int64_t begin = shards[static_cast<size_t>(rank)].begin;
        wrong += received[static_cast<size_t>(r * own + i)] !=
                 static_cast<int32_t>((begin + i) * 3 + r);
      }
    }
    EXPECT_EQ(wrong, 0);
  }));
}

// Every rank ends, with this code and these words.
void ExpectAllEnd(const Start& start, ExitCode code,
                  const std::map<int, std::string>& words) {
  const auto endings = RunTcpRanks(start, [](TcpSession& session) {
    ADD_FAILURE() << "rank " << session.watch().meeting().rank << " began";
  });
  EXPECT_EQ(endings.size(), static_cast<size_t>(start.size));
  for (const auto& [rank, ending] : endings) {
    EXPECT_EQ(ending.first, code) << ending.second;
    EXPECT_NE(ending.second.find(words.at(rank)), std::string::npos)
        << "rank " << rank << ": " << ending.second;
  }
}

TEST(TcpRanks, OfAnotherNumberAreRefusedOnAllRanks) {
  const std::string words = "was started as one of 3 ranks, rank 0 as one of 2";
  ExpectAllEnd({.size = 2,
                .launched =
                    [](LaunchedRank launched) {
                      if (launched.rank == 1) launched.size = 3;
                      return launched;
                    }},
               ExitCode::kUsage, {{0, words}, {1, words}});
}

TEST(TcpRanks, TwoOfOneNumberAreRefusedOnAllRanks) {
  const std::string words = "two processes are rank 1: (";
  ExpectAllEnd({.size = 3,
                .launched =
                    [](LaunchedRank launched) {
                      if (launched.rank == 2) launched.rank = 1;
                      return launched;
                    }},
               ExitCode::kUsage, {{0, words}, {1, words}, {2, words}});
}

TEST(TcpRanks, OneThatDoesNotComeIsNamedOnAllRanks) {
  const std::string words =
      "of 4 ranks, these have not come to rank 0 within 0.5 s: 2 3";
  ExpectAllEnd({.size = 2,
                .launched =
                    [](LaunchedRank launched) {
                      launched.size = 4;
                      return launched;
                    },
                .join_limit = 0.5},
               ExitCode::kEnvironment, {{0, words}, {1, words}});
}

TEST(TcpRanks, OneWithAnotherSecretIsKeptOut) {
  const auto endings = RunTcpRanks(
      {.size = 2,
       .secret =
           [](int rank) { return "a secret of rank " + std::to_string(rank); },
       .join_limit = 0.5},
      [](TcpSession&) { ADD_FAILURE(); });
  EXPECT_EQ(endings.at(0).first, ExitCode::kEnvironment);
  EXPECT_NE(endings.at(0).second.find("0.5 s: 1;"), std::string::npos);
  EXPECT_NE(endings.at(0).second.find("1 with another secret came"),
            std::string::npos)
      << endings.at(0).second;
  EXPECT_EQ(endings.at(1).first, ExitCode::kUsage);
  EXPECT_NE(endings.at(1).second.find("has another secret than this rank"),
            std::string::npos)
      << endings.at(1).second;
}

Ending EndingOf(const LaunchedRank& launched) {
  const auto endings = InThreads(
      1, [&](int) { TcpSession(launched, kTestSecret, {.join_limit = 0.2}); });
  return endings.empty() ? Ending{} : endings.at(0);
}

TEST(TcpRanks, SayWhenNobodyAnswers) {
  int port = 0;
  {
    const Listener nobody("127.0.0.1", 0);
    port = nobody.port();
  }
  const Ending ending =
      EndingOf({.rank = 1, .size = 2, .address = "127.0.0.1", .port = port});
  EXPECT_EQ(ending.first, ExitCode::kEnvironment);
  EXPECT_EQ(ending.second.find(
                "rank 0 does not answer at 127.0.0.1:" + std::to_string(port) +
                " within 0.2 s: Connection refused"),
            0u)
      << ending.second;
  // Who listens and says nothing.
  const Listener silent("127.0.0.1", 0);
  EXPECT_NE(
      EndingOf(
          {.rank = 1, .size = 2, .address = "127.0.0.1", .port = silent.port()})
          .second.find("somebody is there, who does not answer"),
      std::string::npos);
}

// As under srun, whose names of nodes a machine need not know. No name has more
// than 63 letters in a row, so nobody is asked for it.
TEST(TcpRanks, SayWhenAMachineHasNoAddress) {
  const std::string name(64, 'n');
  const Ending ending =
      EndingOf({.rank = 1, .size = 2, .address = name, .port = 20001});
  EXPECT_EQ(ending.first, ExitCode::kEnvironment);
  for (const std::string& words :
       {"rank 0 does not answer at " + name + ":20001 within 0.2 s: ",
        "this machine knows no address of '" + name + "' (",
        std::string("let MASTER_ADDR be an address of its machine")}) {
    EXPECT_NE(ending.second.find(words), std::string::npos) << ending.second;
  }
}

// Nobody is asked what the name means: there may be nobody who knows.
TEST(TcpRanks, TakeLocalhostForTheirMachine) {
  const Listener silent("127.0.0.1", 0);
  const Ending ending = EndingOf(
      {.rank = 1, .size = 2, .address = "localhost", .port = silent.port()});
  EXPECT_EQ(ending.second.find("rank 0 does not answer at 127.0.0.1:"), 0u)
      << ending.second;
}

TEST(TcpRanks, SayWhenTheirPortIsTaken) {
  const Listener holder("127.0.0.1", 0);
  const Ending ending = EndingOf(
      {.rank = 0, .size = 2, .address = "127.0.0.1", .port = holder.port()});
  EXPECT_EQ(ending.first, ExitCode::kEnvironment);
  EXPECT_NE(ending.second.find("Address already in use"), std::string::npos);
  EXPECT_NE(ending.second.find("another MASTER_PORT"), std::string::npos)
      << ending.second;
}

TEST(TcpRanks, StrangersDoNotDisturbThem) {
  std::vector<Socket> strangers;
  ExpectNoEndings(RunTcpRanks(
      {.size = 3,
       .launched =
           [&](LaunchedRank launched) {
             if (launched.rank != 1) return launched;
             std::string reason;
             for (const std::string& words :
                  {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"),
                   std::string("softmoeR")}) {
               strangers.push_back(
                   Connect("127.0.0.1", launched.port, After(60), &reason));
               strangers.back().Send(std::as_bytes(std::span(words)),
                                     After(60));
             }
             return launched;
           }},
      [&](TcpSession& session) {
        const std::unique_ptr<Communicator> world = session.World();
        world->Run([&] { CheckOperations(*world, 7); });
      }));
}

}  // namespace
}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/socket.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>

namespace softmoe::optimized {
namespace {

// Two ends of a connection.
struct Pair {
  Pair() : listener("127.0.0.1", 0) {
    std::string reason;
    near = Connect("127.0.0.1", listener.port(), After(60), &reason);
    EXPECT_TRUE(near) << reason;
    const std::array waiting = {&listener.socket()};
    WaitToRead(waiting, After(60));
    far = listener.Accept();
    EXPECT_TRUE(far);
  }
  Listener listener;
  Socket near, far;
};

// Who returns earlier asks again and again, and keeps a core busy.
TEST(WaitToRead, WaitsToTheDeadlineIfNobodySends) {
  const Pair pair;
  const std::array sockets = {&pair.near, &pair.far};
  const Deadline deadline = After(0.05);
  WaitToRead(sockets, deadline);
  EXPECT_GE(Clock::now(), deadline);
}

TEST(WaitToRead, EndsWhenAConnectionCanBeRead) {
  Pair pair;
  const std::array sent = {std::byte{7}};
  EXPECT_TRUE(pair.near.Send(sent, After(60)));
  const std::array<const Socket*, 2> sockets = {&pair.near, &pair.far};
  const Deadline deadline = After(3600);
  WaitToRead(sockets, deadline);
  EXPECT_LT(Clock::now(), deadline);
  std::array<std::byte, 1> received = {};
  EXPECT_EQ(pair.far.TryReceive(received).bytes, 1u);
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/greeting.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "optimized/communicator/socket.h"

namespace softmoe::optimized {
namespace {

const std::string kSecret = "a secret of this test";
// What is waited for happens much sooner.
Deadline Late() { return After(20); }

// What a side says first, and where its version is.
constexpr size_t kOpening = 48, kVersionAt = 12, kClaimed = kOpening + 88 + 32;

std::span<const std::byte> Bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Socket ConnectTo(int port) {
  std::string reason;
  Socket socket = Connect("127.0.0.1", port, Late(), &reason);
  EXPECT_TRUE(socket) << reason;
  return socket;
}

std::string Read(Socket& socket, size_t size) {
  std::string text(size, '\0');
  EXPECT_TRUE(socket.Receive(std::as_writable_bytes(std::span(text)), Late()));
  return text;
}

// Whether the other side closes without another byte.
bool IsClosed(Socket& socket) {
  const Deadline late = Late();
  std::array<std::byte, 1> byte{};
  return !socket.Receive(byte, late) && Clock::now() < late;
}

void Say(Socket& socket, const std::string& text) {
  // Who is refused in the middle of it need not hear the rest.
  socket.Send(Bytes(text), Late());
}

bool GreetAs(int rank, Socket& socket, const std::string& secret = kSecret) {
  return Greet(socket, OwnClaim(rank, 4, 0, 0), secret, Late(), "it");
}

class Greeting : public testing::Test {
 protected:
  // Lets `strangers` do what they do, then rank 2 come, and expects that it is
  // received, and alone.
  void ExpectReceivedAfter(const std::function<void(int port)>& strangers,
                           double patience = Reception::kPatience) {
    reception_.emplace(Listener("127.0.0.1", 0), kSecret, patience);
    const int port = reception_->port();
    std::jthread guests([&] {
      strangers(port);
      Socket socket = ConnectTo(port);
      EXPECT_TRUE(GreetAs(2, socket));
      Say(socket, "hello");
    });
    std::optional<Reception::Guest> guest = reception_->Next(Late());
    while (guest && guest->claim.rank != 2) {
      ADD_FAILURE() << "received rank " << guest->claim.rank;
      guest.reset();  // a stranger may wait for that
      guest = reception_->Next(Late());
    }
    ASSERT_TRUE(guest);
    EXPECT_EQ(guest->claim.size, 4);
    EXPECT_GT(guest->claim.process, 0);
    EXPECT_EQ(Read(guest->socket, 5), "hello");
    guests.join();
    EXPECT_FALSE(reception_->Next(After(0)));
  }

  std::optional<Reception> reception_;
};

TEST_F(Greeting, IsReceived) {
  ExpectReceivedAfter([](int) {});
  EXPECT_EQ(reception_->strangers() + reception_->other_secrets(), 0);
}

TEST_F(Greeting, NoiseIsRefusedAtOnce) {
  const std::vector<std::string> noises = {"x", "GET / HTTP/1.1\r\n\r\n",
                                           std::string(1000, '\0'), "softmoeX",
                                           std::string(8, '\xff')};
  ExpectReceivedAfter([&](int port) {
    for (const std::string& noise : noises) {
      Socket socket = ConnectTo(port);
      Read(socket, kOpening);
      Say(socket, noise);
      EXPECT_TRUE(IsClosed(socket)) << noise;
    }
  });
  EXPECT_EQ(reception_->strangers(), 5);
}

TEST_F(Greeting, WhoWaitsKeepsNobodyOut) {
  std::vector<Socket> waiting;
  ExpectReceivedAfter([&](int port) {
    // One more than can wait, half of them after half a greeting.
    for (size_t i = 0; i <= Reception::kWaiting; ++i) {
      waiting.push_back(ConnectTo(port));
      const std::string opening = Read(waiting.back(), kOpening);
      if (i % 2 == 1) Say(waiting.back(), opening + "half a claim");
    }
    EXPECT_TRUE(IsClosed(waiting.front()));
  });
}

TEST_F(Greeting, WhoSaysTooLittleIsRefusedWhenPatienceEnds) {
  ExpectReceivedAfter(
      [](int port) {
        Socket silent = ConnectTo(port), half = ConnectTo(port);
        Read(silent, kOpening);
        Say(half, Read(half, kOpening));
        EXPECT_TRUE(IsClosed(silent));
        EXPECT_TRUE(IsClosed(half));
      },
      0.01);
  EXPECT_EQ(reception_->strangers(), 2);
}

TEST_F(Greeting, WhoLeavesIsForgotten) {
  ExpectReceivedAfter([](int port) {
    Socket socket = ConnectTo(port);
    Read(socket, kOpening);
  });
  EXPECT_EQ(reception_->strangers(), 1);
}

TEST_F(Greeting, AnotherSecretIsRefusedOnBothSides) {
  ExpectReceivedAfter([](int port) {
    Socket socket = ConnectTo(port);
    try {
      GreetAs(1, socket, "another secret, which is as long");
      FAIL() << "no exception";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("it has another secret"),
                std::string::npos)
          << error.what();
    }
  });
  EXPECT_EQ(reception_->other_secrets(), 1);
  EXPECT_EQ(reception_->strangers(), 0);
}

Socket AcceptOne(Listener& listener) {
  for (;;) {
    if (Socket socket = listener.Accept()) return socket;
    const Socket* const sockets[] = {&listener.socket()};
    WaitToRead(sockets, Late());
  }
}

// What rank 1 claims when it is greeted as `reception` greets, as somebody
// hears it who stands between the two.
std::string Overheard(Socket& reception) {
  Listener middle("127.0.0.1", 0);
  std::jthread rank([&] {
    Socket socket = ConnectTo(middle.port());
    EXPECT_FALSE(GreetAs(1, socket)) << "nobody has answered";
  });
  Socket socket = AcceptOne(middle);
  Say(socket, Read(reception, kOpening));
  return Read(socket, kClaimed);
}

TEST_F(Greeting, WhatWasHeardOnceOpensNoOtherConnection) {
  ExpectReceivedAfter([](int port) {
    Socket first = ConnectTo(port), second = ConnectTo(port);
    const std::string claim = Overheard(first);
    Read(second, kOpening);
    Say(second, claim);
    EXPECT_EQ(Read(second, 32), std::string(32, '\0')) << "no proof";
    EXPECT_TRUE(IsClosed(second));
  });
  EXPECT_EQ(reception_->other_secrets(), 1);
}

TEST_F(Greeting, AClaimThatWasChangedOnTheWayIsRefused) {
  // The rank's number, its nonce, its proof.
  for (const size_t at : {kOpening, kOpening - 1, kClaimed - 1}) {
    ExpectReceivedAfter([&](int port) {
      Socket socket = ConnectTo(port);
      std::string claim = Overheard(socket);
      claim[at] ^= 1;
      Say(socket, claim);
      EXPECT_EQ(Read(socket, 32), std::string(32, '\0')) << at;
    });
    EXPECT_EQ(reception_->other_secrets(), 1);
  }
}

TEST_F(Greeting, AnotherVersionIsRefused) {
  ExpectReceivedAfter([](int port) {
    Socket socket = ConnectTo(port);
    std::string opening = Read(socket, kOpening);
    ++opening[kVersionAt];
    Say(socket, opening + std::string(kClaimed - kOpening, '\0'));
    EXPECT_TRUE(IsClosed(socket));
  });
  EXPECT_EQ(reception_->strangers(), 1);
}

std::string Number(uint32_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

TEST(Greet, KnowsItsOwnProof) {
  Listener listener("127.0.0.1", 0);
  std::jthread mirror([&] {
    Socket socket = AcceptOne(listener);
    Say(socket, "softmoeR" + Number(0x01020304) + Number(kTcpVersion) +
                    std::string(32, 'n'));
    Say(socket, Read(socket, kClaimed).substr(kClaimed - 32));
  });
  Socket socket = ConnectTo(listener.port());
  EXPECT_THROW(GreetAs(1, socket), ConfigError);
}

// What Greet says of who answers with `answer`, and the exit code; "" if it
// returns false.
std::pair<std::string, ExitCode> WordsAbout(const std::string& answer) {
  Listener listener("127.0.0.1", 0);
  std::jthread impostor([&] {
    Socket socket = AcceptOne(listener);
    Say(socket, answer);
    socket.EndSending();
    std::array<std::byte, 1> byte{};
    while (socket.Receive(byte, Late())) continue;
  });
  Socket socket = ConnectTo(listener.port());
  try {
    EXPECT_FALSE(GreetAs(1, socket));
    socket.Close();
    return {"", ExitCode::kDone};
  } catch (const Error& error) {
    socket.Close();
    return {error.what(), error.code()};
  }
}

TEST(Greet, SaysWhatIsWrongWithWhoAnswers) {
  const auto expect = [](const std::string& answer, const std::string& words,
                         ExitCode code) {
    const auto [said, ended] = WordsAbout(answer);
    EXPECT_EQ(said.substr(0, words.size()), words);
    EXPECT_EQ(said.empty(), words.empty()) << said;
    EXPECT_EQ(ended, code) << said;
  };
  const std::string magic = "softmoeR", order = Number(0x01020304),
                    nonce(32, 'n'), no_proof(32, 'x');
  expect("", "", ExitCode::kDone);
  expect(magic + order, "", ExitCode::kDone);
  expect(magic + order + Number(kTcpVersion) + nonce, "", ExitCode::kDone);
  expect("SSH-2.0-OpenSSH_9.2p1\r\n", "it is another program",
         ExitCode::kEnvironment);
  expect(magic + order + Number(kTcpVersion + 1) + nonce,
         "it is another version", ExitCode::kUsage);
  expect(magic + Number(0x04030201) + Number(kTcpVersion) + nonce,
         "it is another version", ExitCode::kUsage);
  expect(magic + order + Number(kTcpVersion) + nonce + no_proof,
         "it has another secret", ExitCode::kUsage);
}

}  // namespace
}  // namespace softmoe::optimized

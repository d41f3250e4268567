// SPDX-License-Identifier: Apache-2.0
//
// socket.h - TCP connections with deadlines. None of them blocks, raises
// SIGPIPE, or passes into a program that this process starts.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_SOCKET_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_SOCKET_H_

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

namespace softmoe::optimized {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

Deadline After(double seconds);

// What one attempt to move bytes came to.
struct Moved {
  size_t bytes = 0;
  bool closed = false;  // by the other side, or by an error
};

class Socket {
 public:
  Socket() = default;  // no connection
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { Close(); }

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  void Close();
  // No more bytes go out; the other side sees the end once it has read them.
  void EndSending();

  // What is possible at once.
  Moved TrySend(std::span<const std::byte> bytes);
  Moved TryReceive(std::span<std::byte> bytes);
  // The same, but whoever receives next receives them again.
  Moved TryPeek(std::span<std::byte> bytes) const;
  // All of it. False if the other side closes, or at the deadline.
  bool Send(std::span<const std::byte> bytes, Deadline deadline);
  bool Receive(std::span<std::byte> bytes, Deadline deadline);

  // The numeric addresses of its two ends; "" if it is closed by now.
  std::string own_address() const;
  std::string peer_address() const;

 private:
  int descriptor_ = -1;
};

// Waits until a connection of `sockets` can be read, or to the deadline. Those
// that are none are left out.
void WaitToRead(std::span<const Socket* const> sockets, Deadline deadline);

// Accepts connections.
class Listener {
 public:
  // Listens at `address`, numeric, or at all of this machine (""), on `port`,
  // or on a free one (0).
  // Errors   EnvironmentError, e.g. if another process has the port.
  Listener(const std::string& address, int port);

  int port() const { return port_; }
  const Socket& socket() const { return socket_; }
  // The next connection, if somebody waits for it.
  Socket Accept();

 private:
  Socket socket_;
  int port_ = 0;
};

// One attempt to connect to `host`, a name or a numeric address. Nothing if it
// fails: then `reason` says why.
Socket Connect(const std::string& host, int port, Deadline deadline,
               std::string* reason);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_SOCKET_H_

// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "core/errors.h"

namespace softmoe::optimized {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// What poll takes.
int MillisecondsTo(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1 << 30));
}

// False at the deadline.
bool WaitFor(int descriptor, short events, Deadline deadline) {
  for (;;) {
    pollfd file = {descriptor, events, 0};
    const int count = ::poll(&file, 1, MillisecondsTo(deadline));
    if (count > 0) return true;
    if (count == 0 && Clock::now() >= deadline) return false;
  }
}

bool WouldBlock() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

// What recv's `count` means, where some bytes were asked for.
Moved ReceivedBy(ssize_t count) {
  if (count > 0) return {static_cast<size_t>(count), false};
  return {0, count == 0 || !WouldBlock()};
}

Addresses Resolve(const std::string& host, int port, int flags,
                  std::string* reason) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                  std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    *reason = fmt::format("this machine knows no address of '{}' ({})", host,
                          ::gai_strerror(error));
  }
  return {error == 0 ? found : nullptr, &::freeaddrinfo};
}

Socket NewSocket(int family) {
  return Socket(
      ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Heartbeats and the heads of calls are small, and somebody waits for each.
void SendAtOnce(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }

  bool operator==(const Address& other) const {
    return size == other.size &&
           std::memcmp(&storage, &other.storage, size) == 0;
  }
};

std::string Numeric(Address address) {
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(address.get(), address.size, host.data(), host.size(),
                    nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  // An IPv4 address, as a socket for both sees it.
  const std::string text = host.data(), mapped = "::ffff:";
  return text.starts_with(mapped) ? text.substr(mapped.size()) : text;
}

// A port that nobody listens on can be connected to itself, if the system takes
// it for this end, too.
bool IsItsOwnPeer(const Socket& socket) {
  Address own, peer;
  ::getsockname(socket.descriptor(), own.get(), &own.size);
  ::getpeername(socket.descriptor(), peer.get(), &peer.size);
  return own == peer;
}

// Connects, or returns an errno value.
int TryConnect(const Socket& socket, const addrinfo& address,
               Deadline deadline) {
  if (!socket) return errno;
  if (::connect(socket.descriptor(), address.ai_addr, address.ai_addrlen) ==
      0) {
    return 0;
  }
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  if (!WaitFor(socket.descriptor(), POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

// Returns an errno value.
int Bind(const Socket& socket, const addrinfo& address) {
  if (!socket) return errno;
  const int on = 1, off = 0;
  // What is left of an earlier run's connections does not hold its port.
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.ai_family == AF_INET6) {
    ::setsockopt(socket.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &off,
                 sizeof(off));
  }
  const bool done =
      ::bind(socket.descriptor(), address.ai_addr, address.ai_addrlen) == 0 &&
      ::listen(socket.descriptor(), SOMAXCONN) == 0;
  return done ? 0 : errno;
}

// Calls attempt(rest) until nothing is left. False if the connection is closed,
// or at the deadline.
template <typename Bytes, typename Attempt>
bool MoveAll(Bytes bytes, int descriptor, short events, Deadline deadline,
             const Attempt& attempt) {
  while (!bytes.empty()) {
    const Moved moved = attempt(bytes);
    bytes = bytes.subspan(moved.bytes);
    if (moved.closed) return false;
    if (moved.bytes == 0 && !WaitFor(descriptor, events, deadline)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Deadline After(double seconds) {
  // A deadline in a thousand years would overflow.
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(
             std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e9)));
}

Socket::Socket(Socket&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void Socket::Close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void Socket::EndSending() { ::shutdown(descriptor_, SHUT_WR); }

Moved Socket::TrySend(std::span<const std::byte> bytes) {
  const ssize_t count =
      ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count >= 0) return {static_cast<size_t>(count), false};
  return {0, !WouldBlock()};
}

Moved Socket::TryReceive(std::span<std::byte> bytes) {
  if (bytes.empty()) return {};
  return ReceivedBy(::recv(descriptor_, bytes.data(), bytes.size(), 0));
}

Moved Socket::TryPeek(std::span<std::byte> bytes) const {
  if (bytes.empty()) return {};
  return ReceivedBy(::recv(descriptor_, bytes.data(), bytes.size(), MSG_PEEK));
}

bool Socket::Send(std::span<const std::byte> bytes, Deadline deadline) {
  return MoveAll(bytes, descriptor_, POLLOUT, deadline,
                 [this](auto rest) { return TrySend(rest); });
}

bool Socket::Receive(std::span<std::byte> bytes, Deadline deadline) {
  return MoveAll(bytes, descriptor_, POLLIN, deadline,
                 [this](auto rest) { return TryReceive(rest); });
}

std::string Socket::own_address() const {
  Address address;
  return ::getsockname(descriptor_, address.get(), &address.size) == 0
             ? Numeric(address)
             : "";
}

std::string Socket::peer_address() const {
  Address address;
  return ::getpeername(descriptor_, address.get(), &address.size) == 0
             ? Numeric(address)
             : "";
}

void WaitToRead(std::span<const Socket* const> sockets, Deadline deadline) {
  std::vector<pollfd> files;
  for (const Socket* socket : sockets) {
    // poll leaves negative descriptors out.
    files.push_back({socket->descriptor(), POLLIN, 0});
  }
  ::poll(files.data(), files.size(), MillisecondsTo(deadline));
}

Listener::Listener(const std::string& address, int port) {
  std::string reason;
  const Addresses found =
      Resolve(address, port, AI_PASSIVE | AI_NUMERICHOST, &reason);
  if (!found) {
    throw EnvironmentError(
        fmt::format("cannot listen at '{}': {}", address, reason));
  }
  // An IPv6 socket for all addresses has those of IPv4, too.
  std::vector<const addrinfo*> candidates;
  for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
    candidates.push_back(a);
  }
  std::ranges::stable_sort(candidates, {}, [](const addrinfo* a) {
    return a->ai_family == AF_INET6 ? 0 : 1;
  });
  int error = 0;
  for (const addrinfo* candidate : candidates) {
    socket_ = NewSocket(candidate->ai_family);
    error = Bind(socket_, *candidate);
    // The other family is for machines that lack this one.
    if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL) break;
  }
  if (error != 0) {
    throw EnvironmentError(fmt::format(
        "cannot listen at port {}{}: {}; {}", port,
        address.empty() ? "" : " of " + address, std::strerror(error),
        error == EADDRINUSE
            ? "end what holds it (ss -tlnp), or give all ranks another "
              "MASTER_PORT"
            : "give all ranks another MASTER_ADDR or MASTER_PORT"));
  }
  Address bound;
  ::getsockname(socket_.descriptor(), bound.get(), &bound.size);
  port_ = ntohs(bound.storage.ss_family == AF_INET6
                    ? reinterpret_cast<sockaddr_in6*>(bound.get())->sin6_port
                    : reinterpret_cast<sockaddr_in*>(bound.get())->sin_port);
}

Socket Listener::Accept() {
  Socket socket(::accept4(socket_.descriptor(), nullptr, nullptr,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) SendAtOnce(socket);
  return socket;
}

Socket Connect(const std::string& host, int port, Deadline deadline,
               std::string* reason) {
  const Addresses found = Resolve(host, port, 0, reason);
  for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
    Socket socket = NewSocket(a->ai_family);
    const int error = TryConnect(socket, *a, deadline);
    if (error == 0 && !IsItsOwnPeer(socket)) {
      SendAtOnce(socket);
      return socket;
    }
    *reason = std::strerror(error == 0 ? ECONNREFUSED : error);
  }
  return {};
}

}  // namespace softmoe::optimized

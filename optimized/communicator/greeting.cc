// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/greeting.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "core/errors.h"
#include "core/files/hmac.h"

namespace softmoe::optimized {
namespace {

constexpr size_t kNonceSize = 32;

// Begins what either side says first.
struct Opening {
  std::array<char, 8> magic = {'s', 'o', 'f', 't', 'm', 'o', 'e', 'R'};
  uint32_t byte_order = 0x01020304;  // numbers go as the machine has them
  uint32_t version = kTcpVersion;
  std::array<char, kNonceSize> nonce = {};
};
static_assert(sizeof(Opening) == 48);

struct Claimed {
  Opening opening;
  Claim claim;
  Sha256Digest proof = {};
};
static_assert(sizeof(Claimed) == sizeof(Opening) + sizeof(Claim) + 32);

template <typename T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <typename T>
std::span<std::byte> WritableBytesOf(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// `side` keeps either from sending the other's proof back to it.
Sha256Digest Proof(const std::string& secret, std::string_view side,
                   const std::string& listeners_nonce, const Claimed& claimed) {
  return HmacSha256(secret, std::string(side) + listeners_nonce +
                                Text(BytesOf(claimed.opening)) +
                                Text(BytesOf(claimed.claim)));
}

Opening NewOpening() {
  Opening opening;
  std::ranges::copy(RandomBytes(kNonceSize), opening.nonce.begin());
  return opening;
}

// Whether the other side may be a rank, by the first bytes that it sent.
bool MayBeOurs(std::span<const std::byte> heard) {
  const Opening opening;
  const size_t size = std::min(heard.size(), opening.magic.size());
  return std::ranges::equal(heard.first(size), BytesOf(opening).first(size));
}
bool IsOfOurVersion(const Opening& opening) {
  return opening.byte_order == Opening().byte_order &&
         opening.version == Opening().version;
}

}  // namespace

Claim OwnClaim(int rank, int size, int to_rank, int port) {
  Claim claim = {.rank = rank,
                 .size = size,
                 .to_rank = to_rank,
                 .port = port,
                 .process = ::getpid()};
  // A longer name is cut; the last character stays 0.
  if (::gethostname(claim.host.data(), claim.host.size() - 1) != 0 &&
      claim.host[0] == '\0') {
    claim.host[0] = '?';
  }
  return claim;
}

Reception::Reception(Listener listener, std::string secret, double patience)
    : listener_(std::move(listener)),
      secret_(std::move(secret)),
      patience_(patience) {}

void Reception::AcceptAll() {
  while (Socket socket = listener_.Accept()) {
    if (waiting_.size() == kWaiting) {
      waiting_.erase(waiting_.begin());
      ++strangers_;
    }
    const Opening opening = NewOpening();
    // A new connection has room for so little.
    socket.TrySend(BytesOf(opening));
    waiting_.push_back({std::move(socket),
                        {opening.nonce.begin(), opening.nonce.end()},
                        {},
                        After(patience_)});
  }
}

bool Reception::Hear(Waiting& waiting, std::optional<Guest>* guest) {
  const size_t before = waiting.heard.size();
  waiting.heard.resize(sizeof(Claimed));
  const Moved moved =
      waiting.socket.TryReceive(std::span(waiting.heard).subspan(before));
  waiting.heard.resize(before + moved.bytes);
  if (!MayBeOurs(waiting.heard)) {
    ++strangers_;
    return true;
  }
  if (waiting.heard.size() < sizeof(Claimed)) {
    const bool refused = moved.closed || Clock::now() >= waiting.until;
    if (refused) ++strangers_;
    return refused;
  }
  Claimed claimed;
  std::ranges::copy(waiting.heard, WritableBytesOf(claimed).begin());
  if (!IsOfOurVersion(claimed.opening) || claimed.claim.host.back() != '\0') {
    ++strangers_;
    return true;
  }
  if (!SameDigest(claimed.proof,
                  Proof(secret_, "connects", waiting.nonce, claimed))) {
    // So that it can say what is wrong: it sees that this proof is none.
    waiting.socket.TrySend(BytesOf(Sha256Digest()));
    ++other_secrets_;
    return true;
  }
  waiting.socket.TrySend(
      BytesOf(Proof(secret_, "listens", waiting.nonce, claimed)));
  *guest = {std::move(waiting.socket), claimed.claim};
  return true;
}

std::optional<Reception::Guest> Reception::Next(Deadline deadline) {
  for (;;) {
    AcceptAll();
    for (size_t i = 0; i < waiting_.size();) {
      std::optional<Guest> guest;
      if (Hear(waiting_[i], &guest)) {
        waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
      } else {
        ++i;
      }
      if (guest) return guest;
    }
    if (Clock::now() >= deadline) return {};
    std::vector<const Socket*> sockets = {&listener_.socket()};
    Deadline next = deadline;
    for (const Waiting& waiting : waiting_) {
      sockets.push_back(&waiting.socket);
      next = std::min(next, waiting.until);
    }
    WaitToRead(sockets, next);
  }
}

bool Greet(Socket& socket, const Claim& claim, const std::string& secret,
           Deadline deadline, const std::string& place) {
  Opening theirs;
  // First what no other program begins with, since one may say less.
  const std::span<std::byte> opening = WritableBytesOf(theirs);
  if (!socket.Receive(opening.first(theirs.magic.size()), deadline)) {
    return false;
  }
  if (!MayBeOurs(opening.first(theirs.magic.size()))) {
    throw EnvironmentError(
        place +
        " is another program; end it, or give all ranks another "
        "MASTER_PORT");
  }
  if (!socket.Receive(opening.subspan(theirs.magic.size()), deadline)) {
    return false;
  }
  if (!IsOfOurVersion(theirs)) {
    throw ConfigError(place +
                      " is another version of this program, or on a machine "
                      "with another order of bytes; start all ranks with the "
                      "same program on machines of one kind");
  }
  Claimed claimed = {.opening = NewOpening(), .claim = claim};
  const std::string nonce(theirs.nonce.begin(), theirs.nonce.end());
  claimed.proof = Proof(secret, "connects", nonce, claimed);
  Sha256Digest answer;
  if (!socket.Send(BytesOf(claimed), deadline) ||
      !socket.Receive(WritableBytesOf(answer), deadline)) {
    return false;
  }
  if (!SameDigest(answer, Proof(secret, "listens", nonce, claimed))) {
    throw ConfigError(place +
                      " has another secret than this rank; give all ranks of a "
                      "run the same SOFTMOE_RANKS_SECRET or "
                      "SOFTMOE_RANKS_SECRET_FILE, and another run another one");
  }
  return true;
}

}  // namespace softmoe::optimized

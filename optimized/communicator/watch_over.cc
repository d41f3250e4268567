// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/watch_over.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/hmac.h"
#include "optimized/communicator/greeting.h"
#include "optimized/communicator/meeting.h"

namespace softmoe::optimized {
namespace {

constexpr size_t kSecretSize = 32;

// The addresses at which other machines may reach this one.
std::vector<std::string> OwnAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return addresses;
  for (const ifaddrs* a = all; a != nullptr; a = a->ifa_next) {
    if (a->ifa_addr == nullptr || (a->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const int family = a->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::array<char, NI_MAXHOST> host{};
    const socklen_t size =
        family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(a->ifa_addr, size, host.data(), host.size(), nullptr, 0,
                      NI_NUMERICHOST) != 0) {
      continue;
    }
    const std::string address = host.data();
    // One with a % is valid on its own link only.
    if (address.find('%') == std::string::npos) addresses.push_back(address);
  }
  ::freeifaddrs(all);
  return addresses;
}

std::string BroadcastText(Communicator& communicator, std::string text) {
  std::array<int64_t, 1> size = {static_cast<int64_t>(text.size())};
  communicator.Broadcast<int64_t>(size, 0);
  text.resize(static_cast<size_t>(size[0]));
  communicator.Broadcast<char>(text, 0);
  return text;
}

// Where rank 0 is: on one machine the others need no network.
std::vector<std::string> AddressesOf(const std::string& host,
                                     std::istringstream& addresses,
                                     const Claim& claim) {
  std::vector<std::string> result;
  if (host == claim.host.data()) result.emplace_back("127.0.0.1");
  for (std::string address; addresses >> address;) result.push_back(address);
  result.push_back(host);
  return result;
}

}  // namespace

std::unique_ptr<Watch> WatchOver(Communicator& communicator, double join_limit,
                                 const WatchOptions& options) {
  const int rank = communicator.rank(), size = communicator.size();
  const Claim claim = OwnClaim(rank, size, 0, 0);
  if (rank == 0) {
    const std::string secret = Sha256Hex(RandomBytes(kSecretSize));
    Reception reception(Listener("", 0), secret);
    std::string place = std::to_string(reception.port()) + " " + secret + " " +
                        claim.host.data();
    for (const std::string& address : OwnAddresses()) place += " " + address;
    BroadcastText(communicator, place);
    return std::make_unique<Watch>(HostMeeting(reception, size, join_limit),
                                   options);
  }
  std::istringstream place(BroadcastText(communicator, ""));
  int port = 0;
  std::string secret, host;
  place >> port >> secret >> host;
  return std::make_unique<Watch>(JoinMeeting(AddressesOf(host, place, claim),
                                             port, claim, secret, join_limit),
                                 options);
}

}  // namespace softmoe::optimized

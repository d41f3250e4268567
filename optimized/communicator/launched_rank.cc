// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/launched_rank.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>
#include <system_error>

#include "core/errors.h"
#include "core/files/atomic_file.h"

namespace softmoe::optimized {
namespace {

constexpr char kAddress[] = "MASTER_ADDR", kPort[] = "MASTER_PORT";
constexpr int kLargestPort = 65535;
constexpr size_t kShortestSecret = 16;

std::string TextOf(const char* name, const Lookup& lookup) {
  const char* const value = lookup(name);
  return value == nullptr ? "" : value;
}

// The number in variable `name`, in [least, most].
int Number(const char* name, int least, int most, const Lookup& lookup) {
  const std::string text = TextOf(name, lookup);
  if (text.empty()) {
    throw ConfigError(fmt::format(
        "--ranks env: the environment variable {} is not set; start every rank "
        "with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or with srun",
        name));
  }
  int number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      number < least || number > most) {
    throw ConfigError(
        fmt::format("--ranks env: {}={}: not a number from {} to {}", name,
                    text, least, most));
  }
  return number;
}

constexpr int kAny = std::numeric_limits<int>::max();

// Jobs that run beside each other have other numbers, hence mostly other ports.
int PortOfJob(const Lookup& lookup) {
  const auto part = [&](const char* name) -> int64_t {
    return TextOf(name, lookup).empty() ? 0 : Number(name, 0, kAny, lookup);
  };
  constexpr int kFirst = 20000, kPorts = 10000;
  return kFirst +
         static_cast<int>((part("SLURM_JOB_ID") * 7 + part("SLURM_STEP_ID")) %
                          kPorts);
}

std::string RankZerosNode(const Lookup& lookup) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    const std::string nodes = TextOf(name, lookup);
    if (!nodes.empty()) return FirstNode(nodes);
  }
  // Where srun was called, which is the first node in a batch script.
  return TextOf("SLURM_LAUNCH_NODE_IPADDR", lookup);
}

}  // namespace

std::string FirstNode(const std::string& nodes) {
  const size_t end = nodes.find_first_of(",[");
  std::string node = nodes.substr(0, end);
  if (end != std::string::npos && nodes[end] == '[') {
    const size_t stop = nodes.find_first_of(",-]", end);
    node += nodes.substr(end + 1, stop - end - 1);
  }
  return node;
}

LaunchedRank RankFromEnvironment(const Lookup& lookup) {
  const bool slurm =
      TextOf("RANK", lookup).empty() && !TextOf("SLURM_PROCID", lookup).empty();
  const char* const rank = slurm ? "SLURM_PROCID" : "RANK";
  const char* const size = slurm ? "SLURM_NTASKS" : "WORLD_SIZE";
  const char* const local = slurm ? "SLURM_LOCALID" : "LOCAL_RANK";
  LaunchedRank launched;
  launched.rank = Number(rank, 0, kAny - 1, lookup);
  launched.size = Number(size, 1, kAny, lookup);
  if (launched.rank >= launched.size) {
    throw ConfigError(
        fmt::format("--ranks env: {}={} with {}={}: ranks are numbered from 0",
                    rank, launched.rank, size, launched.size));
  }
  if (!TextOf(local, lookup).empty()) {
    launched.local_rank = Number(local, 0, launched.size - 1, lookup);
  }
  launched.address = TextOf(kAddress, lookup);
  if (launched.address.empty() && slurm) {
    launched.address = RankZerosNode(lookup);
  }
  if (launched.address.empty()) {
    throw ConfigError(fmt::format(
        "--ranks env: the environment variable {} is not set; it is the "
        "address of rank 0's machine, 127.0.0.1 if there is one machine",
        kAddress));
  }
  launched.port =
      slurm && TextOf(kPort, lookup).empty()
          ? PortOfJob(lookup)
          : Number(kPort, launched.rank == 0 ? 0 : 1, kLargestPort, lookup);
  return launched;
}

std::string SecretFromEnvironment(const Lookup& lookup) {
  const std::string remedy =
      "; make one with `umask 077; head -c 32 /dev/urandom | base64 > FILE`, "
      "and set SOFTMOE_RANKS_SECRET_FILE=FILE for all ranks";
  std::string secret = TextOf("SOFTMOE_RANKS_SECRET", lookup);
  if (secret.empty()) {
    const std::string file = TextOf("SOFTMOE_RANKS_SECRET_FILE", lookup);
    if (file.empty()) {
      throw ConfigError("--ranks env needs a secret that all ranks know" +
                        remedy);
    }
    const std::string content = ReadWholeFile(file);
    struct stat status = {};
    if (::stat(file.c_str(), &status) != 0 || (status.st_mode & 077) != 0) {
      throw ConfigError(fmt::format(
          "'{}': others than its owner may read or write this secret; make a "
          "new one after `chmod 600 '{}'`",
          file, file));
    }
    secret = content.substr(0, content.find('\n'));
  }
  if (secret.size() < kShortestSecret) {
    throw ConfigError(fmt::format(
        "the secret of the ranks has {} characters, fewer than {}{}",
        secret.size(), kShortestSecret, remedy));
  }
  return secret;
}

}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_stop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/errors.h"
#include "optimized/communicator/shards.h"

namespace softmoe::trainer {

int RankAskedToStop(const StopSignal& stop,
                    optimized::Communicator& communicator) {
  // A signal may come between the polls of two ranks.
  const int ranks = communicator.size();
  std::vector<uint8_t> asked(static_cast<size_t>(ranks));
  asked[static_cast<size_t>(communicator.rank())] = stop.requested();
  communicator.Gather<uint8_t>(optimized::ShareOut(ranks, 1, ranks), asked);
  const auto first = std::ranges::find(asked, 1);
  return first == asked.end() ? -1 : static_cast<int>(first - asked.begin());
}

void ThrowStopped(const StopSignal& stop, int asked_rank,
                  const std::string& done) {
  stop.ThrowIfRequested(done);
  throw StoppedError(fmt::format("rank {}: {}", asked_rank, done));
}

}  // namespace softmoe::trainer

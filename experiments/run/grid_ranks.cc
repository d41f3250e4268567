// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/grid_ranks.h"

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/run/rank_main.h"

namespace softmoe::experiments {

// What rank 0 tells the others, as bytes that every rank has room for.
struct GridRanks::Order {
  int64_t run = -1;       // -1: there is nothing more to do,
  int64_t code = 0;       // and all ranks end with this
  std::string text = {};  // the run's tokens
};

void GridRanks::Agree(std::span<const optimized::Agreement> agreements) {
  if (size() > 1) ranks_.communicator.Agree(agreements);
}

void GridRanks::Share(Order* order) {
  optimized::Communicator& all = ranks_.communicator;
  all.Begin({.name = "the choice of the next run"});
  int64_t head[] = {order->run, order->code,
                    static_cast<int64_t>(order->text.size())};
  all.Broadcast<int64_t>(head, 0);
  order->run = head[0];
  order->code = head[1];
  order->text.resize(static_cast<size_t>(head[2]));
  all.Broadcast<char>(order->text, 0);
  // A signal may have come to a rank while it waited.
  const int asked_rank = trainer::RankAskedToStop(stop_, all);
  if (asked_rank < 0 || order->run < 0) return;
  trainer::ThrowStopped(stop_, asked_rank,
                        "between two runs; the same command continues");
}

trainer::RunResult GridRanks::Train(const Config& config,
                                    trainer::RunOptions options) {
  const std::unique_ptr<optimized::Communicator> world = ranks_.another();
  options.processes = world.get();
  trainer::RunResult result;
  world->Run([&] { result = trainer::TrainRun(config, options); });
  return result;
}

trainer::RunResult GridRanks::Lead(size_t run, const Config& config,
                                   trainer::RunOptions options) {
  SOFTMOE_CHECK(leads()) << "rank " << ranks_.communicator.rank();
  Order order = {.run = static_cast<int64_t>(run),
                 .text = options.tokens.string()};
  Share(&order);
  try {
    return Train(config, std::move(options));
  } catch (const optimized::RankError& error) {
    // Divergence is a property of the run, whichever rank noticed it.
    if (error.code() == ExitCode::kFailed) throw NumericsError(error.what());
    throw;
  }
}

void GridRanks::Dismiss(ExitCode code) {
  SOFTMOE_CHECK(leads()) << "rank " << ranks_.communicator.rank();
  Order order = {.code = static_cast<int64_t>(code)};
  Share(&order);
}

std::optional<GridRanks::Task> GridRanks::Next() {
  Order order;
  Share(&order);
  if (order.run >= 0) {
    return Task{.run = static_cast<size_t>(order.run), .tokens = order.text};
  }
  code_ = static_cast<ExitCode>(order.code);
  return std::nullopt;
}

void GridRanks::Follow(const Config& config, trainer::RunOptions options) {
  try {
    Train(config, std::move(options));
  } catch (const NumericsError&) {
    // Rank 0 records it.
  } catch (const optimized::RankError&) {
    // The rank that failed goes on, or tells all others why it cannot.
  }
}

}  // namespace softmoe::experiments

// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_options.h"

#include <charconv>
#include <map>
#include <system_error>

#include "core/errors.h"

namespace softmoe::trainer {

RankKind RankOptions::kind() const {
  if (ranks == "mpi") return RankKind::kMpi;
  return ranks == "env" ? RankKind::kEnvironment : RankKind::kNone;
}

int RankOptions::in_process() const {
  if (kind() != RankKind::kNone) return 1;
  int number = 0;
  const auto [end, error] =
      std::from_chars(ranks.data(), ranks.data() + ranks.size(), number);
  if (error == std::errc() && end == ranks.data() + ranks.size()) return number;
  throw ConfigError("--ranks " + ranks +
                    ": give a number of ranks, mpi, or env");
}

void AddExchangeOption(CLI::App& app, RankOptions* options) {
  std::map<std::string, ExchangeChoice> choices;
  for (const ExchangeChoice choice :
       {ExchangeChoice::kAuto, ExchangeChoice::kHost, ExchangeChoice::kNccl}) {
    choices[NameOf(choice)] = choice;
  }
  app.add_option("--exchange", options->exchange,
                 "what carries gradients and parameters between ranks: nccl, "
                 "from device to device, for ranks with a device each; host, "
                 "through memory of the host; auto: nccl where it can, else "
                 "host; never changes the result [auto]")
      ->transform(CLI::CheckedTransformer(choices));
}

CLI::Option* AddRankOptions(CLI::App& app, RankOptions* options) {
  CLI::Option* const ranks = app.add_option(
      "--ranks", options->ranks,
      "N: ranks that share the batch and the threads of this process; mpi: the "
      "processes of an mpirun or srun; env: processes that find each other by "
      "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or are started by srun, "
      "and know the same secret (SOFTMOE_RANKS_SECRET or, better, "
      "SOFTMOE_RANKS_SECRET_FILE); both with --threads each; never changes the "
      "result, unless a line says so [1]");
  AddExchangeOption(app, options);
  // A day at most.
  app.add_option("--silence-limit", options->processes.silence_limit,
                 "seconds within which all processes end, with 5, after one of "
                 "them has died or fallen silent; 0: silence is no reason [30]")
      ->check(CLI::Range(0.0, 86400.0))
      ->needs(ranks);
  app.add_option("--join-limit", options->processes.join_limit,
                 "seconds that processes wait for each other at the start "
                 "[120]")
      ->check(CLI::Range(0.0, 86400.0))
      ->needs(ranks);
  return ranks;
}

}  // namespace softmoe::trainer

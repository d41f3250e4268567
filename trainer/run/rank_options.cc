// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_options.h"

#include <charconv>
#include <map>
#include <system_error>

#include "core/errors.h"

namespace softmoe::trainer {

int RankOptions::in_process() const {
  if (mpi()) return 1;
  int number = 0;
  const auto [end, error] =
      std::from_chars(ranks.data(), ranks.data() + ranks.size(), number);
  if (error == std::errc() && end == ranks.data() + ranks.size()) return number;
  throw ConfigError(
      "--ranks " + ranks +
      (ranks == "env" ? ": ranks find each other through MPI; start them with "
                        "mpirun -n N or srun --mpi=pmix, and give --ranks mpi"
                      : ": give a number of ranks, or mpi"));
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
      "processes of an mpirun or srun --mpi=pmix, with --threads each; never "
      "changes the result, unless a line says so [1]");
  AddExchangeOption(app, options);
  // A day at most.
  app.add_option("--silence-limit", options->processes.silence_limit,
                 "seconds that processes wait within a step for one that says "
                 "nothing, before they all end with 5; 0: for ever [600]")
      ->check(CLI::Range(0.0, 86400.0))
      ->needs(ranks);
  return ranks;
}

}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
//
// rank_options.h - the options by which a command line says which ranks train
// together: those of //:train and of `grid run`.
#ifndef SOFTMOE_TRAINER_RUN_RANK_OPTIONS_H_
#define SOFTMOE_TRAINER_RUN_RANK_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "trainer/run/rank_devices.h"
#include "trainer/run/rank_main.h"

namespace softmoe::trainer {

struct RankOptions {
  std::string ranks = "1";    // as it was given
  RankMainOptions processes;  // limits; the rest is for the program to fill in
  ExchangeChoice exchange = ExchangeChoice::kAuto;

  bool mpi() const { return ranks == "mpi"; }
  // The ranks in threads of each process: 1 where processes are the ranks.
  // Errors   ConfigError for a word that means nothing.
  int in_process() const;
};

// Adds --exchange to `app`, whose result goes into `options`.
void AddExchangeOption(CLI::App& app, RankOptions* options);

// Adds --ranks, --exchange and --silence-limit to `app`, whose results go into
// `options`. Returns --ranks.
CLI::Option* AddRankOptions(CLI::App& app, RankOptions* options);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RANK_OPTIONS_H_

// SPDX-License-Identifier: Apache-2.0
//
// grid_commands.h - what each subcommand of //:grid does.
#ifndef SOFTMOE_EXPERIMENTS_GRID_COMMANDS_H_
#define SOFTMOE_EXPERIMENTS_GRID_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "experiments/plan/grid_plan.h"
#include "experiments/report/grid_report.h"
#include "trainer/run/rank_main.h"

namespace softmoe::experiments {

// The options of all subcommands, as they were given.
struct Arguments {
  std::string grid, scale, out;
  std::vector<std::string> overrides, runtime, rows, corpora, only, seeds;
  std::string from;    // a record
  std::string record;  // --to, FILE
  std::string bench;
  std::string run, changed_by, isa, device;
  std::string task_files;
  std::vector<std::string> tokens;  // CORPUS=PREFIX
  ReportOptions report;
  std::optional<Launcher> launcher;
  int64_t threads = 0;
  int64_t jobs = 1;
  trainer::RankOptions ranks;
  bool quiet = false, yes = false, keep_checkpoints = false, renew = false;
  bool detach = false, exploratory = false, recheck = false;
  int64_t file_delay = 60;  // seconds
};

// Throws ConfigError for launcher options that contradict each other.
void CheckLaunch(const Arguments& arguments);

// The subcommands. Each prints its result, and returns the program's exit code.
ExitCode Plan(const Arguments& arguments);
ExitCode Run(const Arguments& arguments, const trainer::Ranks& processes);
ExitCode ReportAgain(const Arguments& arguments);
ExitCode Status(const Arguments& arguments);
ExitCode TensorBoard(const Arguments& arguments);
ExitCode Record(const Arguments& arguments);
ExitCode VerifyRecord(const Arguments& arguments);
ExitCode Clean(const Arguments& arguments);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRID_COMMANDS_H_

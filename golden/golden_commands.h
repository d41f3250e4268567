// SPDX-License-Identifier: Apache-2.0
//
// golden_commands.h - what each subcommand of //:golden does.
#ifndef SOFTMOE_GOLDEN_GOLDEN_COMMANDS_H_
#define SOFTMOE_GOLDEN_GOLDEN_COMMANDS_H_

#include <string>
#include <vector>

#include "core/errors.h"

namespace softmoe::golden {

// The options of each subcommand, as they were given. "paper" stands for the
// document of the paper's tables; any other file name is a path.

struct ShowOptions {
  std::string file = "paper", table;
  bool cells = false, notes = false, arithmetic = false, claims = false;
  bool protocol = false;
};

struct CompareOptions {
  std::string results, golden = "paper", json;
  std::vector<std::string> allow;
};

struct ClaimsOptions {
  std::string record, into;
};

struct ImportOptions {
  std::string values, set_up, out, golden = "paper", of_table;
};

struct GpuOptions {
  std::string record, to, runs, into;
  bool of_tests = false;
};

// The subcommands. Each prints or writes its result, and returns the program's
// exit code.
ExitCode Show(const ShowOptions& options);
ExitCode Compare(const CompareOptions& options);
ExitCode ShowClaimsTable(const ClaimsOptions& options);
ExitCode Import(const ImportOptions& options);
ExitCode ImportGpuRun(const GpuOptions& options);
ExitCode ShowGpuTable(const GpuOptions& options);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_GOLDEN_COMMANDS_H_

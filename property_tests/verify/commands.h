// SPDX-License-Identifier: Apache-2.0
//
// commands.h - what `verify` does once its command line has been read.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_COMMANDS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_COMMANDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/errors.h"

namespace softmoe::verify {

// The options of all commands; each command reads those that it offers.
struct Options {
  // Words KEY=VALUE. Where many cases run, op= and impl= may be given several
  // times.
  std::vector<std::string> words;
  std::string json, junit, log, bundles, out;
  // The number of cases of each operation, from case 0 or from that of a word
  // case=. Default: 1 with case=, otherwise 100 (Grad: 20, or no limit with
  // `seconds`).
  std::optional<int64_t> cases;
  // Stops after this many seconds, unless `cases` are done earlier. Default for
  // Fuzz: 60.
  std::optional<double> seconds;
  bool no_shrink = false;
  // Whether all cases are at edges, or only the first ones (as in Fuzz, unless
  // simplify= is given).
  bool edges = false, edges_first = false;
};

// Each prints to stdout, writes the files that the options name, and returns
// the exit code that --help documents. Throws ConfigError, before any file is
// written, for options that make no sense together, and StoppedError after a
// signal, once the report is printed. Any other error that ends Run, Fuzz or
// Grad early is thrown after the report, too; if a case failed, it is only
// printed, unless it is an error of the harness itself.
ExitCode Run(const Options& options);   // a number of cases
ExitCode Fuzz(const Options& options);  // until the time is over
// Checks the reference's own derivatives, or faulty ones in their place.
ExitCode Grad(const Options& options);
ExitCode Plan(const Options& options);     // counts what Run would run
ExitCode Explain(const Options& options);  // one case
ExitCode Replay(const Options& options, const std::string& file);
// Writes conformance vectors.
ExitCode ExportVectors(const Options& options);
// Judges what another framework computed from them.
ExitCode CheckVectors(const Options& options, const std::string& vectors,
                      const std::string& outputs);

// Checks the harness before Run and the others judge anything: throws
// InternalError (exit code 6) unless, on a fixed case, the rounded reference
// passes and its copies with planted gross faults fail. A harness that fails
// this proves nothing.
void CheckSelf();
// Does the same for CheckGradients (Grad) and the reference in double.
void CheckGradientSelf();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_COMMANDS_H_

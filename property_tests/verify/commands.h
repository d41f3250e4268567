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
  // The number of cases of each operation, from number 0 or that of a word
  // case=. If it is not given: 1 with case=, and otherwise 100, or 20 for Grad.
  std::optional<int64_t> cases;
  // Stop after this many, unless `cases` are done before. If not given, Fuzz
  // takes 60.
  std::optional<double> seconds;
  bool no_shrink = false;
  // Whether all cases are at edges, or only the first ones (which Fuzz always
  // does).
  bool edges = false, edges_first = false;
};

// Each prints to stdout, writes the files that the options name, and returns
// the exit code that --help documents. They throw ConfigError, before any file
// is written, for options that make no sense together, and StoppedError after a
// signal, once the report is printed. What else ends Run, Fuzz and Grad early
// is thrown after the report, too; if a case failed, it is only printed.
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

// What Run and the others begin with, before anything is judged: throws
// InternalError (exit code 6) unless, on a fixed case, the rounded reference
// passes and its copies with planted gross faults fail. A harness that fails
// this proves nothing.
void CheckSelf();
// Does the same for CheckGradients (Grad) and the reference in double.
void CheckGradientSelf();

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_COMMANDS_H_

// SPDX-License-Identifier: Apache-2.0
//
// replay.h - a failing case that can be run again: as one line, and as a file.
//
//   REPRO v3 verify run op=lapsum impl=cpu:v4 ... # FAIL d_scores[3, 5] ...
//
// The line reruns exactly one case. What follows "#" is for people. A change of
// what a case means (fills, Philox addresses, whether another call precedes it)
// needs a new version, because an old line must never check something else.
//
// The file, a bundle, has the inputs, outputs, expected values and bounds.
// Replaying it needs no generator, so it works after fills have changed, and on
// another machine. HDF5 of kind "verify-replay" (core/HDF5_ENVELOPE.md); groups
// /inputs, /got, /expected and /bounds with one f64 dataset per tensor, whose
// attributes are its shape and dtype; root attributes "case" and "result".
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPLAY_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPLAY_H_

#include <filesystem>
#include <string>

#include "property_tests/verify/engine/check.h"

namespace softmoe::verify {

inline constexpr int kReproVersion = 3;

std::string ReproLine(const CaseResult& result);
// The line of a case that has no result, with a remark for people.
std::string ReproLine(const Case& c, const std::string& command,
                      const std::string& remark);

// The case text in `text`, which is a REPRO line, "verify run ...", or just the
// words of a case. Throws ConfigError for another version, for a line of
// another command (which checks its case differently), and for a REPRO line
// that is cut short or followed by another.
std::string StripRepro(const std::string& text,
                       const std::string& command = "run");

struct Bundle {
  Case c;
  std::string result;  // the REPRO line
  Evidence evidence;
};

// Writes the bundle. Tensors that would take it beyond 16 MiB are left out,
// inputs last. Returns false, and writes nothing, if even the inputs do
// not fit.
bool WriteBundle(const std::filesystem::path& path, const CaseResult& result,
                 const Evidence& evidence);

// Throws DataError for a file that is not a bundle or is of another version,
// and ConfigError for a case that this program does not know.
Bundle ReadBundle(const std::filesystem::path& path);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPLAY_H_

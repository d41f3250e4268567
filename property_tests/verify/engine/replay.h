// SPDX-License-Identifier: Apache-2.0
//
// replay.h - a failing case as a file: its inputs, outputs, expected values and
// bounds. Replaying needs no generator, so it works after fills have changed,
// and on another machine.
//
// HDF5 of kind "verify-replay" (core/HDF5_ENVELOPE.md); groups /inputs, /got,
// /expected and /bounds with one f64 dataset per tensor, whose attributes are
// its shape and dtype; root attributes "case" and "result".
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPLAY_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPLAY_H_

#include <filesystem>
#include <string>

#include "property_tests/verify/engine/case_result.h"

namespace softmoe::verify {

inline constexpr int64_t kMaxBundleBytes = 16 << 20;

struct Bundle {
  Case c;
  std::string result;  // the REPRO line
  Evidence evidence;
};

// Writes the bundle. Tensors that would take it beyond kMaxBundleBytes are left
// out, inputs last. Returns false, and writes nothing, if even the inputs do
// not fit.
bool WriteBundle(const std::filesystem::path& path, const CaseResult& result,
                 const Evidence& evidence);

// Throws DataError for a file that is not a bundle or is of another version,
// and ConfigError for a case that this program does not know.
Bundle ReadBundle(const std::filesystem::path& path);

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_REPLAY_H_

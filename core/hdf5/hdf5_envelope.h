// SPDX-License-Identifier: Apache-2.0
//
// hdf5_envelope.h - the 512 bytes in front of our HDF5 files.
//
// They say what the file is and prove that it is whole, so that libhdf5 never
// parses damaged bytes (it may crash or hang on them). Layout:
// HDF5_ENVELOPE.md.
#ifndef SOFTMOE_CORE_HDF5_HDF5_ENVELOPE_H_
#define SOFTMOE_CORE_HDF5_HDF5_ENVELOPE_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/files/sha256.h"

namespace softmoe {

// The kind of a file, which is refused where another is expected.
struct Hdf5Kind {
  std::string name;  // "checkpoint", "row-result", "golden", ... (<= 31 chars)
  uint32_t version = 1;
};

constexpr int64_t kEnvelopeBytes = 512;

struct Hdf5Envelope {
  Hdf5Kind kind;
  int64_t file_bytes = 0;  // of the whole file, envelope included
  Sha256Digest content{};  // SHA-256 of everything after the envelope
};

using EnvelopeBytes = std::array<uint8_t, kEnvelopeBytes>;

EnvelopeBytes EncodeEnvelope(const Hdf5Envelope& envelope);

// Whether the file claims to be of this kind, in any version, damaged or not.
// False if it cannot be read.
bool SaysKind(const std::filesystem::path& path, const std::string& name);

// Writes the envelope for the bytes after it in the open file `descriptor`.
// Throws EnvironmentError naming `path` if reading or writing fails.
void WriteEnvelope(int descriptor, const std::filesystem::path& path,
                   const Hdf5Kind& kind);

// Checks the open file `descriptor` completely: magic, envelope version,
// envelope checksum, kind, version, length and content. Throws a DataError that
// names `path` and says what is wrong and what to do, or EnvironmentError if
// the disk fails.
Hdf5Envelope CheckEnvelope(int descriptor, const std::filesystem::path& path,
                           const Hdf5Kind& expected);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_HDF5_HDF5_ENVELOPE_H_

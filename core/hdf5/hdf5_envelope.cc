// SPDX-License-Identifier: Apache-2.0
#include "core/hdf5/hdf5_envelope.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include "core/errors.h"
#include "core/files/file_error.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little,
              "the envelope is written as the machine has it");

// The magic is like PNG's: a byte above 127, the name, and line ends that a
// transfer as text would change.
constexpr std::array<uint8_t, 8> kMagic = {0x8a, 'S',  'M',  'O',
                                           'E',  '\r', '\n', 0x1a};
constexpr uint32_t kEnvelopeVersion = 1;
constexpr size_t kKindBytes = 32;

// Byte offsets.
constexpr size_t kEnvelopeVersionAt = 8;
constexpr size_t kFileVersionAt = 12;
constexpr size_t kKindAt = 16;
constexpr size_t kFileBytesAt = 48;
constexpr size_t kContentAt = 56;
constexpr size_t kChecksumAt = 480;

template <typename T>
void Put(EnvelopeBytes& bytes, size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

template <typename T>
T Get(const EnvelopeBytes& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

Sha256Digest Checksum(const EnvelopeBytes& bytes) {
  Sha256 hash;
  hash.Update(bytes.data(), kChecksumAt);
  return hash.Finish();
}

// Reads at most `size` bytes at `offset`; fewer only at the end of the file.
size_t ReadAt(int descriptor, void* data, size_t size, int64_t offset,
              const fs::path& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t count = pread(descriptor, static_cast<char*>(data) + done,
                                size - done, offset + done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw FileError("read", path, errno);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

// SHA-256 of bytes [kEnvelopeBytes, end) of an open file.
Sha256Digest HashContent(int descriptor, const fs::path& path) {
  Sha256 hash;
  std::vector<char> buffer(size_t{256} << 10);
  for (int64_t offset = kEnvelopeBytes;;) {
    const size_t size =
        ReadAt(descriptor, buffer.data(), buffer.size(), offset, path);
    if (size == 0) return hash.Finish();
    hash.Update(buffer.data(), size);
    offset += static_cast<int64_t>(size);
  }
}

constexpr char kMakeAnew[] =
    "remove it and make it anew, or take a copy from a backup";

}  // namespace

EnvelopeBytes EncodeEnvelope(const Hdf5Envelope& envelope) {
  const std::string& kind = envelope.kind.name;
  SOFTMOE_CHECK(!kind.empty() && kind.size() < kKindBytes) << kind;
  EnvelopeBytes bytes{};
  std::copy(kMagic.begin(), kMagic.end(), bytes.begin());
  Put(bytes, kEnvelopeVersionAt, kEnvelopeVersion);
  Put(bytes, kFileVersionAt, envelope.kind.version);
  std::copy(kind.begin(), kind.end(), bytes.begin() + kKindAt);
  Put(bytes, kFileBytesAt, envelope.file_bytes);
  Put(bytes, kContentAt, envelope.content);
  Put(bytes, kChecksumAt, Checksum(bytes));
  return bytes;
}

bool SaysKind(const fs::path& path, const std::string& name) {
  std::error_code unreadable;
  if (!fs::is_regular_file(path, unreadable)) return false;  // may never end
  const std::string kind = name + '\0';
  std::string there(kind.size(), ' ');
  std::ifstream file(path, std::ios::binary);
  file.seekg(kKindAt);
  file.read(there.data(), static_cast<std::streamsize>(there.size()));
  return file && there == kind;
}

void WriteEnvelope(int descriptor, const fs::path& path, const Hdf5Kind& kind) {
  const EnvelopeBytes bytes = EncodeEnvelope(
      {kind, lseek(descriptor, 0, SEEK_END), HashContent(descriptor, path)});
  if (pwrite(descriptor, bytes.data(), bytes.size(), 0) != kEnvelopeBytes) {
    throw FileError("write", path, errno);
  }
}

Hdf5Envelope CheckEnvelope(int descriptor, const fs::path& path,
                           const Hdf5Kind& expected) {
  const std::string name = path.string();
  EnvelopeBytes bytes{};
  const size_t size = ReadAt(descriptor, bytes.data(), bytes.size(), 0, path);
  const size_t magic_size = std::min(size, kMagic.size());
  if (size == 0) {
    throw DataError(fmt::format("'{}' is empty; {}", name, kMakeAnew));
  }
  if (!std::equal(kMagic.begin(), kMagic.begin() + magic_size, bytes.begin())) {
    throw DataError(fmt::format(
        "'{}' is not a file of this project (it does not begin with our "
        "magic bytes); give the path of a '{}' file, or, if it was one, {}",
        name, expected.name, kMakeAnew));
  }
  if (size < bytes.size()) {
    throw DataError(
        fmt::format("'{}' is truncated: it has {} bytes and its envelope alone "
                    "needs {}; {}",
                    name, size, bytes.size(), kMakeAnew));
  }
  const auto envelope_version = Get<uint32_t>(bytes, kEnvelopeVersionAt);
  const bool intact = Get<Sha256Digest>(bytes, kChecksumAt) == Checksum(bytes);
  if (intact && envelope_version != kEnvelopeVersion) {
    throw DataError(fmt::format(
        "'{}' has envelope version {}, this program reads version {}; use the "
        "program version that wrote it",
        name, envelope_version, kEnvelopeVersion));
  }
  if (!intact) {
    throw DataError(
        fmt::format("'{}' is damaged: the checksum of its first {} bytes does "
                    "not match; {}",
                    name, kEnvelopeBytes, kMakeAnew));
  }

  Hdf5Envelope envelope;
  const char* kind = reinterpret_cast<const char*>(bytes.data() + kKindAt);
  envelope.kind.name.assign(kind, strnlen(kind, kKindBytes));
  envelope.kind.version = Get<uint32_t>(bytes, kFileVersionAt);
  envelope.file_bytes = Get<int64_t>(bytes, kFileBytesAt);
  envelope.content = Get<Sha256Digest>(bytes, kContentAt);
  if (envelope.kind.name != expected.name) {
    throw DataError(fmt::format(
        "'{}' is a '{}' file, but a '{}' file is needed; give another path",
        name, envelope.kind.name, expected.name));
  }
  if (envelope.kind.version != expected.version) {
    throw DataError(fmt::format(
        "'{}' is a '{}' file of version {}, this program reads version {}; use "
        "the program version that wrote it, or make it anew",
        name, expected.name, envelope.kind.version, expected.version));
  }
  if (EncodeEnvelope(envelope) != bytes) {
    throw DataError(fmt::format(
        "'{}' has an envelope with more in it than this program writes; use "
        "the program version that wrote it",
        name));
  }
  struct stat status;
  if (fstat(descriptor, &status) != 0) throw FileError("read", path, errno);
  if (status.st_size != envelope.file_bytes) {
    throw DataError(fmt::format(
        "'{}' is {}: it has {} bytes and should have {}; {}", name,
        status.st_size < envelope.file_bytes ? "truncated" : "damaged",
        status.st_size, envelope.file_bytes, kMakeAnew));
  }
  if (HashContent(descriptor, path) != envelope.content) {
    throw DataError(fmt::format(
        "'{}' is damaged: the SHA-256 of its content does not match; {}", name,
        kMakeAnew));
  }
  return envelope;
}

}  // namespace softmoe

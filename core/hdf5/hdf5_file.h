// SPDX-License-Identifier: Apache-2.0
//
// hdf5_file.h - the project's HDF5 files: results, goldens, checkpoints.
//
// Every file starts with a 512-byte user block (magic, kind, version, length,
// SHA-256 of the rest) that is checked before HDF5 sees a byte: a damaged HDF5
// file can crash libhdf5 itself (DESIGN.md, ruling 11). Files are written under
// a temporary name, synced and renamed; equal calls give equal bytes. One
// thread at a time uses a file. Format: HDF5_ENVELOPE.md.
#ifndef SOFTMOE_CORE_HDF5_HDF5_FILE_H_
#define SOFTMOE_CORE_HDF5_HDF5_FILE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/hdf5/hdf5_envelope.h"

namespace softmoe {

// Returns the path of the object `name` in a group, which may be the root.
inline std::string Hdf5Path(const std::string& group, const std::string& name) {
  return (group == "/" ? "" : group) + "/" + name;
}

// A dataset in memory: row-major values and their shape.
template <typename T>
struct Hdf5Array {
  std::vector<int64_t> shape;
  std::vector<T> values;
};

// T is one of float, double, int32_t, int64_t, uint8_t, or std::string
// (fixed-length UTF-8, rank 1). Paths are absolute inside the file ("/a/b");
// missing groups are created.
class Hdf5Writer {
 public:
  // Throws EnvironmentError if `path` cannot be created.
  Hdf5Writer(std::filesystem::path path, Hdf5Kind kind);
  ~Hdf5Writer();  // without Commit the temporary file is removed

  template <typename T>
  void WriteDataset(const std::string& path, std::span<const T> values,
                    const std::vector<int64_t>& shape);
  template <typename T>
  void WriteDataset(const std::string& path, const std::vector<T>& values) {
    WriteDataset<T>(path, std::span<const T>(values),
                    {static_cast<int64_t>(values.size())});
  }
  void CreateGroup(const std::string& path);
  // `object` is a group or dataset path; "/" is the root.
  void WriteAttribute(const std::string& object, const std::string& name,
                      const std::string& value);
  void WriteAttribute(const std::string& object, const std::string& name,
                      const char* value) {
    WriteAttribute(object, name, std::string(value));
  }
  void WriteAttribute(const std::string& object, const std::string& name,
                      int64_t value);
  void WriteAttribute(const std::string& object, const std::string& name,
                      double value);

  static constexpr bool kReads = false;
  // Creates a group unless it is the root, which is always there.
  void Group(const std::string& path) {
    if (path != "/") CreateGroup(path);
  }
  // Writes a string, int64_t, double, or a bool as 0 or 1.
  template <typename T>
  void Attribute(const std::string& object, const std::string& name,
                 const T& value) {
    using Stored = std::conditional_t<std::is_same_v<T, bool>, int64_t, T>;
    WriteAttribute(object, name, static_cast<const Stored&>(value));
  }
  // Writes a dataset of bytes, compressed if it has 64 KiB to 16 MiB.
  void Bytes(const std::string& path, const std::string& bytes) {
    WriteDataset(path, std::vector<uint8_t>(bytes.begin(), bytes.end()));
  }

  // Seals the envelope, syncs and renames to the final name. If it throws
  // EnvironmentError (disk full, ...), the old file at `path` is as
  // AtomicFile::Commit says.
  void Commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Hdf5Reader {
 public:
  // Checks the envelope and the kind. Throws EnvironmentError if the file is
  // missing, DataError if it is not ours, truncated, altered, or of another
  // kind or version; the message says which, and what to do. All functions that
  // read throw EnvironmentError if the disk fails or the file gets shorter.
  Hdf5Reader(std::filesystem::path path, const Hdf5Kind& kind);
  ~Hdf5Reader();

  bool Has(const std::string& path) const;
  // Names of the direct children of a group, sorted.
  std::vector<std::string> Children(const std::string& group) const;
  // Throws DataError naming file and path if absent or of another type.
  template <typename T>
  Hdf5Array<T> ReadDataset(const std::string& path) const;
  // Like ReadDataset<float>, but into the caller's memory; the shape must be
  // exactly `shape`.
  void ReadDatasetInto(const std::string& path, std::span<float> values,
                       const std::vector<int64_t>& shape) const;
  bool HasAttribute(const std::string& object, const std::string& name) const;
  std::vector<std::string> Attributes(const std::string& object) const;
  std::string ReadString(const std::string& object,
                         const std::string& name) const;
  int64_t ReadInt(const std::string& object, const std::string& name) const;
  double ReadDouble(const std::string& object, const std::string& name) const;

  static constexpr bool kReads = true;
  void Group(const std::string&) const {}
  template <typename T>
  void Attribute(const std::string& object, const std::string& name,
                 T& value) const {
    if constexpr (std::is_same_v<T, std::string>) {
      value = ReadString(object, name);
    } else if constexpr (std::is_same_v<T, double>) {
      value = ReadDouble(object, name);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = ReadInt(object, name) != 0;
    } else {
      value = ReadInt(object, name);
    }
  }
  void Bytes(const std::string& path, std::string& bytes) const {
    const std::vector<uint8_t> values = ReadDataset<uint8_t>(path).values;
    bytes.assign(values.begin(), values.end());
  }

  const std::filesystem::path& path() const;
  // The SHA-256 of the HDF5 part, in hex, which identifies the content.
  const std::string& content_sha256() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace softmoe

#endif  // SOFTMOE_CORE_HDF5_HDF5_FILE_H_

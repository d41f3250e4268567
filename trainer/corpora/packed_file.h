// SPDX-License-Identifier: Apache-2.0
//
// packed_file.h - the bytes of a file that may be compressed. What a file is,
// its first bytes say; its name says nothing.
#ifndef SOFTMOE_TRAINER_CORPORA_PACKED_FILE_H_
#define SOFTMOE_TRAINER_CORPORA_PACKED_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/input_file.h"
#include "core/files/sha256.h"

struct archive;

namespace softmoe::trainer {

enum class FileForm {
  kPlain,
  kGzip,
  kXz,
  kZstd,
  kTar,
  kBzip2,
  kZip,
  kParquet,
  kLfs,
  kTokens,
  kHtml
};

// What the PREFIX.json of token files says in its first line that it is.
inline constexpr std::string_view kTokenFilesFormat = "softmoe token files";

// What a file is that begins with these bytes; 512 of them, where it has as
// many, decide.
FileForm FormOf(std::string_view beginning);
FileForm FormOf(const InputFile& file);

// Whether a name that nothing reads is nearly one that is read: whether
// `is_read` takes it in small letters, or what is left of it without the
// endings of packers and of parts, one after another (x.JSON, x.json.gz.bz2,
// x.txt.001), of which .tgz and the like stand for .tar and a packer.
bool IsNearly(const std::function<bool(const std::string&)>& is_read,
              std::string_view name);

// Throws DataError with the remedy if the file is what often lies under the
// name of a file of text: the pointer that Git LFS leaves, an HTML page, or
// Parquet, bzip2 or zip, which nothing here reads.
void RefuseForeign(const InputFile& file);

// A file's bytes as they are, in order, and their hash.
class RawBytes {
 public:
  // `file` is to outlive this.
  explicit RawBytes(const InputFile& file) : file_(&file) {}

  // The next bytes, valid until the next call; none at the end.
  std::string_view Next();

  const InputFile& file() const { return *file_; }
  int64_t position() const { return position_; }
  // SHA-256 of the whole file; Next has come to its end then.
  std::string Hash();

 private:
  const InputFile* file_;
  int64_t position_ = 0;
  std::vector<char> block_ = std::vector<char>(1 << 17);
  Sha256 hash_;
};

// One pass over the bytes of a plain file, or of what a file of gzip, xz or
// zstd holds (all members or frames, one after another).
class PackedFile {
 public:
  // `file` is to outlive this.
  explicit PackedFile(const InputFile& file);
  ~PackedFile();

  // Writes the next `size` bytes to `out`, fewer only at the end, and returns
  // how many. Throws DataError with file, place and remedy if the file is
  // damaged or truncated: gzip and xz have checksums of all they hold, zstd
  // where its writer wanted them; or if zstd needs a window of over 128 MB.
  int64_t Read(char* out, int64_t size);

  // Bytes of the file that were used so far.
  int64_t position() const;
  // SHA-256 of the file, when Read has come to the end.
  std::string sha256();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// For libarchive, through which exceptions do not pass: what a read callback
// returns that gives the bytes of next(), which may throw Error.
ssize_t GiveToArchive(archive* reader,
                      const std::function<std::string_view()>& next,
                      const void** bytes);
// Why its last call failed.
std::string ArchiveMessage(archive* reader);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_PACKED_FILE_H_

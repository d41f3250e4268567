// SPDX-License-Identifier: Apache-2.0
//
// packed_file.h - the bytes of a file that may be compressed. Its first bytes
// say what it is; its name does not.
#ifndef SOFTMOE_TRAINER_CORPORA_PACKED_FILE_H_
#define SOFTMOE_TRAINER_CORPORA_PACKED_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <exception>
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

// The format that the PREFIX.json of token files names in its first line.
inline constexpr std::string_view kTokenFilesFormat = "softmoe token files";

// Returns the form of a file that begins with these bytes. The first 512
// decide, or all of them if the file is shorter.
FileForm FormOf(std::string_view beginning);
FileForm FormOf(const InputFile& file);

// Whether a name that nothing reads is nearly one that is read: whether
// `is_read` takes it in small letters, or takes what is left of it without the
// endings of packers and of parts, one after another (x.JSON, x.json.gz.bz2,
// x.txt.001). Endings like .tgz stand for .tar and a packer.
bool IsNearly(const std::function<bool(const std::string&)>& is_read,
              std::string_view name);

// Throws DataError with the remedy if the file is what often lies under the
// name of a text file: the pointer that Git LFS leaves, an HTML page, or
// Parquet, bzip2 or zip, which nothing here reads.
void RefuseForeign(const InputFile& file);

// A file's bytes as they are, in order, and their hash.
class RawBytes {
 public:
  // `file` must outlive this object.
  explicit RawBytes(const InputFile& file) : file_(&file) {}

  // The next bytes, valid until the next call; none at the end.
  std::string_view Next();

  const InputFile& file() const { return *file_; }
  int64_t position() const { return position_; }
  // Reads the rest of the file and returns the SHA-256 of the whole.
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
  // `file` must outlive this object.
  explicit PackedFile(const InputFile& file);
  ~PackedFile();

  // Writes the next `size` bytes to `out`, fewer only at the end, and returns
  // how many. Throws DataError with file, place and remedy if the file is
  // damaged or truncated (gzip and xz have checksums of all they hold, zstd if
  // its writer asked for them), or if zstd needs a window of over 128 MB.
  int64_t Read(char* out, int64_t size);

  // Bytes of the file that were used so far.
  int64_t position() const;
  // SHA-256 of the file, once Read has come to the end.
  std::string sha256();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// For read callbacks of libarchive, through which exceptions must not pass:
// returns their result for the bytes of next(), which may throw Error. An
// EnvironmentError goes to `*unread`, for the caller of libarchive to throw: a
// file is not damaged because its disk fails.
ssize_t GiveToArchive(archive* reader,
                      const std::function<std::string_view()>& next,
                      const void** bytes, std::exception_ptr* unread);
// Returns why the last call of `reader` failed.
std::string ArchiveMessage(archive* reader);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_PACKED_FILE_H_

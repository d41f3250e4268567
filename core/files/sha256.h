// SPDX-License-Identifier: Apache-2.0
//
// sha256.h - SHA-256 of bytes and files (OpenSSL).
#ifndef SOFTMOE_CORE_FILES_SHA256_H_
#define SOFTMOE_CORE_FILES_SHA256_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace softmoe {

using Sha256Digest = std::array<uint8_t, 32>;

// Hashes bytes as they come.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Update(const void* data, size_t size);
  void Update(std::string_view text) { Update(text.data(), text.size()); }
  // Returns the digest of everything so far, and resets the object.
  Sha256Digest Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// 64 lower-case hex digits.
std::string Sha256Hex(const Sha256Digest& digest);
std::string Sha256Hex(std::string_view bytes);
// Returns the digest of a file's content, in hex. Throws EnvironmentError if it
// cannot be read.
std::string Sha256OfFile(const std::filesystem::path& path);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_SHA256_H_

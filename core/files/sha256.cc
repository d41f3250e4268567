// SPDX-License-Identifier: Apache-2.0
#include "core/files/sha256.h"

#include <openssl/evp.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "core/errors.h"
#include "core/files/file_error.h"

namespace softmoe {

struct Sha256::Impl {
  Impl() : context(EVP_MD_CTX_new()) {
    SOFTMOE_CHECK(context != nullptr) << "OpenSSL";
    Start();
  }
  ~Impl() { EVP_MD_CTX_free(context); }
  void Start() {
    SOFTMOE_CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1)
        << "OpenSSL";
  }
  EVP_MD_CTX* context;
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {}
Sha256::~Sha256() = default;

void Sha256::Update(const void* data, size_t size) {
  SOFTMOE_CHECK(EVP_DigestUpdate(impl_->context, data, size) == 1) << "OpenSSL";
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  unsigned int size = 0;
  SOFTMOE_CHECK(EVP_DigestFinal_ex(impl_->context, digest.data(), &size) == 1 &&
                size == digest.size())
      << "OpenSSL";
  impl_->Start();
  return digest;
}

std::string Sha256Hex(const Sha256Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return Sha256Hex(hash.Finish());
}

std::string Sha256OfFile(const std::filesystem::path& path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw FileError("read", path, errno);
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  for (;;) {
    errno = 0;  // fopen succeeds on a folder; only reading fails
    const size_t size = std::fread(buffer.data(), 1, buffer.size(), file.get());
    if (std::ferror(file.get())) throw FileError("read", path, errno);
    if (size == 0) return Sha256Hex(hash.Finish());
    hash.Update(buffer.data(), size);
  }
}

}  // namespace softmoe

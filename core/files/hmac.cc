// SPDX-License-Identifier: Apache-2.0
#include "core/files/hmac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "core/errors.h"

namespace softmoe {

Sha256Digest HmacSha256(std::string_view key, std::string_view message) {
  Sha256Digest digest;
  unsigned int size = 0;
  SOFTMOE_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                     reinterpret_cast<const unsigned char*>(message.data()),
                     message.size(), digest.data(), &size) != nullptr &&
                size == digest.size())
      << "OpenSSL";
  return digest;
}

bool SameDigest(const Sha256Digest& a, const Sha256Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                 static_cast<int>(size)) != 1) {
    throw EnvironmentError(
        "the system has no random numbers to give; look at /dev/urandom");
  }
  return bytes;
}

}  // namespace softmoe

// SPDX-License-Identifier: Apache-2.0
//
// hmac.h - what a shared secret proves (OpenSSL).
#ifndef SOFTMOE_CORE_FILES_HMAC_H_
#define SOFTMOE_CORE_FILES_HMAC_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "core/files/sha256.h"

namespace softmoe {

// HMAC-SHA-256 (RFC 2104): who knows `key`, and nobody else, can compute it.
Sha256Digest HmacSha256(std::string_view key, std::string_view message);

// Compares in a time that does not depend on where the two differ.
bool SameDigest(const Sha256Digest& a, const Sha256Digest& b);

// Bytes that nobody can foretell. Throws EnvironmentError.
std::string RandomBytes(size_t size);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_FILES_HMAC_H_

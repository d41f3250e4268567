// SPDX-License-Identifier: Apache-2.0
//
// token_format.h - the numbers of Megatron-LM's token files, for reader and
// writer (TOKEN_FILES.md has the bytes and where this was read).
#ifndef SOFTMOE_TRAINER_TOKENS_TOKEN_FORMAT_H_
#define SOFTMOE_TRAINER_TOKENS_TOKEN_FORMAT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace softmoe::trainer {

inline constexpr std::string_view kTokenIndexMagic("MMIDIDX\0\0", 9);
inline constexpr uint64_t kTokenIndexVersion = 1;
inline constexpr uint8_t kTokenInt32 = 4;  // element type codes
inline constexpr uint8_t kTokenUint16 = 8;
inline constexpr int64_t kTokenIndexHeaderBytes = 9 + 8 + 1 + 8 + 8;

// Megatron's choice of element type for a vocabulary.
inline uint8_t TokenTypeFor(int64_t vocab_size) {
  return vocab_size < 65500 ? kTokenUint16 : kTokenInt32;
}

inline int64_t TokenBytes(uint8_t type) { return type == kTokenUint16 ? 2 : 4; }

// "PREFIX" + ".bin" and so on; PREFIX may contain dots.
inline std::filesystem::path WithSuffix(const std::filesystem::path& prefix,
                                        const std::string& suffix) {
  return prefix.string() + suffix;
}

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_TOKEN_FORMAT_H_

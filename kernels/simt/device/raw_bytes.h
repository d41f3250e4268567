// SPDX-License-Identifier: Apache-2.0
//
// raw_bytes.h - memcpy and the like for the simulator's own use: the sanitizers
// intercept the real ones and would take them for the program's accesses.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_RAW_BYTES_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_RAW_BYTES_H_

#include <cstddef>
#include <cstdint>

namespace softmoe::simt {

// The empty assembly keeps the compiler from turning a loop into memcpy.

inline void CopyRaw(void* to, const void* from, size_t size) {
  char* out = static_cast<char*>(to);
  const char* in = static_cast<const char*>(from);
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
    uint64_t word;
    __builtin_memcpy(&word, in + i, sizeof(word));
    __builtin_memcpy(out + i, &word, sizeof(word));
    asm volatile("" ::: "memory");
  }
  for (; i < size; ++i) {
    out[i] = in[i];
    asm volatile("" ::: "memory");
  }
}

// Repeats the two bytes of `pattern`, the low one first.
inline void FillRaw(void* at, uint16_t pattern, size_t size) {
  char* out = static_cast<char*>(at);
  const uint64_t word = pattern * uint64_t{0x0001000100010001};
  size_t i = 0;
  for (; i + sizeof(word) <= size; i += sizeof(word)) {
    __builtin_memcpy(out + i, &word, sizeof(word));
    asm volatile("" ::: "memory");
  }
  for (; i < size; ++i) {
    out[i] = static_cast<char>(pattern >> (i % 2 * 8));
    asm volatile("" ::: "memory");
  }
}

// The first byte that is not what FillRaw wrote; null if there is none.
inline const char* FindChanged(const void* at, uint16_t pattern, size_t size) {
  const char* in = static_cast<const char*>(at);
  const uint64_t expected = pattern * uint64_t{0x0001000100010001};
  size_t i = 0;
  for (uint64_t words[4]; i + sizeof(words) <= size; i += sizeof(words)) {
    __builtin_memcpy(words, in + i, sizeof(words));
    const uint64_t changed = (words[0] ^ expected) | (words[1] ^ expected) |
                             (words[2] ^ expected) | (words[3] ^ expected);
    if (changed != 0) break;
  }
  for (; i < size; ++i) {
    if (in[i] != static_cast<char>(pattern >> (i % 2 * 8))) return in + i;
  }
  return nullptr;
}

// FNV-1a over words.
inline uint64_t HashRaw(const void* at, size_t size) {
  const char* in = static_cast<const char*>(at);
  uint64_t hash = 14695981039346656037u;
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
    uint64_t word;
    __builtin_memcpy(&word, in + i, sizeof(word));
    hash = (hash ^ word) * 1099511628211u;
    hash ^= hash >> 29;
  }
  for (; i < size; ++i) {
    hash = (hash ^ static_cast<unsigned char>(in[i])) * 1099511628211u;
  }
  return hash;
}

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_RAW_BYTES_H_

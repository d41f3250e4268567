// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/token_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"

namespace softmoe::trainer {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kTokenIndexMagic("MMIDIDX\0\0", 9);
constexpr uint64_t kTokenIndexVersion = 1;
constexpr int64_t kTokenIndexHeaderBytes = 9 + 8 + 1 + 8 + 8;

// How many numbers are read or written at a time.
constexpr int64_t kBlock = 1 << 12;

// The fields of an index are not aligned.
template <typename T>
T Load(const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& prefix, int64_t vocab_size)
    : prefix_(prefix),
      vocab_size_(vocab_size),
      index_(WithSuffix(prefix, ".idx")),
      tokens_(WithSuffix(prefix, ".bin")) {
  SOFTMOE_CHECK(vocab_size >= 1) << "vocab_size=" << vocab_size;
  CheckHeader();
  CheckSequences();
  CheckDocuments();
}

void TokenFile::Refuse(const std::string& suffix,
                       const std::string& what) const {
  throw DataError(fmt::format("{}: {}; {}",
                              WithSuffix(prefix_, suffix).string(), what,
                              kMakeTokensAgain));
}

void TokenFile::CheckHeader() {
  if (index_.size() < kTokenIndexHeaderBytes) {
    Refuse(".idx", fmt::format("truncated: {} bytes, the header alone has {}",
                               index_.size(), kTokenIndexHeaderBytes));
  }
  std::array<unsigned char, kTokenIndexHeaderBytes> header;
  index_.Read(0, kTokenIndexHeaderBytes, header.data());
  const unsigned char* at = header.data();
  if (std::memcmp(at, kTokenIndexMagic.data(), kTokenIndexMagic.size()) != 0) {
    Refuse(".idx", "byte 0: no Megatron token index (magic MMIDIDX missing)");
  }
  const auto version = Load<uint64_t>(at + 9);
  if (version != kTokenIndexVersion) {
    Refuse(".idx", fmt::format("byte 9: version {}, only {} is known", version,
                               kTokenIndexVersion));
  }
  const auto type = Load<uint8_t>(at + kTokenTypeAt);
  if (type != kTokenUint16 && type != kTokenInt32) {
    Refuse(".idx", fmt::format("byte {}: element type {}, only {} (uint16) and "
                               "{} (int32) hold token ids",
                               kTokenTypeAt, type, kTokenUint16, kTokenInt32));
  }
  token_bytes_ = TokenBytes(type);

  const auto sequences = Load<uint64_t>(at + 18);
  const auto boundaries = Load<uint64_t>(at + 26);  // documents + 1
  const auto body =
      static_cast<uint64_t>(index_.size() - kTokenIndexHeaderBytes);
  // Compared without overflow: neither count can exceed the file's size.
  if (sequences > body / 12 || boundaries > body / 8 ||
      sequences * 12 + boundaries * 8 != body) {
    Refuse(".idx",
           fmt::format("byte 18: {} sequences and {} document boundaries do "
                       "not fit a file of {} bytes: it is truncated, or has "
                       "the sequence modes of multimodal data",
                       sequences, boundaries, index_.size()));
  }
  if (boundaries == 0) Refuse(".idx", "byte 26: no document boundary");
  num_sequences_ = static_cast<int64_t>(sequences);
  num_documents_ = static_cast<int64_t>(boundaries) - 1;
}

int64_t TokenFile::LengthAt(int64_t sequence) const {
  return kTokenIndexHeaderBytes + 4 * sequence;
}

int64_t TokenFile::PointerAt(int64_t sequence) const {
  return LengthAt(num_sequences_) + 8 * sequence;
}

int64_t TokenFile::BoundaryAt(int64_t document) const {
  return PointerAt(num_sequences_) + 8 * document;
}

void TokenFile::CheckSequences() {
  std::vector<int32_t> lengths(kBlock);
  std::vector<int64_t> pointers(kBlock);
  // In bytes. No overflow: it exceeds the file's size by less than 2^33.
  int64_t end = 0;
  for (int64_t s = 0; s < num_sequences_; ++s) {
    const int64_t i = s % kBlock;
    if (i == 0) {
      const int64_t count = std::min(kBlock, num_sequences_ - s);
      index_.Read(LengthAt(s), 4 * count, lengths.data());
      index_.Read(PointerAt(s), 8 * count, pointers.data());
    }
    const int32_t length = lengths[i];
    const int64_t pointer = pointers[i];
    if (length < 0) {
      Refuse(".idx", fmt::format("sequence {}: length {}", s, length));
    }
    if (pointer != end) {
      Refuse(".idx", fmt::format("sequence {}: begins at byte {} of the .bin "
                                 "file, its predecessor ends at {}",
                                 s, pointer, end));
    }
    end += length * token_bytes_;
    if (end > tokens_.size()) {
      Refuse(".bin", fmt::format("truncated: {} bytes, but sequence {} ends at "
                                 "byte {}",
                                 tokens_.size(), s, end));
    }
  }
  if (end != tokens_.size()) {
    Refuse(".bin", fmt::format("{} bytes, but the sequences end at byte {}",
                               tokens_.size(), end));
  }
  num_tokens_ = end / token_bytes_;
}

void TokenFile::CheckDocuments() {
  std::vector<int64_t> boundaries(kBlock);
  int64_t previous = 0;
  for (int64_t d = 0; d <= num_documents_; ++d) {
    const int64_t i = d % kBlock;
    if (i == 0) {
      const int64_t count = std::min(kBlock, num_documents_ + 1 - d);
      index_.Read(BoundaryAt(d), 8 * count, boundaries.data());
    }
    const int64_t boundary = boundaries[i];
    const bool first_is_wrong = d == 0 && boundary != 0;
    const bool last_is_wrong =
        d == num_documents_ && boundary != num_sequences_;
    if (first_is_wrong || last_is_wrong || boundary < previous ||
        boundary > num_sequences_) {
      Refuse(".idx", fmt::format("document boundary {}: sequence {} (the "
                                 "previous one is {}, there are {} sequences)",
                                 d, boundary, previous, num_sequences_));
    }
    previous = boundary;
  }
}

int64_t TokenFile::DocumentBegin(int64_t d) const {
  SOFTMOE_CHECK(d >= 0 && d <= num_documents_) << "d=" << d;
  int64_t sequence, pointer;
  index_.Read(BoundaryAt(d), sizeof(sequence), &sequence);
  if (sequence == num_sequences_) return num_tokens_;
  index_.Read(PointerAt(sequence), sizeof(pointer), &pointer);
  return pointer / token_bytes_;
}

void TokenFile::Read(int64_t begin, int64_t count, int32_t* out) const {
  SOFTMOE_CHECK(begin >= 0 && count >= 0 && count <= num_tokens_ - begin)
      << "begin=" << begin << " count=" << count;
  if (token_bytes_ == 4) {
    tokens_.Read(4 * begin, 4 * count, out);
  } else {
    std::array<uint16_t, kBlock> narrow;
    for (int64_t done = 0; done < count;) {
      const int64_t size = std::min(kBlock, count - done);
      tokens_.Read(2 * (begin + done), 2 * size, narrow.data());
      for (int64_t i = 0; i < size; ++i) out[done + i] = narrow[i];
      done += size;
    }
  }
  int32_t lowest = 0;
  int32_t highest = 0;
  for (int64_t i = 0; i < count; ++i) {
    lowest = std::min(lowest, out[i]);
    highest = std::max(highest, out[i]);
  }
  if (lowest >= 0 && highest < vocab_size_) return;
  for (int64_t i = 0; i < count; ++i) {
    if (out[i] < 0 || out[i] >= vocab_size_) {
      Refuse(".bin", fmt::format("token {}: id {} outside the vocabulary of {}",
                                 begin + i, out[i], vocab_size_));
    }
  }
}

void TokenFile::CheckIds() const {
  std::vector<int32_t> block(kBlock);
  for (int64_t begin = 0; begin < num_tokens_; begin += kBlock) {
    Read(begin, std::min(kBlock, num_tokens_ - begin), block.data());
  }
}

std::string WriteTokenIndex(const std::filesystem::path& path,
                            int64_t vocab_size,
                            std::span<const int32_t> lengths) {
  AtomicFile file(path);
  Sha256 hash;
  const auto write = [&](const void* bytes, size_t size) {
    file.Write(bytes, size);
    hash.Update(bytes, size);
  };
  const uint8_t type = TokenTypeFor(vocab_size);
  const auto documents = std::ssize(lengths);
  const int64_t counts[] = {documents, documents + 1};
  write(kTokenIndexMagic.data(), kTokenIndexMagic.size());
  write(&kTokenIndexVersion, sizeof(kTokenIndexVersion));
  write(&type, sizeof(type));
  write(counts, sizeof(counts));
  write(lengths.data(), lengths.size_bytes());
  // A call for each number would take longer than everything else for C4.
  std::vector<int64_t> block;
  const auto write_block = [&] {
    write(block.data(), block.size() * sizeof(int64_t));
    block.clear();
  };
  const auto add = [&](int64_t number) {
    block.push_back(number);
    if (std::ssize(block) == kBlock) write_block();
  };
  int64_t pointer = 0;
  for (const int32_t length : lengths) {
    add(pointer);
    pointer += length * TokenBytes(type);
  }
  for (int64_t d = 0; d <= documents; ++d) add(d);
  write_block();
  file.Commit();
  return Sha256Hex(hash.Finish());
}

}  // namespace softmoe::trainer

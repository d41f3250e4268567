// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as a file that may be packed, in blocks of two sizes.
#include "core/fuzzing/fuzz_support.h"
#include "trainer/corpora/packed_file.h"

namespace softmoe::fuzz {
namespace {

constexpr int64_t kMost = 1 << 22;  // bombs are as long as they like

// What the file holds, up to kMost bytes or the place at which it is refused.
std::string Unpacked(const InputFile& file, int64_t block) {
  std::string text;
  Accepts([&] {
    trainer::RefuseForeign(file);
    trainer::PackedFile packed(file);
    std::string part(static_cast<size_t>(block), '\0');
    int64_t count = block;
    while (count == block && static_cast<int64_t>(text.size()) < kMost) {
      count = packed.Read(part.data(), block);
      Require(packed.position() <= file.size(), "more bytes than there are");
      text.append(part, 0, static_cast<size_t>(count));
    }
  });
  return text;
}

}  // namespace

void FuzzOne(std::string_view input) {
  const auto path = ScratchFolder() / "packed";
  WriteScratch(path, input);
  const InputFile file(path);
  const std::string text = Unpacked(file, 1 << 12);
  const std::string again = Unpacked(file, 1 << 16);
  // Blocks before a damaged place may be given or not.
  const size_t common = std::min(text.size(), again.size());
  Require(text.substr(0, common) == again.substr(0, common),
          "depends on the size of blocks");
}

std::vector<std::string> Seeds() {
  using namespace std::string_literals;  // with the zeros that they hold
  return {"plain",
          "\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07\0"
          "\x86\xa6\x10\x36\x05\0\0\0"s,
          "\xfd"
          "7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0!\x01\x16\0\0\0t/\xe5"
          "\xa3\x01\0\x04hello\0\0\0\0"s,
          "\x28\xb5\x2f\xfd\x04\x58\x29\0\0hello\x8c\x93\x5a\x49"s,
          "PAR1",
          "<html>",
          "version https://git-lfs"};
}

}  // namespace softmoe::fuzz

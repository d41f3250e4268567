// SPDX-License-Identifier: Apache-2.0
//
// Damaged files of ours, none of which may pass the envelope's check, so that
// libhdf5 never sees a damaged byte. The input is a whole file, or changes to a
// good one, or the fields of an envelope whose checksum holds.
#include <fcntl.h>
#include <unistd.h>

#include "core/files/atomic_file.h"
#include "core/fuzzing/fuzz_support.h"
#include "core/hdf5/hdf5_file.h"

namespace softmoe::fuzz {
namespace {

namespace fs = std::filesystem;

const Hdf5Kind kKind = {"checkpoint", 2};

const std::string& GoodFile() {
  static const std::string bytes = [] {
    const fs::path path = ScratchFolder() / "good.h5";
    Hdf5Writer writer(path, kKind);
    writer.WriteAttribute("/", "config", "steps = 3");
    writer.WriteDataset("/state/weights", std::vector<double>{1, 2, 3});
    writer.Commit();
    return ReadWholeFile(path);
  }();
  return bytes;
}

std::string Damaged(Choices& choices) {
  std::string bytes = GoodFile();
  for (int i = 0; i < 16 && !choices.done(); ++i) {
    const size_t at = choices.Below(bytes.size() + 1);
    switch (choices.Below(4)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(choices.Byte());
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.insert(at, choices.Text(600));
        break;
      default:
        bytes.erase(at, choices.Byte());
    }
  }
  return bytes;
}

// Returns a file whose envelope has a valid checksum over any fields: offsets,
// each with the text to put there.
std::string Sealed(Choices& choices) {
  std::string bytes = GoodFile();
  for (int i = 0; i < 8 && !choices.done(); ++i) {
    const size_t at = choices.Below(480);
    const std::string text = choices.Text(40);
    bytes.replace(at, std::min(text.size(), 480 - at), text, 0, 480 - at);
  }
  Sha256 hash;
  hash.Update(bytes.data(), 480);
  const Sha256Digest checksum = hash.Finish();
  std::copy(checksum.begin(), checksum.end(), bytes.begin() + 480);
  return bytes;
}

}  // namespace

void FuzzOne(std::string_view input) {
  Choices choices(input);
  const size_t mode = choices.Below(3);
  const std::string bytes = mode == 0   ? std::string(choices.Rest())
                            : mode == 1 ? Damaged(choices)
                                        : Sealed(choices);
  const fs::path path = ScratchFolder() / "fuzz.h5";
  WriteScratch(path, bytes);
  if (Accepts([&] { Hdf5Reader reader(path, kKind); })) {
    Require(bytes == GoodFile(), "a damaged file was opened");
  }
}

std::vector<std::string> Seeds() {
  const auto mode = [](char which, const std::string& rest) {
    return which + rest;
  };
  return {
      mode(0, GoodFile()),
      mode(0, GoodFile().substr(0, 512)),
      mode(0, GoodFile().substr(0, 8)),
      mode(0, "\x89HDF\r\n\x1a\n"),
      mode(1, std::string("\x02\x00\x00\x01", 4)),
      mode(1, std::string("\x01\x00\x01", 3)),
      mode(1, std::string("\x00\x10\x02\x05golden", 10)),
      mode(2, std::string("\x00\x08\x01\x02", 4)),
      mode(2, std::string("\x00\x10\x06golden", 9)),
      mode(2, std::string("\x00\x30\x08\xff\xff\xff\xff\xff\xff\xff\x7f", 11)),
      mode(2, std::string("\x01\x00\x01x", 4))};
}

}  // namespace softmoe::fuzz

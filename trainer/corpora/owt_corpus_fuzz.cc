// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as an archive of OpenWebText, and archives made of the input:
// tar in tar, compressed or not, with a few bytes changed.
#include <archive.h>
#include <archive_entry.h>

#include "core/fuzzing/fuzz_support.h"
#include "trainer/corpora/owt_corpus.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::fuzz {
namespace {

la_ssize_t Append(archive*, void* to, const void* bytes, size_t size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), size);
  return static_cast<la_ssize_t>(size);
}

// A tar, perhaps compressed, of up to four members; archives among them.
std::string MakeArchive(Choices& choices, int depth) {
  std::string bytes;
  archive* writer = archive_write_new();
  archive_write_set_format_pax_restricted(writer);
  if (choices.OneIn(4)) {
    archive_write_add_filter_xz(writer);
    archive_write_set_filter_option(writer, "xz", "compression-level", "0");
  }
  archive_write_set_bytes_in_last_block(writer, 1);
  archive_write_open(writer, &bytes, nullptr, Append, nullptr);
  for (size_t i = 1 + choices.Below(3); i > 0; --i) {
    constexpr const char* kNames[] = {"a.txt", "b.tar", "c.xz", "d",
                                      "../e.txt"};
    const std::string name = choices.Pick(kNames);
    const bool nested = depth < 6 && (name == "b.tar" || name == "c.xz");
    const std::string content =
        nested ? MakeArchive(choices, depth + 1) : choices.Text(300);
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, choices.OneIn(8) ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  return bytes;
}

}  // namespace

void FuzzOne(std::string_view input) {
  Choices choices(input);
  std::string bytes;
  if (choices.OneIn(2)) {
    bytes = MakeArchive(choices, 0);
    while (!choices.done() && !bytes.empty()) {
      const size_t at = choices.Below(std::min<size_t>(bytes.size(), 1 << 16));
      bytes[at] = static_cast<char>(choices.Byte());
    }
  } else {
    bytes = choices.Rest();
  }
  const auto path = ScratchFolder() / "owt.tar.xz";
  WriteScratch(path, bytes);
  Accepts([&] {
    const auto next =
        trainer::OwtShards({trainer::Digest(trainer::FilesOf::kOwt, path)}, {});
    for (trainer::Shard shard; next(&shard);) {
      const auto source = shard.open();
      std::string document;
      while (source->Next(&document)) {
        Require(!document.empty(), "an empty document");
        Require(trainer::FindNonText(document) == std::string::npos,
                "a document that is not text");
      }
      bool more = false;
      Require(Accepts([&] { more = source->Next(&document); }) && !more,
              "a document or a refusal after the last document");
    }
  });
}

std::vector<std::string> Seeds() {
  const auto made = [](const std::string& decisions) {
    return std::string(1, '\x01') + decisions;
  };
  const auto raw = [](const std::string& decisions) {
    Choices choices(decisions);
    return std::string(1, '\0') + MakeArchive(choices, 0);
  };
  const std::string one("\0\0\0\0\x05Hello\0", 11);
  const std::string nested("\x03\x01\x01\0\0\0\0\x05Hello\0\0\0\0\x02Hi\0", 20);
  return {made(one),
          made(nested),
          made("\x03" + one.substr(1)),
          raw(one),
          raw(nested),
          raw("\x03" + one.substr(1)),
          std::string(1, '\0') +
              "\xfd"
              "7zXZ"};
}

}  // namespace softmoe::fuzz

// SPDX-License-Identifier: Apache-2.0
#include "trainer/testing/corpus_test_util.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "core/files/atomic_file.h"
#include "core/philox.h"
#include "core/process/process.h"

namespace softmoe::trainer {
namespace {

constexpr std::array<std::string_view, 12> kAdjectives = {
    "old",   "quiet", "green", "patient", "narrow", "bright",
    "heavy", "early", "salty", "curious", "broken", "na\u00EFve"};
constexpr std::array<std::string_view, 16> kNouns = {
    "harbour", "river", "teacher", "lamp",     "garden", "window",
    "ladder",  "horse", "letter",  "island",   "baker",  "clock",
    "bridge",  "storm", "violin",  "caf\u00E9"};
constexpr std::array<std::string_view, 12> kVerbs = {
    "follows", "paints", "remembers", "crosses", "mends",    "measures",
    "leaves",  "hears",  "answers",   "carries", "explains", "forgets"};
constexpr std::array<std::string_view, 8> kEnds = {
    "before the rain comes", "at half past seven", "without a word",
    "as it did in 1848",     "every other day",    "for no reason at all",
    "near the old mill",     "while 37 birds sing"};

class Writer {
 public:
  Writer(uint64_t seed, int64_t document)
      : key_{seed, RandomStream::kTestData, static_cast<uint32_t>(document)} {}

  // Small numbers are likelier, as some words are more frequent.
  int64_t Below(size_t count) {
    const double u = UniformFromWord(PhiloxWords(key_, draws_++)[0]);
    return static_cast<int64_t>(u * u * static_cast<double>(count));
  }
  template <size_t n>
  std::string Pick(const std::array<std::string_view, n>& words) {
    return std::string(words[static_cast<size_t>(Below(n))]);
  }
  std::string Thing() {
    return "the " + (Below(3) == 1 ? Pick(kAdjectives) + " " : "") +
           Pick(kNouns);
  }
  std::string Sentence() {
    std::string text = Thing() + " " + Pick(kVerbs) + " " + Thing();
    if (Below(2) == 0) text += " " + Pick(kEnds);
    text[0] = 'T';
    return text + ".";
  }

 private:
  RandomKey key_;
  uint64_t draws_ = 0;
};

namespace fs = std::filesystem;

std::string DictNumber(size_t value) {
  constexpr const char* kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string digits;
  do {
    digits.insert(digits.begin(), kAlphabet[value % 64]);
    value /= 64;
  } while (value > 0);
  return digits;
}

std::string SearchPath() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? "" : path;
}

}  // namespace

void WriteGzip(const fs::path& path, const std::string& content) {
  gzFile file = ::gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(
      ::gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
      static_cast<int>(content.size()));
  ASSERT_EQ(::gzclose(file), Z_OK);
}

void WritePacked(const fs::path& path, const std::string& content,
                 const std::string& form) {
  if (form == "gzip") return WriteGzip(path, content);
  if (form == "plain") return WriteFileAtomically(path, content);
  archive* out = ::archive_write_new();
  ASSERT_EQ(::archive_write_add_filter_by_name(out, form.c_str()), ARCHIVE_OK);
  ::archive_write_set_format_raw(out);
  ASSERT_EQ(::archive_write_open_filename(out, path.c_str()), ARCHIVE_OK);
  archive_entry* entry = ::archive_entry_new();
  ::archive_entry_set_filetype(entry, AE_IFREG);
  ASSERT_EQ(::archive_write_header(out, entry), ARCHIVE_OK);
  ASSERT_EQ(::archive_write_data(out, content.data(), content.size()),
            static_cast<la_ssize_t>(content.size()));
  ::archive_entry_free(entry);
  ASSERT_EQ(::archive_write_free(out), ARCHIVE_OK);
}

std::string Tar(const ArchiveMembers& members, bool xz) {
  archive* out = ::archive_write_new();
  if (xz) ::archive_write_add_filter_xz(out);
  ::archive_write_set_format_pax_restricted(out);
  std::string bytes(1 << 20, '\0');
  size_t used = 0;
  EXPECT_EQ(::archive_write_open_memory(out, bytes.data(), bytes.size(), &used),
            ARCHIVE_OK);
  for (const auto& [name, content] : members) {
    archive_entry* entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, name.c_str());
    ::archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    ::archive_entry_set_filetype(entry, AE_IFREG);
    ::archive_entry_set_perm(entry, 0644);
    EXPECT_EQ(::archive_write_header(out, entry), ARCHIVE_OK);
    ::archive_write_data(out, content.data(), content.size());
    ::archive_entry_free(entry);
  }
  EXPECT_EQ(::archive_write_close(out), ARCHIVE_OK);
  ::archive_write_free(out);
  bytes.resize(used);
  return bytes;
}

std::vector<std::string> TestDocuments(int64_t count, uint64_t seed) {
  std::vector<std::string> documents;
  for (int64_t d = 0; d < count; ++d) {
    Writer writer(seed, d);
    std::string text = writer.Sentence();
    for (int64_t more = writer.Below(6); more > 0; --more) {
      text += (more == 3 ? "\n" : " ") + writer.Sentence();
    }
    documents.push_back(std::move(text));
  }
  return documents;
}

std::string TestText(const std::vector<std::string>& documents) {
  std::string text;
  for (const std::string& document : documents) text += document + "\n\n";
  return text;
}

fs::path BuildDeb(const fs::path& folder, const std::string& name,
                  const std::string& version, const PackageFiles& files) {
  const fs::path tree = folder / (name + ".tree");
  fs::create_directories(tree / "DEBIAN");
  WriteFileAtomically(
      tree / "DEBIAN" / "control",
      fmt::format("Package: {}\nVersion: {}\nArchitecture: all\n"
                  "Maintainer: Nobody <nobody@example.org>\n"
                  "Description: made by a test\n",
                  name, version));
  for (const auto& [path, content] : files) {
    fs::create_directories((tree / path).parent_path());
    if (path.ends_with(".dz")) {
      WriteGzip(tree / path, content);
    } else {
      WriteFileAtomically(tree / path, content);
    }
  }
  const fs::path deb = folder / fmt::format("{}_{}_all.deb", name, version);
  const ProgramResult result =
      RunProgram({"dpkg-deb", "--root-owner-group", "--build", tree.string(),
                  deb.string()},
                 "/");
  EXPECT_EQ(result.exit_status, 0) << result.output;
  fs::remove_all(tree);
  return deb;
}

PackageFiles DictFiles(const std::string& name,
                       const std::vector<std::string>& entries) {
  std::string text = "00-database-short\n     A test\n";
  std::string index = "00-database-short\tA\t" + DictNumber(text.size()) + "\n";
  for (size_t i = 0; i < entries.size(); ++i) {
    index += fmt::format("word{}\t{}\t{}\n", i, DictNumber(text.size()),
                         DictNumber(entries[i].size()));
    text += entries[i];
  }
  return {{"usr/share/dictd/" + name + ".dict.dz", text},
          {"usr/share/dictd/" + name + ".index", index}};
}

FakeAptGet::FakeAptGet(const fs::path& folder, const std::string& script)
    : old_path_(SearchPath()) {
  fs::create_directories(folder);
  WriteFileAtomically(folder / "apt-get", "#!/bin/sh\n" + script + "\n");
  fs::permissions(folder / "apt-get", fs::perms::owner_all);
  ::setenv("PATH", (folder.string() + ":" + old_path_).c_str(), 1);
}

FakeAptGet::~FakeAptGet() { ::setenv("PATH", old_path_.c_str(), 1); }

}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
#include "trainer/testing/debian_test_util.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>

#include "core/files/atomic_file.h"
#include "core/process/process.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

void WriteGzip(const fs::path& path, const std::string& content) {
  gzFile file = ::gzopen(path.c_str(), "wb");
  ::gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  ASSERT_EQ(::gzclose(file), Z_OK);
}

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

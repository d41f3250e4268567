// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/debian_packages.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

class DebianPackages : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = FreshFolder("debian");
    fs::create_directories(folder_ / "archive");
    deb_ = BuildDeb(folder_ / "archive", "tiny-text", "1.2-3",
                    {{"usr/share/tiny/text", "some text\n"}});
  }
  DebianPackage Unpack() {
    return UnpackDebianPackage(
        "tiny-text", folder_ / "unpacked", folder_ / "local",
        [this](const std::string& line) { notes_.push_back(line); });
  }
  std::string Error() {
    return MessageOf<EnvironmentError>([&] { Unpack(); });
  }
  void ExpectUnpacked(const DebianPackage& package) {
    EXPECT_EQ(package.name, "tiny-text");
    EXPECT_EQ(package.version, "1.2-3");
    EXPECT_EQ(package.sha256, Sha256OfFile(deb_));
    EXPECT_EQ(ReadWholeFile(folder_ / "unpacked/usr/share/tiny/text"),
              "some text\n");
    EXPECT_EQ(FilesIn(folder_ / "unpacked"), (std::vector<std::string>{"usr"}));
  }

  fs::path folder_, deb_;
  std::vector<std::string> notes_;
};

TEST_F(DebianPackages, UsesALocalFileWithoutNetwork) {
  const FakeAptGet apt(folder_ / "bin", "exit 100");
  fs::create_directories(folder_ / "local");
  fs::copy(deb_, folder_ / "local" / deb_.filename());
  ExpectUnpacked(Unpack());
  EXPECT_TRUE(notes_.empty());
}

TEST_F(DebianPackages, Downloads) {
  const FakeAptGet apt(folder_ / "bin",
                       "case \"$*\" in *'download tiny-text') cp '" +
                           deb_.string() + "' . ;; *) exit 1 ;; esac");
  ExpectUnpacked(Unpack());
  EXPECT_EQ(notes_.size(), 1u);
}

// The case of a machine without root where `apt-get update` never ran.
TEST_F(DebianPackages, FetchesListsIntoAFolderOfItsOwn) {
  const FakeAptGet apt(folder_ / "bin",
                       "case \"$*\" in\n"
                       "  *Dir::State::Lists=*update)\n"
                       "    touch lists/partial/a archives/partial/a ;;\n"
                       "  *Dir::State::Lists=*'download tiny-text')\n"
                       "    test -e lists/partial/a -a -e archives/partial/a "
                       "&& cp '" +
                           deb_.string() +
                           "' . ;;\n"
                           "  *) echo 'E: Unable to locate package'; exit 100 "
                           ";;\nesac");
  ExpectUnpacked(Unpack());
  EXPECT_EQ(notes_,
            (std::vector<std::string>{"downloading Debian package tiny-text",
                                      "fetching Debian's package lists"}));
}

TEST_F(DebianPackages, SaysWhatToDoOffline) {
  const FakeAptGet apt(folder_ / "bin",
                       "echo 'E: Could not resolve deb.debian.org'; exit 100");
  const std::string error = Error();
  EXPECT_TRUE(Says(error, "tiny-text", "Could not resolve deb.debian.org",
                   "--corpus path:FILE", "debian/local",
                   "packages.debian.org/tiny-text"));
  // Success without a file is none.
  const FakeAptGet idle(folder_ / "bin", "exit 0");
  EXPECT_TRUE(Says(Error(), "apt-get download failed\nconnect"));
}

// The complaints of both downloads and of fetching the lists in between.
TEST_F(DebianPackages, ShowsWhatEveryAttemptComplainedOf) {
  const FakeAptGet apt(folder_ / "bin",
                       "case \"$*\" in\n"
                       "  *update) echo 'Get:1'; echo 'W: no lists' ;;\n"
                       "  *Dir::State::Lists=*) echo 'E: again'\n"
                       "    echo 'E: at first'; exit 100 ;;\n"
                       "  *) echo 'E: at first'; exit 100 ;;\nesac");
  const std::string error = Error();
  EXPECT_TRUE(Says(error,
                   "cannot get the Debian package tiny-text: apt-get "
                   "download failed\nE: at first\nW: no lists\nE: again\n"
                   "connect to the network"));
}

TEST_F(DebianPackages, ShowsTheLastLinesOfAFailedUnpacking) {
  const FakeAptGet apt(folder_ / "bin", "exit 100");
  fs::create_directories(folder_ / "local");
  fs::copy(deb_, folder_ / "local" / deb_.filename());
  // What comes before the lines that are shown, and these.
  const std::pair<std::string, std::string> outputs[] = {{"1\n", "2\n\n3\n"},
                                                         {"", "few\n"}};
  for (const auto& [before, shown] : outputs) {
    WriteFileAtomically(folder_ / "bin" / "dpkg-deb",
                        "#!/bin/sh\n"
                        "case $1 in\n"
                        "  --field) echo tiny-text ;;\n"
                        "  *) printf '" +
                            before + shown + "'; exit 2 ;;\nesac\n");
    fs::permissions(folder_ / "bin" / "dpkg-deb", fs::perms::owner_all);
    EXPECT_TRUE(Says(Error(), "cannot unpack",
                     "_all.deb: " + shown + "; delete it if it is damaged"));
  }
}

TEST_F(DebianPackages, SaysThatThereIsNoDpkg) {
  const FakeAptGet apt(folder_ / "bin", "exit 100");  // and the PATH of before
  ::setenv("PATH", (folder_ / "bin").c_str(), 1);
  EXPECT_EQ(Error(),
            "cannot unpack the Debian package tiny-text: there is no dpkg-deb; "
            "install the package dpkg, or use a text file of your own: "
            "`--corpus path:FILE` (key data.corpus)");
  fs::rename(folder_ / "bin" / "apt-get", folder_ / "bin" / "dpkg-deb");
  EXPECT_TRUE(Says(Error(),
                   "there is no apt-get here: this is not Debian or "
                   "Ubuntu\nconnect"));
}

TEST_F(DebianPackages, RefusesADamagedOrWrongFile) {
  fs::create_directories(folder_ / "local");
  WriteFileAtomically(folder_ / "local" / "tiny-text_1_all.deb", "no package");
  EXPECT_TRUE(Says(Error(), "not the Debian package tiny-text"));
  fs::remove(folder_ / "local" / "tiny-text_1_all.deb");

  const std::string bytes = ReadWholeFile(deb_);
  WriteFileAtomically(folder_ / "local" / "tiny-text_1_all.deb",
                      bytes.substr(0, bytes.size() - 40));
  EXPECT_NE(Error(), kNoError);

  const auto other = BuildDeb(folder_ / "archive", "other", "1", {});
  fs::remove(folder_ / "local" / "tiny-text_1_all.deb");
  fs::copy(other, folder_ / "local" / "tiny-text_1_all.deb");
  EXPECT_TRUE(Says(Error(), "not the Debian package tiny-text"));
}

}  // namespace
}  // namespace softmoe::trainer

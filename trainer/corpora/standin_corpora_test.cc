// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/standin_corpora.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/corpora/shuffle.h"
#include "trainer/corpora/text_corpus.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const StandinCorpus kTiny = {"tiny", "a test", {"dict-tiny", "tiny-fortunes"}};

Strings ReadText(const fs::path& path) {
  return DocumentsOf(OpenTextFile(path));
}

class Standin : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_ = FreshFolder("standin");
    debs_ = cache_ / "corpora" / "packages";
    fs::create_directories(debs_);
    Strings entries;
    for (const std::string& text : TestDocuments(50)) {
      entries.push_back("Word \\W[o]rd\\\n   " + text +
                        "\n   [1913 Webster]\n\n   {More}.\n\n");
      documents_.push_back(CleanedEntry(text));
    }
    entries.push_back(
        "Fa\xE7"
        "ade\n");
    documents_.push_back(
        "Fa\u00E7"
        "ade");
    dict_ = BuildDeb(debs_, "dict-tiny", "4.5", DictFiles("tiny", entries));
    BuildDeb(debs_, "tiny-fortunes", "1:6-7",
             {{"usr/share/games/fortunes/wise", "First.\n%\nSecond\tone.\n%\n"},
              {"usr/share/games/fortunes/wise.dat", "\x01\x02"},
              {"usr/share/games/fortunes/ascii-art", "/\\_/\\\n"},
              {"usr/share/doc/tiny/README", "not a fortune"}});
    documents_.push_back("First.");
    documents_.push_back("Second one.");
  }
  static std::string CleanedEntry(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return "Word " + text + "\nMore.";
  }
  StandinText Ensure() {
    notes_.clear();
    return EnsureStandin(
        kTiny, cache_, [&](const std::string& note) { notes_ += note + "\n"; });
  }

  fs::path cache_, debs_, dict_;
  Strings documents_;
  std::string notes_;  // of the last Ensure
};

TEST_F(Standin, HoldsEveryDocumentOnceInAnOrderOfItsOwn) {
  const Strings found = ReadText(Ensure().text);
  EXPECT_NE(found, documents_);
  Strings shuffled;  // always in the same way
  for (int64_t i = 0; i < std::ssize(documents_); ++i) {
    shuffled.push_back(documents_[static_cast<size_t>(
        ShuffledIndex(1913, 0, i, std::ssize(documents_)))]);
  }
  EXPECT_EQ(found, shuffled);
}

TEST_F(Standin, RecordsWhereItCameFrom) {
  const StandinText text = Ensure();
  EXPECT_EQ(text.sha256, Sha256OfFile(text.text));
  EXPECT_EQ(text.provenance,
            "Debian package dict-tiny 4.5 (SHA-256 " + Sha256OfFile(dict_) +
                "), Debian package tiny-fortunes 1:6-7 (SHA-256 " +
                Sha256OfFile(debs_ / "tiny-fortunes_1:6-7_all.deb") + ")");
  EXPECT_EQ(notes_, "reading " + text.provenance + "\n");
  EXPECT_EQ(FilesIn(cache_ / "corpora" / "tiny"),
            (Strings{"provenance.json", "text.txt"}));
  const auto json = nlohmann::json::parse(
      ReadWholeFile(cache_ / "corpora" / "tiny" / "provenance.json"));
  EXPECT_EQ(json["bytes_read_as_windows_1252"], 1);
  EXPECT_EQ(json["num_documents"], documents_.size());
  EXPECT_EQ(json["text_sha256"], text.sha256);
  EXPECT_EQ(json["packages"][0]["version"], "4.5");
}

TEST_F(Standin, IsMadeOnce) {
  const StandinText first = Ensure();
  fs::remove_all(debs_);  // would be needed to make it again
  const StandinText second = Ensure();
  EXPECT_EQ(first.sha256, second.sha256);
  EXPECT_EQ(first.provenance, second.provenance);
}

TEST_F(Standin, IsMadeAgainWhenDamagedAndSaysSo) {
  const StandinText first = Ensure();
  EXPECT_FALSE(Says(notes_, "making it again"));
  for (const std::string file : {"text.txt", "provenance.json"}) {
    const fs::path path = cache_ / "corpora" / "tiny" / file;
    const auto expect_made_again = [&](const std::string& what) {
      EXPECT_EQ(Ensure().sha256, first.sha256);
      EXPECT_EQ(notes_.find(path.string() + what), 0u) << notes_;
      EXPECT_TRUE(Says(notes_, "making it again"));
      Ensure();
      EXPECT_EQ(notes_, "");
    };
    for (const std::string content : {"damaged", "{}", "[1]"}) {
      WriteFileAtomically(path, content);
      expect_made_again(" is damaged");
    }
    std::string text = ReadWholeFile(path);
    text.resize(text.size() / 2);
    WriteFileAtomically(path, text);
    expect_made_again(" is damaged");
    fs::remove(path);
    expect_made_again(" is not there");
  }
}

TEST_F(Standin, NoStatementOnItsPackagesChangesUnnoticed) {
  const StandinText first = Ensure();
  const fs::path path = cache_ / "corpora" / "tiny" / "provenance.json";
  const std::string whole = ReadWholeFile(path);
  for (size_t byte = 0; byte < whole.size(); byte += 43) {
    std::string text = whole;
    text[byte] = static_cast<char>(text[byte] ^ 1 << byte % 8);
    WriteFileAtomically(path, text);
    const StandinText again = Ensure();
    EXPECT_EQ(again.provenance, first.provenance) << text;
    EXPECT_EQ(again.sha256, first.sha256) << text;
  }
  // That of another version is made again without a complaint.
  WriteFileAtomically(
      path, Replaced(whole, "{\n  \"version\": 1,", "{\n  \"version\": 2,"));
  Ensure();
  EXPECT_EQ(notes_, "reading " + first.provenance + "\n");
}

TEST_F(Standin, LeavesNothingBehindWhenItFails) {
  fs::remove(debs_ / "tiny-fortunes_1:6-7_all.deb");
  const FakeAptGet apt(cache_ / "bin", "exit 100");
  EXPECT_THROW(Ensure(), EnvironmentError);
  EXPECT_EQ(FilesIn(cache_ / "corpora"), (Strings{"packages"}));
}

TEST_F(Standin, RefusesPackagesWithoutText) {
  BuildDeb(debs_, "dict-tiny", "9", {{"usr/share/doc/README", "moved"}});
  BuildDeb(debs_, "tiny-fortunes", "9", {});
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { Ensure(); }),
                   "no text in Debian package"));
}

TEST(StandinCorpora, AreNamedAndDescribed) {
  std::set<std::string> names;
  for (const StandinCorpus& corpus : StandinCorpora()) {
    EXPECT_TRUE(names.insert(corpus.name).second);
    EXPECT_EQ(FindStandin(corpus.name), &corpus);
    EXPECT_FALSE(corpus.packages.empty());
    EXPECT_GT(corpus.text_bytes, 0);
    // So every report that prints the description says what the text is not.
    EXPECT_TRUE(Says(corpus.description, "stand-in"));
  }
  EXPECT_EQ(FindStandin("owt"), nullptr);
  EXPECT_EQ(FindStandin("gcide")->text_bytes, 30'941'096);
  EXPECT_EQ(FindStandin("debian-mix")->text_bytes, 9'285'562);
}

}  // namespace
}  // namespace softmoe::trainer

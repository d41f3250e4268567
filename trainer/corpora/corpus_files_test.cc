// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/corpus_files.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/process/stop_signal.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

// A folder with files of these names, each of its own content.
fs::path Folder(const std::string& name, const Strings& files) {
  const fs::path folder = FreshFolder(name);
  for (const std::string& file : files) {
    fs::create_directories((folder / file).parent_path());
    WriteFileAtomically(folder / file, file);
  }
  return folder;
}

Strings Found(FilesOf kind, const fs::path& folder) {
  Strings names;
  for (const fs::path& file : FindCorpusFiles(kind, folder)) {
    names.push_back(fs::relative(file, folder).string());
  }
  return names;
}

TEST(FindCorpusFiles, LooksOneFolderDown) {
  EXPECT_EQ(
      Found(FilesOf::kOwt,
            Folder("down_owt",
                   {"subsets/urlsf_subset01.tar", "subsets/urlsf_subset00.tar",
                    "other/a.json", "subsets/README", "subsets/in/x.txt"})),
      (Strings{"subsets/urlsf_subset00.tar", "subsets/urlsf_subset01.tar"}));
  EXPECT_EQ(Found(FilesOf::kC4,
                  Folder("down_c4",
                         {"en/c4-train.1.json.gz", "en/c4-validation.0.json.gz",
                          "en.noblocklist/c4-train.0.json.gz",
                          "en.noclean/c4-train.0.json.gz",
                          "realnewslike/c4-train.0.json.gz",
                          "multilingual/c4-train.0.json.gz",
                          "other/c4-validation.0.json.gz"})),
            (Strings{"en/c4-train.1.json.gz"}));
}

TEST(FindCorpusFiles, TakesJsonLinesOfAllForms) {
  EXPECT_EQ(
      Found(FilesOf::kJson,
            Folder("forms", {"e.json", "d.jsonl", "c.jsonl.gz", "b.json.xz",
                             "a.jsonl.zst", "f.ndjson", "x.txt", ".hidden.json",
                             ".git/a.json", "notes/x.txt"})),
      (Strings{"a.jsonl.zst", "b.json.xz", "c.jsonl.gz", "d.jsonl", "e.json",
               "f.ndjson"}));
}

TEST(FindCorpusFiles, RefusesJsonLinesThatAFolderInsideHas) {
  for (const std::string inside : {"part2/b.jsonl.gz", "x/y/b.json"}) {
    const fs::path folder = Folder("inside", {"a.jsonl", inside});
    EXPECT_TRUE(Says(
        MessageOf<DataError>([&] { FindCorpusFiles(FilesOf::kJson, folder); }),
        folder.string() + ": " + inside, "move it up"));
  }
}

TEST(FindCorpusFiles, RefusesWhatLiesDeeperThanWhatIsRead) {
  const auto refused = [](FilesOf kind, const Strings& files) {
    const fs::path folder = Folder("deeper", files);
    return Says(MessageOf<DataError>([&] { FindCorpusFiles(kind, folder); }),
                folder.string() + ": " + files.back() + " is in a subfolder");
  };
  EXPECT_TRUE(refused(FilesOf::kOwt, {"o.tar", "more/p.tar"}));
  EXPECT_TRUE(refused(FilesOf::kOwt, {"subsets/o.tar", "subsets/x/y/p.xz"}));
  EXPECT_TRUE(refused(FilesOf::kOwt, {"o.tar", "more/p.tgz"}));
  EXPECT_TRUE(refused(FilesOf::kJson, {"a.jsonl", "en.x/b.jsonl"}));
  EXPECT_TRUE(refused(FilesOf::kC4, {"a.json.gz", "more/b.json.gz"}));
  EXPECT_TRUE(
      refused(FilesOf::kC4, {"en/c4-train.0.json", "more/c4-train.1.json"}));
  EXPECT_TRUE(
      refused(FilesOf::kC4, {"en/c4-train.0.json", "en/x/c4-train.1.json"}));
  EXPECT_TRUE(refused(FilesOf::kC4, {"en/c4-train.0.json",
                                     "x/en.noblocklist/c4-train.1.json"}));
  // Links to folders that are read anyway.
  const fs::path linked = Folder("deeper_link", {"en/c4-train.0.json"});
  fs::create_directory_symlink("en", linked / "a");
  fs::create_directory_symlink("..", linked / "en" / "up");
  EXPECT_EQ(Found(FilesOf::kC4, linked), (Strings{"en/c4-train.0.json"}));
}

TEST(FindCorpusFiles, LooksIntoLinkedFolders) {
  const fs::path folder = Folder("links", {"a.jsonl", ".git/b.json", "x/note"});
  const fs::path elsewhere = Folder("links_elsewhere", {"sub/b.jsonl.gz"});
  fs::create_directory_symlink(".", folder / "self");
  fs::create_directory_symlink("..", folder / "x" / "up");
  fs::create_symlink("absent", folder / "dangling");
  EXPECT_EQ(Found(FilesOf::kJson, folder), (Strings{"a.jsonl"}));
  fs::create_directory_symlink(elsewhere, folder / "part2");
  EXPECT_TRUE(Says(
      MessageOf<DataError>([&] { FindCorpusFiles(FilesOf::kJson, folder); }),
      folder.string() + ": part2/sub/b.jsonl.gz", "move it up"));
}

// Such paths stand for folders without permission, which root can read anyway.
TEST(FindCorpusFiles, RefusesWhatItCannotSee) {
  const auto error = [](FilesOf kind, const fs::path& place) {
    return MessageOf<EnvironmentError>([&] { FindCorpusFiles(kind, place); });
  };
  const fs::path folder = FreshFolder("unseen");
  for (const FilesOf kind : {FilesOf::kOwt, FilesOf::kC4, FilesOf::kJson}) {
    EXPECT_TRUE(Says(error(kind, folder / std::string(300, 'x')),
                     "cannot read '", "File name too long"));
  }
  const auto loops = [](const fs::path& link) {
    fs::create_symlink(link.filename(), link);
    return "cannot read '" + link.string() + "': Too many levels of";
  };
  const fs::path owt = Folder("unseen_owt", {"a.tar"});
  const std::string subsets = loops(owt / "subsets");
  EXPECT_TRUE(Says(error(FilesOf::kOwt, owt), subsets));
  EXPECT_TRUE(
      Says(MessageOf<EnvironmentError>([&] { HasFiles(FilesOf::kOwt, owt); }),
           subsets));
  const fs::path c4 = Folder("unseen_c4", {"c4-train.0.json"});
  const std::string en = loops(c4 / "en");
  EXPECT_TRUE(Says(error(FilesOf::kC4, c4), en));
  const fs::path json = Folder("unseen_json", {"a.jsonl"});
  const std::string part = loops(json / "part");
  EXPECT_TRUE(Says(error(FilesOf::kJson, json), part));
  // The folder of Hugging Face's Parquet files.
  const std::string plain_text = loops(folder / "plain_text");
  EXPECT_TRUE(Says(error(FilesOf::kOwt, folder), plain_text));
  if (::geteuid() == 0) return;
  const fs::path secret = Folder("secret", {"a.tar", "subsets/b.tar"});
  fs::permissions(secret / "subsets", fs::perms::none);
  EXPECT_TRUE(Says(error(FilesOf::kOwt, secret),
                   (secret / "subsets").string() + "': Permission denied"));
  fs::permissions(secret / "subsets", fs::perms::owner_all);
}

// Leaving a file out would make another corpus.
TEST(FindCorpusFiles, RefusesNamesThatAreNearlyThoseOfTexts) {
  const auto refused = [](FilesOf kind, const Strings& files) {
    const fs::path folder = Folder("nearly", files);
    return Says(MessageOf<DataError>([&] { FindCorpusFiles(kind, folder); }),
                (folder / files.back()).string() + ": ", "would be ignored");
  };
  for (const std::string name :
       {"b.jsonl.bz2", "b.jsonl.GZ", "B.JSON", "b.Ndjson", "b.json.zip",
        "b.json.lz4", "b.jsonl.7z", "b.jsonl.gz.bz2", "b.jsonl.zstd",
        "b.jsonlines", "b.jl", "b.ldjson", "b.jsonl.Z", "b.jsonl.gzip",
        "b.jsonl.sz", "b.jsonl.gz.xz", "b.jsonl.0", "b.jl.gz"}) {
    EXPECT_TRUE(refused(FilesOf::kJson, {"a.jsonl", name})) << name;
    EXPECT_TRUE(refused(FilesOf::kJson, {name})) << name;
  }
  EXPECT_TRUE(refused(FilesOf::kC4,
                      {"c4-train.0.json.gz", "en/c4-train.1.json.gz.bz2"}));
  for (const std::string name : {"b.TAR", "b.tar.gz", "subsets/b.tar.bz2",
                                 "b.tgz", "b.txz", "b.tar.xz.00"}) {
    EXPECT_TRUE(refused(FilesOf::kOwt, {"a.tar", name})) << name;
  }
  const fs::path inside = Folder("nearly_inside", {"a.jsonl", "x/b.JSONL"});
  EXPECT_TRUE(Says(
      MessageOf<DataError>([&] { FindCorpusFiles(FilesOf::kJson, inside); }),
      inside.string() + ": x/b.JSONL"));
  // These are not texts.
  EXPECT_EQ(Found(FilesOf::kJson,
                  Folder("far", {"a.jsonl", "b.txt.bz2", "c.zip", ".d.JSON",
                                 "e.jsonl.part", "f.jsonl~"})),
            (Strings{"a.jsonl"}));
  EXPECT_EQ(Found(FilesOf::kOwt,
                  Folder("far_owt", {"openwebtext.tar.xz", ".DS_Store",
                                     "README.md", "openwebtext.tar.xz.md5",
                                     "dataset_infos.json", "._a.TAR"})),
            (Strings{"openwebtext.tar.xz"}));
  EXPECT_EQ(Found(FilesOf::kC4, Folder("far_c4", {"c4-train.0.json.gz",
                                                  "c4-validation.0.JSON"})),
            (Strings{"c4-train.0.json.gz"}));
}

// Token files of others have no such PREFIX.json, so they hide no text.
TEST(FindCorpusFiles, LeavesOutOnlyDescriptionsOfTokens) {
  const fs::path folder =
      Folder("tokens", {"a.jsonl", "t.json", "t.bin", "t.idx", "t.model"});
  EXPECT_EQ(Found(FilesOf::kJson, folder), (Strings{"a.jsonl", "t.json"}));
  WriteFileAtomically(folder / "t.json",
                      "{\n  \"format\": \"softmoe token files\"\n}\n");
  EXPECT_EQ(Found(FilesOf::kJson, folder), (Strings{"a.jsonl"}));
  fs::remove(folder / "t.model");
  EXPECT_EQ(Found(FilesOf::kJson, folder), (Strings{"a.jsonl", "t.json"}));
}

TEST(FindCorpusFiles, RefusesATextThatIsThereTwice) {
  const auto refused = [](FilesOf kind, const Strings& files) {
    const fs::path folder = Folder("twice", files);
    return Says(MessageOf<DataError>([&] { FindCorpusFiles(kind, folder); }),
                (folder / files[0]).string() + " and " +
                    (folder / files[1]).string() +
                    " hold the same text, which would be read twice");
  };
  EXPECT_TRUE(refused(FilesOf::kJson, {"x.json", "x.json.gz"}));
  EXPECT_TRUE(
      refused(FilesOf::kC4, {"c4-train.0.json.gz", "en/c4-train.0.json.gz"}));
  EXPECT_TRUE(refused(FilesOf::kOwt,
                      {"openwebtext.tar.xz", "urlsf_subset00-1_data.xz"}));
  EXPECT_TRUE(refused(FilesOf::kOwt,
                      {"openwebtext.tar.xz", "subsets/urlsf_subset00.tar"}));
  EXPECT_TRUE(refused(FilesOf::kOwt,
                      {"urlsf_subset00.tar", "urlsf_subset00-1_data.xz"}));
  // Nothing is there twice.
  Found(FilesOf::kOwt,
        Folder("once", {"urlsf_subset00.tar", "urlsf_subset01-1_data.xz"}));
}

TEST(DigestFiles, RefusesTwoFilesOfOneContent) {
  const fs::path folder = Folder("copies", {"a.json", "b.json"});
  const auto digest = [&] {
    return DigestFiles(FilesOf::kJson, FindCorpusFiles(FilesOf::kJson, folder));
  };
  EXPECT_EQ(digest().size(), 2u);
  WriteFileAtomically(folder / "b.json", "a.json");
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { digest(); }), "a.json and ",
                   "b.json hold the same text"));
  // Nothing is read twice.
  for (const char* name : {"a.json", "b.json"}) {
    WriteFileAtomically(folder / name, "");
  }
  EXPECT_EQ(digest().size(), 2u);
}

std::string ManyNumbers() {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += std::to_string(i * 7919) + "\n";
  return text;
}

TEST(Digest, FollowsTheContentAndNotTheName) {
  const fs::path folder = FreshFolder("digest");
  const fs::path a = folder / "c4-train.00000-of-01024.json.gz";
  const fs::path b = folder / "c4-train.00001-of-01024.json.gz";
  const std::string text = ManyNumbers();
  for (const std::string form : {"plain", "gzip", "xz", "zstd"}) {
    WritePacked(a, text, form);
    fs::copy_file(a, b, fs::copy_options::overwrite_existing);
    const std::string digest = Digest(FilesOf::kC4, a).digest;
    EXPECT_EQ(Digest(FilesOf::kC4, b).digest, digest) << form;
    std::string other = text;
    other[other.size() / 2] ^= 1;
    WritePacked(b, other, form);
    EXPECT_NE(Digest(FilesOf::kC4, b).digest, digest) << form;
    // Of a large file, the first and the last bytes are among those looked at.
    for (const bool last : {false, true}) {
      std::string bytes = ReadWholeFile(a);
      ASSERT_GT(bytes.size(), size_t{200'000}) << form;
      bytes[last ? bytes.size() - 1 : 20] ^= 1;
      WriteFileAtomically(b, bytes);
      EXPECT_NE(Digest(FilesOf::kC4, b).digest, digest) << form << last;
    }
  }
}

// Checksums at the end are those of the last member, or of none: a change in an
// earlier member changes no other byte.
TEST(Digest, SeesEachOfSeveralMembers) {
  const fs::path folder = FreshFolder("members");
  for (const std::string form : {"gzip", "xz"}) {
    const auto packed = [&](const std::string& text) {
      WritePacked(folder / "member", text, form);
      return ReadWholeFile(folder / "member");
    };
    const std::string large = packed(ManyNumbers());
    const std::string one = packed("one"), two = packed("two");
    ASSERT_EQ(one.size(), two.size()) << form;
    WriteFileAtomically(folder / "one", large + one + large + large);
    WriteFileAtomically(folder / "two", large + two + large + large);
    for (const FilesOf kind : {FilesOf::kOwt, FilesOf::kC4, FilesOf::kJson}) {
      EXPECT_NE(Digest(kind, folder / "one").digest,
                Digest(kind, folder / "two").digest)
          << form;
    }
  }
}

// Between the ends, a block at each sixteenth of a shard.
TEST(Digest, LooksAtBlocksOfAShard) {
  const fs::path path =
      FreshFolder("blocks") / "c4-train.00000-of-01024.json.gz";
  constexpr size_t kPart = size_t{1} << 17;
  const std::string bytes = "\x1F\x8B" + std::string(16 * kPart - 2, 'x');
  const auto digest = [&](const std::string& content) {
    WritePlain(path, content);
    return Digest(FilesOf::kC4, path).digest;
  };
  const auto changed = [&](size_t at) {
    return digest(std::string(bytes).replace(at, 1, "y"));
  };
  const std::string whole = digest(bytes);
  for (size_t i = 1; i < 16; ++i) {
    EXPECT_NE(changed(i * kPart), whole) << i;
    EXPECT_EQ(changed(i * kPart - 1), whole) << i;  // to read all takes hours
  }
  EXPECT_NE(digest(bytes + "x"), whole);
  EXPECT_NE(digest(bytes.substr(0, 100)), digest(bytes.substr(0, 101)));
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { digest("PK\3\4"); }), "bzip2 or zip"));
}

// 1024 files with the publishers' sizes, in their order.
std::vector<DigestedFile> AllOfC4() {
  std::vector<DigestedFile> files;
  std::istringstream table(
      ReadWholeFile(RunfilePath("trainer/corpora/c4_en_train_shards.tsv")));
  std::string name, bytes, sha256;
  table >> name >> bytes >> sha256;
  while (table >> name >> bytes >> sha256) {
    files.push_back({"/c4/" + name, std::stoll(bytes), ""});
  }
  return files;
}

TEST(CompareWithPublishers, KnowsC4) {
  auto files = AllOfC4();
  ASSERT_EQ(files.size(), 1024u);
  int64_t sum = 0;
  for (const DigestedFile& file : files) sum += file.bytes;
  EXPECT_EQ(sum, 326'778'635'540);
  EXPECT_EQ(CompareWithPublishers(FilesOf::kC4, files), "all 1024 shards");
  files.erase(files.begin() + 3);
  EXPECT_EQ(CompareWithPublishers(FilesOf::kC4, files),
            "1023 of 1024 shards (missing: c4-train.00003-of-01024.json.gz)");
  files.resize(10);
  EXPECT_TRUE(Says(CompareWithPublishers(FilesOf::kC4, files),
                   "10 of 1024 shards",
                   "c4-train.00014-of-01024.json.gz, ..."));
  files[7].bytes -= 1;
  EXPECT_TRUE(Says(
      MessageOf<DataError>([&] { CompareWithPublishers(FilesOf::kC4, files); }),
      files[7].path.string(), "the publishers' file has ", "en.noblocklist"));
  // Another variant, or files made by a test: they can be trained on, and the
  // count of documents shows what they are.
  for (DigestedFile& file : files) file.bytes = 5;
  EXPECT_EQ(CompareWithPublishers(FilesOf::kC4, files), "");
}

TEST(CompareWithPublishers, KnowsOpenWebText) {
  EXPECT_EQ(CompareWithPublishers(FilesOf::kOwt,
                                  {{"/owt.tar.xz", 12'880'027'468, ""}}),
            "the whole archive");
  EXPECT_EQ(CompareWithPublishers(FilesOf::kOwt, {{"/owt.tar.xz", 5, ""}}), "");
  std::vector<DigestedFile> files;
  for (int i = 0; i < 21; ++i) {
    files.push_back({fmt::format("/urlsf_subset{:02}.tar", i), 630, ""});
  }
  EXPECT_EQ(CompareWithPublishers(FilesOf::kOwt, files), "all 21 tars");
  files.erase(files.begin() + 20);
  files.erase(files.begin());
  EXPECT_EQ(CompareWithPublishers(FilesOf::kOwt, files),
            "19 of 21 tars (missing: urlsf_subset00.tar, urlsf_subset20.tar)");
  files.push_back({"/news.tar", 1, ""});
  EXPECT_TRUE(Says(MessageOf<DataError>(
                       [&] { CompareWithPublishers(FilesOf::kOwt, files); }),
                   "/news.tar: not one of the 21 tars"));
}

TEST(TextOf, IsThePublishersWhereTheyCountAsMany) {
  EXPECT_EQ(TextOf(FilesOf::kOwt, 8'013'769, 0), "owt");
  EXPECT_EQ(TextOf(FilesOf::kC4, 364'868'892, 0), "c4");
  EXPECT_EQ(TextOf(FilesOf::kJson, 364'868'892, 0), "");
  EXPECT_EQ(TextOf(FilesOf::kOwt, 8'013'768, 0),
            "a part of owt: 8013768 of 8013769 documents");
  EXPECT_EQ(TextOf(FilesOf::kOwt, 8'013'768, 1),
            "a part of owt: 8013768 of 8013769 documents");
  EXPECT_EQ(TextOf(FilesOf::kOwt, 8'013'769, 1),
            "not owt: 8013770 documents, its publishers count 8013769");
  // en.noblocklist
  EXPECT_EQ(TextOf(FilesOf::kC4, 393'391'519, 0),
            "not c4: 393391519 documents, its publishers count 364868892");
}

TEST(VerifyFiles, ComparesTheHashesThatAreKnown) {
  const fs::path folder = Folder("verify", {"c4-train.00000-of-01024.json.gz"});
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     VerifyFiles(FilesOf::kC4,
                                 FindCorpusFiles(FilesOf::kC4, folder));
                   }),
                   "c4-train.00000-of-01024.json.gz: its SHA-256 is ",
                   "8ef8d75b0e045dec4aa5123a671b4564466b0707086a7ed1ba8721626"
                   "dfffbc9"));
  EXPECT_EQ(VerifyFiles(FilesOf::kOwt, {folder / "mine.tar"}),
            "0 of 1 files have the publishers' SHA-256; for the others, none "
            "is known");
  const fs::path owt = FreshFolder("verify_owt") / "openwebtext.tar.xz";
  WriteFileAtomically(owt, "");
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { VerifyFiles(FilesOf::kOwt, {owt}); }),
           "the publishers' 9fe39d154c5bc67d"));
}

// Reading the files takes minutes. Here it would fail: there is none.
TEST(VerifyFiles, HearsASignalAsDigestFilesDoes) {
  const std::vector<fs::path> files = {FreshFolder("stopped") /
                                       "c4-train.00000-of-01024.json.gz"};
  const StopSignal stop;
  ::raise(SIGTERM);
  EXPECT_THROW(VerifyFiles(FilesOf::kC4, files), StoppedError);
  EXPECT_THROW(DigestFiles(FilesOf::kC4, files), StoppedError);
}

TEST(FindCorpusFiles, SaysWhereToGetThem) {
  const fs::path empty = FreshFolder("empty");
  const auto error = [&](FilesOf kind) {
    return MessageOf<EnvironmentError>([&] { FindCorpusFiles(kind, empty); });
  };
  EXPECT_TRUE(Says(error(FilesOf::kOwt), "--corpus owt:PATH", "--how owt"));
  EXPECT_TRUE(Says(error(FilesOf::kC4), "--corpus c4:FOLDER", "--how c4"));
  EXPECT_TRUE(Says(error(FilesOf::kJson), "--corpus jsonl:PATH"));
  EXPECT_TRUE(Says(HowToGet(FilesOf::kC4), "326778635540 bytes",
                   "364868892 documents", "git lfs",
                   "XDG_CACHE_HOME=/data/cache"));
  EXPECT_TRUE(Says(HowToGet(FilesOf::kOwt), "8013769 documents",
                   "9fe39d154c5bc67d", "urlsf_subset20.tar",
                   "XDG_CACHE_HOME=/data/cache", "parquet_to_jsonl.py"));
}

}  // namespace
}  // namespace softmoe::trainer

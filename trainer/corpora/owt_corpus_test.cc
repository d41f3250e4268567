// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/owt_corpus.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/corpora/corpus.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Documents = std::vector<std::string>;

// What is published: a tar.xz of .xz files that are tar.xz of .txt files.
std::string NestedTar(const Documents& documents) {
  ArchiveMembers first;
  ArchiveMembers second;
  for (size_t i = 0; i < documents.size(); ++i) {
    auto& members = i < documents.size() / 2 ? first : second;
    members.emplace_back("000" + std::to_string(i) + "-hash.txt", documents[i]);
  }
  first.emplace_back("empty.txt", "");
  return Tar({{"openwebtext/urlsf_subset00-0_data.xz", Tar(first, true)},
              {"openwebtext/README", "not a document"},
              {"openwebtext/urlsf_subset00-1_data.xz", Tar(second, true)}},
             true);
}

std::vector<DigestedFile> DigestOwt(const fs::path& path) {
  return DigestFiles(FilesOf::kOwt, FindCorpusFiles(FilesOf::kOwt, path));
}

// Reads all shards in order. Their names go to `*names`.
Documents ReadOwt(const fs::path& path, Documents* names = nullptr,
                  const ReadOptions& options = {}) {
  const auto next = OwtShards(DigestOwt(path), options);
  Documents documents;
  for (Shard shard; next(&shard);) {
    if (names != nullptr) names->push_back(shard.name);
    for (std::string& text : DocumentsOf(shard.open())) {
      documents.push_back(std::move(text));
    }
  }
  return documents;
}

std::string OwtError(const fs::path& path) {
  return MessageOf<DataError>([&] { ReadOwt(path); });
}

TEST(Owt, ReadsTheNestedArchive) {
  const auto path = FreshFolder("owt") / "openwebtext.tar.xz";
  const Documents documents = TestDocuments(40);
  WriteFileAtomically(path, NestedTar(documents));
  EXPECT_EQ(ReadOwt(path), documents);
  EXPECT_EQ(ReadOwt(path.parent_path()), documents);
}

// Sorted by name: a folder may list its files in any order, such as that of
// creation, the reverse, or a hash's.
TEST(Owt, IsFoundByItsName) {
  const fs::path folder = FreshFolder("owt_corpus");
  const Documents documents = {"one", "two", "three", "four"};
  WriteFileAtomically(folder / "openwebtext.tar.xz", NestedTar(documents));
  const Corpus corpus =
      FindCorpus("owt:" + folder.string(), {.cache = "/nowhere"});
  EXPECT_EQ(DocumentsOf(corpus.open()), documents);
  EXPECT_EQ(corpus.text_of(4, 0), "a part of owt: 4 of 8013769 documents");
}

TEST(Owt, ReadsAFolderOfSubsetTarsInTheOrderOfTheirNames) {
  const auto folder = FreshFolder("owt_subsets");
  const Documents documents = TestDocuments(25);
  for (size_t i = 0; i < documents.size(); ++i) {
    const size_t number = i * 7 % documents.size();
    const std::string inner = Tar({{"1.txt", documents[number]}}, true);
    const std::string name = "urlsf_subset" + std::to_string(10 + number);
    WriteFileAtomically(folder / (name + ".tar"),
                        Tar({{name + "_data.xz", inner}}, false));
  }
  EXPECT_EQ(ReadOwt(folder), documents);
}

TEST(Owt, RefusesATruncatedArchive) {
  const auto path = FreshFolder("owt_truncated") / "openwebtext.tar.xz";
  const std::string bytes = NestedTar(TestDocuments(40));
  for (const size_t size : {size_t{0}, size_t{10}, bytes.size() / 2}) {
    WriteFileAtomically(path, bytes.substr(0, size));
    const std::string error = OwtError(path);
    EXPECT_TRUE(Says(error, "openwebtext.tar.xz")) << size;
    EXPECT_TRUE(Says(error, "damaged or truncated before byte ",
                     "download this archive again"));
  }
}

std::string Xz(const std::string& content) {
  const auto path = FreshFolder("owt_xz") / "packed";
  WritePacked(path, content, "xz");
  return ReadWholeFile(path);
}

// A tar as it is, packed, and as a member of another archive, whose end says
// nothing of the tar's own.
enum class TarIn { kFile, kXz, kTar, kPackedMember, kPackedTar };

class TarEnd : public ::testing::TestWithParam<TarIn> {
 protected:
  static Documents Read(const std::string& tar) {
    const auto path = FreshFolder("owt_end") / "o.tar";
    WriteFileAtomically(path, File(tar));
    return ReadOwt(path);
  }

 private:
  static std::string File(const std::string& tar) {
    switch (GetParam()) {
      case TarIn::kFile:
        return tar;
      case TarIn::kXz:
        return Xz(tar);
      case TarIn::kTar:
        return Tar({{"in.tar", tar}}, false);
      case TarIn::kPackedMember:
        return Tar({{"in.xz", Xz(tar)}}, false);
      case TarIn::kPackedTar:
        return Tar({{"in.tar", tar}}, true);
    }
    return "";
  }
};

INSTANTIATE_TEST_SUITE_P(Owt, TarEnd,
                         ::testing::Values(TarIn::kFile, TarIn::kXz,
                                           TarIn::kTar, TarIn::kPackedMember,
                                           TarIn::kPackedTar));

// libarchive takes these for whole archives.
TEST_P(TarEnd, RefusesATarWithoutIt) {
  // A header and one block of content for each.
  const std::string whole = Tar({{"1.txt", "one"}, {"2.txt", "two"}}, false);
  const auto zeros = [&](size_t begin, size_t count) {
    return std::string(whole).replace(begin, count, count, '\0');
  };
  for (const std::string& damaged :
       {whole.substr(0, 1024), whole.substr(0, 2048), whole.substr(0, 2560),
        zeros(0, 1024), zeros(1024, 512), whole + whole}) {
    EXPECT_TRUE(Says(MessageOf<DataError>([&] { Read(damaged); }), "o.tar",
                     "does not end with two blocks of zeros",
                     "download this archive again"))
        << damaged.size();
  }
  // Archivers differ in how many blocks of zeros they write.
  const Documents documents = {"one", "two"};
  EXPECT_EQ(Read(whole.substr(0, 3072)), documents);
  EXPECT_EQ(Read(whole + std::string(1 << 18, '\0')), documents);
  // Content may fill its last block.
  const std::string block(512, 'x');
  EXPECT_EQ(Read(Tar({{"1.txt", block}}, false)), Documents{block});
}

// `cat` makes such files: packers read all, libarchive only the first tar.
TEST(Owt, RefusesATarBehindATar) {
  const auto path = FreshFolder("owt_two") / "o.tar.xz";
  const std::string one = Tar({{"1.txt", "one"}}, true);
  WriteFileAtomically(path, one + Tar({{"2.txt", "two"}}, true));
  EXPECT_TRUE(Says(OwtError(path), "o.tar.xz",
                   fmt::format("before byte {} of ", fs::file_size(path)),
                   "does not end with two blocks of zeros"));
  WriteFileAtomically(path, one + "no xz");
  EXPECT_TRUE(Says(OwtError(path), "o.tar.xz", "damaged or truncated"));
  // Several streams of one tar, which packers with many threads make.
  const std::string tar = Tar({{"1.txt", "one"}, {"2.txt", "two"}}, false);
  WriteFileAtomically(path, Xz(tar.substr(0, 700)) + Xz(tar.substr(700)));
  EXPECT_EQ(ReadOwt(path), (Documents{"one", "two"}));
}

// Changes the header of a member of `*tar`, and its checksum: six octal digits,
// the sum of the header's bytes, where the checksum's own count as spaces.
void ForgeHeader(std::string* tar, size_t begin,
                 const std::function<void(char* header)>& change) {
  char* const header = tar->data() + begin;
  change(header);
  std::fill_n(header + 148, 8, ' ');
  const int64_t sum = std::accumulate(
      header, header + 512, int64_t{0},
      [](int64_t s, char c) { return s + static_cast<unsigned char>(c); });
  std::ranges::copy(fmt::format("{:06o}", sum), header + 148);
  header[154] = '\0';
}

// Whatever such a file is, it is not the end of the archive.
TEST(Owt, RefusesAFileWithoutAName) {
  const auto path = FreshFolder("owt_name") / "o.tar";
  std::string bytes =
      Tar({{"1.txt", "one"}, {"2.txt", "no name"}, {"3.txt", "three"}}, false);
  ForgeHeader(&bytes, 1024, [](char* header) { std::fill_n(header, 5, '\0'); });
  WriteFileAtomically(path, bytes);
  EXPECT_TRUE(
      Says(OwtError(path), "o.tar > 1.txt: a file without a name follows"));
}

// What they point to is elsewhere, or was read already.
TEST(Owt, RefusesLinksInPlaceOfDocumentsAndArchives) {
  const auto path = FreshFolder("owt_links") / "o.tar";
  const auto read = [&](const std::string& name, char type, char size = '0') {
    std::string bytes =
        Tar({{"1.txt", "one"}, {name, ""}, {"LICENSE", ""}}, false);
    ForgeHeader(&bytes, 1024, [=](char* header) {
      header[134] = size;
      header[156] = type;
      std::ranges::copy(std::string("1.txt"), header + 157);
    });
    WriteFileAtomically(path, bytes);
    return ReadOwt(path);
  };
  for (const char hard_or_symbolic : {'1', '2'}) {
    for (const std::string name : {"2.txt", "2.xz", "2.tar"}) {
      EXPECT_EQ(MessageOf<DataError>([&] { read(name, hard_or_symbolic); }),
                path.string() + " > " + name +
                    ": a link: pack it with tar --hard-dereference "
                    "--dereference");
    }
    EXPECT_EQ(read("README", hard_or_symbolic), (Documents{"one"}));
  }
  EXPECT_EQ(read("3.txt", '5'), (Documents{"one"}));  // a folder
  // Old archivers give a hard link the size of its file, but no content.
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { read("2.txt", '1', '3'); }),
                   " > 2.txt: a link"));
}

// They would be left out, and be counted nowhere.
TEST(Owt, RefusesMembersThatAreNearlyDocumentsOrArchives) {
  const auto path = FreshFolder("owt_nearly") / "o.tar";
  const auto read = [&](const ArchiveMembers& members) {
    WriteFileAtomically(path, Tar(members, false));
    return ReadOwt(path);
  };
  const std::string inner = Tar({{"2.txt", "two"}}, true);
  for (const std::string name :
       {"s/y.tar.gz", "s/y.tgz", "s/y.txz", "s/y.tar.bz2", "s/y.XZ", "b.TXT",
        "b.txt.gz", "b.jsonl", "b.jsonl.zst"}) {
    for (const ArchiveMembers& first :
         {ArchiveMembers{{"1.txt", "one"}}, {{"s/x.xz", inner}}}) {
      ArchiveMembers members = first;
      members.emplace_back(name, "three");
      EXPECT_TRUE(Says(MessageOf<DataError>([&] { read(members); }),
                       path.string() + " > " + name + ": ",
                       "would be ignored"));
    }
    EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                       read({{"s/x.xz", Tar({{name, "three"}}, true)}});
                     }),
                     "s/x.xz > " + name + ": "));
  }
  EXPECT_EQ(read({{"s/x.xz", inner},
                  {"s/README", "no document"},
                  {"s/._b.TXT", "no document"},
                  {"s/x.xz.md5", "no document"},
                  {"s/index.json", "no document"}}),
            (Documents{"two"}));
}

// In any order, whether a document comes before an archive or after it.
TEST(Owt, ReadsAllDepthsOrRefusesThem) {
  const auto path = FreshFolder("owt_deep") / "o.tar";
  const auto read = [&](int64_t depth, bool archive_first, const char* ending) {
    std::string inside = Tar({{"1.txt", "one"}, {"2.txt", "two"}}, true);
    std::string name = "a.xz";
    for (int64_t d = 2; d < depth; ++d) {
      inside = Tar({{name, inside}}, false);
      name = std::string("a") + ending;
    }
    ArchiveMembers members = {{name, inside}, {"q.txt", "q"}};
    if (!archive_first) std::swap(members[0], members[1]);
    WriteFileAtomically(path, Tar(members, false));
    Documents documents = ReadOwt(path);
    std::ranges::sort(documents);
    return documents;
  };
  for (const bool archive_first : {true, false}) {
    for (const char* ending : {".tar", ".xz"}) {
      for (const int64_t depth : {5, 8}) {
        EXPECT_EQ(read(depth, archive_first, ending),
                  (Documents{"one", "q", "two"}));
      }
      EXPECT_TRUE(
          Says(MessageOf<DataError>([&] { read(9, archive_first, ending); }),
               "a.xz: an archive inside 8 others", "unpack the outermost"));
    }
  }
}

// Such archives are whole, so the message does not call them damaged.
TEST(Owt, RefusesArchivesInGzipOrZstd) {
  const auto path = FreshFolder("owt_gzip") / "o.tar.gz";
  for (const std::string form : {"gzip", "zstd"}) {
    WritePacked(path, Tar({{"1.txt", "one"}}, false), form);
    const std::string error = OwtError(path);
    EXPECT_TRUE(Says(error, path.string() + ": packed with gzip or zstd",
                     "or repack it with xz"));
    EXPECT_EQ(error.find("damaged"), error.npos) << error;
  }
}

TEST(Owt, NamesTheMemberThatIsDamaged) {
  const auto path = FreshFolder("owt_damaged") / "o.tar";
  std::string inner = Tar({{"1.txt", TestText(TestDocuments(99))}}, true);
  inner.resize(inner.size() / 2);
  WriteFileAtomically(path, Tar({{"subset.xz", inner}}, false));
  const std::string error = OwtError(path);
  EXPECT_TRUE(Says(error, "o.tar > subset.xz"));
}

TEST(Owt, NeverReturnsHalfADocument) {
  const auto path = FreshFolder("owt_half") / "o.tar";
  const std::string text(5000, 'x');
  const std::string bytes = Tar({{"1.txt", "whole"}, {"2.txt", text}}, false);
  // A header of 512 bytes before each; "whole" fills another 512.
  WriteFileAtomically(path, bytes.substr(0, 3 * 512 + 2000));
  const auto source = OpenOwt(path);
  std::string document;
  ASSERT_TRUE(source->Next(&document));
  EXPECT_EQ(document, "whole");
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { source->Next(&document); }),
                   "o.tar > 2.txt: Truncated tar archive"))
      << document.size();
}

// As PackedFile: the descriptor of the archive becomes that of a folder.
TEST(Owt, ADiskThatFailsIsNoDamage) {
  ArchiveMembers inner;
  for (const std::string& text : TestDocuments(300)) {
    inner.emplace_back("0-" + std::to_string(inner.size()) + ".txt", text);
  }
  const fs::path path = FreshFolder("owt_disk") / "a.tar";
  WriteFileAtomically(
      path, Tar({{"first.txt", "text"}, {"in.tar", Tar(inner, false)}}, false));
  ASSERT_GT(fs::file_size(path), 250'000u);  // more than is read at a time
  const int folder = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int next = ::dup(folder);
  ::close(next);
  const auto source = OpenOwt(path, {});  // takes the lowest free number
  std::string document;
  ASSERT_TRUE(source->Next(&document));
  EXPECT_EQ(document, "text");
  ASSERT_EQ(::dup3(folder, next, O_CLOEXEC), next);
  ::close(folder);
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] {
                     while (source->Next(&document)) continue;
                   }),
                   "cannot read '" + path.string() + "': "));
}

TEST(Owt, RefusesTextThatIsNotUtf8) {
  const auto path = FreshFolder("owt_binary") / "o.tar.xz";
  WriteFileAtomically(path, Tar({{"1.txt", "caf\xE9"}}, true));
  const std::string error = OwtError(path);
  EXPECT_TRUE(Says(error, "o.tar.xz > 1.txt: byte 3 is not UTF-8"));
}

// A member that is packed by itself is a shard: read in any order and at any
// time, each gives its documents.
TEST(Owt, MembersOfAnArchiveAreShards) {
  const auto folder = FreshFolder("owt_shards");
  const Documents documents = TestDocuments(40);
  WriteFileAtomically(folder / "openwebtext.tar.xz", NestedTar(documents));
  const auto next = OwtShards(DigestOwt(folder), {});
  std::vector<Shard> shards(3);
  ASSERT_TRUE(next(&shards[0]));
  ASSERT_TRUE(next(&shards[1]));
  EXPECT_FALSE(next(&shards[2]));
  EXPECT_TRUE(shards[1].name.ends_with(
      "openwebtext.tar.xz > openwebtext/urlsf_subset00-1_data.xz"));
  EXPECT_EQ(DocumentsOf(shards[1].open()),
            Documents(documents.begin() + 20, documents.end()));
  const auto first = shards[0].open();
  EXPECT_EQ(DocumentsOf(first),
            Documents(documents.begin(), documents.begin() + 20));
  EXPECT_EQ(first->skipped().empty, 1);
  EXPECT_EQ(first->input_bytes(), 0);  // not counted
  EXPECT_NE(shards[0].digest, shards[1].digest);
}

// openwebtext.tar.xz unpacks to such files: each is a shard.
TEST(Owt, FilesOfDocumentsAreShards) {
  const auto folder = FreshFolder("owt_files");
  WriteFileAtomically(folder / "a.xz", Tar({{"1.txt", "one"}}, true));
  WriteFileAtomically(folder / "b.tar",
                      Tar({{"README", "x"},
                           {"c.tar", Tar({{"2.txt", "two"}}, false)},
                           {"3.txt", "three"}},
                          false));
  Documents names;
  EXPECT_EQ(ReadOwt(folder, &names), (Documents{"one", "two", "three"}));
  EXPECT_EQ(names.front(), "a.xz");
}

// The end of an archive inside does not end the file.
TEST(Owt, AFileOfDocumentsMayHoldArchives) {
  const auto path = FreshFolder("owt_inside") / "o.tar";
  const std::string inside = Tar({{"2.txt", "two"}, {"3.txt", "three"}}, true);
  WriteFileAtomically(
      path,
      Tar({{"1.txt", "one"}, {"in.xz", inside}, {"4.txt", "four"}}, false));
  const auto source = OpenOwt(path);
  EXPECT_EQ(DocumentsOf(source), (Documents{"one", "two", "three", "four"}));
  EXPECT_EQ(source->input_bytes(), static_cast<int64_t>(fs::file_size(path)));
  EXPECT_EQ(source->sha256(), Sha256OfFile(path));
}

TEST(Owt, CountsWhatItLeavesOut) {
  const auto path = FreshFolder("owt_skip") / "o.tar.xz";
  WriteFileAtomically(
      path,
      Tar({{"1.txt", "caf\xE9"}, {"2.txt", "good"}, {"3.txt", ""}}, true));
  const auto source = OpenOwt(path, {.on_bad = OnBad::kSkip});
  EXPECT_EQ(DocumentsOf(source), (Documents{"good"}));
  EXPECT_EQ(source->skipped().empty, 1);
  EXPECT_EQ(source->skipped().bad, 1);
  EXPECT_EQ(source->skipped().first[0],
            path.string() + " > 1.txt: byte 3 is not UTF-8 text");
  // The shards count the same, each for itself.
  const auto next = OwtShards(DigestOwt(path), {.on_bad = OnBad::kSkip});
  Skipped of_shards;
  for (Shard shard; next(&shard);) {
    const auto documents = shard.open();
    DocumentsOf(documents);
    of_shards.Add(documents->skipped());
  }
  EXPECT_EQ(of_shards.empty, 1);
  EXPECT_EQ(of_shards.bad, 1);
}

// Even if it is a shard by itself, because an archive comes before it.
TEST(Owt, LeavesOutADocumentThatIsTooLong) {
  const auto path = FreshFolder("owt_long") / "o.tar.xz";
  const std::string text(kMaxDocumentBytes + 1, 'x');
  WriteFileAtomically(path, Tar({{"in.xz", Tar({{"1.txt", "one"}}, true)},
                                 {"2.txt", text},
                                 {"3.txt", "three"}},
                                true));
  const std::string why = path.string() + " > 2.txt: a document of over " +
                          std::to_string(kMaxDocumentBytes) + " bytes";
  EXPECT_TRUE(Says(OwtError(path), why, "--on-bad=skip"));
  const ReadOptions skip{.on_bad = OnBad::kSkip};
  EXPECT_EQ(ReadOwt(path, nullptr, skip), (Documents{"one", "three"}));
  const auto next = OwtShards(DigestOwt(path), skip);
  Shard shard;
  ASSERT_TRUE(next(&shard) && next(&shard));
  EXPECT_EQ(shard.bytes, std::ssize(text));
  EXPECT_EQ(shard.sha256, Sha256Hex(text));
  for (const auto& source : {shard.open(), OpenOwt(path, skip)}) {
    DocumentsOf(source);
    EXPECT_EQ(source->skipped().bad, 1);
    EXPECT_EQ(source->skipped().first, Documents{why});
  }
  EXPECT_EQ(shard.open()->input_bytes(), 0);  // not counted
  // An archive that is a shard would be held in memory.
  WriteFileAtomically(path, Tar({{"in.xz", text}}, true));
  EXPECT_TRUE(Says(OwtError(path), "in.xz: a member of over 64 MB"));
}

}  // namespace
}  // namespace softmoe::trainer

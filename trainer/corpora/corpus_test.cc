// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/corpus.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <iterator>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/corpora/standin_corpora.h"
#include "trainer/testing/corpus_test_util.h"

namespace softmoe::trainer {
namespace {

using Documents = std::vector<std::string>;

Documents ReadAll(const Corpus& corpus) { return DocumentsOf(corpus.open()); }

TEST(FindCorpus, ReadsATextFileAgainAndAgain) {
  const auto folder = FreshFolder("corpus");
  const Documents documents = TestDocuments(20);
  WriteFileAtomically(folder / "t.txt", TestText(documents));
  const std::string path = (folder / "t.txt").string();
  const std::string name = "path:" + path;
  const Corpus corpus = FindCorpus(name, {.cache = folder});
  EXPECT_EQ(ReadAll(corpus), documents);
  EXPECT_EQ(ReadAll(corpus), documents);
  EXPECT_EQ(corpus.name, name);
  EXPECT_FALSE(corpus.stand_in);
  EXPECT_EQ(corpus.kind, "path");
  EXPECT_EQ(corpus.description, "a text file of the user's, " + path);
  EXPECT_EQ(corpus.provenance, path + " (SHA-256 " + corpus.key + ")");
  EXPECT_EQ(corpus.bytes, std::ssize(TestText(documents)));
  EXPECT_EQ(corpus.verify(), "no published checksum of this text is known");
}

TEST(FindCorpus, MakesAStandInOfItsPackage) {
  const auto folder = FreshFolder("standin_corpus");
  const auto debs = folder / "corpora" / "packages";
  std::filesystem::create_directories(debs);
  BuildDeb(debs, "dict-foldoc", "7", DictFiles("foldoc", {"One lamp.\n"}));
  const Corpus corpus = FindCorpus("foldoc", {.cache = folder});
  EXPECT_EQ(ReadAll(corpus), (Documents{"One lamp."}));
  EXPECT_TRUE(corpus.stand_in);
  EXPECT_EQ(corpus.description, FindStandin("foldoc")->description);
  EXPECT_TRUE(corpus.provenance.starts_with("Debian package dict-foldoc 7 ("));
}

TEST(FindCorpus, KeyFollowsTheContent) {
  const auto folder = FreshFolder("key");
  const auto key = [&](const std::string& content) {
    WriteFileAtomically(folder / "t.txt", content);
    const std::string name = "path:" + (folder / "t.txt").string();
    return FindCorpus(name, {.cache = folder}).key;
  };
  EXPECT_EQ(key("one"), key("one"));
  EXPECT_NE(key("one"), key("two"));
}

TEST(FindCorpus, TakesRelativePathsFromWhereTheUserStands) {
  const auto folder = FreshFolder("stand");
  WriteFileAtomically(folder / "t", "one\ntwo");
  ::setenv("BUILD_WORKING_DIRECTORY", folder.c_str(), 1);
  const Corpus corpus = FindCorpus("path:t", {.cache = folder});
  ::unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_EQ(ReadAll(corpus), (Documents{"one", "two"}));
}

TEST(FindCorpus, FindsPublishedCorporaByPathAndInTheCache) {
  const auto folder = FreshFolder("published");
  std::filesystem::create_directories(folder / "corpora" / "c4");
  WriteFileAtomically(folder / "corpora" / "c4" / "c4-train.0.json",
                      "{\"text\": \"one\"}\n");
  const Corpus cached = FindCorpus("c4", {.cache = folder});
  EXPECT_EQ(ReadAll(cached), (Documents{"one"}));
  const Corpus by_path = FindCorpus(
      "c4:" + (folder / "corpora" / "c4").string(), {.cache = "/nowhere"});
  EXPECT_EQ(by_path.key, cached.key);
  EXPECT_THROW(FindCorpus("owt", {.cache = folder}), EnvironmentError);
  EXPECT_THROW(FindCorpus("owt:/nowhere", {.cache = folder}), EnvironmentError);
}

// The key follows the content: copied, renamed and touched files keep theirs.
TEST(FindCorpus, KeyOfPublishedCorporaFollowsTheContent) {
  const auto folder = FreshFolder("copied");
  const auto corpus = [&](const std::string& place, const std::string& text) {
    std::filesystem::create_directories(folder / place);
    WriteGzip(folder / place / "c4-train.0.json.gz",
              "{\"text\": \"" + text + "\"}\n");
    return FindCorpus("c4:" + (folder / place).string(), {.cache = "/nowhere"});
  };
  const Corpus here = corpus("here", "one");
  EXPECT_EQ(corpus("there", "one").key, here.key);
  EXPECT_EQ(corpus("there", "one").kind, here.kind);
  EXPECT_NE(corpus("there", "two").key, here.key);
  EXPECT_EQ(here.current_key(), here.key);
  corpus("here", "two");
  EXPECT_NE(here.current_key(), here.key);
}

TEST(FindCorpus, TakesThePlaceOfACorpusFromTheOptions) {
  const auto folder = FreshFolder("placed");
  WriteFileAtomically(folder / "c4-train.0.json", "{\"text\": \"one\"}\n");
  RuntimeConfig runtime;
  runtime.place_c4 = folder.string();
  runtime.place_owt = "/owt";
  const CorpusPlaces places = PlacesOf(runtime);
  EXPECT_EQ(places, (CorpusPlaces{{"c4", folder}, {"owt", "/owt"}}));
  const Corpus corpus =
      FindCorpus("c4", {.cache = "/nowhere", .places = places});
  EXPECT_EQ(ReadAll(corpus), (Documents{"one"}));
  EXPECT_EQ(corpus.name, "c4");
  EXPECT_EQ(SizeOfCorpus("c4", "/nowhere", places).bytes, 16);
  EXPECT_EQ(corpus.text_of(1, 0), "a part of c4: 1 of 364868892 documents");
}

TEST(FindCorpus, ReadsJsonLinesOfTheUser) {
  const auto folder = FreshFolder("jsonl");
  WritePacked(folder / "b.jsonl.zst", "{\"body\": \"two\"}\n", "zstd");
  WritePacked(folder / "a.jsonl.xz", "{\"body\": \"one\"}\n", "xz");
  const Corpus corpus =
      FindCorpus("jsonl:" + folder.string(),
                 {.cache = "/nowhere", .read = {.text_key = "body"}});
  EXPECT_EQ(ReadAll(corpus), (Documents{"one", "two"}));
  EXPECT_EQ(corpus.text_of(2, 0), "");
  EXPECT_EQ(corpus.kind, "jsonl body");
}

TEST(FindCorpus, CountsWhatItLeftOutSoFar) {
  const auto folder = FreshFolder("left_out");
  WriteFileAtomically(folder / "a.jsonl", "{\n{\"text\": \"one\"}\n");
  WriteFileAtomically(folder / "b.jsonl", "[]\n{\"text\": \"two\"}\n{\n");
  const auto source =
      FindCorpus("jsonl:" + folder.string(),
                 {.cache = "/nowhere", .read = {.on_bad = OnBad::kSkip}})
          .open();
  std::string document;
  for (const int64_t bad : {1, 2}) {
    ASSERT_TRUE(source->Next(&document));
    EXPECT_EQ(source->skipped().bad, bad);
    EXPECT_EQ(source->input_bytes(), bad == 1 ? 18 : 18 + 21);
  }
  EXPECT_FALSE(source->Next(&document));
  EXPECT_EQ(source->input_bytes(), 18 + 21);
  const Skipped skipped = source->skipped();
  EXPECT_EQ(skipped.bad, 3);
  ASSERT_EQ(skipped.first.size(), 3u);
  EXPECT_TRUE(Says(skipped.first[2], "b.jsonl:3: "));
}

// Its tokens must not be taken for those of the text, nor its documents for
// those that the publishers count.
TEST(FindCorpus, AnotherStringOfAPublishedCorpusIsAnotherCorpus) {
  const auto folder = FreshFolder("urls");
  WriteFileAtomically(folder / "c4-train.0.json",
                      "{\"text\": \"one\", \"url\": \"two\"}\n");
  const std::string name = "c4:" + folder.string();
  const Corpus texts = FindCorpus(name, {.cache = "/nowhere"});
  const Corpus urls =
      FindCorpus(name, {.cache = "/nowhere", .read = {.text_key = "url"}});
  EXPECT_EQ(ReadAll(urls), (Documents{"two"}));
  EXPECT_EQ(texts.kind, "c4 text");
  EXPECT_EQ(urls.kind, "c4 url");
  EXPECT_EQ(urls.text_of(364868892, 0), "not c4: its \"url\"");
}

TEST(FindCorpus, ReadsPackedTexts) {
  const auto folder = FreshFolder("packed_text");
  const Documents documents = TestDocuments(300);
  for (const std::string form : {"gzip", "xz", "zstd"}) {
    WritePacked(folder / form, TestText(documents), form);
    const Corpus corpus =
        FindCorpus("path:" + (folder / form).string(), {.cache = "/nowhere"});
    EXPECT_EQ(ReadAll(corpus), documents) << form;
  }
}

TEST(FindCorpus, NormalisesIfAskedTo) {
  const auto path = FreshFolder("normalised") / "x.jsonl";
  WriteFileAtomically(path,
                      "{\"text\": \" one\\n\\n\\n\\ntwo\\n\"}\n"
                      "{\"text\": \" \\n\"}\n"
                      "{\"text\": \"\"}\n"
                      "{\"body\": \"three\"}\n");
  const Corpus corpus = FindCorpus("jsonl:" + path.string(),
                                   {.cache = "/nowhere",
                                    .read = {.on_bad = OnBad::kSkip},
                                    .normalise = Normalise::kHfOpenWebText});
  Shard shard;
  ASSERT_TRUE(corpus.shards()(&shard));
  const auto source = shard.open();
  EXPECT_EQ(DocumentsOf(source), (Documents{"one\n\ntwo"}));
  EXPECT_EQ(source->input_bytes(), corpus.bytes);
  EXPECT_EQ(source->sha256(), Sha256OfFile(path));
  EXPECT_EQ(source->skipped().empty, 2);
  EXPECT_EQ(source->skipped().bad, 1);
  ASSERT_EQ(source->skipped().first.size(), 1u);
  EXPECT_TRUE(Says(source->skipped().first[0], "x.jsonl:4"));
}

// The answers of Python 3.11: re.sub("\n\n\n+", "\n\n", file.read()).strip() of
// a file that open() reads as text.
TEST(NormaliseAsHuggingFace, IsWhatPythonDoes) {
  EXPECT_EQ(NormaliseAsHuggingFace(""), "");
  EXPECT_EQ(NormaliseAsHuggingFace("a\n\nb"), "a\n\nb");
  EXPECT_EQ(NormaliseAsHuggingFace("a\n\n\nb"), "a\n\nb");
  EXPECT_EQ(NormaliseAsHuggingFace("a\n\n\n\n\n\nb\n \n\nc"), "a\n\nb\n \n\nc");
  EXPECT_EQ(NormaliseAsHuggingFace("\u3000\u00A0\x1C a \u2003\n\n\n"), "a");
  EXPECT_EQ(NormaliseAsHuggingFace("\u200Ba\u200B"), "\u200Ba\u200B");
  EXPECT_EQ(NormaliseAsHuggingFace("a\r\nb\rc\n\rd\r\r\ne"),
            "a\nb\nc\n\nd\n\ne");
  EXPECT_EQ(NormaliseAsHuggingFace("a\r\n\r\n\r\nb\r\r\rc\r\n\n\rd\r"),
            "a\n\nb\n\nc\n\nd");
}

// JSON lines of OpenWebText are Hugging Face's text: all forms are one corpus
// only if all are normalised.
TEST(FindCorpus, RefusesHuggingFacesTextAsThePublishers) {
  const auto folder = FreshFolder("owt_json");
  WriteFileAtomically(folder / "owt.jsonl", "{\"text\": \"one\"}\n");
  CorpusOptions options{.cache = "/nowhere", .places = {{"owt", folder}}};
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { FindCorpus("owt", options); }),
                   folder.string(), "data.normalise = \"hf_openwebtext\""));
  options.normalise = Normalise::kHfOpenWebText;
  EXPECT_EQ(ReadAll(FindCorpus("owt", options)), (Documents{"one"}));
  options.places["owt"] = folder / "owt.jsonl";
  EXPECT_EQ(ReadAll(FindCorpus("owt", options)), (Documents{"one"}));
}

TEST(FindCorpus, SaysHowHuggingFacesParquetBecomesOpenWebText) {
  const auto folder = FreshFolder("owt_parquet");
  std::filesystem::create_directories(folder / "plain_text");
  WriteFileAtomically(folder / "plain_text" / "train-0.parquet", "PAR1");
  const CorpusOptions options{.cache = "/nowhere", .places = {{"owt", folder}}};
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { FindCorpus("owt", options); }),
                   "train-0.parquet", "parquet_to_jsonl.py",
                   "--corpus owt --place owt=OUT.jsonl.zst",
                   "--normalise hf_openwebtext", "data.normalise"));
}

TEST(FindCorpus, SaysWhichFilesOfAPublisherItReads) {
  const auto folder = FreshFolder("publisher");
  const auto write = [&](const char* name) {
    WriteFileAtomically(folder / name,
                        fmt::format("{{\"text\": \"{}\"}}\n", name));
    return FindCorpus("c4:" + folder.string(), {.cache = "/nowhere"});
  };
  const std::string first = (folder / "c4-train.0.json").string();
  const Corpus one = write("c4-train.0.json");
  EXPECT_TRUE(one.description.ends_with(", from 1 of its publishers' files"))
      << one.description;
  EXPECT_EQ(one.provenance, first);
  const Corpus two = write("c4-train.1.json");
  EXPECT_TRUE(two.description.ends_with(", from 2 of its publishers' files"))
      << two.description;
  EXPECT_EQ(two.provenance,
            first + " .. " + (folder / "c4-train.1.json").string());
  EXPECT_EQ(two.bytes, 2 * 28);
  EXPECT_EQ(two.parallel_shards, 2);
  EXPECT_TRUE(two.verify().starts_with("0 of 2 files have"));
}

// A download that was cut off before its first byte.
TEST(FindCorpus, ReadsAnArchiveOfNoBytes) {
  const auto folder = FreshFolder("owt_empty");
  WriteFileAtomically(folder / "a.tar", "");
  const Corpus corpus =
      FindCorpus("owt:" + folder.string(), {.cache = "/nowhere"});
  EXPECT_EQ(corpus.bytes, 0);
  EXPECT_EQ(corpus.parallel_shards, 1);
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { ReadAll(corpus); }), "a.tar"));
}

TEST(SizeOfCorpus, IsThatOfTheFilesOrExpected) {
  const auto folder = FreshFolder("size");
  const std::filesystem::path c4 = folder / "corpora" / "c4";
  const auto expect = [&](const std::string& name, const auto& place, bool here,
                          int64_t bytes) {
    const CorpusSize size = SizeOfCorpus(name, folder);
    EXPECT_EQ(size.place, place) << name;
    EXPECT_EQ(size.here, here) << name;
    EXPECT_EQ(size.bytes, bytes) << name;
  };
  expect("c4", c4, false, 0);
  std::filesystem::create_directories(c4 / "en");
  WriteFileAtomically(c4 / "en" / "c4-train.0.json", "0123456789");
  WriteFileAtomically(c4 / "en" / "c4-train.1.json", "01234");
  // The other files of a clone are not text.
  std::filesystem::create_directories(c4 / ".git");
  for (const char* name : {"README.md", "en/c4-validation.0.json", ".git/x"}) {
    WriteFileAtomically(c4 / name, "0123456");
  }
  expect("c4", c4, true, 15);
  expect("c4:" + (c4 / "en").string(), c4 / "en", true, 15);
  expect("jsonl:" + (c4 / "en").string(), c4 / "en", true, 22);
  const auto file = c4 / "en" / "c4-train.1.json";
  expect("path:" + file.string(), file, true, 5);
  expect("path:" + (folder / "x").string(), folder / "x", false, 0);
  expect("foldoc", folder / "corpora" / "foldoc", false, 4'968'806);
  expect("nothing", folder / "corpora" / "nothing", false, 0);
}

TEST(SizeOfCorpus, KnowsHowMuchTextItIs) {
  const auto folder = FreshFolder("text_size");
  const auto expect = [&](const std::string& name, int64_t text_bytes,
                          int64_t documents) {
    const CorpusSize size = SizeOfCorpus(name, folder);
    EXPECT_EQ(size.text_bytes, text_bytes) << name;
    EXPECT_EQ(size.documents, documents) << name;
  };
  // Nothing is here, so the estimate is for all of it.
  expect("c4", 790'000'000'000, 364'868'892);
  expect("owt", 39'700'000'000, 8'013'769);
  expect("foldoc", 4'968'806, 0);
  expect("jsonl:" + (folder / "nothing").string(), 0, 0);
  // A thousandth of the archive's bytes holds a thousandth of its documents.
  const auto here = folder / "corpora" / "owt";
  std::filesystem::create_directories(here);
  WritePacked(here / "urlsf_subset00-1_data.xz", "x", "xz");
  std::filesystem::resize_file(here / "urlsf_subset00-1_data.xz", 12'880'027);
  WriteFileAtomically(here / "README.md", "plain");
  const CorpusSize part = SizeOfCorpus("owt", folder);
  EXPECT_NEAR(static_cast<double>(part.text_bytes), 39.7e6, 1e3);
  EXPECT_NEAR(static_cast<double>(part.documents), 8013.769, 1);
  // Plain files hold no more text than bytes; of packed ones it is unknown.
  WritePacked(folder / "plain", "x", "plain");
  expect("path:" + (folder / "plain").string(), 1, 0);
  WritePacked(folder / "gzip", "some text", "gzip");
  expect("path:" + (folder / "gzip").string(), 0, 0);
  std::filesystem::create_directories(folder / "corpora" / "foldoc");
  WriteFileAtomically(folder / "corpora" / "foldoc" / "text.txt", "a text");
  expect("foldoc", 6, 0);
}

TEST(FindCorpus, RefusesUnknownNamesAndShowsTheKnown) {
  for (const std::string name :
       {"", "wikipedia", "path:", "path", "c4:", "gcide:x", ":x"}) {
    EXPECT_TRUE(Says(MessageOf<ConfigError>(
                         [&] { FindCorpus(name, {.cache = "/nowhere"}); }),
                     "\"" + name + "\"", "gcide", "path:FILE"))
        << name;
  }
}

TEST(FindCorpus, RefusesPipesAndDevicesAtOnce) {
  const auto pipe = FreshFolder("pipe") / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  // One has no writer, the other no end: reading either would take forever.
  for (const std::string& path : {pipe.string(), std::string("/dev/zero")}) {
    EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] {
                       FindCorpus("path:" + path, {.cache = "/nowhere"});
                     }),
                     path, "a device or a pipe"))
        << path;
  }
}

TEST(FindCorpus, NamesAMissingFile) {
  EXPECT_THROW(FindCorpus("path:/nowhere.txt", {.cache = "/nowhere"}),
               EnvironmentError);
}

}  // namespace
}  // namespace softmoe::trainer

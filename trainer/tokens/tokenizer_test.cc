// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/utf8_test_util.h"
#include "trainer/corpora/utf8.h"
#include "trainer/testing/corpus_test_util.h"
#include "trainer/tokens/tokenizer_sample.h"

namespace softmoe::trainer {
namespace {

constexpr int64_t kTestVocabSize = 400;

const std::string& Model() {
  static const std::string model = TrainTokenizer(TestDocuments(400), 400);
  return model;
}

const Tokenizer& TestTokenizer() {
  static const Tokenizer tokenizer(Model(), "test");
  return tokenizer;
}

TEST(Tokenizer, HasTheVocabularyAskedFor) {
  EXPECT_EQ(TestTokenizer().vocab_size(), kTestVocabSize);
  EXPECT_EQ(TestTokenizer().end_of_document(), 1);
}

TEST(Tokenizer, TrainsTheSameBytesTwice) {
  EXPECT_EQ(TrainTokenizer(TestDocuments(400), kTestVocabSize), Model());
}

// Byte-level text costs one token per byte; merges that follow the corpus
// must do far better on unseen text of the same kind. A vocabulary of
// 400 - 258 pieces over a grammar of some 60 words: 2 bytes per token is easy.
TEST(Tokenizer, CompressesTheTextItWasTrainedFor) {
  const std::string text = TestText(TestDocuments(50, 99));
  EXPECT_LT(TestTokenizer().Encode(text).size(), text.size() / 2);
}

TEST(Tokenizer, KeepsEveryCharacter) {
  for (const std::string text :
       {"", " ", "  two  spaces ", "line\nline\n\n", "\ttab\r\n",
        "caf\u00E9 na\u00EFve", "\u4E2D\u6587 \U0001F600", "<|endoftext|>",
        "<0x41> <unk> </s>", "0123456789", "a\u0301 \u00E1 \uFB01"}) {
    EXPECT_EQ(TestTokenizer().Decode(TestTokenizer().Encode(text)), text);
  }
}

TEST(Tokenizer, NeverProducesControlPieces) {
  for (const std::string text :
       {"<|endoftext|>", "<unk>", "\u4E2D", "the lamp"}) {
    for (const int32_t id : TestTokenizer().Encode(text)) EXPECT_GT(id, 1);
  }
}

TEST(Tokenizer, LineEndIsOneToken) {
  const auto ids = TestTokenizer().Encode("\n\n");
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0], ids[1]);
}

RC_GTEST_PROP(Tokenizer, RoundTripsAnyText, (const std::string& bytes)) {
  int64_t repaired = 0;
  const std::string text = RepairText(bytes, &repaired);
  RC_PRE(text.find("\u2581") == std::string::npos);
  const auto ids = TestTokenizer().Encode(text);
  for (const int32_t id : ids) RC_ASSERT(id > 1 && id < kTestVocabSize);
  RC_ASSERT(TestTokenizer().Decode(ids) == text);
}

// The bytes of `text` by the counts of its tokens and of an end of document.
std::optional<int64_t> BytesByCounts(const std::string& text) {
  std::vector<int64_t> counts(kTestVocabSize);
  for (const int32_t id : TestTokenizer().Encode(text)) {
    ++counts[static_cast<size_t>(id)];
  }
  ++counts[1];
  return TestTokenizer().TextBytes(counts);
}

TEST(Tokenizer, TextBytesAreThoseOfEveryKindOfPiece) {
  for (const std::string text :
       {"", " ", "  two  spaces ", "\n\ttab\r\n", "the lamp",
        "caf\u00E9 na\u00EFve", "\u4E2D\u6587 \U0001F600", "<|endoftext|>",
        "<0x41> <unk> </s>", "a\u0301 \u00E1 \uFB01\u3000\uFEFF\u200D"}) {
    EXPECT_EQ(BytesByCounts(text), std::ssize(text)) << text;
  }
  // What comes back as a space counts as one.
  EXPECT_EQ(BytesByCounts("a\u2581b"), 3);
  // A character that the model does not know might be any.
  std::vector<int64_t> counts(kTestVocabSize);
  counts[0] = 1;
  EXPECT_EQ(TestTokenizer().TextBytes(counts), std::nullopt);
}

// Surrogates are for RepairText.
RC_GTEST_PROP(Tokenizer, TextBytesAreThoseOfAnyText,
              (const std::string& bytes, const std::vector<uint32_t>& any)) {
  std::string wild = bytes;
  for (const uint32_t c : any) wild += Utf8(c % 0x110000);
  int64_t repaired = 0;
  const std::string text = RepairText(wild, &repaired);
  RC_ASSERT(BytesByCounts(text) ==
            std::ssize(TestTokenizer().Decode(TestTokenizer().Encode(text))));
  RC_PRE(text.find("\u2581") == std::string::npos);
  RC_ASSERT(BytesByCounts(text) == std::ssize(text));
}

using Options = std::unordered_map<std::string, std::string>;

// A tokenizer as others train one, with `options` of SentencePiece.
Tokenizer ForeignTokenizer(Options options) {
  const auto folder = FreshFolder("foreign");
  WriteFileAtomically(folder / "in.txt", TestText(TestDocuments(400)));
  options.merge(Options{{"input", (folder / "in.txt").string()},
                        {"model_type", "bpe"},
                        {"vocab_size", std::to_string(kTestVocabSize)},
                        {"hard_vocab_limit", "false"},
                        {"byte_fallback", "true"},
                        {"normalization_rule_name", "identity"},
                        {"remove_extra_whitespaces", "false"},
                        {"add_dummy_prefix", "false"},
                        {"minloglevel", "2"}});
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(
      options, /*sentence_iterator=*/nullptr, &model);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return Tokenizer(model, "foreign");
}

// A foreign model tells nothing wrong, neither by words nor by counts.
TEST(Tokenizer, TrustsNoForeignModelThatChangesTextsOrWords) {
  const std::string text =
      "One.\n\nTwo.\n\n\nThe \u732B\n\u72AC  lamp. The \uFB01ne "
      "\u00BD\uFF21\u3000x \u201CThree.\u201D\r\n" +
      TestText(TestDocuments(20, 7));
  const auto expect = [&](const Options& options, bool ends_at_words,
                          std::optional<int64_t> bytes) {
    const Tokenizer tokenizer = ForeignTokenizer(options);
    const std::string name = options.empty() ? "" : options.begin()->second;
    EXPECT_EQ(tokenizer.pieces_end_at_words(), ends_at_words) << name;
    const std::vector<int32_t> ids = tokenizer.Encode(text);
    std::vector<int32_t> by_words;
    WordEncoder(tokenizer).Encode(text, &by_words);
    EXPECT_TRUE(by_words == ids) << name;
    std::vector<int64_t> counts(static_cast<size_t>(tokenizer.vocab_size()));
    for (const int32_t id : ids) ++counts[static_cast<size_t>(id)];
    EXPECT_EQ(tokenizer.TextBytes(counts), bytes) << name;
  };
  expect({}, true, std::ssize(text));
  // A sum over the whole text chooses its pieces.
  expect({{"model_type", "unigram"}}, false, std::ssize(text));
  expect({{"split_by_whitespace", "false"}}, false, std::ssize(text));
  // Consecutive unknown characters are one piece.
  expect({{"byte_fallback", "false"}}, false, std::nullopt);
  expect({{"normalization_rule_name", "nmt_nfkc"}}, false, std::nullopt);
  expect({{"add_dummy_prefix", "true"}}, false, std::nullopt);
  expect({{"remove_extra_whitespaces", "true"}}, false, std::nullopt);
  // A model's own rules may be for characters that the probe lacks.
  const auto rules = FreshFolder("rules") / "rules.tsv";
  WriteFileAtomically(rules, "D A\tA\n201C\t22\n201D\t22\n");
  expect({{"normalization_rule_tsv", rules.string()}}, false, std::nullopt);
  expect({{"denormalization_rule_tsv", rules.string()}}, false, std::nullopt);
}

// This model ends in a group of an unknown field: the library skips the group,
// but we read nothing behind it.
TEST(Tokenizer, TrustsNoModelThatItCannotReadToTheEnd) {
  const std::string model = TrainTokenizer(TestDocuments(400), kTestVocabSize);
  const auto bytes_of_no_text = [](const std::string& bytes) {
    const Tokenizer tokenizer(bytes, "model");
    return tokenizer.TextBytes(
        std::vector<int64_t>(static_cast<size_t>(tokenizer.vocab_size())));
  };
  EXPECT_EQ(bytes_of_no_text(model), 0);
  EXPECT_EQ(bytes_of_no_text(model + "\xFB\x07\xFC\x07"), std::nullopt);
  // The group as a part of the settings of the normalisation.
  EXPECT_EQ(bytes_of_no_text(model + "\x1A\x04\xFB\x07\xFC\x07"), std::nullopt);
  // Unknown fields of all other types: a number, 8, 128 and 4 bytes.
  const auto filler = [](size_t count) { return std::string(count, '\xFF'); };
  EXPECT_EQ(bytes_of_no_text(model + "\xF8\x07" + filler(9) + "\x01" +
                             "\xF9\x07" + filler(8) + "\xFA\x07\x80\x01" +
                             filler(128) + "\xFD\x07" + filler(4)),
            0);
}

// With words remembered, around spaces and line ends of all kinds.
RC_GTEST_PROP(WordEncoder, GivesTheIdsOfTheTokenizer,
              (const std::vector<std::string>& words)) {
  static WordEncoder encoder(TestTokenizer());
  ASSERT_TRUE(TestTokenizer().pieces_end_at_words());
  std::string bytes;
  for (const std::string& word : words) {
    bytes += word + *rc::gen::element<std::string>(" ", "  ", "\n", " \n", "\t",
                                                   "\u2581", " the river ");
  }
  int64_t repaired = 0;
  const std::string text = RepairText(bytes, &repaired);
  for (int i = 0; i < 2; ++i) {
    std::vector<int32_t> ids = {7};
    encoder.Encode(text, &ids);
    RC_ASSERT(ids.front() == 7);
    ids.erase(ids.begin());
    RC_ASSERT(ids == TestTokenizer().Encode(text));
  }
}

TEST(WordEncoder, ForgetsWordsWithoutChangingIds) {
  WordEncoder encoder(TestTokenizer());
  std::string text;
  for (int i = 0; i < 70000; ++i) text += " word" + std::to_string(i);
  for (int i = 0; i < 2; ++i) {
    std::vector<int32_t> ids;
    encoder.Encode(text, &ids);
    EXPECT_TRUE(ids == TestTokenizer().Encode(text));
  }
}

TEST(TrainTokenizer, CutsLongLinesBetweenCharacters) {
  // One line, no space: 4000 falls inside a character.
  std::string line = "x";
  while (line.size() < 50000) line += "\u00E9\u4E2D";
  auto documents = TestDocuments(400);
  documents.push_back(line);
  const Tokenizer tokenizer(TrainTokenizer(documents, kTestVocabSize), "test");
  EXPECT_EQ(tokenizer.Decode(tokenizer.Encode(line)), line);
}

// At the last space among the first 4001 bytes, unless that is the first byte.
TEST(TrainTokenizer, CutsLongLinesAtASpace) {
  const std::string x(3990, 'x'), y(4000, 'y');
  auto whole = TestDocuments(400), parts = whole;
  whole.push_back(x + " " + y.substr(1) + y + "\nend");
  parts.insert(parts.end(), {x, " " + y.substr(1), y, "end"});
  EXPECT_TRUE(TrainTokenizer(whole, kTestVocabSize) ==
              TrainTokenizer(parts, kTestVocabSize));
}

// TrainTokenizer's refusal, or kNoError.
std::string Refusal(const std::vector<std::string>& documents, int64_t size) {
  return MessageOf<DataError>([&] { TrainTokenizer(documents, size); });
}

// The number after `marker`, 0 if it is not there.
int64_t Advised(const std::string& message, const std::string& marker) {
  const size_t at = message.find(marker);
  return at == message.npos ? 0
                            : std::stoll(message.substr(at + marker.size()));
}

TEST(TrainTokenizer, SaysHowManyPiecesTheCorpusGives) {
  const auto documents = TestDocuments(400);
  const std::string message = Refusal(documents, 5000);
  const int64_t most = Advised(message, "a smaller model.vocab_size, at most ");
  ASSERT_GT(most, kMinVocabSize) << message;
  EXPECT_EQ(Refusal(documents, most), kNoError);
  EXPECT_NE(Refusal(documents, most + 1), kNoError);
}

TEST(TrainTokenizer, SaysHowManyPiecesTheLettersNeed) {
  // 500 letters, each as frequent as the others.
  std::string letters;
  for (uint32_t i = 0; i < 500; ++i) letters += Utf8(0x4E00 + i);
  const std::vector<std::string> documents = {letters, letters};
  const std::string message = Refusal(documents, 400);
  const int64_t least = Advised(message, "larger model.vocab_size, at least ");
  ASSERT_GT(least, 500) << message;
  EXPECT_EQ(Refusal(documents, least), kNoError);
}

TEST(TrainTokenizer, SaysWhenTheCorpusIsTooSmallForAny) {
  for (const std::string text : {"a b c", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    const std::string message = Refusal({text}, 400);
    EXPECT_TRUE(Says(message,
                     " pieces, but a tokenizer has at least 320; use "
                     "a larger corpus"));
    // No smaller size would do.
    EXPECT_FALSE(Says(message, "smaller model.vocab_size"));
  }
  EXPECT_NE(Refusal({}, 400), kNoError);
}

TEST(TrainTokenizer, RefusesSizesOutOfRange) {
  for (const int64_t size : {319, (1 << 20) + 1}) {
    EXPECT_THROW(TrainTokenizer(TestDocuments(10), size), ConfigError);
  }
  EXPECT_NO_THROW(RequireVocabSize(320));
  EXPECT_NO_THROW(RequireVocabSize(1 << 20));
}

TEST(TokenizerSampleBytes, AreAThousandForEachPiece) {
  EXPECT_EQ(TokenizerSampleBytes(400), 1'000'000);
  EXPECT_EQ(TokenizerSampleBytes(2000), 2'000'000);
  EXPECT_EQ(TokenizerSampleBytes(100'000), 64'000'000);
}

TEST(SampledShards, AreThoseThatBeginInTheFirstGigabytes) {
  std::vector<int64_t> sizes = {5, 1, kSampledFileBytes - 1};  // last to first
  const ShardList sampled = SampledShards([&](Shard* shard) {
    shard->bytes = sizes.back();
    sizes.pop_back();
    return true;
  });
  Shard shard;
  for (const int64_t bytes : {kSampledFileBytes - 1, int64_t{1}}) {
    EXPECT_TRUE(sampled(&shard));
    EXPECT_EQ(shard.bytes, bytes);
  }
  EXPECT_FALSE(sampled(&shard));
  EXPECT_EQ(sizes.size(), 1u);  // it was not asked for
}

// The model names an end-of-document piece that it lacks.
TEST(Tokenizer, RefusesAModelThatCannotEndADocument) {
  std::string model = Model();
  const std::string piece = "<|endoftext|>";
  model.replace(model.rfind(piece), piece.size(), "<|endofpage|>");
  EXPECT_EQ(
      MessageOf<DataError>([&] { const Tokenizer tokenizer(model, "other"); }),
      "other: the model has no end-of-document piece (eos_id -1 of "
      "400 pieces)");
}

TEST(TokenizerFromFile, LoadsWhatWasSaved) {
  const auto folder = FreshFolder("load");
  WriteFileAtomically(folder / "t.model", Model());
  const Tokenizer loaded = Tokenizer::FromFile(folder / "t.model");
  const std::string text = "the lamp leaves the harbour";
  EXPECT_EQ(loaded.Encode(text), TestTokenizer().Encode(text));
}

TEST(TokenizerFromFile, RefusesWhatIsNoModel) {
  const auto folder = FreshFolder("no_model");
  for (const std::string& content :
       {std::string(), std::string("plain text"), std::string(5000, '\xFF'),
        Model().substr(0, Model().size() / 2)}) {
    WriteFileAtomically(folder / "t.model", content);
    EXPECT_TRUE(Says(
        MessageOf<DataError>([&] { Tokenizer::FromFile(folder / "t.model"); }),
        "t.model", "//:prepare_data"))
        << content.size();
  }
  EXPECT_THROW(Tokenizer::FromFile(folder / "absent"), EnvironmentError);
}

// Damage may go unnoticed here (prepared_corpus.cc checks hashes), but must
// neither crash nor hang this process.
RC_GTEST_PROP(TokenizerFromFile, SurvivesDamage, ()) {
  std::string model = Model();
  const int flips = *rc::gen::inRange(1, 20);
  for (int i = 0; i < flips; ++i) {
    const auto at = *rc::gen::inRange<size_t>(0, model.size());
    model[at] = *rc::gen::arbitrary<char>();
  }
  if (*rc::gen::arbitrary<bool>()) {
    model.resize(*rc::gen::inRange<size_t>(0, model.size()));
  }
  try {
    CheckTokenizerModel(model, "damaged");
    RC_TAG("loads");
  } catch (const DataError& error) {
    RC_ASSERT(std::string(error.what()).find("damaged") == 0);
    RC_TAG("refused");
  }
}

}  // namespace
}  // namespace softmoe::trainer

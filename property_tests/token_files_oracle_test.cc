// SPDX-License-Identifier: Apache-2.0
//
// Token files and tokenizer against golden/oracles/tokens.json, the output of
// the original programs. Megatron-core's builder wrote token files with several
// and with empty sequences, and read ours; spm_encode and the newest
// sentencepiece encoded a megabyte of drawn Unicode with a model of ours.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/philox.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/utf8_test_util.h"
#include "trainer/tokens/shard_store.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::property_tests {
namespace {

using nlohmann::json;
using trainer::TokenFile;
using trainer::Tokenizer;

const std::string kFolder = "golden/oracles/";
const std::string kModel = kFolder + "tokens/drawn.model";

json OracleFile() {
  std::ifstream file(RunfilePath(kFolder + "tokens.json"));
  return json::parse(file);
}

// ---- Megatron's token files.

int64_t VocabSize(const std::string& type) {
  return type == "uint16" ? 65499 : 65500;
}

class MegatronOracle : public testing::TestWithParam<const char*> {};

// Their documents are lists of sequences; we read documents.
TEST_P(MegatronOracle, TheirsLoadHere) {
  const TokenFile file(RunfilePath(kFolder + "tokens/" + GetParam() + ".bin")
                           .replace_extension(),
                       70001);
  const json documents = OracleFile().at("theirs").at(GetParam());
  ASSERT_EQ(file.num_documents(), static_cast<int64_t>(documents.size()));
  int64_t begin = 0;
  for (size_t d = 0; d < documents.size(); ++d) {
    std::vector<int32_t> expected;
    for (const std::vector<int32_t> sequence : documents[d]) {
      expected.insert(expected.end(), sequence.begin(), sequence.end());
    }
    EXPECT_EQ(file.DocumentBegin(static_cast<int64_t>(d)), begin) << d;
    std::vector<int32_t> ids(expected.size());
    file.Read(begin, static_cast<int64_t>(ids.size()), ids.data());
    EXPECT_EQ(ids, expected) << d;
    begin += static_cast<int64_t>(ids.size());
  }
  EXPECT_EQ(file.num_tokens(), begin);
}

// Their file with one sequence per document has the bytes of ours, and they
// have read ours back.
TEST_P(MegatronOracle, OursHaveTheirBytes) {
  const json ours = OracleFile().at("ours").at(GetParam());
  const auto folder = FreshFolder(GetParam());
  const int64_t vocab_size = VocabSize(GetParam());
  trainer::ShardStore store(folder, vocab_size);
  trainer::ShardWriter writer(folder, 0, vocab_size);
  for (const std::vector<int32_t> ids : ours.at("documents")) {
    writer.AddDocument("", ids);
  }
  writer.Commit({});
  store.AppendNext();
  const trainer::ShardStore::Result written = store.Finish(folder / "ours");
  EXPECT_EQ(written.tokens_sha256, ours.at("bin_sha256"));
  EXPECT_EQ(written.index_sha256, ours.at("idx_sha256"));
  EXPECT_EQ(written.tokens_sha256, Sha256OfFile(folder / "ours.bin"));
  EXPECT_EQ(written.index_sha256, Sha256OfFile(folder / "ours.idx"));
}

INSTANTIATE_TEST_SUITE_P(All, MegatronOracle,
                         testing::Values("uint16", "int32"));

// ---- The tokenizer.

// The drawn text, as in token_files_oracle.py: a word has letters of one range,
// preceded by white space.
struct Range {
  uint32_t first, count;
};
constexpr Range kRanges[] = {
    // Letters, digits, punctuation, combining marks, emoji, joiners.
    {'a', 26},
    {'a', 5},
    {'n', 4},
    {'A', 26},
    {'0', 10},
    {'!', 15},
    {0xC0, 64},
    {0x3B1, 25},
    {0x410, 64},
    {0x5D0, 27},
    {0x627, 36},
    {0x905, 53},
    {0xE01, 46},
    {0x3041, 83},
    {0x4E00, 60},
    {0xAC00, 60},
    {0x300, 20},
    {0x1F600, 40},
    {0x1F3FB, 5},
    {0x200B, 5},
    // Not in the text from which the model was made: controls, flags, variation
    // selectors, SentencePiece's own sign for a space, byte order marks,
    // private letters, noncharacters, ends of planes.
    {1, 31},
    {0x7F, 33},
    {0x310, 96},
    {0x1F1E6, 26},
    {0xFE00, 16},
    {0x2580, 4},
    {0xFEFF, 1},
    {0xE000, 64},
    {0xFFF0, 16},
    {0x20000, 99},
    {0x2000, 48},
    {0xD7F0, 16},
    {0x10FFF0, 16}};
constexpr uint32_t kNumRanges = std::size(kRanges), kNumTrained = 20;
constexpr std::string_view kSpaces[] = {
    " ",  " ",    " ",  " ",    " ",      " ",      " ",      "  ", "   ",
    "\n", "\n\n", "\t", "\r\n", "\u00A0", "\u3000", "\u2003", "",   ""};

// `count` documents of 64 words of the first `ranges` ranges.
std::vector<std::string> Draw(uint32_t step, uint32_t ranges, size_t count) {
  std::vector<std::string> documents(count);
  for (size_t i = 0; i < 64 * count; ++i) {
    const auto words = PhiloxWords({30, RandomStream::kTestData, step}, i);
    std::string& document = documents[i / 64];
    document += kSpaces[words[3] % std::size(kSpaces)];
    const Range& range = kRanges[words[0] % ranges];
    for (uint32_t j = 0; j <= (words[0] >> 16) % 6; ++j) {
      document += Utf8(range.first + (words[1] + j * words[2]) % range.count);
    }
  }
  return documents;
}

std::vector<std::string> DrawnDocuments() {
  return Draw(1, kNumRanges, OracleFile().at("num_documents"));
}

std::vector<std::string> LinesOf(const std::vector<std::string>& documents) {
  std::vector<std::string> lines;
  for (std::string_view rest : documents) {
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      lines.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return lines;
}

// SHA-256 of texts, a NUL after each; of ids as int32, a -1 after each text's.
std::string HashOf(const std::vector<std::string>& texts) {
  Sha256 hash;
  for (const std::string& text : texts)
    hash.Update(text.c_str(), text.size() + 1);
  return Sha256Hex(hash.Finish());
}

std::string HashOfIds(const Tokenizer& tokenizer,
                      const std::vector<std::string>& texts) {
  Sha256 hash;
  for (const std::string& text : texts) {
    std::vector<int32_t> ids = tokenizer.Encode(text);
    ids.push_back(-1);
    hash.Update(ids.data(), ids.size() * sizeof(int32_t));
  }
  return Sha256Hex(hash.Finish());
}

// This machine makes the committed model from the same text.
TEST(TokenizerOracle, TrainsTheBytesOfOtherMachines) {
  EXPECT_TRUE(EqualsFile(
      trainer::TrainTokenizer(Draw(0, kNumTrained, 400), 1200), kModel));
}

TEST(TokenizerOracle, EncodesAndDecodesAsSentencePiece) {
  const json oracle = OracleFile();
  const Tokenizer tokenizer = Tokenizer::FromFile(RunfilePath(kModel));
  const std::vector<std::string> documents = DrawnDocuments();
  const std::vector<std::string> lines = LinesOf(documents);
  ASSERT_EQ(HashOf(documents), oracle.at("text_sha256"));
  // The newest sentencepiece encoded whole documents and lines; spm_encode gave
  // the same ids for the lines.
  EXPECT_EQ(HashOfIds(tokenizer, documents), oracle.at("ids_sha256"));
  EXPECT_EQ(HashOfIds(tokenizer, lines), oracle.at("ids_of_lines_sha256"));
  std::vector<std::string> decoded;
  for (const std::string& document : documents) {
    decoded.push_back(tokenizer.Decode(tokenizer.Encode(document)));
  }
  EXPECT_EQ(HashOf(decoded), oracle.at("decoded_sha256"));
}

}  // namespace
}  // namespace softmoe::property_tests

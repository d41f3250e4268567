// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as PREFIX.json, and objects in them as if they were sealed.
// What is accepted reads back after writing.
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/fuzzing/fuzz_support.h"
#include "trainer/tokens/prepared_corpus.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::fuzz {
namespace {

void Read(std::string_view input) {
  const auto prefix = ScratchFolder() / "corpus";
  const auto json = trainer::WithSuffix(prefix, ".json");
  WriteScratch(json, input);
  trainer::PreparedCorpus corpus;
  if (!Accepts([&] { corpus = trainer::ReadPreparedCorpus(prefix); })) return;
  trainer::WritePreparedCorpus(corpus);
  const std::string text = ReadWholeFile(json);
  Require(Accepts([&] { corpus = trainer::ReadPreparedCorpus(prefix); }),
          "cannot read back: " + text);
  trainer::WritePreparedCorpus(corpus);
  Require(ReadWholeFile(json) == text, "reads back otherwise: " + text);
}

}  // namespace

void FuzzOne(std::string_view input) {
  Read(input);
  const auto json = ParseJsonObject(input);
  if (json.is_object()) Read(JsonLine(Sealed(json)));
}

std::vector<std::string> Seeds() {
  trainer::PreparedCorpus corpus;
  corpus.prefix = ScratchFolder() / "seed";
  corpus.corpus = "foldoc";
  corpus.description = "\xC3\xA9";
  corpus.vocab_size = 320;
  trainer::WritePreparedCorpus(corpus);
  return {ReadWholeFile(trainer::WithSuffix(corpus.prefix, ".json")), "{}",
          "{\"format\":\"softmoe token files\",\"version\":[[[1.0]]]}",
          "{\"format\":1}", "[]"};
}

}  // namespace softmoe::fuzz

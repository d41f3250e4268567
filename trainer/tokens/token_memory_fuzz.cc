// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as remembered facts of token files, and objects in them as if
// they were sealed. What is accepted reads back after writing.
#include <nlohmann/json.hpp>

#include "core/files/json_lines.h"
#include "core/fuzzing/fuzz_support.h"
#include "trainer/tokens/token_memory.h"

namespace softmoe::fuzz {
namespace {

void Read(std::string_view text) {
  const auto facts = trainer::ParseTokenFacts(text);
  if (!facts) return;
  Require(trainer::ParseTokenFacts(trainer::TokenFactsText(*facts)) == facts,
          "reads back otherwise");
}

}  // namespace

void FuzzOne(std::string_view input) {
  Read(input);
  const auto json = ParseJsonObject(input);
  if (json.is_object()) Read(JsonLine(Sealed(json)));
}

std::vector<std::string> Seeds() {
  trainer::TokenFacts facts = {.data = {6, 2, 3, 4},
                               .index = {54, 5, 6, 7},
                               .data_sha256 = "d",
                               .index_sha256 = "i",
                               .counts = {1, 0, 2}};
  facts.counts_from[2] = {0, 0, 1};
  return {trainer::TokenFactsText(facts), "{}",
          trainer::TokenFactsText(trainer::TokenFacts())};
}

}  // namespace softmoe::fuzz

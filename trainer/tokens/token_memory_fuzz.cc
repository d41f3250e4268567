// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as remembered facts of token files. Accepted ones read back
// after writing.
#include "core/fuzzing/fuzz_support.h"
#include "trainer/tokens/token_memory.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  const auto facts = trainer::ParseTokenFacts(input);
  if (!facts) return;
  const std::string text = trainer::TokenFactsText(*facts);
  Require(trainer::ParseTokenFacts(text) == facts, "reads back otherwise");
}

std::vector<std::string> Seeds() {
  trainer::TokenFacts facts = {.data = {6, 2, 3},
                               .index = {54, 5, 6},
                               .data_sha256 = "d",
                               .index_sha256 = "i",
                               .counts = {1, 0, 2}};
  facts.counts_from[2] = {0, 0, 1};
  return {trainer::TokenFactsText(facts), "{}",
          trainer::TokenFactsText(trainer::TokenFacts())};
}

}  // namespace softmoe::fuzz

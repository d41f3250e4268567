// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as a text file: they are refused, or cut into documents that
// are text. Any bytes, once repaired, are text.
#include "core/fuzzing/fuzz_support.h"
#include "trainer/corpora/text_corpus.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  const auto path = ScratchFolder() / "corpus.txt";
  WriteScratch(path, input);
  int64_t documents = 0;
  const bool accepted = Accepts([&] {
    const auto source = trainer::OpenTextFile(path);
    std::string document;
    size_t bytes = 0;
    while (source->Next(&document)) {
      ++documents;
      bytes += document.size();
      Require(!document.empty(), "an empty document");
      Require(trainer::FindNonText(document) == std::string::npos,
              "a document that is not text");
      Require(input.find(document) != input.npos,
              "a document that is not in the file");
    }
    Require(bytes <= input.size(), "more text than the file has");
    Require(!source->Next(&document), "a document after the last");
  });
  const bool is_text = trainer::FindNonText(input) == std::string_view::npos;
  Require(!accepted || is_text, "what is not text was read as text");

  int64_t repaired = 0;
  const std::string text = trainer::RepairText(input, &repaired);
  Require(trainer::FindNonText(text) == std::string::npos,
          "what was repaired is not text");
  Require((repaired == 0) == is_text, "a repair that is not counted");
  Require(repaired > 0 || text == input, "text was changed");
}

std::vector<std::string> Seeds() {
  return {"One document.\nStill the same?\n\nAnother.\n",
          "a\n<|endoftext|>\nb\r\n<|endoftext|>\r\n\n c \n",
          "\xEF\xBB\xBF first\nsecond\n\n",
          "\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\n",
          "caf\xE9 \x93quoted\x94 \x81\n",
          std::string("a\0b\n", 4),
          "\xED\xA0\x80\xF4\x90\x80\x80\xC0\x80",
          " \t\v\f\r\n",
          "<|endoftext|>",
          "a <|endoftext|> b\n",
          "x\n \t<|endoftext|> \r\ny",
          "x<|endoftext|>\ny"};
}

}  // namespace softmoe::fuzz

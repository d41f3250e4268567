// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as JSON lines, plain or packed; also text that
// the fuzzer compresses itself, so that mutations reach the JSON.
#include <zlib.h>

#include "core/fuzzing/fuzz_support.h"
#include "trainer/corpora/json_corpus.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  Choices choices(input);
  const auto path = ScratchFolder() / "c4.json.gz";
  const uint8_t form = choices.Byte();
  const bool skips = form >= 128;
  if (form % 4 == 3) {
    gzFile file = gzopen(path.c_str(), "wb1");
    const std::string_view text = choices.Rest();
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
  } else {
    WriteScratch(path, choices.Rest());
  }
  Accepts([&] {
    const auto source = trainer::OpenJsonLines(
        path,
        {.on_bad = skips ? trainer::OnBad::kSkip : trainer::OnBad::kFail});
    std::string document;
    while (source->Next(&document)) {
      Require(!document.empty(), "an empty document");
      Require(trainer::FindNonText(document) == std::string::npos,
              "a document that is not text");
    }
    Require(!source->Next(&document), "a document after the last");
  });
}

std::vector<std::string> Seeds() {
  const std::string lines =
      "{\"text\":\"A page.\\nTwo lines.\",\"timestamp\":\"2019-04-25T12:57:54Z"
      "\",\"url\":\"https://a.example/\"}\n\n{\"url\":1,\"text\":\"\\u00e9\"}\n"
      "{\"text\":\"\"}\n";
  return {std::string(1, '\0') + lines,
          "\x03" + lines,
          std::string(1, '\0') + "{\"text\":\"\\u0000\"}\n",
          std::string(1, '\0') + "{\"text\":1}\n[\"text\"]\n",
          std::string(1, '\0') + "{\"text\":\"no end\"",
          std::string("\0\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07"
                      "\0\x86\xa6\x10\x36\x05\0\0\0",
                      26),
          std::string("\0{\"text\":\"a\0b\"}\n", 15)};
}

}  // namespace softmoe::fuzz

// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as a dictionary with its index, as fortunes and as gzip data.
#include "core/fuzzing/fuzz_support.h"
#include "trainer/corpora/dict_text.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  Choices choices(input);
  if (choices.OneIn(4)) {
    const auto path = ScratchFolder() / "text.dz";
    WriteScratch(path, choices.Rest());
    Accepts([&] { trainer::InflateFile(path); });
    return;
  }
  const std::string index = choices.Text(1 << 12);
  const std::string_view text = choices.Rest();
  Accepts([&] {
    for (const auto entry : trainer::DictEntries(text, index, "fuzz.index")) {
      Require(entry.data() >= text.data() &&
                  entry.data() + entry.size() <= text.data() + text.size(),
              "an entry outside the dictionary");
      Require(trainer::CleanDictEntry(entry).size() <= entry.size(),
              "cleaning adds text");
    }
  });
  Require(trainer::CleanDictEntry(text).size() <= text.size(),
          "cleaning adds text");
  size_t bytes = 0;
  for (const std::string& fortune : trainer::Fortunes(text)) {
    Require(!fortune.empty() && !fortune.ends_with('\n'), "an empty fortune");
    bytes += fortune.size();
  }
  Require(bytes <= text.size() + 1, "more text than the file has");
}

std::vector<std::string> Seeds() {
  const auto dictionary = [](const std::string& index,
                             const std::string& text) {
    std::string seed(1, '\0');
    seed += static_cast<char>(index.size() >> 8);
    seed += static_cast<char>(index.size() & 0xff);
    return seed + index + text;
  };
  return {dictionary("a\tA\tF\n00-database-info\tF\tB\n", "a\n  b{c}d\n"),
          dictionary("",
                     "Abuse \\A*buse\"\\, n.\n   [1913 Webster]\n\n  1. "
                     "<computing> {x}\n(2006-10-10)\n"),
          dictionary("b\tAA\t//////\n", "x"),
          dictionary("", "One.\n%\nTwo\b_wo.\n\t  -- A\n%\n%\n"),
          dictionary("", "[[[[\\\\<<<{{{ , , ,"),
          // gzip of "hello"
          std::string("\x03\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07"
                      "\0\x86\xa6\x10\x36\x05\0\0\0",
                      26)};
}

}  // namespace softmoe::fuzz

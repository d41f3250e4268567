// SPDX-License-Identifier: Apache-2.0
#include "trainer/testing/corpus_test_util.h"

#include <array>
#include <string_view>

#include "core/philox.h"

namespace softmoe::trainer {
namespace {

constexpr std::array<std::string_view, 12> kAdjectives = {
    "old",   "quiet", "green", "patient", "narrow", "bright",
    "heavy", "early", "salty", "curious", "broken", "na\u00EFve"};
constexpr std::array<std::string_view, 16> kNouns = {
    "harbour", "river", "teacher", "lamp",     "garden", "window",
    "ladder",  "horse", "letter",  "island",   "baker",  "clock",
    "bridge",  "storm", "violin",  "caf\u00E9"};
constexpr std::array<std::string_view, 12> kVerbs = {
    "follows", "paints", "remembers", "crosses", "mends",    "measures",
    "leaves",  "hears",  "answers",   "carries", "explains", "forgets"};
constexpr std::array<std::string_view, 8> kEnds = {
    "before the rain comes", "at half past seven", "without a word",
    "as it did in 1848",     "every other day",    "for no reason at all",
    "near the old mill",     "while 37 birds sing"};

class Writer {
 public:
  Writer(uint64_t seed, int64_t document)
      : key_{seed, RandomStream::kTestData, static_cast<uint32_t>(document)} {}

  // Small numbers are likelier, as some words are more frequent.
  int64_t Below(size_t count) {
    const double u = UniformFromWord(PhiloxWords(key_, draws_++)[0]);
    return static_cast<int64_t>(u * u * static_cast<double>(count));
  }
  template <size_t n>
  std::string Pick(const std::array<std::string_view, n>& words) {
    return std::string(words[static_cast<size_t>(Below(n))]);
  }
  std::string Thing() {
    return "the " + (Below(3) == 1 ? Pick(kAdjectives) + " " : "") +
           Pick(kNouns);
  }
  std::string Sentence() {
    std::string text = Thing() + " " + Pick(kVerbs) + " " + Thing();
    if (Below(2) == 0) text += " " + Pick(kEnds);
    text[0] = 'T';
    return text + ".";
  }

 private:
  RandomKey key_;
  uint64_t draws_ = 0;
};

}  // namespace

std::vector<std::string> TestDocuments(int64_t count, uint64_t seed) {
  std::vector<std::string> documents;
  for (int64_t d = 0; d < count; ++d) {
    Writer writer(seed, d);
    std::string text = writer.Sentence();
    for (int64_t more = writer.Below(6); more > 0; --more) {
      text += (more == 3 ? "\n" : " ") + writer.Sentence();
    }
    documents.push_back(std::move(text));
  }
  return documents;
}

std::string TestText(const std::vector<std::string>& documents) {
  std::string text;
  for (const std::string& document : documents) text += document + "\n\n";
  return text;
}

}  // namespace softmoe::trainer

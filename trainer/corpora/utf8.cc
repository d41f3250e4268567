// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/utf8.h"

#include <array>

namespace softmoe::trainer {
namespace {

// Length of the well-formed character at `at`, 0 if there is none.
size_t CharacterLength(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const uint32_t lead = byte(at);
  if (lead == 0) return 0;
  if (lead < 0x80) return 1;
  // A continuation byte, an overlong form, or beyond U+10FFFF.
  if (lead < 0xC2 || lead > 0xF4) return 0;
  // The second byte reveals the other overlong forms, surrogates, and the rest
  // beyond U+10FFFF (Unicode, "Well-Formed UTF-8 Byte Sequences").
  const uint32_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint32_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(at + 1) < least || byte(at + 1) > most) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (size_t i = at + 2; i < at + length; ++i) {
    if (!Continues(static_cast<char>(byte(i)))) return 0;
  }
  return length;
}

// Code points of the bytes 0x80..0x9F; 0 where Windows-1252 has none.
constexpr std::array<uint16_t, 32> kWindows1252 = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
    0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0,      0x017D, 0,
    0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
    0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

}  // namespace

void AppendUtf8(uint32_t point, std::string* text) {
  const auto put = [text](uint32_t byte) {
    text->push_back(static_cast<char>(byte));
  };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3F));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3F));
    put(0x80 | (point >> 6 & 0x3F));
  }
  put(0x80 | (point & 0x3F));
}

size_t FindNonText(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    // Nearly all of English is ASCII: stay in this loop.
    while (at < text.size() && static_cast<signed char>(text[at]) > 0) ++at;
    if (at == text.size()) break;
    const size_t length = CharacterLength(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string RepairText(std::string_view text, int64_t* repaired) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const size_t bad = FindNonText(text);
    out.append(text.substr(0, bad));
    if (bad == std::string_view::npos) return out;
    const auto byte = static_cast<unsigned char>(text[bad]);
    const uint32_t point = byte >= 0x80 && byte < 0xA0
                               ? kWindows1252[byte - 0x80]
                               : static_cast<uint32_t>(byte);
    if (point != 0) AppendUtf8(point, &out);
    ++*repaired;
    text.remove_prefix(bad + 1);
  }
}

}  // namespace softmoe::trainer

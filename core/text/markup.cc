// SPDX-License-Identifier: Apache-2.0
#include "core/text/markup.h"

#include <string_view>

#include "core/errors.h"

namespace softmoe {

std::string EscapeMarkup(const std::string& text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    // U+FFFE and U+FFFF, which are UTF-8 but no characters.
    const std::string_view next = std::string_view(text).substr(i, 3);
    if (next == "\xef\xbf\xbe" || next == "\xef\xbf\xbf") {
      escaped += '?';
      i += 2;
      continue;
    }
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      case '\t':
      case '\n':
      case '\r':
        escaped += letter;
        break;
      default:
        escaped += static_cast<unsigned char>(letter) < 0x20 ? '?' : letter;
    }
  }
  return escaped;
}

std::string WithGeneratedPart(const std::string& document,
                              const std::string& command,
                              const std::string& part,
                              const std::string& place) {
  const std::string begin_line = "<!-- begin: " + command + " -->";
  const std::string end_line = "<!-- end -->";
  const size_t begin = document.find(begin_line + "\n");
  const size_t end = document.find(end_line + "\n", begin);
  if (begin == std::string::npos || end == std::string::npos) {
    throw DataError(
        place + ": what this command writes goes between the lines '" +
        begin_line + "' and '" + end_line + "', which are missing; add them");
  }
  return document.substr(0, begin) + begin_line + "\n\n" + part + "\n" +
         document.substr(end);
}

}  // namespace softmoe

// SPDX-License-Identifier: Apache-2.0
//
// markup.h - text inside HTML, XML and Markdown.
#ifndef SOFTMOE_CORE_TEXT_MARKUP_H_
#define SOFTMOE_CORE_TEXT_MARKUP_H_

#include <string>

namespace softmoe {

// Returns `text`, which is UTF-8, as content or attribute value of HTML and XML
// 1.0. Characters that XML forbids become '?': control characters other than
// tab, newline and return, U+FFFE and U+FFFF.
std::string EscapeMarkup(const std::string& text);

// Returns `document` with `part` between the lines "<!-- begin: COMMAND -->"
// and "<!-- end -->", which stay. `command` is what a reader runs to write the
// part. Throws DataError, naming `place`, if either line is missing.
std::string WithGeneratedPart(const std::string& document,
                              const std::string& command,
                              const std::string& part,
                              const std::string& place);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_MARKUP_H_

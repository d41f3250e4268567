// SPDX-License-Identifier: Apache-2.0
//
// markup.h - text inside HTML and XML.
#ifndef SOFTMOE_CORE_TEXT_MARKUP_H_
#define SOFTMOE_CORE_TEXT_MARKUP_H_

#include <string>

namespace softmoe {

// `text` as content or attribute value of HTML and XML 1.0. Control characters
// other than tab, newline and return, which XML forbids, become '?'.
std::string EscapeMarkup(const std::string& text);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TEXT_MARKUP_H_

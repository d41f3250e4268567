// SPDX-License-Identifier: Apache-2.0
//
// python_text.h - what Python's str does to text, for prompts that must equal
// those of a Python program character by character.
//
// All texts are UTF-8 without errors (trainer/corpora/utf8.h); positions are
// bytes. golden/oracles/tasks.json has Python's own answers.
#ifndef SOFTMOE_TRAINER_CORPORA_PYTHON_TEXT_H_
#define SOFTMOE_TRAINER_CORPORA_PYTHON_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace softmoe::trainer {

// len(text): code points, not bytes.
int64_t CodePoints(std::string_view text);

// text.strip(), and text.rstrip(): without white space of Unicode, which is
// more than ASCII's (no-break space, U+3000, U+001C to U+001F).
std::string_view Strip(std::string_view text);
std::string_view StripEnd(std::string_view text);

// text.capitalize(): the first character in title case, all others in lower
// case, where a sigma at the end of a word becomes a final sigma.
std::string Capitalize(std::string_view text);

// text.replace(from, to), once from left to right. `from` must not be empty.
std::string ReplaceAll(std::string_view text, std::string_view from,
                       std::string_view to);

// re.sub(r"\[.*?\]", "", text): no pair of brackets spans the end of a line.
std::string RemoveBrackets(std::string_view text);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_PYTHON_TEXT_H_

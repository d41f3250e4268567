// SPDX-License-Identifier: Apache-2.0
//
// utf8.h - checks whether bytes are text, and repairs them; single characters.
#ifndef SOFTMOE_TRAINER_CORPORA_UTF8_H_
#define SOFTMOE_TRAINER_CORPORA_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace softmoe::trainer {

// Returns the position of the first byte of `text` that does not start a
// well-formed UTF-8 character (RFC 3629: shortest form, no surrogates, at most
// U+10FFFF), or that is NUL, which occurs in binary files but in no text; npos
// if there is no such byte.
size_t FindNonText(std::string_view text);

// Whether `byte` continues a character that began before it.
inline bool Continues(char byte) { return (byte & 0xC0) == 0x80; }

// Appends the character of a code point below 0x110000.
void AppendUtf8(uint32_t point, std::string* text);

// Reads every byte that is not UTF-8 as Windows-1252, the usual stowaway in
// old English files, and drops NULs and bytes that Windows-1252 leaves open.
// Adds the number of such bytes to `*repaired`.
std::string RepairText(std::string_view text, int64_t* repaired);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_UTF8_H_

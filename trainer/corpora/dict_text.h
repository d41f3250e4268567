// SPDX-License-Identifier: Apache-2.0
//
// dict_text.h - English text from dictd databases and fortune files.
//
// A dictd database is NAME.dict.dz (gzip with an index of its own, "dictzip")
// and NAME.index: one line per headword, tab-separated, with offset and length
// of the entry in base 64. Entries are hard-wrapped and marked up by hand.
#ifndef SOFTMOE_TRAINER_CORPORA_DICT_TEXT_H_
#define SOFTMOE_TRAINER_CORPORA_DICT_TEXT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace softmoe::trainer {

// The uncompressed bytes of a gzip file. Throws EnvironmentError, or DataError
// if the file is damaged or holds more than 1 GiB.
std::string InflateFile(const std::filesystem::path& path);

// The entries that `index` names, each once, in order of their offsets, without
// those about the database itself ("00-database-..."). `name` is for messages.
// Throws DataError if the index does not fit the text.
std::vector<std::string_view> DictEntries(std::string_view text,
                                          std::string_view index,
                                          const std::string& name);

// An entry as plain paragraphs: wrapped lines joined, runs of white space made
// one space, the braces around cross references dropped. Where dictionaries
// use them, also dropped: pronunciations between backslashes, source marks in
// brackets ("[1913 Webster]"), lines with only a date in parentheses, and
// field tags ("<networking>") at the beginning of a paragraph or numbered
// sense.
std::string CleanDictEntry(std::string_view entry);

// The fortunes of a file: the texts between lines of "%". Lines keep their ends
// (many are verse or dialogue); runs of white space in them become one space,
// and overstriking (character, backspace) is undone.
std::vector<std::string> Fortunes(std::string_view text);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_DICT_TEXT_H_

// SPDX-License-Identifier: Apache-2.0
//
// standin_corpora.h - real English text for users who have neither OpenWebText
// nor C4: dictionaries and fortunes from Debian packages (DESIGN.md, ruling
// 13).
//
// The packages are downloaded with apt-get and unpacked into the cache, never
// installed. Their entries are cleaned (dict_text.h), put into a fixed random
// order (a dictionary is sorted: its last 2 % would be the letters W to Z) and
// written to corpora/NAME/text.txt in the cache, with provenance.json beside
// it.
#ifndef SOFTMOE_TRAINER_CORPORA_STANDIN_CORPORA_H_
#define SOFTMOE_TRAINER_CORPORA_STANDIN_CORPORA_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace softmoe::trainer {

struct StandinCorpus {
  std::string name;
  std::string description;            // one sentence, for reports
  std::vector<std::string> packages;  // of Debian
  int64_t text_bytes = 0;             // of the text, from Debian 12's packages
};

// The name of the text in the folder of a stand-in.
inline constexpr char kStandinTextName[] = "text.txt";

const std::vector<StandinCorpus>& StandinCorpora();

// The stand-in of this name, or nullptr.
const StandinCorpus* FindStandin(const std::string& name);

struct StandinText {
  std::filesystem::path text;  // UTF-8, documents between <|endoftext|> lines
  std::string sha256;          // of the text
  std::string provenance;      // packages with version and SHA-256
};

// Returns the text of a stand-in, making it if it is not in `cache` or is
// damaged there. `notify` gets a line per stage, and one about any damage. A
// .deb file in corpora/packages of the cache is used instead of a download.
// Throws EnvironmentError with the remedy (offline, no apt-get), DataError for
// packages that are damaged, or in which no text is found.
StandinText EnsureStandin(
    const StandinCorpus& corpus, const std::filesystem::path& cache,
    const std::function<void(const std::string&)>& notify);

// The documents of unpacked packages: every dictd database and fortune file
// below `folder`, in order of their paths, cleaned. Adds to `*repaired` the
// number of bytes that were not UTF-8 (read as Windows-1252).
std::vector<std::string> ReadPackages(const std::filesystem::path& folder,
                                      int64_t* repaired);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_STANDIN_CORPORA_H_

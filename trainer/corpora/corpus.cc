// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/corpus.h"

#include <fmt/format.h>

#include <vector>

#include "core/errors.h"
#include "core/files/file_error.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "trainer/corpora/c4_corpus.h"
#include "trainer/corpora/owt_corpus.h"
#include "trainer/corpora/standin_corpora.h"
#include "trainer/corpora/text_corpus.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<fs::path>;

// Made of names, sizes and times: hashing hundreds of gigabytes would take
// longer than a small run.
std::string KeyOfFiles(const Files& files) {
  Sha256 hash;
  for (const fs::path& file : files) {
    hash.Update(fmt::format(
        "{}\n{}\n{}\n", file.filename().string(), fs::file_size(file),
        fs::last_write_time(file).time_since_epoch().count()));
  }
  return Sha256Hex(hash.Finish());
}

Corpus PublishedCorpus(
    const std::string& name, const std::string& title, const Files& files,
    std::unique_ptr<DocumentSource> (*open)(const Files& files)) {
  return {.name = name,
          .description = fmt::format("{}, from {} of its publishers' files",
                                     title, files.size()),
          .provenance = fmt::format(
              "{}{}", files.front().string(),
              files.size() == 1 ? "" : " .. " + files.back().string()),
          .key = KeyOfFiles(files),
          .current_key = [=] { return KeyOfFiles(files); },
          .open = [=] { return open(files); }};
}

Corpus TextCorpus(const std::string& name, const fs::path& path) {
  RequireRegular(path);
  const std::string hash = Sha256OfFile(path);
  return {.name = name,
          .description = "a text file of the user's, " + path.string(),
          .provenance = fmt::format("{} (SHA-256 {})", path.string(), hash),
          .key = hash,
          .current_key = [=] { return Sha256OfFile(path); },
          .open = [=] { return OpenTextFile(path); }};
}

[[noreturn]] void RefuseUnknown(const std::string& name) {
  std::string known;
  for (const StandinCorpus& corpus : StandinCorpora()) {
    known += corpus.name + ", ";
  }
  throw ConfigError(
      fmt::format("data.corpus = \"{}\": no such corpus; known are {}owt, c4, "
                  "owt:PATH, c4:PATH and path:FILE",
                  name, known));
}

}  // namespace

Corpus FindCorpus(const std::string& name, const CorpusOptions& options) {
  const size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  const bool has_path = colon != std::string::npos && colon + 1 < name.size();
  const fs::path path = has_path ? UserPath(name.substr(colon + 1))
                                 : options.cache / "corpora" / kind;
  if (colon != std::string::npos && !has_path) RefuseUnknown(name);
  if (kind == "path" && has_path) return TextCorpus(name, path);
  if (kind == "owt") {
    return PublishedCorpus(name, "OpenWebText", FindOwtFiles(path), OpenOwt);
  }
  if (kind == "c4") {
    return PublishedCorpus(name, "C4", FindC4Files(path), OpenC4);
  }
  const StandinCorpus* standin = has_path ? nullptr : FindStandin(name);
  if (standin == nullptr) RefuseUnknown(name);
  const StandinText text =
      EnsureStandin(*standin, options.cache, options.notify);
  return {.name = name,
          .description = standin->description,
          .stand_in = true,
          .provenance = text.provenance,
          .key = text.sha256,
          .current_key = [path = text.text] { return Sha256OfFile(path); },
          .open = [path = text.text] { return OpenTextFile(path); }};
}

}  // namespace softmoe::trainer

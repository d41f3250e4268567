// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/corpus.h"

#include <fmt/format.h>

#include <system_error>
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

// The key covers names, sizes and times: hashing hundreds of gigabytes would
// take longer than a small run.
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

struct Parsed {
  std::string kind;  // before the colon
  bool has_path = false;
  fs::path path;  // of the text
};

Parsed Parse(const std::string& name, const fs::path& cache) {
  const size_t colon = name.find(':');
  Parsed parsed;
  parsed.kind = name.substr(0, colon);
  parsed.has_path = colon != std::string::npos && colon + 1 < name.size();
  parsed.path = parsed.has_path ? UserPath(name.substr(colon + 1))
                                : cache / "corpora" / parsed.kind;
  return parsed;
}

// The bytes of a file, or of all files in a folder; files that vanish count as
// 0.
int64_t BytesOf(const fs::path& place) {
  std::error_code error;
  if (!fs::is_directory(place, error)) {
    const auto bytes = fs::file_size(place, error);
    return error ? 0 : static_cast<int64_t>(bytes);
  }
  int64_t sum = 0;
  for (const auto& entry : fs::recursive_directory_iterator(
           place, fs::directory_options::skip_permission_denied, error)) {
    std::error_code gone;
    const auto bytes = entry.file_size(gone);
    if (!gone) sum += static_cast<int64_t>(bytes);
  }
  return sum;
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
  const auto [kind, has_path, path] = Parse(name, options.cache);
  if (!has_path && kind.size() < name.size()) RefuseUnknown(name);
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

CorpusSize SizeOfCorpus(const std::string& name, const fs::path& cache) {
  const Parsed parsed = Parse(name, cache);
  CorpusSize size;
  size.place = parsed.path;
  std::error_code error;
  size.here = fs::exists(parsed.path, error);
  if (size.here) {
    size.bytes = BytesOf(parsed.path);
  } else if (const StandinCorpus* standin = FindStandin(name)) {
    size.bytes = standin->text_bytes;
  }
  return size;
}

}  // namespace softmoe::trainer

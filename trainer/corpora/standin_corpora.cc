// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/standin_corpora.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/files/sha256.h"
#include "core/files/temporary_folder.h"
#include "trainer/corpora/debian_packages.h"
#include "trainer/corpora/dict_text.h"
#include "trainer/corpora/shuffle.h"
#include "trainer/corpora/text_corpus.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Must be increased when the cleaning or the order changes; older texts are
// then made again.
constexpr int kTextVersion = 1;
constexpr uint64_t kOrderSeed = 1913;

void CleanInto(std::string_view raw, int64_t* repaired,
               std::vector<std::string>* documents) {
  std::string text = CleanDictEntry(RepairText(raw, repaired));
  if (!text.empty()) documents->push_back(std::move(text));
}

// Pictures and a letter to translators are not English prose.
bool IsFortuneFile(const fs::directory_entry& entry) {
  const fs::path& path = entry.path();
  const std::string name = path.filename().string();
  return path.parent_path().filename() == "fortunes" && !path.has_extension() &&
         entry.is_regular_file() && !entry.is_symlink() &&
         name != "ascii-art" && name != "translate-me";
}

std::string Provenance(const std::vector<DebianPackage>& packages) {
  std::string text;
  for (const DebianPackage& package : packages) {
    text += fmt::format("{}Debian package {} {} (SHA-256 {})",
                        text.empty() ? "" : ", ", package.name, package.version,
                        package.sha256);
  }
  return text;
}

// Whether the list of packages in a provenance.json agrees with its sentence
// about them, so that no byte of either changes unnoticed.
bool PackagesAgree(const Json& json) {
  std::vector<DebianPackage> packages;
  for (const Json& package : json.value("packages", Json())) {
    const auto text = [&](const char* key) {
      const Json value =
          package.is_object() ? package.value(key, Json()) : Json();
      return value.is_string() ? value.get<std::string>() : "";
    };
    packages.push_back({text("name"), text("version"), text("sha256")});
  }
  return json.value("provenance", Json()) == Provenance(packages);
}

// Fills `out` if `folder` has an undamaged text of this version. Otherwise
// returns false, and says in `damage` what is wrong with the text; "" if there
// is none, or one of another version.
bool ReadStandin(const fs::path& folder, StandinText* out,
                 std::string* damage) {
  damage->clear();
  const fs::path text = folder / kStandinTextName;
  const fs::path record = folder / "provenance.json";
  std::error_code error;
  if (!fs::exists(folder, error)) return false;
  for (const fs::path& file : {record, text}) {
    if (fs::is_regular_file(file, error)) continue;
    *damage = fmt::format("{} is not there", file.string());
    return false;
  }
  const Json json = ParseJsonObject(ReadWholeFile(record));
  const Json version =
      json.is_object() ? json.value("version", Json()) : Json();
  if (version.is_number_integer() && version != kTextVersion) return false;
  if (version != kTextVersion || !PackagesAgree(json) ||
      !json.value("text_sha256", Json()).is_string()) {
    *damage = fmt::format("{} is damaged", record.string());
    return false;
  }
  *out = {text, Sha256OfFile(text), json["provenance"]};
  if (out->sha256 == json["text_sha256"]) return true;
  *damage = fmt::format("{} is damaged: it does not have the SHA-256 in {}",
                        text.string(), record.filename().string());
  return false;
}

void WriteText(const fs::path& path,
               const std::vector<std::string>& documents) {
  AtomicFile file(path);
  const auto count = static_cast<int64_t>(documents.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t which = ShuffledIndex(kOrderSeed, 0, i, count);
    file.Write(documents[static_cast<size_t>(which)]);
    file.Write("\n");
    file.Write(kDocumentSeparator);
    file.Write("\n");
  }
  file.Commit();
}

void MakeStandin(const StandinCorpus& corpus, const fs::path& cache,
                 const fs::path& folder,
                 const std::function<void(const std::string&)>& notify) {
  TemporaryFolder work(folder);
  std::vector<DebianPackage> packages;
  const fs::path unpacked = work.path() / "packages";
  for (const std::string& package : corpus.packages) {
    packages.push_back(UnpackDebianPackage(
        package, unpacked / package, cache / "corpora" / "packages", notify));
  }
  notify(fmt::format("reading {}", Provenance(packages)));
  int64_t repaired = 0;
  const auto documents = ReadPackages(unpacked, &repaired);
  if (documents.empty()) {
    throw DataError(fmt::format(
        "corpus {}: no text in {}: this version of the packages is not "
        "understood; use a text file of your own: `--corpus path:FILE`",
        corpus.name, Provenance(packages)));
  }
  fs::remove_all(unpacked);

  WriteText(work.path() / kStandinTextName, documents);
  Json json = {{"version", kTextVersion},
               {"corpus", corpus.name},
               {"description", corpus.description},
               {"provenance", Provenance(packages)},
               {"packages", Json::array()},
               {"num_documents", documents.size()},
               {"bytes_read_as_windows_1252", repaired},
               {"text_sha256", Sha256OfFile(work.path() / kStandinTextName)}};
  for (const DebianPackage& package : packages) {
    json["packages"].push_back({{"name", package.name},
                                {"version", package.version},
                                {"sha256", package.sha256}});
  }
  WriteFileAtomically(work.path() / "provenance.json",
                      JsonText(json, 2) + "\n");
  work.Commit();
}

}  // namespace

const std::vector<StandinCorpus>& StandinCorpora() {
  static const std::vector<StandinCorpus> corpora = {
      {"gcide",
       "GNU Collaborative International Dictionary of English (Webster 1913 "
       "and "
       "WordNet), 126,000 entries in random order, cleaned of markup: a "
       "stand-in for OpenWebText and C4",
       {"dict-gcide"},
       30'941'096},
      {"debian-mix",
       "Free On-line Dictionary of Computing, Jargon File, Devil's Dictionary "
       "and fortunes, entries in random order, cleaned of markup: a stand-in "
       "for OpenWebText and C4",
       {"dict-devil", "dict-foldoc", "dict-jargon", "fortunes"},
       9'285'562},
      {"foldoc",
       "Free On-line Dictionary of Computing, entries in random order, cleaned "
       "of markup: a stand-in for OpenWebText and C4",
       {"dict-foldoc"},
       4'968'806},
  };
  return corpora;
}

const StandinCorpus* FindStandin(const std::string& name) {
  for (const StandinCorpus& corpus : StandinCorpora()) {
    if (corpus.name == name) return &corpus;
  }
  return nullptr;
}

std::vector<std::string> ReadPackages(const fs::path& folder,
                                      int64_t* repaired) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const bool dictionary = entry.path().string().ends_with(".dict.dz");
    if (dictionary || IsFortuneFile(entry)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());

  std::vector<std::string> documents;
  for (const fs::path& path : paths) {
    if (path.extension() == ".dz") {
      fs::path index = path;  // NAME.dict.dz -> NAME.index
      index.replace_extension().replace_extension(".index");
      const std::string text = InflateFile(path);
      const std::string index_text = ReadWholeFile(index);
      for (const auto entry : DictEntries(text, index_text, index.string())) {
        CleanInto(entry, repaired, &documents);
      }
    } else {
      const std::string text = RepairText(ReadWholeFile(path), repaired);
      for (std::string& fortune : Fortunes(text)) {
        documents.push_back(std::move(fortune));
      }
    }
  }
  return documents;
}

StandinText EnsureStandin(
    const StandinCorpus& corpus, const fs::path& cache,
    const std::function<void(const std::string&)>& notify) {
  const fs::path folder = cache / "corpora" / corpus.name;
  StandinText result;
  std::string damage;
  if (ReadStandin(folder, &result, &damage)) return result;
  if (!damage.empty()) notify(damage + "; making it again");
  MakeStandin(corpus, cache, folder, notify);
  SOFTMOE_CHECK(ReadStandin(folder, &result, &damage)) << damage;
  return result;
}

}  // namespace softmoe::trainer

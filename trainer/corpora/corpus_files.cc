// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/corpus_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/input_file.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/parallel_for.h"
#include "core/process/stop_signal.h"
#include "core/text/ascii.h"
#include "trainer/corpora/packed_file.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<fs::path>;

// Counted by Hugging Face, datasets/openwebtext and datasets/c4 (en, train).
constexpr int64_t kOwtDocuments = 8'013'769;
constexpr int64_t kC4Documents = 364'868'892;
constexpr int64_t kOwtTextBytes = 39'700'000'000;
constexpr int64_t kC4TextBytes = 790'000'000'000;

constexpr int64_t kOwtArchiveBytes = 12'880'027'468;
constexpr const char* kOwtArchiveSha256 =
    "9fe39d154c5bc67da8c359415372b79510eb1e2edb0d035fe4f7fc3a732b9336";
constexpr int64_t kOwtSubsets = 21;
constexpr int64_t kC4Bytes = 326'778'635'540;
constexpr const char* kC4Table = "trainer/corpora/c4_en_train_shards.tsv";

constexpr const char* kAgain =
    "download it again, or compare with //:prepare_data --verify";
constexpr const char* kStopped =
    "the files of the corpus were being read; the same command reads them "
    "again from the start, and keeps the finished shards";

std::string NameOf(const fs::path& path) { return path.filename().string(); }

// The name without what a packer has added.
std::string Unpacked(std::string name) {
  for (const char* end : {".gz", ".xz", ".zst"}) {
    if (name.ends_with(end)) name.resize(name.size() - std::string(end).size());
  }
  return name;
}

bool IsKind(FilesOf kind, const std::string& name) {
  if (name.starts_with('.')) return false;
  const std::string plain = Unpacked(name);
  const bool json = plain.ends_with(".json") || plain.ends_with(".jsonl") ||
                    plain.ends_with(".ndjson");
  if (kind != FilesOf::kOwt) return json;
  return !json && (name.ends_with(".xz") || name.ends_with(".tar"));
}

// Whether this is the PREFIX.json of token files, which may lie beside a text.
bool IsOfTokens(const fs::path& path) {
  if (path.extension() != ".json") return false;
  for (const char* suffix : {".bin", ".idx", ".model"}) {
    std::error_code error;
    if (!fs::exists(fs::path(path).replace_extension(suffix), error)) {
      return false;
    }
  }
  return FormOf(InputFile(path)) == FileForm::kTokens;
}

bool IsFileOf(FilesOf kind, const fs::path& path) {
  return IsKind(kind, NameOf(path)) && !IsOfTokens(path);
}

// Whether this would be such a file but for its spelling, or for a packer whose
// files are not read here, as for archives in gzip and zstd.
bool IsNearlyOf(FilesOf kind, const std::string& name) {
  const auto is_of = [kind](const std::string& near) {
    return IsKind(kind, near) || (kind != FilesOf::kOwt && IsLinesOfJson(near));
  };
  return !name.starts_with('.') && !IsKind(kind, name) && IsNearly(is_of, name);
}

// A part of a corpus must not be left out because it cannot be seen.
void RequireSeen(const fs::path& path, const std::error_code& error) {
  if (!error || error == std::errc::no_such_file_or_directory ||
      error == std::errc::not_a_directory) {
    return;
  }
  throw FileError("read", path, error.value());
}

// The entries in any order; none if there is no such folder.
std::vector<fs::directory_entry> EntriesOf(const fs::path& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    entries.push_back(*at);
  }
  RequireSeen(folder, error);
  return entries;
}

// Adds files of this kind to `*files`, and those nearly named so to `*others`.
void AddFiles(FilesOf kind, const fs::path& folder, Files* files,
              Files* others) {
  for (const fs::directory_entry& entry : EntriesOf(folder)) {
    if (IsFileOf(kind, entry.path())) {
      files->push_back(entry.path());
    } else if (IsNearlyOf(kind, NameOf(entry.path()))) {
      others->push_back(entry.path());
    }
  }
}

void RefuseOthers(const Files& others) {
  if (others.empty()) return;
  throw DataError(fmt::format(
      "{}: a file with this name would be ignored; use lower-case endings: "
      ".jsonl, .ndjson or .json for JSON lines, with .gz, .xz or .zst added if "
      "packed, and .tar, .tar.xz or .xz for OpenWebText's archives; rename or "
      "repack it, or move it out of the folder",
      others.front().string()));
}

[[noreturn]] void RefuseDouble(const fs::path& one, const fs::path& other) {
  throw DataError(fmt::format(
      "{} and {} hold the same text, which would be read twice; move one of "
      "them out of the folder",
      one.string(), other.string()));
}

// Whether `name` is part of the archive `whole`: urlsf_subset00-1_data.xz of
// urlsf_subset00.tar, and any urlsf_subset* of openwebtext.tar.xz.
bool IsPart(const std::string& whole, const std::string& name) {
  const std::string stem = Unpacked(whole);
  return stem == "openwebtext.tar"
             ? name.starts_with("urlsf_subset")
             : name.starts_with(stem.substr(0, stem.size() - 4) + "-");
}

void RefuseDoubleNames(FilesOf kind, const Files& files) {
  std::map<std::string, const fs::path*> names;
  for (const fs::path& file : files) {
    const auto [there, is_new] = names.emplace(Unpacked(NameOf(file)), &file);
    if (!is_new) RefuseDouble(*there->second, file);
  }
  if (kind != FilesOf::kOwt) return;
  for (const fs::path& whole : files) {
    // openwebtext.tar.xz unpacks to some 20,000 files, none of them a tar.
    if (!Unpacked(NameOf(whole)).ends_with(".tar")) continue;
    for (const fs::path& part : files) {
      if (IsPart(NameOf(whole), NameOf(part))) RefuseDouble(whole, part);
    }
  }
}

// Hugging Face's OpenWebText is in plain_text/*.parquet.
void RefuseParquet(const fs::path& place) {
  for (const fs::path& folder : {place, place / "plain_text"}) {
    for (const fs::directory_entry& entry : EntriesOf(folder)) {
      std::error_code unknown;
      if (entry.path().extension() == ".parquet" &&
          entry.is_regular_file(unknown)) {
        RefuseForeign(InputFile(entry.path()));
      }
    }
  }
}

[[noreturn]] void RefuseEmpty(FilesOf kind, const fs::path& place) {
  RefuseParquet(place);
  if (kind == FilesOf::kOwt) {
    throw EnvironmentError(fmt::format(
        "no OpenWebText in {}: there are no *.tar.xz, *.tar or *.xz files; put "
        "openwebtext.tar.xz there, or say where it is with `--place owt=PATH` "
        "or `--corpus owt:PATH` (`//:prepare_data --how owt` says how to get "
        "it)",
        place.string()));
  }
  if (kind == FilesOf::kC4) {
    throw EnvironmentError(fmt::format(
        "no C4 in {}: there are no *.json.gz files; put the publishers' files "
        "there, or say where they are with `--place c4=FOLDER` or `--corpus "
        "c4:FOLDER` (`//:prepare_data --how c4` says how to get them)",
        place.string()));
  }
  throw EnvironmentError(fmt::format(
      "{}: no file or folder of *.jsonl, *.ndjson or *.json files, plain or "
      "with .gz, .xz or .zst; say where they are with `--corpus jsonl:PATH`",
      place.string()));
}

// The canonical path of a folder, which links to it share.
fs::path OwnPath(const fs::path& folder) {
  std::error_code error;
  fs::path own = fs::canonical(folder, error);
  RequireSeen(folder, error);
  return own;
}

// The folders whose files are read.
Files FoldersOf(FilesOf kind, const fs::path& place) {
  if (kind == FilesOf::kOwt) return {place, place / "subsets"};
  if (kind == FilesOf::kC4) return {place, place / "en"};
  return {place};
}

// Whether C4's publishers have the folder beside `en`.
bool IsVariantOfC4(const std::string& folder) {
  return folder.starts_with("en.") || folder == "multilingual" ||
         folder == "realnewslike";
}

// Returns the folders in `folder` that `*seen` lacks, and adds them to it.
Files NewFoldersIn(const fs::path& folder, std::set<fs::path>* seen) {
  Files folders;
  for (const fs::directory_entry& entry : EntriesOf(folder)) {
    std::error_code error;
    const bool is_folder = entry.is_directory(error);
    RequireSeen(entry.path(), error);
    if (is_folder && !NameOf(entry.path()).starts_with('.') &&
        seen->insert(OwnPath(entry.path())).second) {
      folders.push_back(entry.path());
    }
  }
  return folders;
}

// Throws if another folder inside, or one that a link there names, has
// documents that `wanted` takes: they would be left out silently.
void RefuseOtherFolders(FilesOf kind, const fs::path& place,
                        const std::function<bool(const fs::path&)>& wanted) {
  std::set<fs::path> seen;  // links may form cycles
  Files others;
  const auto add = [&](const fs::path& folder) {
    const Files inside = NewFoldersIn(folder, &seen);
    others.insert(others.end(), inside.begin(), inside.end());
  };
  const Files own = FoldersOf(kind, place);
  for (const fs::path& folder : own) seen.insert(OwnPath(folder));
  for (const fs::path& folder : own) {
    add(folder);
    if (kind != FilesOf::kC4 || folder != place) continue;
    std::erase_if(others, [](const fs::path& inside) {
      return IsVariantOfC4(NameOf(inside));
    });
  }
  while (!others.empty()) {
    const fs::path folder = others.back();
    others.pop_back();
    Files files;
    AddFiles(kind, folder, &files, &files);
    const auto file = std::ranges::find_if(files, [&](const fs::path& one) {
      std::error_code unknown;
      return wanted(one) && !fs::is_directory(one, unknown);
    });
    if (file != files.end()) {
      throw DataError(fmt::format(
          "{}: {} is in a subfolder, and those are not read; move it up, or "
          "out of {} if it is not text, or prepare its folder separately",
          place.string(), file->lexically_relative(place).string(),
          place.string()));
    }
    add(folder);
  }
}

struct PublishedFile {
  int64_t bytes = 0;
  std::string sha256;
};

std::map<std::string, PublishedFile> ReadC4Table() {
  std::istringstream table(ReadWholeFile(RunfilePath(kC4Table)));
  std::map<std::string, PublishedFile> shards;
  std::string name;
  PublishedFile shard;
  std::getline(table, name);  // titles
  while (table >> name >> shard.bytes >> shard.sha256) shards[name] = shard;
  SOFTMOE_CHECK(shards.size() == 1024) << shards.size() << " shards of C4";
  return shards;
}

// The publishers' shards of C4 by their names.
const std::map<std::string, PublishedFile>& C4Shards() {
  static const std::map<std::string, PublishedFile> shards = ReadC4Table();
  return shards;
}

// " (missing: A, B, ...)" with the first few of `names`; "" for none.
std::string Missing(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  const auto shown = std::min<size_t>(names.size(), 5);
  return fmt::format(
      " (missing: {}{})",
      fmt::join(names.begin(), names.begin() + static_cast<int64_t>(shown),
                ", "),
      shown < names.size() ? ", ..." : "");
}

std::string CompareC4(const std::vector<DigestedFile>& files) {
  const auto& shards = C4Shards();
  int64_t right = 0;
  const DigestedFile* wrong = nullptr;
  std::set<std::string> there;
  for (const DigestedFile& file : files) {
    const auto shard = shards.find(NameOf(file.path));
    if (shard != shards.end() && shard->second.bytes == file.bytes) {
      ++right;
      there.insert(shard->first);
    } else if (wrong == nullptr) {
      wrong = &file;
    }
  }
  if (right == 0) return "";
  if (wrong != nullptr) {
    const auto shard = shards.find(NameOf(wrong->path));
    throw DataError(fmt::format(
        "{}: {}, although other files here belong to C4 `en`: it is damaged, "
        "or of another variant such as en.noblocklist; {}",
        wrong->path.string(),
        shard == shards.end()
            ? "not the name of a C4 shard"
            : fmt::format("{} bytes, where the publishers' file has {}",
                          wrong->bytes, shard->second.bytes),
        kAgain));
  }
  std::vector<std::string> missing;
  for (const auto& [name, shard] : shards) {
    if (!there.contains(name)) missing.push_back(name);
  }
  if (missing.empty()) return "all 1024 shards";
  return fmt::format("{} of 1024 shards{}", right, Missing(missing));
}

std::string CompareOwt(const std::vector<DigestedFile>& files) {
  if (files.size() == 1 && files[0].bytes == kOwtArchiveBytes) {
    return "the whole archive";
  }
  std::vector<std::string> missing;
  for (int64_t i = 0; i < kOwtSubsets; ++i) {
    const std::string name = fmt::format("urlsf_subset{:02}.tar", i);
    const bool is_there = std::any_of(
        files.begin(), files.end(),
        [&](const DigestedFile& file) { return NameOf(file.path) == name; });
    if (!is_there) missing.push_back(name);
  }
  const auto there = kOwtSubsets - static_cast<int64_t>(missing.size());
  if (there == 0) return "";
  if (there < static_cast<int64_t>(files.size())) {
    for (const DigestedFile& file : files) {
      if (NameOf(file.path).starts_with("urlsf_subset")) continue;
      throw DataError(
          fmt::format("{}: not one of the 21 tars of OpenWebText, to which "
                      "other files here belong; move it out of the folder",
                      file.path.string()));
    }
  }
  if (missing.empty()) return "all 21 tars";
  return fmt::format("{} of 21 tars{}", there, Missing(missing));
}

// Blocks of a file that stand for it: both ends, and some in between.
constexpr int64_t kEnd = 1 << 16;
constexpr int64_t kSample = 1 << 12;
constexpr int64_t kSamples = 16;

void HashPart(const InputFile& file, int64_t begin, int64_t count,
              Sha256* hash) {
  begin = std::clamp<int64_t>(begin, 0, file.size());
  std::string bytes(static_cast<size_t>(std::min(count, file.size() - begin)),
                    '\0');
  file.Read(begin, static_cast<int64_t>(bytes.size()), bytes.data());
  hash->Update(bytes);
}

}  // namespace

Files FindCorpusFiles(FilesOf kind, const fs::path& place) {
  std::error_code error;
  if (fs::is_regular_file(place, error)) return {place};
  Files files, others;
  for (const fs::path& folder : FoldersOf(kind, place)) {
    AddFiles(kind, folder, &files, &others);
  }
  const auto is_training = [](const fs::path& file) {
    return LowerCase(NameOf(file)).starts_with("c4-train.");
  };
  const bool only_training =
      kind == FilesOf::kC4 &&
      std::any_of(files.begin(), files.end(), is_training);
  const auto is_wanted = [=](const fs::path& file) {
    return !only_training || is_training(file);
  };
  std::erase_if(files, std::not_fn(is_wanted));
  std::erase_if(others, std::not_fn(is_wanted));
  RefuseOtherFolders(kind, place, is_wanted);
  RefuseOthers(others);
  if (files.empty()) RefuseEmpty(kind, place);
  std::sort(files.begin(), files.end(),
            [](const fs::path& a, const fs::path& b) {
              return std::pair(NameOf(a), a) < std::pair(NameOf(b), b);
            });
  RefuseDoubleNames(kind, files);
  return files;
}

bool IsLinesOfJson(const std::string& name) {
  return std::ranges::any_of(
      std::to_array<std::string_view>(
          {".jsonl", ".ndjson", ".jsonlines", ".jl", ".ldjson"}),
      [&](std::string_view ending) { return name.ends_with(ending); });
}

bool HasFiles(FilesOf kind, const fs::path& folder) {
  Files files, others;
  for (const fs::path& one : FoldersOf(kind, folder)) {
    AddFiles(kind, one, &files, &others);
  }
  return !files.empty();
}

DigestedFile Digest(FilesOf kind, const fs::path& path) {
  const InputFile file(path);
  RefuseForeign(file);
  DigestedFile result{path, file.size(), ""};
  if (kind != FilesOf::kC4 || !C4Shards().contains(NameOf(path)) ||
      FormOf(file) != FileForm::kGzip) {
    result.digest = Sha256OfFile(path);
    return result;
  }
  Sha256 hash;
  hash.Update(fmt::format("{}\n", file.size()));
  HashPart(file, 0, kEnd, &hash);
  for (int64_t i = 1; i < kSamples; ++i) {
    HashPart(file, file.size() / kSamples * i, kSample, &hash);
  }
  HashPart(file, file.size() - kEnd, kEnd, &hash);
  result.digest = Sha256Hex(hash.Finish());
  return result;
}

std::vector<DigestedFile> DigestFiles(FilesOf kind, const Files& paths) {
  std::vector<DigestedFile> files(paths.size());
  const StopSignal stop;
  ThreadPool pool;
  pool.ParallelFor(static_cast<int64_t>(paths.size()), [&](int64_t i) {
    stop.ThrowIfRequested(kStopped);
    files[static_cast<size_t>(i)] = Digest(kind, paths[static_cast<size_t>(i)]);
  });
  stop.ThrowIfRequested(kStopped);  // a signal during the last file
  std::map<std::string, const fs::path*> contents;
  for (const DigestedFile& file : files) {
    if (file.bytes == 0) continue;
    const auto [there, is_new] = contents.emplace(file.digest, &file.path);
    if (!is_new) RefuseDouble(*there->second, file.path);
  }
  return files;
}

std::string CompareWithPublishers(FilesOf kind,
                                  const std::vector<DigestedFile>& files) {
  if (kind == FilesOf::kC4) return CompareC4(files);
  return kind == FilesOf::kOwt ? CompareOwt(files) : "";
}

std::string VerifyFiles(FilesOf kind, const Files& paths) {
  std::map<std::string, PublishedFile> published;
  if (kind == FilesOf::kC4) published = C4Shards();
  if (kind == FilesOf::kOwt) {
    published["openwebtext.tar.xz"] = {kOwtArchiveBytes, kOwtArchiveSha256};
  }
  std::erase_if(published, [&](const auto& file) {
    return std::none_of(paths.begin(), paths.end(), [&](const fs::path& path) {
      return NameOf(path) == file.first;
    });
  });
  const StopSignal stop;
  ThreadPool pool;
  pool.ParallelFor(static_cast<int64_t>(paths.size()), [&](int64_t i) {
    stop.ThrowIfRequested(kStopped);
    const fs::path& path = paths[static_cast<size_t>(i)];
    const auto file = published.find(NameOf(path));
    if (file == published.end()) return;
    const std::string found = Sha256OfFile(path);
    if (found == file->second.sha256) return;
    throw DataError(fmt::format(
        "{}: its SHA-256 is {}, the publishers' {}: damaged, or of another "
        "variant; download this file again",
        path.string(), found, file->second.sha256));
  });
  stop.ThrowIfRequested(kStopped);  // a signal during the last file
  return fmt::format(
      "{} of {} files have the publishers' SHA-256{}", published.size(),
      paths.size(),
      published.size() < paths.size() ? "; for the others, none is known" : "");
}

std::string TextOf(FilesOf kind, int64_t documents, int64_t bad) {
  if (kind == FilesOf::kJson) return "";
  const PublishedCorpus whole = Published(kind);
  if (documents == whole.documents && bad == 0) return whole.name;
  if (documents + bad > whole.documents) {
    return fmt::format("not {}: {} documents, its publishers count {}",
                       whole.name, documents + bad, whole.documents);
  }
  return fmt::format("a part of {}: {} of {} documents", whole.name, documents,
                     whole.documents);
}

PublishedCorpus Published(FilesOf kind) {
  SOFTMOE_CHECK(kind != FilesOf::kJson);
  return kind == FilesOf::kOwt
             ? PublishedCorpus{"owt", kOwtArchiveBytes, kOwtTextBytes,
                               kOwtDocuments}
             : PublishedCorpus{"c4", kC4Bytes, kC4TextBytes, kC4Documents};
}

std::string HowToGet(FilesOf kind) {
  if (kind == FilesOf::kOwt) {
    return fmt::format(
        "OpenWebText: {} bytes, {} documents, CC0 (texts of others).\n"
        "Takes 17 minutes at 100 Mbit/s. Get either\n"
        "  openwebtext.tar.xz, from the place that "
        "https://skylion007.github.io/OpenWebTextCorpus names;\n"
        "    SHA-256 {}\n"
        "  or the same text in {} tars, urlsf_subset00.tar to "
        "urlsf_subset{}.tar:\n"
        "    git lfs install\n"
        "    git clone https://huggingface.co/datasets/Skylion007/openwebtext "
        "/data/owt\n"
        "Then\n"
        "  export XDG_CACHE_HOME=/data/cache\n"
        "  ./bazelw run //:prepare_data -- --corpus owt --place owt=/data/owt "
        "--verify --out /data/owt-tokens/owt\n"
        "Hugging Face's openwebtext, in Parquet, is another form of it: "
        "trainer/corpora/parquet_to_jsonl.py\n"
        "gives OUT.jsonl.zst, for --place owt=OUT.jsonl.zst --normalise "
        "hf_openwebtext; to train, data.normalise\n"
        "= \"hf_openwebtext\".\n"
        "Tokens take about 20 GB (vocabulary 32768), in /data/cache; --out "
        "links to them.\n",
        kOwtArchiveBytes, kOwtDocuments, kOwtArchiveSha256, kOwtSubsets,
        kOwtSubsets - 1);
  }
  return fmt::format(
      "C4 `en`: {} bytes in 1024 files, {} documents, ODC-BY.\n"
      "Takes 44 minutes at 1 Gbit/s, 7.3 hours at 100 Mbit/s.\n"
      "  git lfs install\n"
      "  GIT_LFS_SKIP_SMUDGE=1 git clone "
      "https://huggingface.co/datasets/allenai/c4 /data/c4\n"
      "  cd /data/c4 && git lfs pull --include 'en/c4-train.*'\n"
      "(git keeps a second copy in .git: `rm -r .git` afterwards.) Then\n"
      "  export XDG_CACHE_HOME=/data/cache\n"
      "  ./bazelw run //:prepare_data -- --corpus c4 --place c4=/data/c4 "
      "--verify --out /data/c4-tokens/c4\n"
      "Tokens take about 400 GB, their index 7.3 GB (vocabulary 32768), in "
      "/data/cache; --out links to them.\n"
      "Training on part of the files works, too, but its results are not\n"
      "comparable with the paper's.\n",
      kC4Bytes, kC4Documents);
}

}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/prepared_corpus.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/config/config_enums.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/input_file.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/process/stop_signal.h"
#include "optimized/device.h"
#include "trainer/corpora/packed_file.h"
#include "trainer/tokens/manifest.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/token_memory.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kCorpusVersion = 2;
// Far more than PREFIX.json and PREFIX.manifest take.
constexpr uintmax_t kMaxDescriptionBytes = uintmax_t{1} << 26;

// The one list of keys: `visit(key, field)` for each.
template <typename Corpus, typename Visit>
void VisitCorpus(Corpus& corpus, const Visit& visit) {
  visit("corpus", corpus.corpus);
  visit("description", corpus.description);
  visit("stand_in", corpus.stand_in);
  visit("provenance", corpus.provenance);
  visit("vocab_size", corpus.vocab_size);
  visit("text_bytes", corpus.text_bytes);
  visit("num_documents", corpus.num_documents);
  visit("num_tokens", corpus.num_tokens);
  visit("corpus_sha256", corpus.corpus_sha256);
  visit("tokenizer_sha256", corpus.tokens.tokenizer_sha256);
  visit("tokens_sha256", corpus.tokens.data_sha256);
  visit("index_sha256", corpus.tokens.index_sha256);
}

void CheckHash(const fs::path& path, const std::string& found,
               const std::string& expected) {
  if (found == expected) return;
  throw DataError(fmt::format(
      "{}: damaged or exchanged: its SHA-256 is {}, the .json file beside it "
      "says {}; {}",
      path.string(), found, expected, kMakeTokensAgain));
}

// Token files are never changed, only replaced, so a link is as good as a copy.
bool LinkFile(const fs::path& from, const fs::path& to) {
  const fs::path made = to.string() + ".link";
  std::error_code error;
  fs::remove(made, error);
  fs::create_hard_link(from, made, error);
  if (!error) fs::rename(made, to, error);
  // Where `to` was already such a link, rename does nothing and `made` remains.
  std::error_code ignored;
  fs::remove(made, ignored);
  return !error;
}

// Throws StoppedError on a signal, since a process that a signal ends leaves
// its temporary file: gigabytes, if these are tokens.
void CopyFile(const fs::path& from, const fs::path& to,
              const StopSignal& stop) {
  const InputFile source(from);
  AtomicFile file(to);
  std::vector<char> block(size_t{1} << 20);
  for (int64_t begin = 0; begin < source.size();) {
    stop.ThrowIfRequested(fmt::format(
        "before {} was copied; the same command finds the tokens in the cache, "
        "and copies them again",
        from.string()));
    const int64_t count =
        std::min(static_cast<int64_t>(block.size()), source.size() - begin);
    source.Read(begin, count, block.data());
    file.Write(block.data(), static_cast<size_t>(count));
    begin += count;
  }
  file.Commit();
}

}  // namespace

std::string PreparedCorpusText(const PreparedCorpus& corpus) {
  Json json = {{"format", kTokenFilesFormat}, {"version", kCorpusVersion}};
  VisitCorpus(corpus,
              [&](const char* key, const auto& field) { json[key] = field; });
  if (!corpus.text_of.empty()) json["text_of"] = corpus.text_of;
  if (corpus.max_bytes) json["max_bytes"] = *corpus.max_bytes;
  if (corpus.normalise) json["normalise"] = EnumName(*corpus.normalise);
  return JsonText(Sealed(std::move(json)), 2) + "\n";
}

void WritePreparedCorpus(const PreparedCorpus& corpus) {
  WriteFileAtomically(WithSuffix(corpus.prefix, ".json"),
                      PreparedCorpusText(corpus));
}

PreparedCorpus ParsePreparedCorpus(const std::string& text,
                                   const fs::path& path) {
  const Json json = ParseJsonObject(text);
  if (!json.is_object() || json.value("format", Json()) != kTokenFilesFormat) {
    throw DataError(fmt::format("{}: not the description of token files; {}",
                                path.string(), kMakeTokensAgain));
  }
  const Json version = json.value("version", Json());
  if (version != kCorpusVersion) {
    throw DataError(
        fmt::format("{}: {}, only {} is known; {}", path.string(),
                    version.is_number_integer()
                        ? fmt::format("version {}", version.get<int64_t>())
                        : "no version",
                    kCorpusVersion, kMakeTokensAgain));
  }
  if (!IsSealed(json)) {
    throw DataError(
        fmt::format("{}: damaged, or changed by hand: its last line is not the "
                    "SHA-256 of the others; {}",
                    path.string(), kMakeTokensAgain));
  }
  PreparedCorpus corpus;
  VisitCorpus(corpus, [&](const char* key, auto& field) {
    if (!TakeField(json, key, &field)) {
      throw DataError(
          fmt::format("{}: key \"{}\" is missing or of the wrong type; {}",
                      path.string(), key, kMakeTokensAgain));
    }
  });
  // These keys are optional.
  TakeField(json, "text_of", &corpus.text_of);
  int64_t max_bytes = 0;
  if (TakeField(json, "max_bytes", &max_bytes)) corpus.max_bytes = max_bytes;
  std::string normalise;
  if (TakeField(json, "normalise", &normalise)) {
    corpus.normalise = ParseEnum<Normalise>(normalise);
  }
  if (corpus.max_bytes.has_value() != json.contains("max_bytes") ||
      corpus.normalise.has_value() != json.contains("normalise")) {
    throw DataError(fmt::format(
        "{}: \"max_bytes\" or \"normalise\" has an unknown value; {}",
        path.string(), kMakeTokensAgain));
  }
  return corpus;
}

PreparedCorpus ReadPreparedCorpus(const fs::path& prefix, int64_t vocab_size) {
  const fs::path path = WithSuffix(prefix, ".json");
  PreparedCorpus corpus = ParsePreparedCorpus(ReadWholeFile(path), path);
  corpus.prefix = prefix;
  if (vocab_size != 0 && corpus.vocab_size != vocab_size) {
    throw DataError(fmt::format(
        "{}: these tokens are of a vocabulary of {}, but model.vocab_size is "
        "{}; set the key to {}, or {} --vocab-size {}",
        path.string(), corpus.vocab_size, vocab_size, corpus.vocab_size,
        kMakeTokensAgain, vocab_size));
  }
  return corpus;
}

void RequireTokensOf(const DataConfig& data, const PreparedCorpus& corpus) {
  std::string other;
  if (corpus.corpus != data.corpus) {
    other = fmt::format(
        "corpus '{}' ({}), but data.corpus is '{}'; set it, even if both names "
        "mean the same text",
        corpus.corpus, corpus.description, data.corpus);
  } else if (corpus.max_bytes.value_or(data.max_bytes) != data.max_bytes) {
    other = fmt::format(
        "corpus '{}' with --max-bytes {}, but data.max_bytes is {}; set it",
        corpus.corpus, *corpus.max_bytes, data.max_bytes);
  } else if (data.max_bytes != 0 && corpus.text_bytes > data.max_bytes) {
    other = fmt::format("{} bytes of text, but data.max_bytes is {}; set it",
                        corpus.text_bytes, data.max_bytes);
  } else if (corpus.normalise.value_or(data.normalise) != data.normalise) {
    other = fmt::format(
        "corpus '{}' with --normalise {}, but data.normalise is {}; set it",
        corpus.corpus, EnumName(*corpus.normalise), EnumName(data.normalise));
  }
  if (other.empty()) return;
  throw DataError(
      fmt::format("{}: tokens of {}, or give the PREFIX of other tokens, or "
                  "let `train --corpus` or a grid without --tokens find them",
                  WithSuffix(corpus.prefix, ".json").string(), other));
}

PreparedCorpus OpenPreparedCorpus(const fs::path& prefix, int64_t vocab_size) {
  PreparedCorpus corpus = ReadPreparedCorpus(prefix, vocab_size);
  const TokenFacts facts = CheckTokens(prefix);
  CheckHash(WithSuffix(prefix, ".idx"), facts.index_sha256,
            corpus.tokens.index_sha256);
  CheckHash(WithSuffix(prefix, ".bin"), facts.data_sha256,
            corpus.tokens.data_sha256);
  const fs::path model = WithSuffix(prefix, ".model");
  CheckHash(model, Sha256OfFile(model), corpus.tokens.tokenizer_sha256);
  return corpus;
}

void RequireReplaceable(const fs::path& prefix) {
  // One of the two files exists as soon as a copy has begun.
  const auto is_ours = [&](const char* suffix, const auto& read) {
    const fs::path path = WithSuffix(prefix, suffix);
    std::error_code error;
    if (!fs::is_regular_file(path, error) ||
        fs::file_size(path, error) > kMaxDescriptionBytes) {
      return false;
    }
    try {
      read(path);
    } catch (const Error&) {
      return false;
    }
    return true;
  };
  if (is_ours(".json", [&](const fs::path&) { ReadPreparedCorpus(prefix); }) ||
      is_ours(".manifest", [](const fs::path& path) { ReadManifest(path); })) {
    return;
  }
  for (const char* suffix : {".bin", ".idx", ".model", ".manifest", ".json"}) {
    const fs::path path = WithSuffix(prefix, suffix);
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(path, ignored))) continue;
    throw ConfigError(fmt::format(
        "{}: already exists and does not belong to a prepared corpus; give "
        "another PREFIX, or move it away",
        path.string()));
  }
}

PreparedCorpus CopyPreparedCorpus(const PreparedCorpus& corpus,
                                  const fs::path& prefix) {
  RequireReplaceable(prefix);
  if (prefix.has_parent_path()) MakeFolder(prefix.parent_path());
  const StopSignal stop;
  // A concurrent reader finds no description, or one that does not fit.
  for (const char* suffix : {".manifest", ".bin", ".idx", ".model"}) {
    const fs::path from = WithSuffix(corpus.prefix, suffix);
    const fs::path to = WithSuffix(prefix, suffix);
    if (!LinkFile(from, to)) CopyFile(from, to, stop);
  }
  PreparedCorpus copy = corpus;
  copy.prefix = prefix;
  WritePreparedCorpus(copy);
  return copy;
}

RunIdentity IdentifyRun(const Config& config,
                        const std::filesystem::path& prefix,
                        const optimized::DeviceIdentity& where) {
  RunIdentity identity;
  identity.config = config;
  SetPlace(where, identity);
  if (std::filesystem::exists(WithSuffix(prefix, ".json"))) {
    identity.tokens =
        OpenPreparedCorpus(prefix, config.model.vocab_size).tokens;
    const fs::path model = WithSuffix(prefix, ".model");
    CheckTokenizerModel(ReadWholeFile(model), model.string());
  } else {
    const TokenFacts facts = CheckTokens(prefix);
    identity.tokens.data_sha256 = facts.data_sha256;
    identity.tokens.index_sha256 = facts.index_sha256;
    // In others' files a wrong id would end the run only when it is reached,
    // perhaps after days. Files that we write never have one.
    const TokenFile tokens(prefix, config.model.vocab_size);
    const bool counted = !facts.counts.empty() || tokens.num_tokens() == 0;
    if (!counted || std::cmp_greater(facts.counts.size(), tokens.vocab_size()))
      tokens.CheckIds();
  }
  return identity;
}

void SetPlace(const optimized::DeviceIdentity& where, RunIdentity& identity) {
  identity.isa = where.isa;
  identity.backend = where.backend;
  identity.device = where.model;
  identity.libraries = where.libraries;
}

}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
//
// corpus_benchmark.cc - how fast one thread reads a corpus and turns it into
// tokens, compared with spm_encode of Debian's package sentencepiece.
//
// The text is made up: documents of a few hundred words, with word frequencies
// as in English. Bytes are those of the text, whatever the form of the file.
// Runs of 16 MB are timed; those of 1 MB show what starting costs.
#include <archive.h>
#include <archive_entry.h>
#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/files/temporary_folder.h"
#include "core/philox.h"
#include "core/text/progress.h"
#include "kernels/benchmark_options.h"
#include "trainer/corpora/json_corpus.h"
#include "trainer/tokens/shard_store.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr std::array<int64_t, 2> kMegabytes = {1, 16};
constexpr size_t kWords = 200'000;
constexpr double kFrequentWords = 6000;
constexpr int64_t kVocabSize = 8192;
constexpr std::array kForms = {"plain", "gzip", "xz", "zstd"};
constexpr double kLeastOfSpmEncode = 3;

// Documents without line ends, at which spm_encode would end them.
Strings MakeDocuments(int64_t at_least) {
  int64_t drawn = 0;
  const auto uniform = [&] {
    return UniformFromWord(PhiloxWords({2, RandomStream::kTestData},
                                       static_cast<uint64_t>(drawn++))[0]);
  };
  Strings words;
  for (size_t i = 0; i < kWords; ++i) {
    std::string word;
    for (double length = 2 + 9 * uniform(); length > 0; --length) {
      word +=
          static_cast<char>('a' + static_cast<int>(26 * uniform() * uniform()));
    }
    words.push_back(word);
  }
  // The frequency of word n falls as 1/n, and as 1/n^2 beyond the first 6000
  // (Ferrer i Cancho and Sole, "Two regimes in the frequency of words", 2001).
  const double frequent = std::log(kFrequentWords);
  const auto draw_word = [&] {
    const double u = (frequent + 1) * uniform();
    const double n =
        u < frequent ? std::exp(u) : kFrequentWords / (frequent + 1 - u);
    return std::min(static_cast<size_t>(n), kWords) - 1;
  };
  Strings documents;
  int64_t bytes = 0;
  while (bytes < at_least) {
    std::string text;
    for (double length = 50 + 600 * uniform(); length > 0; --length) {
      text += words[draw_word()];
      text += uniform() < 0.1 ? ". " : " ";
    }
    bytes += std::ssize(text);
    documents.push_back(text);
  }
  return documents;
}

void Pack(const fs::path& path, const std::string& content, const char* form) {
  if (form == kForms[0]) return WriteFileAtomically(path, content);
  archive* out = ::archive_write_new();
  archive_entry* entry = ::archive_entry_new();
  ::archive_entry_set_filetype(entry, AE_IFREG);
  const bool written =
      ::archive_write_add_filter_by_name(out, form) == ARCHIVE_OK &&
      ::archive_write_set_format_raw(out) == ARCHIVE_OK &&
      ::archive_write_open_filename(out, path.c_str()) == ARCHIVE_OK &&
      ::archive_write_header(out, entry) == ARCHIVE_OK &&
      ::archive_write_data(out, content.data(), content.size()) ==
          static_cast<la_ssize_t>(content.size()) &&
      ::archive_write_close(out) == ARCHIVE_OK;
  ::archive_entry_free(entry);
  ::archive_write_free(out);
  if (!written) throw EnvironmentError("cannot write " + path.string());
}

// Files of one size that all benchmarks share, made by the first one.
struct Texts {
  explicit Texts(int64_t at_least) {
    const Strings documents = MakeDocuments(at_least);
    std::string lines, text;
    for (const std::string& document : documents) {
      bytes += std::ssize(document);
      lines += nlohmann::json{{"text", document},
                              {"timestamp", "2019-04-25T12:57:54Z"},
                              {"url", "https://example.org/"}}
                   .dump() +
               "\n";
      text += document + "\n";
    }
    for (const char* form : kForms) Pack(folder.path() / form, lines, form);
    WriteFileAtomically(folder.path() / "text", text);
    // About half of TokenizerSampleBytes(kVocabSize) is enough here.
    constexpr int64_t kSampleBytes = 4'000'000;
    const auto part =
        static_cast<size_t>(std::max<int64_t>(1, at_least / kSampleBytes));
    model =
        TrainTokenizer({documents.data(), documents.size() / part}, kVocabSize);
    WriteFileAtomically(folder.path() / "model", model);
  }
  PrivateFolder folder;
  int64_t bytes = 0;
  std::string model;
};
const Texts& TextsOf(const benchmark::State& state) {
  static std::map<int64_t, Texts> texts;
  const int64_t megabytes = state.range(0);
  return texts.try_emplace(megabytes, megabytes * 1'000'000).first->second;
}

void SetRate(const Texts& texts, benchmark::State& state) {
  state.counters["MB_per_s"] =
      benchmark::Counter(static_cast<double>(texts.bytes) * 1e-6,
                         benchmark::Counter::kIsIterationInvariantRate);
}

// JSON lines to documents.
void BM_Read(benchmark::State& state, const char* form) {
  const Texts& texts = TextsOf(state);
  const fs::path path = texts.folder.path() / form;
  for ([[maybe_unused]] const auto _ : state) {
    const auto source = OpenJsonLines(path);
    for (std::string document; source->Next(&document);) {
      benchmark::DoNotOptimize(document.data());
    }
  }
  SetRate(texts, state);
}

// Encodes a shard as a preparation does: from its gzip file to its tokens in
// the store.
void EncodeShard(const fs::path& folder, const Tokenizer& tokenizer,
                 int64_t index) {
  MakeFolder(folder / "shards");
  const auto source = OpenJsonLines(folder / "gzip");
  WordEncoder encoder(tokenizer);
  ShardWriter writer(folder, index, kVocabSize);
  std::vector<int32_t> ids;
  for (std::string document; source->Next(&document);) {
    ids.clear();
    encoder.Encode(document, &ids);
    ids.push_back(tokenizer.end_of_document());
    writer.AddDocument(document, ids);
  }
  writer.Commit(ShardRecord());
}

// Seconds that spm_encode takes for the same text, or 0 if it cannot be run.
double SpmEncodeSeconds(const fs::path& folder) {
  const std::string command = fmt::format(
      "spm_encode --model='{0}/model' --output_format=id "
      "<'{0}/text' >/dev/null 2>&1",
      folder.string());
  const double start = SteadySeconds();
  const int status = std::system(command.c_str());
  const double seconds = SteadySeconds() - start;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? seconds : 0;
}

// The two programs take turns, so that both run under the same conditions.
void BM_Encode(benchmark::State& state) {
  const Texts& texts = TextsOf(state);
  const fs::path& folder = texts.folder.path();
  const Tokenizer tokenizer(texts.model, "model");
  double seconds = 0, theirs = 0;
  int64_t rounds = 0;
  for ([[maybe_unused]] const auto _ : state) {
    const double start = SteadySeconds();
    EncodeShard(folder, tokenizer, rounds++);
    seconds += SteadySeconds() - start;
    state.PauseTiming();
    theirs += SpmEncodeSeconds(folder);
    state.ResumeTiming();
  }
  SetRate(texts, state);
  if (theirs == 0) {
    state.SetLabel(
        "not measured: spm_encode missing, apt-get install sentencepiece");
    return;
  }
  const double megabytes = static_cast<double>(texts.bytes * rounds) * 1e-6;
  state.counters["spm_encode_MB_per_s"] = megabytes / theirs;
  state.counters["ratio"] = theirs / seconds;
  state.SetLabel(fmt::format("at least {} is wanted", kLeastOfSpmEncode));
}

void AddBenchmarks() {
  const auto add = [](benchmark::internal::Benchmark* added) {
    added->ArgName("MB")->Unit(benchmark::kMillisecond)->UseRealTime();
    for (const int64_t megabytes : kMegabytes) added->Arg(megabytes);
  };
  for (const char* form : kForms) {
    add(benchmark::RegisterBenchmark(
        fmt::format("corpus/read/{}", form).c_str(), BM_Read, form));
  }
  add(benchmark::RegisterBenchmark("corpus/gzip_to_tokens", BM_Encode));
}

const bool added = [] {
  kernels::add_benchmarks["cpu"].push_back(AddBenchmarks);
  return true;
}();

}  // namespace
}  // namespace softmoe::trainer

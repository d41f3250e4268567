// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/tokenizer_sample.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/files/sha256.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::trainer {
namespace {

// No more bytes than this are read of the text of one shard.
constexpr int64_t kSampledShardText = 8'000'000'000;

// Bytes of the sample that are encoded to find out how many a token has.
constexpr int64_t kMeasuredBytes = 1 << 20;

double BytesOfAToken(const Tokenizer& tokenizer,
                     const std::vector<std::string>& documents) {
  int64_t bytes = 0, tokens = 0;
  for (const std::string& document : documents) {
    bytes += static_cast<int64_t>(document.size());
    tokens += static_cast<int64_t>(tokenizer.Encode(document).size());
    if (bytes > kMeasuredBytes) break;
  }
  return static_cast<double>(bytes) /
         static_cast<double>(std::max<int64_t>(1, tokens));
}

// Draws from one shard; returns false if `go_on` ended that.
bool SampleShard(const Shard& shard, int64_t index, const GoOn& go_on,
                 DocumentSample* sample, SampledText* sampled) {
  const auto source = shard.open();
  std::string document;
  bool full = false;
  while (!full && source->Next(&document)) {
    sample->Add(index, sampled->documents++, document);
    sampled->text_bytes += static_cast<int64_t>(document.size());
    full = sampled->text_bytes >= kSampledShardText;
    if (sampled->documents % 64 == 0 && !go_on(source->input_bytes())) {
      return false;
    }
  }
  sampled->input_bytes =
      full && source->input_bytes() > 0 ? source->input_bytes() : shard.bytes;
  sampled->skipped = source->skipped();
  return true;
}

}  // namespace

ShardList SampledShards(ShardList all) {
  return [all = std::move(all), begin = int64_t{0}](Shard* shard) mutable {
    if (begin >= kSampledFileBytes || !all(shard)) return false;
    begin += shard->bytes;
    return true;
  };
}

TokenizerSample::TokenizerSample(int64_t vocab_size)
    : vocab_size_(vocab_size), sample_(TokenizerSampleBytes(vocab_size)) {}

bool TokenizerSample::Draw(const Shard& shard, int64_t index,
                           const GoOn& go_on) {
  SampledText sampled;
  if (!SampleShard(shard, index, go_on, &sample_, &sampled)) return false;
  const std::lock_guard lock(mutex_);
  sampled_.documents += sampled.documents;
  sampled_.text_bytes += sampled.text_bytes;
  sampled_.input_bytes += sampled.input_bytes;
  sampled_.skipped.Add(sampled.skipped);
  digests_.resize(std::max(digests_.size(), static_cast<size_t>(index) + 1));
  digests_[static_cast<size_t>(index)] = shard.digest;
  return true;
}

SampledTokenizer TokenizerSample::MakeTokenizer(
    const std::string& given,
    const std::function<void(const std::string&)>& notify,
    const std::filesystem::path& work) {
  const std::vector<std::string> chosen = sample_.Take();
  SampledTokenizer made{.model = given, .sampled = sampled_};
  if (made.model.empty()) {
    notify(
        fmt::format("training a tokenizer of {} pieces on {} of {} documents",
                    vocab_size_, chosen.size(), sampled_.documents));
    made.model = TrainTokenizer(chosen, vocab_size_);
  }
  made.bytes_per_token = BytesOfAToken(Tokenizer(made.model, "model"), chosen);
  WriteFileAtomically(work / "model", made.model);
  WriteFileAtomically(work / "model.json",
                      JsonLine({{"digests", digests_},
                                {"documents", sampled_.documents},
                                {"text_bytes", sampled_.text_bytes},
                                {"input_bytes", sampled_.input_bytes},
                                {"bytes_per_token", made.bytes_per_token},
                                {"model_sha256", Sha256Hex(made.model)}}));
  return made;
}

std::optional<SampledTokenizer> FindTokenizer(const std::filesystem::path& work,
                                              const ShardList& sampled) {
  std::error_code error;
  for (const char* name : {"model.json", "model"}) {
    if (!std::filesystem::exists(work / name, error)) return std::nullopt;
  }
  const auto json = ParseJsonObject(ReadWholeFile(work / "model.json"));
  SampledTokenizer found{.model = ReadWholeFile(work / "model"), .sampled = {}};
  std::vector<std::string> digests;
  try {
    json.at("digests").get_to(digests);
    json.at("documents").get_to(found.sampled.documents);
    json.at("text_bytes").get_to(found.sampled.text_bytes);
    json.at("input_bytes").get_to(found.sampled.input_bytes);
    json.at("bytes_per_token").get_to(found.bytes_per_token);
    if (json.at("model_sha256") != Sha256Hex(found.model)) return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
  Shard shard;
  for (const std::string& digest : digests) {
    if (!sampled(&shard) || shard.digest != digest) return std::nullopt;
  }
  if (sampled(&shard)) return std::nullopt;
  return found;
}

}  // namespace softmoe::trainer

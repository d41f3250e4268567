// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokens/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/errors.h"
#include "trainer/corpora/shuffle.h"
#include "trainer/tokens/token_memory.h"

namespace softmoe::trainer {
namespace {

using Counts = std::vector<int64_t>;

int64_t Sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

Counts Minus(Counts counts, const Counts& others) {
  for (size_t id = 0; id < counts.size(); ++id) counts[id] -= others[id];
  return counts;
}

}  // namespace

Dataset::Dataset(const Config& config, const std::filesystem::path& prefix,
                 bool trains)
    : prefix_(prefix),
      tokens_(prefix, config.model.vocab_size),
      sequence_length_(config.model.sequence_length),
      batch_sequences_(config.training.global_batch_sequences),
      seed_(static_cast<uint64_t>(config.training.seed)) {
  const double fraction = config.data.validation_fraction;
  SOFTMOE_CHECK(sequence_length_ >= 1 && batch_sequences_ >= 1 &&
                fraction > 0 && fraction < 1);
  const int64_t documents = tokens_.num_documents();
  const int64_t held_out = std::max<int64_t>(
      1, std::llround(static_cast<double>(documents) * fraction));
  const int64_t num_training_documents =
      std::max<int64_t>(0, documents - held_out);
  validation_begin_ = tokens_.DocumentBegin(num_training_documents);
  // A stream of n tokens has n - 1 to predict.
  num_training_ =
      std::max<int64_t>(0, validation_begin_ - 1) / sequence_length_;
  num_validation_ =
      std::max<int64_t>(0, tokens_.num_tokens() - validation_begin_ - 1) /
      sequence_length_;
  if (!trains) {
    if (num_validation_ >= 1 && validation_begin_ > 0) return;
    throw DataError(fmt::format(
        "{}: too small: the documents that are held out, {} of {} with {} "
        "tokens in all, do not fill a sequence of {} tokens; give token files "
        "of a larger text",
        WithSuffix(prefix, ".bin").string(), std::min(held_out, documents),
        documents, tokens_.num_tokens(), sequence_length_));
  }
  if (num_training_ < batch_sequences_ || num_validation_ < 1) {
    const char* const split =
        held_out > 1 && num_validation_ >= batch_sequences_
            ? "hold out less (data.validation_fraction), or "
        : num_training_documents > 1 && num_training_ >= batch_sequences_
            ? "hold out more (data.validation_fraction), or "
            : "";
    const std::string remedy =
        documents < 2
            ? "one document is held out, so use at least 2 (data.corpus, "
              "data.max_bytes): those of a text file are separated by blank "
              "lines or lines of <|endoftext|>"
            : std::string(split) +
                  "use a larger corpus (data.corpus, data.max_bytes), shorter "
                  "sequences (model.sequence_length) or a smaller batch "
                  "(training.global_batch_sequences)";
    throw DataError(fmt::format(
        "{}: too small: {} documents with {} tokens give {} training sequences "
        "of {} tokens (a batch needs {}) and {} validation sequences (at least "
        "1 is needed); {}",
        WithSuffix(prefix, ".bin").string(), documents, tokens_.num_tokens(),
        num_training_, sequence_length_, batch_sequences_, num_validation_,
        remedy));
  }
}

void Dataset::FillWindow(int64_t begin, int32_t* inputs,
                         int32_t* targets) const {
  std::vector<int32_t> window(static_cast<size_t>(sequence_length_ + 1));
  tokens_.Read(begin, sequence_length_ + 1, window.data());
  std::copy_n(window.begin(), sequence_length_, inputs);
  std::copy_n(window.begin() + 1, sequence_length_, targets);
}

void Dataset::FillBatch(int64_t step, int64_t first, int64_t count,
                        std::span<int32_t> inputs,
                        std::span<int32_t> targets) const {
  const auto size = static_cast<size_t>(count * sequence_length_);
  SOFTMOE_CHECK(step >= 0 && first >= 0 && count >= 0 &&
                first + count <= batch_sequences_)
      << "step=" << step << " first=" << first << " count=" << count;
  SOFTMOE_CHECK(inputs.size() == size && targets.size() == size);
  for (int64_t s = 0; s < count; ++s) {
    const int64_t drawn = step * batch_sequences_ + first + s;
    const int64_t sequence = ShuffledIndex(
        seed_, drawn / num_training_, drawn % num_training_, num_training_);
    FillWindow(sequence * sequence_length_,
               inputs.data() + s * sequence_length_,
               targets.data() + s * sequence_length_);
  }
}

void Dataset::FillValidation(int64_t first, int64_t count,
                             std::span<int32_t> inputs,
                             std::span<int32_t> targets) const {
  const auto size = static_cast<size_t>(count * sequence_length_);
  SOFTMOE_CHECK(first >= 0 && count >= 0 && first + count <= num_validation_)
      << "first=" << first << " count=" << count;
  SOFTMOE_CHECK(inputs.size() == size && targets.size() == size);
  for (int64_t s = 0; s < count; ++s) {
    FillWindow(validation_begin_ + (first + s) * sequence_length_,
               inputs.data() + s * sequence_length_,
               targets.data() + s * sequence_length_);
  }
}

Counts Dataset::CountIds(int64_t begin, int64_t end) const {
  constexpr int64_t kBlock = 1 << 16;
  Counts counts(static_cast<size_t>(tokens_.vocab_size()));
  std::vector<int32_t> block(kBlock);
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    tokens_.Read(at, count, block.data());
    for (int64_t i = 0; i < count; ++i) {
      ++counts[static_cast<size_t>(block[static_cast<size_t>(i)])];
    }
  }
  return counts;
}

SplitCounts Dataset::CountSplits(int64_t num_sequences) const {
  SOFTMOE_CHECK(num_sequences >= 0) << "num_sequences=" << num_sequences;
  num_sequences = num_sequences == 0 ? num_validation_
                                     : std::min(num_sequences, num_validation_);
  const int64_t first = validation_begin_, end = tokens_.num_tokens();
  const auto vocab_size = static_cast<size_t>(tokens_.vocab_size());
  auto facts = RecallTokens(prefix_);
  // Drops facts of another text, or with ids that Read refuses.
  if (facts && (facts->counts.size() > vocab_size || Sum(facts->counts) != end))
    facts.reset();

  Counts held_out;
  if (facts && facts->counts_from.contains(first)) {
    held_out = facts->counts_from[first];
    held_out.resize(vocab_size);
  } else {
    held_out = CountIds(first, end);
    if (facts) RememberCounts(prefix_, *facts, first, held_out);
  }
  SplitCounts counts;
  if (facts) {
    facts->counts.resize(vocab_size);
    counts.training = Minus(facts->counts, held_out);
  } else {
    counts.training = CountIds(0, first);
  }
  // Counts whichever part is shorter: the targets, or the rest of the split.
  const int64_t targets_end = first + 1 + num_sequences * sequence_length_;
  if (targets_end - first < end - targets_end) {
    counts.targets = CountIds(first + 1, targets_end);
  } else {
    counts.targets = Minus(Minus(held_out, CountIds(first, first + 1)),
                           CountIds(targets_end, end));
  }
  return counts;
}

double UnigramLoss(const SplitCounts& counts) {
  const double total =
      static_cast<double>(Sum(counts.training) + std::ssize(counts.training));
  double nats = 0;
  for (size_t id = 0; id < counts.training.size(); ++id) {
    nats -= static_cast<double>(counts.targets[id]) *
            std::log(static_cast<double>(counts.training[id] + 1) / total);
  }
  return nats / static_cast<double>(Sum(counts.targets));
}

BytesPerToken MeasureBytes(const SplitCounts& counts,
                           const Tokenizer& tokenizer) {
  const auto per_token = [&](const Counts& ids) -> std::optional<double> {
    const auto bytes = tokenizer.TextBytes(ids);
    if (!bytes) return std::nullopt;
    return static_cast<double>(*bytes) / static_cast<double>(Sum(ids));
  };
  return {per_token(counts.training), per_token(counts.targets)};
}

}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
//
// dataset.h - batches of token sequences from a token file.
//
// The last `validation_fraction` of the documents are held out. Each side is
// one stream, its documents end to end (each closed by its end-of-document
// token), cut into windows: sequence i predicts tokens i*T+1 .. i*T+T of the
// stream from tokens i*T .. i*T+T-1, with T = sequence_length. So every token
// except a stream's first is predicted once per epoch, neighbouring windows
// share one token, and up to T-1 tokens at the end of a stream are left over. A
// window may hold several documents, and attention is not cut between them
// (Megatron's default, SPEC.md 4).
#ifndef SOFTMOE_TRAINER_TOKENS_DATASET_H_
#define SOFTMOE_TRAINER_TOKENS_DATASET_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::trainer {

// How often each id occurs: [vocab_size].
struct SplitCounts {
  std::vector<int64_t> training;  // in the training split
  std::vector<int64_t> targets;   // among held-out targets
};

// Cross-entropy of the targets under the training split's token frequencies
// with add-one smoothing, in nats per token: what a model that ignores the
// context can reach.
double UnigramLoss(const SplitCounts& counts);

// Bytes of text per token, where ends of documents count as tokens; nullopt if
// the tokens do not determine the bytes (Tokenizer::TextBytes).
struct BytesPerToken {
  std::optional<double> training, targets;
};
BytesPerToken MeasureBytes(const SplitCounts& counts,
                           const Tokenizer& tokenizer);

class Dataset {
 public:
  // Takes vocabulary, sequence length, batch, split and seed from `config`.
  // Throws what TokenFile throws, and DataError with the remedy if the corpus
  // is too small for one batch or one validation sequence. IdentifyRun
  // (prepared_corpus.h) checks that PREFIX.json has this vocabulary and that
  // the files are undamaged.
  //
  //   trains  whether batches will be asked for; if not, none need exist
  Dataset(const Config& config, const std::filesystem::path& prefix,
          bool trains = true);

  int64_t num_training_sequences() const { return num_training_; }
  int64_t num_validation_sequences() const { return num_validation_; }

  // Writes sequences [first, first + count) of the batch of the update with
  // index `step` (0 for the first update).
  //
  //   inputs, targets  [count, sequence_length], ids in [0, vocab_size)
  //
  // Each epoch visits every training sequence once, in an order of its own; a
  // batch may extend beyond the end of an epoch. A pure function of (config,
  // token file, step): to resume, ask for the next step.
  void FillBatch(int64_t step, int64_t first, int64_t count,
                 std::span<int32_t> inputs, std::span<int32_t> targets) const;

  // Writes held-out sequences [first, first + count), in the order of the text.
  void FillValidation(int64_t first, int64_t count, std::span<int32_t> inputs,
                      std::span<int32_t> targets) const;

  // Counts the training split, and the targets of the first `num_sequences`
  // held-out sequences (0: all; at most as many as there are, as in Validate).
  // Reads a split only if this machine does not remember its counts
  // (token_memory.h).
  SplitCounts CountSplits(int64_t num_sequences = 0) const;

 private:
  std::vector<int64_t> CountIds(int64_t begin, int64_t end) const;
  void FillWindow(int64_t begin, int32_t* inputs, int32_t* targets) const;

  std::filesystem::path prefix_;
  TokenFile tokens_;
  int64_t sequence_length_ = 0;
  int64_t batch_sequences_ = 0;
  uint64_t seed_ = 0;
  int64_t validation_begin_ = 0;  // first held-out token
  int64_t num_training_ = 0;
  int64_t num_validation_ = 0;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_DATASET_H_

// SPDX-License-Identifier: Apache-2.0
//
// tokenizer_sample.h - the first pass over a corpus: how much it holds, and a
// sample of its documents, on which a tokenizer is trained.
#ifndef SOFTMOE_TRAINER_TOKENS_TOKENIZER_SAMPLE_H_
#define SOFTMOE_TRAINER_TOKENS_TOKENIZER_SAMPLE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trainer/corpora/corpus.h"
#include "trainer/corpora/document_sample.h"
#include "trainer/tokens/shard_workers.h"

namespace softmoe::trainer {

// The sample is drawn from the shards that begin within this many bytes of the
// files (ten shards of C4), and from some gigabytes of the text of each:
// reading all of C4 twice would not improve it. The shards are known before
// they are read, so that any number of threads draws from the same ones.
inline constexpr int64_t kSampledFileBytes = 3'000'000'000;

// Returns those of the shards of a corpus that the first pass reads.
ShardList SampledShards(ShardList all);

// What the first pass found in one shard, or in all that it read.
struct SampledText {
  int64_t documents = 0;
  int64_t text_bytes = 0;
  int64_t input_bytes = 0;  // of the files
  Skipped skipped;          // not known of a tokenizer that was found
};

// What the first pass leaves for the second pass.
struct SampledTokenizer {
  std::string model;  // the bytes of a model file
  SampledText sampled;
  double bytes_per_token = 1;  // of the sample
};

class TokenizerSample {
 public:
  explicit TokenizerSample(int64_t vocab_size);

  // Draws from one shard; does the work of a ShardTask. The same shards give
  // the same sample, in any order, from any threads.
  bool Draw(const Shard& shard, int64_t index, const GoOn& go_on);

  // Covers the shards drawn from. Requires that no thread draws any more.
  const SampledText& sampled() const { return sampled_; }

  // Trains a tokenizer on the sample, which is left empty, or takes the model
  // `given` unless that is empty. Writes it into the folder `work` for
  // FindTokenizer. Calls `notify` before training, which takes minutes. Throws
  // what TrainTokenizer and WriteFileAtomically throw.
  SampledTokenizer MakeTokenizer(
      const std::string& given,
      const std::function<void(const std::string&)>& notify,
      const std::filesystem::path& work);

 private:
  const int64_t vocab_size_;
  DocumentSample sample_;
  std::mutex mutex_;
  SampledText sampled_;
  std::vector<std::string> digests_;  // of the shards, in their order
};

// The tokenizer in `work`; nullopt if there is none, it is damaged, or it was
// made from other shards than those of `sampled`.
std::optional<SampledTokenizer> FindTokenizer(const std::filesystem::path& work,
                                              const ShardList& sampled);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TOKENS_TOKENIZER_SAMPLE_H_

// SPDX-License-Identifier: Apache-2.0
//
// document_sample.h - a fair sample of the documents of a corpus.
#ifndef SOFTMOE_TRAINER_CORPORA_DOCUMENT_SAMPLE_H_
#define SOFTMOE_TRAINER_CORPORA_DOCUMENT_SAMPLE_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace softmoe::trainer {

// Keeps documents of about `budget` bytes in all out of any number: each gets a
// random priority from its place, and those with the lowest priorities are
// kept. The same documents give the same sample, in whatever order they are
// added, from any threads. Memory: the budget and one document.
class DocumentSample {
 public:
  explicit DocumentSample(int64_t budget) : budget_(budget) {}

  // Adds document `index` of shard `shard`. Only the beginning of a long one is
  // a candidate, cut between characters: at least ten documents make a sample.
  void Add(int64_t shard, int64_t index, const std::string& document);

  // Returns the sample in the order of the places, and leaves this object
  // empty.
  std::vector<std::string> Take();

 private:
  struct Candidate {
    uint64_t priority;
    int64_t shard, index;
    std::string text;
    bool operator<(const Candidate& other) const {
      return std::tie(priority, shard, index) <
             std::tie(other.priority, other.shard, other.index);
    }
  };

  int64_t budget_;
  std::mutex mutex_;
  int64_t bytes_ = 0;
  std::vector<Candidate> heap_;  // the highest priority first
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_DOCUMENT_SAMPLE_H_

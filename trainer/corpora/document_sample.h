// SPDX-License-Identifier: Apache-2.0
//
// document_sample.h - a fair sample of a stream of documents.
#ifndef SOFTMOE_TRAINER_CORPORA_DOCUMENT_SAMPLE_H_
#define SOFTMOE_TRAINER_CORPORA_DOCUMENT_SAMPLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace softmoe::trainer {

// Keeps documents of about `budget` bytes out of any number: each gets a random
// priority from its index, and those with the lowest priorities are kept. The
// same stream gives the same sample. Memory: the budget and one document.
class DocumentSample {
 public:
  explicit DocumentSample(int64_t budget) : budget_(budget) {}

  // Adds the next document. Only the beginning of a long one is a candidate (at
  // least ten documents make a sample), cut between characters.
  void Add(const std::string& document);

  // Returns the sample in the order of the stream, and leaves this object
  // empty.
  std::vector<std::string> Take();

 private:
  struct Candidate {
    uint64_t priority;
    int64_t index;
    std::string text;
    bool operator<(const Candidate& other) const {
      return std::pair(priority, index) <
             std::pair(other.priority, other.index);
    }
  };

  int64_t budget_;
  int64_t next_index_ = 0;
  int64_t bytes_ = 0;
  std::vector<Candidate> heap_;  // the highest priority first
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_CORPORA_DOCUMENT_SAMPLE_H_

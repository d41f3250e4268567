// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/document_sample.h"

#include <algorithm>
#include <utility>

#include "core/philox.h"
#include "trainer/corpora/utf8.h"

namespace softmoe::trainer {
namespace {

// Far above the layers of ShuffledIndex, which are its few rounds.
constexpr uint32_t kSampleLayer = 1000;

uint64_t Priority(int64_t shard, int64_t index) {
  const auto words = PhiloxWords(
      {0, RandomStream::kShuffle, static_cast<uint32_t>(shard), kSampleLayer},
      static_cast<uint64_t>(index));
  return uint64_t{words[0]} << 32 | words[1];
}

}  // namespace

void DocumentSample::Add(int64_t shard, int64_t index,
                         const std::string& document) {
  Candidate candidate{Priority(shard, index), shard, index, {}};
  const std::lock_guard lock(mutex_);
  if (bytes_ >= budget_ && heap_.front() < candidate) return;
  size_t length = std::min(document.size(), static_cast<size_t>(budget_ / 10));
  while (length > 0 && length < document.size() &&
         Continues(document[length])) {
    --length;
  }
  candidate.text = document.substr(0, length);
  heap_.push_back(std::move(candidate));
  std::push_heap(heap_.begin(), heap_.end());
  bytes_ += static_cast<int64_t>(length);
  while (true) {
    const auto largest = static_cast<int64_t>(heap_.front().text.size());
    if (bytes_ - largest < budget_) break;
    bytes_ -= largest;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
}

std::vector<std::string> DocumentSample::Take() {
  std::sort(heap_.begin(), heap_.end(),
            [](const Candidate& a, const Candidate& b) {
              return std::tie(a.shard, a.index) < std::tie(b.shard, b.index);
            });
  std::vector<std::string> sample;
  for (Candidate& candidate : heap_)
    sample.push_back(std::move(candidate.text));
  heap_.clear();
  bytes_ = 0;
  return sample;
}

}  // namespace softmoe::trainer

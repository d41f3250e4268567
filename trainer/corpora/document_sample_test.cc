// SPDX-License-Identifier: Apache-2.0
#include "trainer/corpora/document_sample.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/corpora/utf8.h"

namespace softmoe::trainer {
namespace {

using Documents = std::vector<std::string>;

Documents Sample(const Documents& documents, int64_t budget) {
  DocumentSample sample(budget);
  for (size_t i = 0; i < documents.size(); ++i) {
    sample.Add(0, static_cast<int64_t>(i), documents[i]);
  }
  return sample.Take();
}

// Documents that each name their place.
Documents Numbered(int count) {
  Documents documents;
  for (int i = 0; i < count; ++i) {
    documents.push_back(std::to_string(100000 + i) + std::string(14, '.'));
  }
  return documents;
}

TEST(DocumentSample, KeepsEverythingThatFits) {
  const Documents documents = Numbered(50);
  EXPECT_EQ(Sample(documents, 50 * 20 + 1), documents);
}

RC_GTEST_PROP(DocumentSample, KeepsTheBudgetAndTheOrder, ()) {
  const auto lengths =
      *rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(1, 40));
  const auto budget = *rc::gen::inRange<int64_t>(400, 1000);
  Documents documents;
  int64_t total = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    // First characters increase, so that the order can be seen.
    documents.push_back(
        std::string(lengths[i], static_cast<char>(33 + i % 90)));
    total += static_cast<int64_t>(lengths[i]);
  }
  const Documents sample = Sample(documents, budget);
  int64_t bytes = 0;
  size_t from = 0;
  for (const std::string& text : sample) {
    bytes += static_cast<int64_t>(text.size());
    while (from < documents.size() && documents[from] != text) ++from;
    RC_ASSERT(from < documents.size());
    ++from;
  }
  RC_ASSERT(bytes >= std::min(total, budget));
  RC_ASSERT(bytes < budget + 40);
}

// A fair sample of n = 5000 places keeps their mean; the standard error of a
// sample of m without replacement is n sqrt((1 - m/n) / (12 m)).
TEST(DocumentSample, IsSpreadOverTheStream) {
  constexpr int kCount = 5000;
  const Documents sample = Sample(Numbered(kCount), 500 * 20);
  ASSERT_EQ(sample.size(), 500u);
  double mean = 0;
  for (const std::string& text : sample) mean += std::stoi(text) - 100000;
  mean /= 500;
  const double error = kCount * std::sqrt((1 - 0.1) / (12 * 500));
  EXPECT_NEAR(mean, (kCount - 1) / 2.0, 4 * error);
}

// A tokenizer is trained on this sample: it must not change silently.
TEST(DocumentSample, KeepsItsChoice) {
  std::string chosen;
  for (const std::string& text : Sample(Numbered(40), 200)) {
    chosen += text.substr(4, 2) + " ";
  }
  EXPECT_EQ(chosen, "02 03 12 13 17 21 26 31 37 38 ");
}

TEST(DocumentSample, IsEmptyOnceItIsTaken) {
  DocumentSample sample(200);
  const auto take = [&] {
    for (int64_t i = 0; i < 40; ++i) sample.Add(0, i, std::string(20, 'x'));
    return sample.Take();
  };
  EXPECT_EQ(take(), take());
}

// Threads read shards at the same time, so that documents come in any order.
RC_GTEST_PROP(DocumentSample, IsTheSameInAnyOrder, ()) {
  struct Document {
    int64_t shard, index;
    std::string text;
  };
  const auto lengths = *rc::gen::container<std::vector<std::vector<size_t>>>(
      rc::gen::container<std::vector<size_t>>(rc::gen::inRange<size_t>(1, 60)));
  std::vector<Document> documents;
  for (size_t shard = 0; shard < lengths.size(); ++shard) {
    for (size_t i = 0; i < lengths[shard].size(); ++i) {
      documents.push_back(
          {static_cast<int64_t>(shard), static_cast<int64_t>(i),
           std::string(lengths[shard][i], static_cast<char>(33 + shard % 90))});
    }
  }
  const auto sample_of = [budget = *rc::gen::inRange<int64_t>(100, 1000)](
                             const std::vector<Document>& those) {
    DocumentSample sample(budget);
    for (const auto& [shard, i, text] : those) sample.Add(shard, i, text);
    return sample.Take();
  };
  const Documents in_order = sample_of(documents);
  for (size_t i = documents.size(); i > 1; --i) {
    std::swap(documents[i - 1], documents[*rc::gen::inRange<size_t>(0, i)]);
  }
  RC_ASSERT(sample_of(documents) == in_order);
}

// Each shard is sampled in its own way.
TEST(DocumentSample, IsSpreadOverTheShards) {
  DocumentSample sample(100 * 20);
  const Documents documents = Numbered(100);
  for (int64_t shard = 0; shard < 10; ++shard) {
    for (size_t i = 0; i < documents.size(); ++i) {
      sample.Add(shard, static_cast<int64_t>(i), documents[i]);
    }
  }
  const Documents chosen = sample.Take();
  ASSERT_EQ(chosen.size(), 100u);
  // A tenth of the places is chosen: none of a number's ten places with
  // probability 0.9^10 or so. 65 numbers are expected, with a deviation of 3.
  // If all shards were sampled alike, there would be ten.
  EXPECT_GT(std::set<std::string>(chosen.begin(), chosen.end()).size(), 50u);
}

TEST(DocumentSample, TakesOnlyTheBeginOfALongDocument) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "\u4E2D";
  const Documents sample = Sample({text, "short"}, 1000);
  ASSERT_EQ(sample.size(), 2u);
  EXPECT_EQ(sample[0].size(), 99u);  // 33 characters of 3 bytes
  EXPECT_EQ(FindNonText(sample[0]), std::string::npos);
}

}  // namespace
}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/task_comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "core/text/text_table.h"
#include "trainer/tasks/task_items.h"
#include "trainer/tasks/task_report.h"

namespace softmoe::trainer {
namespace {

// A task of a tasks.h5.
struct Answers {
  std::vector<int64_t> gold;               // [items]
  std::vector<int64_t> answers;            // [items, kNumTaskMeasures]
  std::vector<std::string> document_hash;  // [items]
};

Answers ReadAnswers(const Hdf5Reader& file, const std::string& group) {
  Answers read{.gold = file.ReadDataset<int64_t>(group + "/gold").values,
               .answers = file.ReadDataset<int64_t>(group + "/answers").values,
               .document_hash =
                   file.ReadDataset<std::string>(group + "/doc_hash").values};
  const size_t items = read.gold.size();
  if (read.answers.size() != kNumTaskMeasures * items ||
      read.document_hash.size() != items) {
    throw DataError(fmt::format(
        "{}: {} has {} items, {} answers and {} hashes; make the file again "
        "with `evaluate --task ... --out`",
        file.path().string(), group, items, read.answers.size(),
        read.document_hash.size()));
  }
  return read;
}

// Throws DataError unless both have the same items in the same order.
void RequireSameItems(const std::string& task, const Hdf5Reader& first,
                      const Answers& a, const Hdf5Reader& second,
                      const Answers& b) {
  const auto [at, other] =
      std::ranges::mismatch(a.document_hash, b.document_hash);
  if (at == a.document_hash.end() && other == b.document_hash.end()) return;
  throw DataError(fmt::format(
      "{} and {} have other items of {}, from item {} on; ask both models the "
      "same file",
      first.path().string(), second.path().string(), task,
      at - a.document_hash.begin()));
}

AnswerComparison Compare(const std::string& task, int measure, const Answers& a,
                         const Answers& b) {
  AnswerComparison result{.task = task,
                          .measure = static_cast<TaskMeasure>(measure),
                          .pairs = {.num_items = std::ssize(a.gold)}};
  for (size_t i = 0; i < a.gold.size(); ++i) {
    const size_t at = i * kNumTaskMeasures + static_cast<size_t>(measure);
    const bool first = a.answers[at] == a.gold[i];
    const bool second = b.answers[at] == a.gold[i];
    result.first_correct += first;
    result.second_correct += second;
    result.pairs.only_first += first && !second;
    result.pairs.only_second += second && !first;
    result.other_answer += a.answers[at] != b.answers[at];
  }
  return result;
}

}  // namespace

double McNemarExact(int64_t only_first, int64_t only_second) {
  SOFTMOE_CHECK(only_first >= 0 && only_second >= 0)
      << only_first << " and " << only_second;
  // Twice the lower tail of a binomial of fair coins.
  const auto coins = static_cast<double>(only_first + only_second);
  const auto fewer = static_cast<double>(std::min(only_first, only_second));
  return std::min(
      1.0, 2 * boost::math::cdf(boost::math::binomial(coins, 0.5), fewer));
}

double AnswerPairs::Flips() const {
  return static_cast<double>(only_first + only_second) /
         static_cast<double>(num_items);
}

double AnswerPairs::Difference() const {
  return static_cast<double>(only_first - only_second) /
         static_cast<double>(num_items);
}

double AnswerPairs::StandardError() const {
  return std::sqrt((Flips() - Difference() * Difference()) /
                   static_cast<double>(num_items));
}

AnswerPairs PairAnswers(std::span<const uint8_t> first,
                        std::span<const uint8_t> second, TaskMeasure measure) {
  SOFTMOE_CHECK(!first.empty() && first.size() == second.size())
      << first.size() << " and " << second.size() << " items";
  AnswerPairs pairs{.num_items = static_cast<int64_t>(first.size())};
  const int bit = static_cast<int>(measure);
  for (size_t i = 0; i < first.size(); ++i) {
    const int by_first = first[i] >> bit & 1, by_second = second[i] >> bit & 1;
    pairs.only_first += by_first & ~by_second;
    pairs.only_second += by_second & ~by_first;
  }
  return pairs;
}

std::vector<AnswerComparison> CompareAnswers(
    const std::filesystem::path& first, const std::filesystem::path& second) {
  const Hdf5Reader one(first / kTaskScoresName, TaskScoresKind());
  const Hdf5Reader two(second / kTaskScoresName, TaskScoresKind());
  std::vector<AnswerComparison> comparisons;
  for (const TaskSplit& split : TaskSplits()) {
    const std::string group = "/" + split.name;
    if (!one.Has(group) || !two.Has(group)) continue;
    const Answers a = ReadAnswers(one, group), b = ReadAnswers(two, group);
    RequireSameItems(split.name, one, a, two, b);
    for (int m = 0; m < kNumTaskMeasures; ++m) {
      comparisons.push_back(Compare(split.name, m, a, b));
    }
  }
  if (comparisons.empty()) {
    throw DataError(fmt::format(
        "{} and {} have no task in common; ask both models the same",
        one.path().string(), two.path().string()));
  }
  return comparisons;
}

std::string ComparisonTable(const std::vector<AnswerComparison>& comparisons) {
  TextTable table({"task", "measure", "items", "first", "second", "points",
                   "only first", "only second", "p", "answers differ"});
  for (const AnswerComparison& one : comparisons) {
    const AnswerPairs& pairs = one.pairs;
    const auto percent = [&](int64_t count) {
      return 100 * static_cast<double>(count) /
             static_cast<double>(pairs.num_items);
    };
    table.Add({one.task, kTaskMeasureNames[static_cast<size_t>(one.measure)],
               std::to_string(pairs.num_items),
               fmt::format("{:.2f}", percent(one.first_correct)),
               fmt::format("{:.2f}", percent(one.second_correct)),
               fmt::format("{:+.2f}", 100 * pairs.Difference()),
               std::to_string(pairs.only_first),
               std::to_string(pairs.only_second),
               fmt::format("{:.3g}",
                           McNemarExact(pairs.only_first, pairs.only_second)),
               fmt::format("{:.2f}", percent(one.other_answer))});
  }
  return table.Text();
}

}  // namespace softmoe::trainer

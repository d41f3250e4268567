// SPDX-License-Identifier: Apache-2.0
//
// task_comparison.h - compares a grid's rows on the items of a task, seed by
// seed and item by item. That shows more than their accuracies do, since most
// items are answered alike.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_TASK_COMPARISON_H_
#define SOFTMOE_EXPERIMENTS_REPORT_TASK_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "experiments/report/report_tables.h"
#include "experiments/run/run_outcome.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

// McNemar's exact test, two-sided: the probability that, for two equally good
// models, the items that only one of them answers correctly split at least as
// unevenly as `only_first` to `only_second`; 1 if there are no such items. Both
// must be >= 0.
double McNemarExact(int64_t only_first, int64_t only_second);

// Two models' answers to the same items under one measure.
struct AnswerPairs {
  int64_t num_items = 0;                    // at least one
  int64_t only_first = 0, only_second = 0;  // right where the other is wrong

  // Share of the items that only one answers correctly, in [0, 1].
  double Flips() const;
  // The first accuracy minus the second, in [-1, 1].
  double Difference() const;
  // The standard error of the difference if the items were drawn anew. Each
  // item adds 1, -1 or 0, so this is sqrt((Flips - Difference^2) / num_items).
  double StandardError() const;
};

// Pairs the TaskResult::right of two models, item by item. Both must have the
// same number of items, at least one.
AnswerPairs PairAnswers(std::span<const uint8_t> first,
                        std::span<const uint8_t> second,
                        trainer::TaskMeasure measure);

// The share of the items that only one of two seeds answers correctly, as the
// mean over all pairs of seeds, in [0, 1]. nullopt for fewer than two seeds, or
// if one of them is nullptr or was given other items.
std::optional<double> FlipShare(
    const std::vector<const trainer::TaskResult*>& seeds,
    trainer::TaskMeasure measure);

// A table for each corpus, task and measure (acc and acc_norm, the readings
// that the paper leaves open) of the pairs that the paper compares:
//
//   a soft row against the sparse row whose k is its budget (ExpertBudget), as
//     in T1 and claim C6
//   rows with the same kind of router, k, alpha and variant against each other,
//     as in T6 and T8
//   a row at another inference tau against itself at that of training, as in T7
//
// Each seed that both rows have is a line: the items that only one row answers
// correctly (b and c), the difference of the accuracies, its standard error
// over items, and McNemar's exact p. If there are two seeds or more, all given
// the same items, a line for their mean follows. Seeds answer the same items,
// so their counts are not independent and are not added up. The mean is tested
// against the noise of differences over seeds (Student's t, one degree of
// freedom less than seeds) and against that of answers flipping between seeds,
// each by itself (golden/FORMAT.md, "Verdicts"); the line shows the larger
// standard error and the larger p. A row at two tau is one set of models, whose
// answers are not two independent draws: in each seed an item adds d = 1, -1 or
// 0 to the difference, whose variance over seeds is E[d^2] - E[d]^2, at most
// E[d^2], the probability that the item counts in b or c. With N items and n
// seeds the variance of the mean is then (b + c) / (N^2 n), where b + c is a
// mean over seeds. Holm's procedure at 5 % covers the pairs of a table, by the
// p of their last lines, except pairs whose seeds were given different items.
//
// Rows follow the grid. Runs that were given different items are not paired; a
// table without pairs is left out.
std::vector<EvaluationTable> TaskComparisonTables(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_TASK_COMPARISON_H_

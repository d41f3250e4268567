// SPDX-License-Identifier: Apache-2.0
//
// task_comparison.h - a grid's rows against each other on the items of a task,
// seed by seed and item by item: more than their accuracies tell, since most
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

// McNemar's exact test, two-sided: how likely, if both models are as good, the
// items that one alone answers rightly are shared out at least as unevenly as
// `only_first` to `only_second`; 1 where there are none. Both >= 0.
double McNemarExact(int64_t only_first, int64_t only_second);

// Two models' answers to the same items under one measure.
struct AnswerPairs {
  int64_t num_items = 0;                    // at least one
  int64_t only_first = 0, only_second = 0;  // right where the other is wrong

  // Share of the items that one alone answers rightly, in [0, 1].
  double Flips() const;
  // The first accuracy minus the second, in [-1, 1].
  double Difference() const;
  // The difference's standard error, over items drawn anew. Each item adds 1,
  // -1 or 0 to it, so this is sqrt((Flips - Difference^2) / num_items).
  double StandardError() const;
};

// Pairs what TaskResult::right of both models says, item by item; as many
// items, at least one.
AnswerPairs PairAnswers(std::span<const uint8_t> first,
                        std::span<const uint8_t> second,
                        trainer::TaskMeasure measure);

// The share of the items that one of two seeds alone answers rightly, as the
// mean over all pairs of seeds, in [0, 1]. nullopt with fewer than two seeds,
// or if one of them is nullptr or was asked other items.
std::optional<double> FlipShare(
    const std::vector<const trainer::TaskResult*>& seeds,
    trainer::TaskMeasure measure);

// A table for each corpus, task and measure (acc and acc_norm, the readings
// that the paper leaves open) of the pairs that the paper compares:
//
//   soft rows       against the sparse row of the k that is their budget
//                   (ExpertBudget), as T1 and claim C6
//   rows of one     kind of router, k, alpha and variant against each other,
//                   as T6 and T8
//   another tau     in inference against that of training, as T7
//
// Each seed that both have is a line: items that one alone answers rightly,
// difference of the accuracies, its standard error over items, McNemar's exact
// p. With two seeds and more that were asked the same items a line follows for
// their mean. Seeds answer the same items, so counts of different seeds are not
// independent and are not added up: the mean is held against the noise of the
// differences over seeds (Student's t, one degree of freedom less than seeds)
// and against that of answers that flip between seeds, each by itself
// (golden/FORMAT.md, "Verdicts"); the larger standard error and the larger p
// stand there. Two tau of one row are answered by the same models, whose
// answers are no two draws: in a seed an item adds d = 1, -1 or 0 to the
// difference, over seeds with the variance E[d^2] - E[d]^2, at most E[d^2], its
// chance to count in b or c. With N items and n seeds the variance of the mean
// is then (b + c) / (N^2 n), b + c being a mean over seeds. Holm's procedure at
// 5 % is over the pairs of a table, by the p of their last lines, without those
// whose seeds were asked different items.
//
// Rows follow the grid. Runs that were asked other items are not paired; a
// table without pairs is left out.
std::vector<EvaluationTable> TaskComparisonTables(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_TASK_COMPARISON_H_

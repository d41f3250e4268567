// SPDX-License-Identifier: Apache-2.0
//
// results_document.h - a grid's results in the form of the goldens
// (golden/FORMAT.md), so that golden/verdict/verdict.h can judge one by the
// other.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_RESULTS_DOCUMENT_H_
#define SOFTMOE_EXPERIMENTS_REPORT_RESULTS_DOCUMENT_H_

#include <string>
#include <vector>

#include "experiments/run/run_outcome.h"
#include "golden/document/document.h"
#include "trainer/results/run_result.h"

namespace softmoe::experiments {

// The readings of tau that the rows of a grid stand for (DESIGN.md, ruling 7):
// {""} where every row has one, {"paper", "calibrated"} where rows come in
// both. A golden has one row for each of the paper's rows, so each reading is a
// document of its own; rows without a variant (Sparse MoE) are in all of them.
std::vector<std::string> Variants(const Grid& grid);

// The readings of the paper's accuracies (DESIGN.md, ruling 18), each of which
// applies to whole tables and so has documents of its own: acc and, if any run
// of the grid was given tasks, acc_norm.
std::vector<trainer::TaskMeasure> AccuracyReadings(const GridOutcome& outcome);

// "results.h5"; "results-calibrated.h5" for the second of two readings of tau;
// for acc_norm, "results-acc_norm.h5" and "results-calibrated-acc_norm.h5".
std::string ResultsName(const Grid& grid, const std::string& variant,
                        trainer::TaskMeasure by = trainer::TaskMeasure::kAcc);

// Makes these tables, with ids and definitions from the paper's golden:
//
//   main_results   the paper's Table 1: settings, active experts, active
//                  parameters (the paper's formula at its sizes, else exact and
//                  with a margin for the sizes of the grid), held-out loss,
//                  zero-shot accuracies (`by`, in percent, on whole splits; on
//                  ARC-Easy the 567 items of N18), if the grid asks for those
//                  tasks; then, for the record, exact active parameters, the
//                  unigram's loss, and zero AE. Rows are named by
//                  GridRun::paper_id(), or CORPUS/ROW where a row stands for
//                  none of the paper's.
//   load_variance  the final model's, on validation tokens
//   allocation     for rows with learned allocation: share of the budget in the
//                  last three layers, budget, smallest k_l, share moved early
//   layers         for the same rows: k_l of every layer at the end. The golden
//                  has no such table.
//   tau_ablation, jitter, inference_tau_ablation   only for the experiment that
//                  repeats the table: its rows are named by
//                  GridRun::paper_id() here, and CORPUS/ROW in the tables
//                  above. Inference at a tau that the paper does not have is
//                  named /infer_tau_xFACTOR.
//
// A value is the mean over the finished seeds, with their number and standard
// deviation; an accuracy has its items, and the share that flips between seeds.
// Empty cells are flagged DIVERGED in a row with a failed seed (settings only
// if the other seeds differ in them), NOT_RUN in a row that has not run, and
// NOT_MEASURED where a run lacks the number. Fields are configuration keys;
// those that all rows share belong to the document. The document holds no clock
// times, so equal runs give equal documents.
golden::Document ResultsDocument(
    const GridOutcome& outcome, const std::string& variant,
    const golden::Document& paper,
    trainer::TaskMeasure by = trainer::TaskMeasure::kAcc);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_RESULTS_DOCUMENT_H_

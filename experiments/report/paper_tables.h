// SPDX-License-Identifier: Apache-2.0
//
// paper_tables.h - the paper's tables with a grid's numbers beside them, and
// for every cell a verdict or the reason why there is none.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_PAPER_TABLES_H_
#define SOFTMOE_EXPERIMENTS_REPORT_PAPER_TABLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/report_tables.h"
#include "experiments/run/run_outcome.h"
#include "golden/document/document.h"
#include "golden/verdict/verdict.h"

namespace softmoe::experiments {

// One results file and what the paper's goldens say about it.
struct JudgedResults {
  std::string variant;  // the reading of tau, or ""
  std::string file;     // "results.h5"
  golden::Document results;
  golden::Verdicts verdicts;
  // The reading of accuracies, or "": "acc", "acc_norm".
  std::string accuracies = {};

  // " (tau: calibrated, accuracies: acc_norm)", or ""
  std::string reading() const {
    std::string text = variant.empty() ? "" : ", tau: " + variant;
    if (!accuracies.empty()) text += ", accuracies: " + accuracies;
    return text.empty() ? "" : " (" + text.substr(2) + ")";
  }
};

// A cell of the paper's tables, and what a grid has for it.
struct PaperCell {
  std::string table, row, column;  // ids
  std::string variant;             // the reading of tau, if rows differ by it
  std::string paper;               // as printed; "-": no number
  // The mean over the seeds with one digit more than the paper's, and half the
  // width of its interval: "2.776 ± 0.012"; "" without a number.
  std::string ours;
  int64_t runs = 0;                // seeds in the mean
  std::string verdict;             // "PASS", ..., or "not judged"
  std::string reason;              // "" for a plain pass
  std::vector<std::string> notes;  // ids of the paper's notes
};

// Half the width of the 95 % interval of a mean over seeds by Student's t;
// nullopt for fewer than two runs.
std::optional<double> HalfWidth(const golden::Cell& mean);

// Every cell of the tables that the grid repeats (Grid::table, or T1 and T2),
// and the cells of other tables for which there are results, in the paper's
// order. A row that the grid has in several readings appears once for each.
//
// T2, and the clock times of T3 and T4, which no results file may hold, are
// judged like the results. Each run counts with its own number of GPUs, and a
// throughput is the mean over the runs. Only the results in `judged` with this
// reading of accuracies are used.
std::vector<PaperCell> PaperCells(const GridOutcome& outcome,
                                  const std::vector<JudgedResults>& judged,
                                  const golden::Document& paper,
                                  const std::string& accuracies = "");

// The tables that the grid repeats, as the paper prints them: under each of its
// rows, one of ours for each reading of tau, with its seeds and verdicts. The
// titles of tables with accuracies name the reading of the accuracies.
std::vector<EvaluationTable> PaperTables(const Grid& grid,
                                         const std::vector<PaperCell>& cells,
                                         const golden::Document& paper,
                                         const std::string& accuracies = "");

// One line for each cell: ids, both numbers, verdict, reason, notes.
EvaluationTable CellTable(const std::vector<PaperCell>& cells,
                          const std::string& accuracies = "");

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_PAPER_TABLES_H_

// SPDX-License-Identifier: Apache-2.0
//
// report_csv.h - a grid's report as plain tables for other programs: its runs,
// the verdicts on its claims, its differences.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_REPORT_CSV_H_
#define SOFTMOE_EXPERIMENTS_REPORT_REPORT_CSV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/report/mini_claims.h"
#include "experiments/report/regime_results.h"
#include "experiments/run/run_outcome.h"

namespace softmoe::experiments {

// The fields as a line of CSV with its end, quoted where necessary.
std::string CsvLine(const std::vector<std::string>& fields);

// One line for each run: run, corpus, row, label, variant, seed, state,
// mean_active_experts, expansion_factor, RunColumns() by their names,
// config_hash. Numbers read back exactly; numbers that a run lacks are empty.
// Units: trainer/METRICS.md.
std::string RunsCsv(const GridOutcome& outcome);

// One line for each step that `every`, at least 1, divides, and for the last
// step, of each finished run: run, step, and the metrics of a step
// (trainer/results/metrics.h) except lists and clock times.
std::string StepsCsv(const GridOutcome& outcome, int64_t every = 1);

// One line for each finished run and each tau at which its plan had it
// validated (that of training, factor 1, only where it is listed): run, factor,
// tau, and the scalar metrics of a validation. Sparse runs have no such lines.
std::string InferenceTauCsv(const GridOutcome& outcome);

// One line for each layer of each finished run whose routers were measured:
// run, layer (from 1), and the metrics of a router (truncated_mass is empty for
// the sparse one).
std::string RouterHealthCsv(const GridOutcome& outcome);

// One line for each measure (acc, acc_norm, ...) of each task, or part of one,
// that a finished run was given, at each tau, that of training first: run, tau,
// task, items, measure, correct, accuracy, standard_error.
std::string TasksCsv(const GridOutcome& outcome);

// One line for each case: claim, its verdict, measure, its verdict, corpus,
// case, effect, low and high end of the interval, unit, margin, seeds, p_shown,
// p_contradicted, decides (1: this case decides the measure), problem, cap_rise
// (of active experts: the same difference of the mean caps), assumes. Then one
// for each part of a case that is a mean over corpora, with the verdict "part".
// Numbers read back exactly; those of a case that cannot be tested are empty.
std::string ClaimsCsv(const MiniClaims& judged);

// One line per point: row, step, seeds, active, linear, linear_low,
// linear_high, smooth, smooth_low, smooth_high. Numbers read back exactly.
std::string DifferencesCsv(const std::vector<DifferenceLine>& lines);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_REPORT_CSV_H_

// SPDX-License-Identifier: Apache-2.0
//
// report_csv.h - the runs of a grid as plain tables for other programs.
#ifndef SOFTMOE_EXPERIMENTS_REPORT_CSV_H_
#define SOFTMOE_EXPERIMENTS_REPORT_CSV_H_

#include <string>

#include "experiments/run_outcome.h"

namespace softmoe::experiments {

// One line for each run: run, corpus, row, label, variant, seed, state, k,
// alpha, tau, train_active_experts, infer_active_experts, active_parameters,
// loss, unigram_loss, loss_at_schedule_temperature, zero_active_fraction,
// load_variance, parameters, seconds, config_hash. Numbers read back exactly;
// what a run does not have is empty. Units: nats per token, experts per token
// and layer, seconds.
std::string RunsCsv(const GridOutcome& outcome);

// One line for each step of each finished run: run, step, loss,
// load_balance_loss, z_loss, active_experts, zero_active_fraction, temperature,
// gradient_norm, learning_rate.
std::string StepsCsv(const GridOutcome& outcome);

// One line for each finished run and each other tau that it was validated with:
// run, factor, tau, loss, active_experts, zero_active_fraction, load_variance,
// load_cv, load_var_over_mean. The sparse router has none.
std::string InferenceTauCsv(const GridOutcome& outcome);

// One line for each layer of each finished run whose routers were measured: run,
// layer (from 0), load_entropy, relative_load_entropy, dead_experts,
// at_cap_fraction, zero_active_fraction, truncated_mass (empty for the sparse
// router).
std::string RouterHealthCsv(const GridOutcome& outcome);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_CSV_H_

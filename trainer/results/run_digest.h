// SPDX-License-Identifier: Apache-2.0
//
// run_digest.h - one SHA-256 that tells whether two runs gave the same bits,
// and a comparison of the metrics that it leaves out.
#ifndef SOFTMOE_TRAINER_RESULTS_RUN_DIGEST_H_
#define SOFTMOE_TRAINER_RESULTS_RUN_DIGEST_H_

#include <string>

#include "trainer/results/metrics.h"
#include "trainer/results/run_result.h"

namespace softmoe::trainer {

// Returns a SHA-256, 64 hex digits, over every bit of every number that
// training gave: all steps that `result` has, both validations and
// VisitRunMetrics, except clocks and metrics that are `later` (metrics.h),
// which the digests of older records lack. It covers neither the configuration
// nor FinalEvaluations.
std::string TrainingDigest(const RunResult& result);

// Does the same for the evaluations after training.
std::string EvaluationsDigest(const FinalEvaluations& evaluations);

// Whether the metrics that `which` accepts are the same in both runs, as far as
// `there` has them: those of the run, of the steps and evaluations that both
// have, and of their validations, routers and answers. A number that has its
// default in `there` is taken for one that an older record lacks.
bool SameMetrics(const RunResult& there, const RunResult& here,
                 bool (*which)(const Metric&));

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_RUN_DIGEST_H_

// SPDX-License-Identifier: Apache-2.0
//
// bench_samples.h - tokens per second at several numbers of active experts, out
// of what //:bench writes (`--benchmark_filter=^mini/
// --benchmark_format=json`).
#ifndef SOFTMOE_EXPERIMENTS_RUN_BENCH_SAMPLES_H_
#define SOFTMOE_EXPERIMENTS_RUN_BENCH_SAMPLES_H_

#include <string>
#include <vector>

#include "golden/verdict/miniature_judge.h"

namespace softmoe::experiments {

// A sample is one repetition of "mini/soft_ae1.5", "mini/sparse1", ...: a soft
// router as it was drawn, or a sparse one, with as many active experts as the
// name says; "mini/random1.5" is what earlier programs called the soft one at 1.5.
// Ascending by active experts; other benchmarks and aggregates are passed over.
// Throws DataError that calls the text `place`, with the remedy, if it is no
// JSON of //:bench, if a sample is of other sizes than the mini grid's or has
// other active experts than its name says, and if there is none.
std::vector<golden::ThroughputSamples> ParseBenchSamples(
    const std::string& text, const std::string& place);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_BENCH_SAMPLES_H_

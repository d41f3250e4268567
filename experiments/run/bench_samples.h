// SPDX-License-Identifier: Apache-2.0
//
// bench_samples.h - reads tokens per second at several numbers of active
// experts from the output of //:bench (`--benchmark_filter=^mini/
// --benchmark_format=json`).
#ifndef SOFTMOE_EXPERIMENTS_RUN_BENCH_SAMPLES_H_
#define SOFTMOE_EXPERIMENTS_RUN_BENCH_SAMPLES_H_

#include <string>
#include <vector>

#include "golden/verdict/miniature_judge.h"

namespace softmoe::experiments {

// Returns the samples in order of active experts. A sample is one repetition of
// "mini/soft_ae1.5", "mini/sparse1", ...: a soft router as drawn, or a sparse
// one, with the number of active experts in its name; "mini/random1.5" is an
// older name of the soft one at 1.5. Skips other benchmarks and aggregates.
// Throws DataError, which calls the text `place` and gives the remedy, if the
// text is not JSON of //:bench, if a sample has other sizes than the mini
// grid's or other active experts than its name says, or if there is none.
std::vector<golden::ThroughputSamples> ParseBenchSamples(
    const std::string& text, const std::string& place);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_RUN_BENCH_SAMPLES_H_

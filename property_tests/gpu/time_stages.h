// SPDX-License-Identifier: Apache-2.0
//
// time_stages.h - the stages in which `bench --device=cuda` takes times, and
// the lines that follow from its report.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_TIME_STAGES_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_TIME_STAGES_H_

#include <string>
#include <vector>

#include "property_tests/gpu/stage_bodies.h"
#include "property_tests/gpu/stage_list.h"

namespace softmoe::gpu {

// The lines of the record for the JSON report of `bench --device=cuda`:
// "ceiling", "time", "algorithm" and "step", and a failed "check" for each
// benchmark that had an error, except for algorithms after the first, which
// cuBLASLt may lack. Without times if the device is simulated.
std::vector<Line> TimeLines(const Line& report, bool simulated);

// The stage of the benchmarks whose names begin with `prefix` and a slash: the
// median of three bursts that last at least `burst` seconds for each, or, on
// the simulated device, one run.
Stage TimeStage(const std::string& name, const std::string& prefix,
                double burst, const StageOptions& options);

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_TIME_STAGES_H_

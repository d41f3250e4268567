// SPDX-License-Identifier: Apache-2.0
//
// sample.h - `verify mutate --sampled N --seed S`: random faults, so that
// nobody chooses what the tests are measured by.
#ifndef SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLE_H_
#define SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/process/stop_signal.h"

namespace softmoe::mutation {

struct SampleOptions {
  int64_t faults = 0;
  uint64_t seed = 1;
  int jobs = 2;
  std::vector<std::string> in;  // folders or files; none: everywhere
  std::string list;             // "": the list of the seed
  bool report = false;          // only reports on the list
};

// Begins the list or continues it, and prints its report.
ExitCode RunSample(const SampleOptions& options, const StopSignal& signal);

}  // namespace softmoe::mutation

#endif  // SOFTMOE_PROPERTY_TESTS_MUTATION_SAMPLED_SAMPLE_H_

// SPDX-License-Identifier: Apache-2.0
//
// run_result_file.h - result.h5, the file of a finished run.
#ifndef SOFTMOE_TRAINER_RESULTS_RUN_RESULT_FILE_H_
#define SOFTMOE_TRAINER_RESULTS_RUN_RESULT_FILE_H_

#include <filesystem>

#include "trainer/results/run_result.h"

namespace softmoe::trainer {

// In the folder of the run.
inline constexpr char kResultName[] = "result.h5";

// Writes the file whole or not at all; reading throws DataError if it is
// damaged.
void WriteRunResult(const RunResult& result, const std::filesystem::path& path);
RunResult ReadRunResult(const std::filesystem::path& path);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_RUN_RESULT_FILE_H_

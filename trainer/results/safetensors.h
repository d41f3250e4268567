// SPDX-License-Identifier: Apache-2.0
//
// safetensors.h - a model's parameters for other programs: eight bytes with the
// length of a JSON header (little-endian), the header, then the numbers.
//
// For each tensor, by its name in NOTATION.md ("Parameters"), the header has
// its type "F32", its shape (row-major) and its place in the bytes after the
// header; and, in __metadata__, which model it is. It is padded with spaces to
// a multiple of eight. Format: huggingface/safetensors, README.md.
#ifndef SOFTMOE_TRAINER_RESULTS_SAFETENSORS_H_
#define SOFTMOE_TRAINER_RESULTS_SAFETENSORS_H_

#include <filesystem>

#include "trainer/results/run_result.h"

namespace softmoe::trainer {

// Writes the parameters of the finished run `result`, whose checkpoint is at
// `checkpoint`, to `path`, which is replaced atomically. Throws what Checkpoint
// throws, DataError if that is not the checkpoint of the run's last step
// (WhyNotFinal), EnvironmentError if `path` cannot be written, and StoppedError
// on a signal meanwhile (stop_signal.h).
void ExportSafetensors(const RunResult& result,
                       const std::filesystem::path& checkpoint,
                       const std::filesystem::path& path);

// Checks, before hours of training, that a run in `run_folder` can export its
// parameters to `path`. Throws ConfigError if `path` exists and is not of this
// format, or if the run itself writes a file or makes a folder of that name;
// EnvironmentError if `path` cannot be written.
void RequireExportable(const std::filesystem::path& path,
                       const std::filesystem::path& run_folder);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_SAFETENSORS_H_

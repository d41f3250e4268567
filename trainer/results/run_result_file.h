// SPDX-License-Identifier: Apache-2.0
//
// run_result_file.h - result.h5, the file of a finished run: kind "row-result".
// Its root is the group below, and /steps/* is as in step_table.h; a record of
// many runs has one such group for each, without steps.
//
//   GROUP             attrs: config (TOML), the identity (run_identity.h),
//                     code_version, tau_calibrated, resumed, devices (on GPUs),
//                     and the numbers of metrics.h: VisitRunMetrics
//   allocation        f64 [num_layers]
//   validation/{final,schedule}  VisitValidationMetrics: numbers are attrs,
//       layer_active_experts f64 [L], active_histogram i64 [L, E+1],
//       tokens_per_expert i64 [L, E]
//   final_evaluations            if a plan asked; attrs: code_version
//     inference_tau/{0,1,...}    attrs: factor, tau; else as a validation, but
//         active_histogram only where asked for
//     router_health/*            [L], i64 dead_experts, f64 the rest;
//         truncated_mass for soft routers only
//     tasks/{0,1,...}            the zero-shot tasks, also in each group of
//         inference_tau; attrs: name, sha256 (of the items' files); by measure
//         [4]: correct i64, accuracy, standard_error f64; right u8 [items]
//
// METRICS.md has the names.
#ifndef SOFTMOE_TRAINER_RESULTS_RUN_RESULT_FILE_H_
#define SOFTMOE_TRAINER_RESULTS_RUN_RESULT_FILE_H_

#include <filesystem>
#include <string>

#include "trainer/results/run_result.h"

namespace softmoe {
class Hdf5Reader;
class Hdf5Writer;
}  // namespace softmoe

namespace softmoe::trainer {

// The file's name in the folder of the run.
inline constexpr char kResultName[] = "result.h5";

// Write the file whole or not at all, and read it. Reading throws DataError if
// the file is damaged.
void WriteRunResult(const RunResult& result, const std::filesystem::path& path);
RunResult ReadRunResult(const std::filesystem::path& path);

// Writes everything except the steps, as a group of a file of any kind.
void WriteResultGroup(const RunResult& result, const std::string& group,
                      Hdf5Writer& file);

// Reads it back, bit for bit, without steps. Throws DataError naming file and
// object if something is missing, of another type or shape, or not finite.
RunResult ReadResultGroup(const Hdf5Reader& file, const std::string& group);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_RUN_RESULT_FILE_H_

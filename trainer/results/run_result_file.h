// SPDX-License-Identifier: Apache-2.0
//
// run_result_file.h - result.h5, the file of a finished run: kind "row-result".
// Its root is the group below, and /steps/* is as in step_table.h; a record of
// many runs has one such group for each, without steps.
//
//   GROUP             attrs: config (TOML), the identity (run_identity.h),
//                     code_version, tau_calibrated, resumed, of GPUs devices,
//                     and the numbers of metrics.h: VisitRunMetrics
//   allocation        f64 [num_layers]
//   validation/{final,schedule}  VisitValidationMetrics: numbers are attrs,
//       layer_active_experts f64 [L], active_histogram i64 [L, E+1],
//       tokens_per_expert i64 [L, E]
//   final_evaluations            where a plan asked; attrs: code_version
//     inference_tau/{0,1,...}    attrs: factor, tau; else as a validation, but
//         active_histogram only where asked for
//     router_health/*            [L], i64 dead_experts, f64 the rest;
//         truncated_mass of soft routers only
//     tasks/{0,1,...}            of the zero-shot tasks, also in each of
//         inference_tau; attrs: name, sha256 (of the items' files); by measure
//         [4]: correct i64, accuracy, standard_error f64; right u8 [items]
//
// Names are those of METRICS.md.
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

// Writes the file whole or not at all; reading throws DataError if it is
// damaged.
void WriteRunResult(const RunResult& result, const std::filesystem::path& path);
RunResult ReadRunResult(const std::filesystem::path& path);

// All of it but the steps, as a group of a file of any kind.
void WriteResultGroup(const RunResult& result, const std::string& group,
                      Hdf5Writer& file);

// Reads it back, bit for bit, without steps. Throws DataError naming file and
// object if something is missing, of another type or shape, or not finite.
RunResult ReadResultGroup(const Hdf5Reader& file, const std::string& group);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_RUN_RESULT_FILE_H_

// SPDX-License-Identifier: Apache-2.0
//
// step_table.h - the records of a run's steps, and of its validations during
// training, as columns of an HDF5 group (in checkpoints and results).
#ifndef SOFTMOE_TRAINER_RESULTS_STEP_TABLE_H_
#define SOFTMOE_TRAINER_RESULTS_STEP_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/hdf5/hdf5_file.h"
#include "trainer/results/run_result.h"
#include "trainer/results/train_state.h"

namespace softmoe::trainer {

// Write one dataset for each metric of metrics.h: step [S], numbers [S], lists
// [S, num_layers]. An empty table is a group without datasets.
void WriteStepTable(const std::vector<StepRecord>& steps, int64_t num_layers,
                    const std::string& group, Hdf5Writer& file);
void WriteEvaluationTable(const std::vector<EvaluationRecord>& evaluations,
                          const std::string& group, Hdf5Writer& file);

// Reads it back, bit for bit; without `step`, the table is empty. Throws
// DataError naming the file and the dataset if the group or another column is
// missing, if one has another length or is not finite, or if the steps of
// StepRecords are not 1, 2, ..., S.
std::vector<StepRecord> ReadStepTable(const Hdf5Reader& file,
                                      const std::string& group,
                                      int64_t num_layers);
// Does the same for steps in any order, some of which may be missing.
std::vector<StepRecord> ReadSomeSteps(const Hdf5Reader& file,
                                      const std::string& group,
                                      int64_t num_layers);
std::vector<EvaluationRecord> ReadEvaluationTable(const Hdf5Reader& file,
                                                  const std::string& group);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RESULTS_STEP_TABLE_H_

// SPDX-License-Identifier: Apache-2.0
//
// step_table.h - the fields of StepRecord by name, and a run's records as
// columns of an HDF5 group (in checkpoints and results).
#ifndef SOFTMOE_TRAINER_STEP_TABLE_H_
#define SOFTMOE_TRAINER_STEP_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/hdf5_file.h"
#include "trainer/trainer.h"

namespace softmoe::trainer {

// A number per step. `measured` marks what a clock gave: it differs between
// two runs that are otherwise the same to the bit.
struct StepScalar {
  const char* name;
  const char* unit;
  double StepRecord::*member;
  bool measured = false;
};
inline constexpr StepScalar kStepScalars[] = {
    {"loss", "nat/token", &StepRecord::loss},
    {"load_balance_loss", "nat/token", &StepRecord::load_balance_loss},
    {"z_loss", "nat/token", &StepRecord::z_loss},
    {"active_experts", "experts/token/layer", &StepRecord::active_experts},
    {"zero_active_fraction", "1", &StepRecord::zero_active_fraction},
    {"temperature", "score", &StepRecord::temperature},
    {"gradient_norm", "nat/token/parameter", &StepRecord::gradient_norm},
    {"learning_rate", "1", &StepRecord::learning_rate},
    {"seconds", "s", &StepRecord::seconds, true},
    {"tokens_per_second", "token/s", &StepRecord::tokens_per_second, true},
};

// A number per step and layer.
struct StepVector {
  const char* name;
  const char* unit;
  std::vector<double> StepRecord::*member;
};
inline constexpr StepVector kStepVectors[] = {
    {"layer_active", "experts/token", &StepRecord::layer_active_experts},
    {"allocation", "experts/token", &StepRecord::allocation},
    {"load_variance", "1", &StepRecord::layer_relative_load_variance},
};

// One dataset per field: step [S], scalars [S], vectors [S, num_layers]. An
// empty table is a group without datasets.
void WriteStepTable(const std::vector<StepRecord>& steps, int64_t num_layers,
                    const std::string& group, Hdf5Writer& file);

// Reads it back, bit for bit. Throws DataError naming the file and the dataset
// if a column is missing, of another length, or not finite, or if the steps
// are not 1, 2, ..., S.
std::vector<StepRecord> ReadStepTable(const Hdf5Reader& file,
                                      const std::string& group,
                                      int64_t num_layers);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_STEP_TABLE_H_

// SPDX-License-Identifier: Apache-2.0
//
// resources.h - a run's demands on the machine, computed before it starts.
#ifndef SOFTMOE_TRAINER_RUN_RESOURCES_H_
#define SOFTMOE_TRAINER_RUN_RESOURCES_H_

#include <cstdint>
#include <filesystem>

#include "core/config/config.h"

namespace softmoe::trainer {

struct ResourceNeed {
  int64_t parameters = 0;         // count
  int64_t checkpoint_bytes = 0;   // one checkpoint.h5 at the end of the run
  int64_t disk_bytes = 0;         // peak in the run's folder: the old and the
                                  // new checkpoint, metrics, result
  int64_t state_bytes = 0;        // memory of all ranks: parameters, moments,
                                  // gradients, and what they read of these for
                                  // a checkpoint; without activations
  int64_t calibration_bytes = 0;  // memory, until tau is calibrated: the soft
                                  // weights that are ranked
};
ResourceNeed EstimateResources(const Config& config, int ranks = 1);

// Returns the number of soft weights that CalibrateTau ranks (calibration.h); 0
// if tau is not calibrated.
int64_t NumCalibrationRatios(const Config& config);

// Throws EnvironmentError with both sizes if the disk of `folder` cannot hold
// what the run of `config` has yet to write there. Files of an earlier session
// in `folder` count as written.
void RequireDiskSpace(const Config& config,
                      const std::filesystem::path& folder);

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_RUN_RESOURCES_H_

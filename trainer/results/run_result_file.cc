// SPDX-License-Identifier: Apache-2.0
//
// run_result_file.cc - result.h5: kind "row-result". The root is a group as
// described in run_result_hdf5.h; /steps/* is as described in step_table.h.
//
// Version 2, with other names for some metrics (Metric::name_in_version_2), is
// still read.
#include "trainer/results/run_result_file.h"

#include <fmt/format.h>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "trainer/results/run_result_hdf5.h"
#include "trainer/results/step_table.h"

namespace softmoe::trainer {
namespace {

const Hdf5Kind kResultKind{
    .name = "row-result", .version = 3, .oldest_version = 2};

}  // namespace

void WriteRunResult(const RunResult& result,
                    const std::filesystem::path& path) {
  Hdf5Writer file(path, kResultKind);
  WriteResultGroup(result, "/", file);
  WriteStepTable(result.steps, result.config.model.num_layers, "/steps", file);
  file.Commit();
}

RunResult ReadRunResult(const std::filesystem::path& path) {
  const Hdf5Reader file(path, kResultKind);
  RunResult result = ReadResultGroup(file, "/");
  result.steps = ReadStepTable(file, "/steps", result.config.model.num_layers);
  if (static_cast<int64_t>(result.steps.size()) !=
      result.config.training.steps) {
    throw DataError(fmt::format(
        "{}: holds {} steps, its configuration says {}; delete the file and "
        "run the row again: a checkpoint beside it saves the training",
        path.string(), result.steps.size(), result.config.training.steps));
  }
  return result;
}

}  // namespace softmoe::trainer

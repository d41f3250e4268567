// SPDX-License-Identifier: Apache-2.0
//
// result.h5 with hostile contents. An accepted file gives equal bytes when it
// is written, read and written again.
#include "core/files/atomic_file.h"
#include "core/fuzzing/fuzz_support.h"
#include "core/fuzzing/hdf5_hostile.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::fuzz {
namespace {

namespace fs = std::filesystem;
using trainer::RunResult;

fs::path GoodFile() {
  RunResult result;
  result.config = trainer::TinyConfig(RouterKind::kSoftLearned);
  result.config.training.steps = 3;
  result.config.router.tau = 1.5;
  result.identity.config = result.config;
  for (int64_t step = 1; step <= 3; ++step) {
    result.steps.push_back(trainer::NumberedRecord(step, 2));
  }
  result.allocation = {1.25, 1.75};
  for (trainer::Validation* validation :
       {&result.final_validation, &result.at_schedule_temperature}) {
    validation->layer_active_experts = {1, 2};
    validation->active_histogram = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}};
    validation->tokens_per_expert = {{1, 2, 3, 4}, {4, 3, 2, 1}};
    validation->num_tokens = 10;
  }
  result.final_evaluations = {
      .code_version = "0123456789ab",
      .inference_tau = {{.factor = 0.5,
                         .tau = 0.75,
                         .validation = result.final_validation}},
      .router_health = {{.load_entropy = 1, .truncated_mass = 0.5},
                        {.dead_experts = 2, .truncated_mass = 0.25}},
      .tasks = {{.name = "piqa",
                 .sha256 = "0123456789abcdef",
                 .measures = {{2, 1, 0}, {1, 0.5, 0.5}, {0, 0, 0}, {0, 0, 0}},
                 .right = {1, 3}}}};
  const fs::path path = ScratchFolder() / "good.h5";
  trainer::WriteRunResult(result, path);
  return path;
}

}  // namespace

void FuzzOne(std::string_view input) {
  static const HostileHdf5 hostile(GoodFile());
  RunResult result;
  const bool accepted = FuzzHostileFile(
      hostile, input,
      [&](const fs::path& path) { result = trainer::ReadRunResult(path); });
  if (!accepted) return;
  const fs::path first = ScratchFolder() / "first.h5";
  const fs::path second = ScratchFolder() / "second.h5";
  trainer::WriteRunResult(result, first);
  trainer::WriteRunResult(trainer::ReadRunResult(first), second);
  Require(ReadWholeFile(first) == ReadWholeFile(second),
          "reads back otherwise");
}

std::vector<std::string> Seeds() { return HostileSeeds(); }

}  // namespace softmoe::fuzz

// SPDX-License-Identifier: Apache-2.0
//
// checkpoint.h5 with hostile contents. An accepted file belongs to its own run
// and gives equal bytes when it is written, read and written again.
#include "core/files/atomic_file.h"
#include "core/fuzzing/fuzz_support.h"
#include "core/fuzzing/hdf5_hostile.h"
#include "trainer/results/checkpoint.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::fuzz {
namespace {

namespace fs = std::filesystem;
using trainer::Checkpoint;

constexpr size_t kParameters = 24;

fs::path GoodFile() {
  trainer::RunIdentity identity;
  identity.config = trainer::TinyConfig(RouterKind::kSoftLearned);
  identity.tokens.data_sha256 = "feed";
  identity.isa = "v3";
  trainer::TrainState state;
  state.step = 2;
  state.tau = 1.5;
  for (int64_t step = 1; step <= 2; ++step) {
    state.history.push_back(trainer::NumberedRecord(step, 2));
  }
  state.evaluations = {{.step = 1, .loss = 3}, {.step = 2, .loss = 2}};
  const std::vector<float> values(kParameters, 0.25f);
  const fs::path path = ScratchFolder() / "good.h5";
  trainer::WriteCheckpoint(path, identity, "tokens", state,
                           {values, values, values});
  return path;
}

}  // namespace

void FuzzOne(std::string_view input) {
  static const HostileHdf5 hostile(GoodFile());
  FuzzHostileFile(hostile, input, [](const fs::path& path) {
    const Checkpoint checkpoint(path);
    Require(Accepts([&] { checkpoint.RequireSameRun(checkpoint.identity()); }),
            "is not of its own run");
    const auto tensors = checkpoint.ReadTensors(kParameters);
    const auto write = [&](const Checkpoint& from, const std::string& name) {
      const fs::path path = ScratchFolder() / name;
      trainer::WriteCheckpoint(path, from.identity(), from.tokens(),
                               from.state(), tensors);
      return path;
    };
    const fs::path first = write(checkpoint, "first.h5");
    const fs::path second = write(Checkpoint(first), "second.h5");
    Require(ReadWholeFile(first) == ReadWholeFile(second),
            "reads back otherwise");
  });
}

std::vector<std::string> Seeds() { return HostileSeeds(); }

}  // namespace softmoe::fuzz

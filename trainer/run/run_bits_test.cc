// SPDX-License-Identifier: Apache-2.0
//
// REGRESSION: the recorded bits of micro runs, by router and instruction set.
// They guard refactoring and support no claim: a wrong number, once recorded,
// passes here. `grid verify-record` repeats the runs of the paper's claims.
//
// A line may change for two reasons. Either numbers change on purpose: a
// formula, a default, an order of sums, a random stream, in a commit of its own
// (CONTRIBUTING.md, "Commits"). Or glibc changes: its log, cos and exp
// determine random numbers, schedules, budget shares and the unigram's loss.
// Levels of optimization, threads and machines with the instruction set are no
// reason (DESIGN.md, ruling 9). On a machine that has both levels, this command
//
//   SOFTMOE_RENEW=1 ./bazelw run //trainer/run:test --
//       --gtest_filter='*RunBits*'
//
// writes testdata/bits_v3.txt and bits_v4.txt anew.
#include <fmt/core.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

#include <string>

#include "core/testing/config_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "kernels/isa.h"
#include "trainer/results/run_digest.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

// Returns a configuration whose sizes fill no vector of either level.
Config OddConfig(RouterKind kind) {
  Config config = TinyConfig(kind);
  config.model.d_model = 20;
  config.model.d_ffn = 37;
  config.model.num_experts = 5;
  config.model.sequence_length = 19;
  config.training.eval_every = 5;
  return config;
}

class RunBits : public testing::TestWithParam<kernels::Isa> {};

INSTANTIATE_TEST_SUITE_P(Levels, RunBits,
                         testing::Values(kernels::Isa::kV3, kernels::Isa::kV4),
                         [](const auto& info) {
                           return std::string(kernels::IsaName(info.param));
                         });

TEST_P(RunBits, AreThoseThatWereRecorded) {
  if (!kernels::IsaAvailable(GetParam())) {
    GTEST_SKIP() << "this CPU lacks the level";
  }
  const std::string level = kernels::IsaName(GetParam());
  const auto folder = FreshFolder("bits_" + level);
  const auto tokens = WriteTinyTokens(folder / "data");
  std::string lines;
  for (const RouterKind kind : kRouterKinds) {
    const std::string router = RouterKindName(kind);
    RunOptions options = QuietOptions(folder / router, tokens);
    options.runtime.isa = level;
    const RunResult result = TrainRun(OddConfig(kind), options);
    EXPECT_EQ(result.identity.isa, level);
    lines += fmt::format("{} {} val_loss {}\n", TrainingDigest(result), router,
                         result.final_validation.loss);
  }
  kernels::SelectIsa("");
  EXPECT_TRUE(EqualsFile(lines, "trainer/run/testdata/bits_" + level + ".txt"))
      << "recorded with glibc 2.36; this is " << gnu_get_libc_version();
}

}  // namespace
}  // namespace softmoe::trainer

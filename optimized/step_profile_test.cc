// SPDX-License-Identifier: Apache-2.0
//
// The table of a step says what was measured, and measuring changes nothing.
// How long anything takes is not tested.
#include "optimized/step_profile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/config_test_util.h"
#include "optimized/model.h"
#include "optimized/updater.h"

namespace softmoe::optimized {
namespace {

// Times of a step that nobody ran, all of them binary fractions.
StepProfile MadeUp(int threads, double seconds) {
  StepProfile step{.threads = threads,
                   .peak_gflops = 100.0 * threads,
                   .copy_gigabytes = 10.0 * threads,
                   .operations = {}};
  step.operations = {{.name = "norm",
                      .calls = 3,
                      .work = {.bytes = 5e8 * seconds},
                      .seconds = 0.25 * seconds},
                     {.name = "product",
                      .calls = 2,
                      .work = {.flops = 6e10 * seconds},
                      .seconds = 0.75 * seconds},
                     {.name = "counts", .calls = 1}};
  return step;
}

TEST(StepProfileTable, ShowsRatesSharesSerialAndWaitingTime) {
  StepProfile all = MadeUp(2, 0.5);
  all.operations[1].job_seconds = 0.25;    // of 0.375
  all.operations[1].task_seconds = 0.375;  // so two threads waited 0.125
  all.operations[0].job_seconds = 0.125;   // all of it
  all.operations[0].task_seconds = 0.25;
  const StepProfile one = MadeUp(1, 1);
  EXPECT_EQ(
      StepProfileTable(all, one, 1000),
      "2 threads                 calls        ms                 rate  peak   "
      "serial    waits |     1: ms           rate  peak times\n"
      "product                       2   375.000   75%   80.0 GFLOP/s   40%  "
      "125.000   62.500 |   750.000   80.0 GFLOP/s   80%  2.00\n"
      "norm                          3   125.000   25%       2.0 GB/s   10%    "
      "0.000    0.000 |   250.000       2.0 GB/s   20%  2.00\n"
      "counts                        1     0.000    0%                         "
      "0.000    0.000 |     0.000                           \n"
      "the step                      6   500.000  100%   60.0 GFLOP/s   30%  "
      "125.000   62.500 |  1000.000   60.0 GFLOP/s   60%  2.00\n"
      "2000 tokens/s with 2 threads, 1000 with 1\n"
      "peaks: 200.0 GFLOP/s and 20.0 GB/s with 2 threads, 100.0 and 10.0 with "
      "1\n");
}

TEST(StepProfileTable, HasOneHalfWithOneThread) {
  const std::string table = StepProfileTable(MadeUp(1, 1), MadeUp(1, 1), 1000);
  EXPECT_TRUE(table.starts_with(
      "1 thread                  calls        ms                 rate  peak\n"
      "product                       2   750.000   75%   80.0 GFLOP/s   80%\n"))
      << table;
  EXPECT_TRUE(
      table.ends_with("1000 tokens/s with 1 thread\n"
                      "peaks: 100.0 GFLOP/s and 10.0 GB/s with 1 "
                      "thread\n"))
      << table;
  EXPECT_THROW(StepProfileTable(MadeUp(2, 1), MadeUp(2, 1), 1), InternalError);
}

// A batch of four sequences, in groups.
Config FourSequences(int64_t group_sequences) {
  Config config = SmallConfig(RouterKind::kSparse);
  config.training.global_batch_sequences = 4;
  config.training.balance_group_sequences = group_sequences;
  return config;
}

// One update of a fresh model; the parameters that come out.
struct SmallStep {
  explicit SmallStep(int threads, int64_t group_sequences = 4)
      : group_sequences(group_sequences),
        pool(threads),
        model(FourSequences(group_sequences), group_sequences, pool),
        updater(model),
        ids(77) {
    model.InitializeParameters(9);
    std::iota(ids.begin(), ids.end(), 0);
    for (int32_t& id : ids) id = id * 17 % 61;
  }
  void Run() {
    const std::span<const int32_t> text = ids;
    const auto length = static_cast<size_t>(19 * group_sequences);
    updater.ComputeGradient({}, [&](int64_t) {
      return Batch{group_sequences, text.first(length),
                   text.subspan(1, length)};
    });
    updater.Apply(1e-2, step++);
  }
  std::vector<float> Parameters() const { return model.ReadParameters(); }

  int64_t group_sequences;
  ThreadPool pool;
  Model model;
  Updater updater;
  std::vector<int32_t> ids;
  int64_t step = 0;
};

TEST(Profile, ChangesNoBit) {
  for (const int threads : {1, 3}) {
    SmallStep plain(threads), profiled(threads);
    plain.Run();
    {
      Profile profile;
      profiled.Run();
      EXPECT_FALSE(profile.Take().empty());
    }
    EXPECT_EQ(plain.updater.ReadGradient(), profiled.updater.ReadGradient());
    EXPECT_EQ(plain.Parameters(), profiled.Parameters());
  }
}

// Every operation of the step is there, as often as it is done, and the work of
// the products is what the model's sizes say: 76 tokens, two experts each.
TEST(Profile, CoversTheWholeStep) {
  SmallStep step(2);
  Profile profile;
  step.Run();
  std::map<std::string, OperationTime> found;
  for (OperationTime& operation : profile.Take()) {
    EXPECT_GE(operation.SerialSeconds(), 0) << operation.name;
    EXPECT_GE(operation.WaitSeconds(2), 0) << operation.name;
    found[operation.name] = operation;
  }
  const double n = 76, layers = 3, d = 24, ffn = 20, experts = 5, vocab = 61;
  const double multiplied = n * layers;
  const std::map<std::string, double> flops = {
      {"qkv product", 2 * multiplied * d * 3 * d},
      {"qkv product, backward", 4 * multiplied * d * 3 * d},
      {"output product", 2 * multiplied * d * d},
      {"output product, backward", 4 * multiplied * d * d},
      {"attention", 2 * multiplied * d * (19 + 1)},
      {"attention, backward", 5 * multiplied * d * (19 + 1)},
      {"router scores", 2 * multiplied * d * experts},
      {"router scores, backward", 4 * multiplied * d * experts},
      {"experts", 2 * 6 * multiplied * d * ffn},
      {"experts, backward", 2 * 12 * multiplied * d * ffn},
      {"head and loss", 6 * n * d * vocab}};
  for (const auto& [name, wanted] : flops) {
    EXPECT_EQ(found[name].work.flops, wanted) << name;
    EXPECT_EQ(found[name].calls, name == "head and loss" ? 1 : 3) << name;
  }
  // Floats read and written, each once.
  const double size = static_cast<double>(step.model.layout().total);
  const std::map<std::string, double> moved = {
      {"embedding", 2 * n * d},
      {"embedding, backward", (n + vocab) * d},
      {"norm", (2 * layers + 1) * 2 * n * d},
      {"norm, backward", (2 * layers + 1) * 4 * n * d},
      {"rope", 2 * 4 * multiplied * d},  // queries and keys, either way
      {"copy", 2 * 2 * multiplied * d},
      {"clear", n * d},
      {"router", 2 * multiplied * experts},
      {"router, backward", 3 * multiplied * experts},
      {"route plan and counts", 6 * multiplied * 2},
      {"norm of the gradient", size},
      {"AdamW", 7 * size}};
  for (const auto& [name, wanted] : moved) {
    EXPECT_EQ(found[name].work.bytes, 4 * wanted) << name;
  }
  EXPECT_EQ(found["norm"].calls, 7);  // two in each layer, one before the head
  EXPECT_EQ(found["norm, backward"].calls, 7);
  EXPECT_EQ(found["rope"].calls, 6);
  EXPECT_EQ(found["copy"].calls, 6);
  for (const char* once : {"budget", "checks", "embedding", "clear",
                           "embedding, backward", "report"}) {
    EXPECT_EQ(found[once].calls, 1) << once;
  }
  for (const char* each :
       {"router", "router, backward", "route plan and counts"}) {
    EXPECT_EQ(found[each].calls, 3) << each;
  }
  EXPECT_EQ(found.size(), flops.size() + 15);
}

TEST(Profile, CountsTheSumsOverGroups) {
  SmallStep step(2, /*group_sequences=*/1);
  Profile profile;
  step.Run();
  for (const OperationTime& operation : profile.Take()) {
    if (operation.name != "sum over groups") continue;
    EXPECT_EQ(operation.calls, 3);  // of four groups
    // Two arrays read, one written.
    EXPECT_EQ(operation.work.bytes,
              3 * 4 * 3 * static_cast<double>(step.model.layout().total));
    return;
  }
  FAIL() << "no sum over groups";
}

TEST(ProfileStep, TakesAStepOfThosePassesThatItRan) {
  SmallStep step(2);
  const StepProfile profile = ProfileStep(step.pool, [&] { step.Run(); });
  EXPECT_GT(step.step, 5);
  EXPECT_EQ(profile.threads, 2);
  EXPECT_GT(profile.peak_gflops, 0);
  EXPECT_GT(profile.copy_gigabytes, 0);
  EXPECT_GT(profile.Seconds(), 0);
  for (const OperationTime& operation : profile.operations) {
    if (operation.name == "AdamW") {
      EXPECT_EQ(operation.calls, 1);
    }
  }
  EXPECT_EQ(Profile::Active(), nullptr);
  EXPECT_THROW(ProfileStep(step.pool, [] {}), InternalError);
}

}  // namespace
}  // namespace softmoe::optimized

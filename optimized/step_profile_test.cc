// SPDX-License-Identifier: Apache-2.0
//
// The table of a step says what was measured, and measuring changes nothing.
// How long anything takes is not tested.
#include "optimized/step_profile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/testing/config_test_util.h"
#include "optimized/expected_step.h"
#include "optimized/initialize.h"
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

// One update of a fresh model, and the parameters that come out.
struct SmallStep {
  explicit SmallStep(int threads, int64_t group_sequences = 4)
      : group_sequences(group_sequences),
        pool(threads),
        model(MakeModel(FourSequences(group_sequences), group_sequences, pool)),
        updater(model->MakeUpdater()),
        ids(77) {
    InitializeParameters(*model, 9, pool);
    std::iota(ids.begin(), ids.end(), 0);
    for (int32_t& id : ids) id = id * 17 % 61;
  }
  void Run() {
    const std::span<const int32_t> text = ids;
    const auto length = static_cast<size_t>(19 * group_sequences);
    updater->ComputeGradient({}, [&](int64_t) {
      return Batch{group_sequences, text.first(length),
                   text.subspan(1, length)};
    });
    updater->Apply(1e-2, step++);
  }
  std::vector<float> Parameters() const { return model->ReadParameters(); }

  int64_t group_sequences;
  ThreadPool pool;
  std::unique_ptr<Model> model;
  std::unique_ptr<Updater> updater;
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
    EXPECT_EQ(plain.updater->ReadGradient(), profiled.updater->ReadGradient());
    EXPECT_EQ(plain.Parameters(), profiled.Parameters());
  }
}

// Every operation of the step is listed, as often as it is done, with the work
// that ExpectedStep gives it.
TEST(Profile, CoversTheWholeStep) {
  for (const int64_t group_sequences : {4, 1}) {
    SmallStep step(2, group_sequences);
    Profile profile;
    step.Run();
    std::map<std::string, OperationTime> found;
    for (OperationTime& operation : profile.Take()) {
      EXPECT_GE(operation.SerialSeconds(), 0) << operation.name;
      EXPECT_GE(operation.WaitSeconds(2), 0) << operation.name;
      found[operation.name] = operation;
    }
    const std::vector<ExpectedOperation> expected =
        ExpectedStep(FourSequences(group_sequences), Recompute::kNone);
    for (const ExpectedOperation& operation : expected) {
      const OperationTime& measured = found[operation.name];
      EXPECT_EQ(measured.calls, operation.calls) << operation.name;
      EXPECT_EQ(measured.work.flops, operation.work.flops) << operation.name;
      // A profile counts what is moved where there are no products.
      if (operation.product_share > 0) continue;
      EXPECT_EQ(measured.work.bytes, operation.work.bytes) << operation.name;
    }
    for (const char* no_work : {"budget", "checks", "report"}) {
      EXPECT_TRUE(found.contains(no_work)) << no_work;
    }
    EXPECT_EQ(found.size(), expected.size() + 3);
  }
}

// 61,440 tokens a pass; the work, by hand, from the paper's sizes.
TEST(ExpectedStep, HasTheWorkOfThePapersModel) {
  Config config;
  config.router.mean_active_experts = 2;
  config.training.precision = Precision::kBf16;
  const double passes = 8, n = 61440, d = 640, f = 2560, vocab = 32768;
  double seconds = 0;
  int checked = 0;
  for (const ExpectedOperation& operation :
       ExpectedStep(config, Recompute::kNone)) {
    seconds += operation.seconds;
    EXPECT_GT(operation.seconds, 0) << operation.name;
    EXPECT_LE(operation.product_share, 0.65) << operation.name;
    const double flops = operation.name == "experts" ? 10 * 6 * 2 * n * d * f
                         : operation.name == "head and loss" ? 6 * n * d * vocab
                                                             : 0;
    if (flops == 0) continue;
    EXPECT_EQ(operation.work.flops, passes * flops) << operation.name;
    ++checked;
  }
  EXPECT_EQ(checked, 2);
  // What the H100 of the record needed for a pass, waits included, was 166 ms.
  EXPECT_GT(seconds, passes * 0.159);
  EXPECT_LT(seconds, passes * 0.161);
  const std::string text = ExpectedStepText(config, Recompute::kNone);
  EXPECT_NE(text.find("experts, backward"), std::string::npos) << text;
  EXPECT_NE(text.find("ASSUMED"), std::string::npos) << text;
}

TEST(ExpectedStep, CountsWhatIsRecomputedAndOtherRanks) {
  Config config;
  const auto seconds = [&](Recompute recompute, int ranks) {
    double sum = 0;
    for (const auto& operation : ExpectedStep(config, recompute, ranks)) {
      sum += operation.seconds;
    }
    return sum;
  };
  EXPECT_LT(seconds(Recompute::kNone, 1), seconds(Recompute::kExperts, 1));
  EXPECT_LT(seconds(Recompute::kExperts, 1), seconds(Recompute::kLayer, 1));
  EXPECT_LT(seconds(Recompute::kNone, 8), seconds(Recompute::kNone, 1) / 7);
  // Every rank updates a share of the parameters.
  const auto bytes_of_update = [&](int ranks) {
    for (const auto& operation :
         ExpectedStep(config, Recompute::kNone, ranks)) {
      if (operation.name == "AdamW") return operation.work.bytes;
    }
    return 0.0;
  };
  EXPECT_GT(bytes_of_update(8), 0);
  EXPECT_EQ(8 * bytes_of_update(8), bytes_of_update(1));
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

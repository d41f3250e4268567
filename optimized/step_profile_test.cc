// SPDX-License-Identifier: Apache-2.0
//
// The table of a step says what was measured, and measuring changes nothing.
// How long anything takes is tested only roughly.
#include "optimized/step_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/testing/config_test_util.h"
#include "core/testing/message_test_util.h"
#include "optimized/device.h"
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
  StepProfile step = MadeUp(1, 1);
  step.operations[2].seconds = 0.25;  // without work, so without a rate
  EXPECT_EQ(
      StepProfileTable(step, step, 1000),
      "1 thread                  calls        ms                 rate  peak\n"
      "product                       2   750.000   60%   80.0 GFLOP/s   80%\n"
      "norm                          3   250.000   20%       2.0 GB/s   20%\n"
      "counts                        1   250.000   20%                     \n"
      "the step                      6  1250.000  100%   48.0 GFLOP/s   48%\n"
      "800 tokens/s with 1 thread\n"
      "peaks: 100.0 GFLOP/s and 10.0 GB/s with 1 thread\n");
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
  explicit SmallStep(int threads, int64_t group_sequences = 4,
                     Recompute recompute = Recompute::kNone)
      : group_sequences(group_sequences),
        pool(threads),
        model(MakeModel(FourSequences(group_sequences), group_sequences, pool,
                        Cpu(), recompute)),
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
  for (const auto& [group_sequences, recompute] :
       {std::pair{int64_t{4}, Recompute::kNone},
        {1, Recompute::kNone},
        {4, Recompute::kExperts},
        {4, Recompute::kLayer}}) {
    SmallStep step(2, group_sequences, recompute);
    Profile profile;
    step.Run();
    std::map<std::string, OperationTime> found;
    for (OperationTime& operation : profile.Take()) {
      EXPECT_GE(operation.SerialSeconds(), 0) << operation.name;
      EXPECT_GE(operation.WaitSeconds(2), 0) << operation.name;
      found[operation.name] = operation;
    }
    const std::vector<ExpectedOperation> expected =
        ExpectedStep(FourSequences(group_sequences), recompute);
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
  EXPECT_TRUE(text.starts_with("expected step on an H100 SXM, ")) << text;
  EXPECT_TRUE(Says(text, "\nlaunch overhead and waits are not counted:\n"));
}

// The same step where four ranks have two groups each, and layers are computed
// again: flops, bytes and seconds of each operation from the paper's sizes, by
// the formulas of expected_step.h.
TEST(ExpectedStep, ShowsTheStepOfARank) {
  Config config;
  config.router.mean_active_experts = 2;
  config.training.precision = Precision::kBf16;
  EXPECT_EQ(
      ExpectedStepText(config, Recompute::kLayer, 4),
      "expected step of one of 4 ranks on an H100 SXM, at ASSUMED shares of "
      "its peaks, every token using as many experts as its router allows;\n"
      "launch overhead, exchange and waits are not counted:\n"
      R"(operation                 calls   TFLOP      GB  of peak      ms     %
------------------------  -----  ------  ------  -------  ------  ----
experts, backward            20  48.318  88.080     0.65  110.19  29.3
experts                      38  38.655  89.968     0.65   95.91  25.5
head and loss                 2  15.462  40.265     0.65   40.07  10.7
attention, backward          20   8.057   0.000     0.24   33.93   9.0
attention                    38   6.123   0.000     0.28   22.10   5.9
qkv product, backward        20   6.040   0.000     0.65    9.39   2.5
qkv product                  38   5.738   0.000     0.65    8.92   2.4
sum over groups               1   0.000  19.577     0.75    7.79   2.1
router scores, backward      20   0.101  12.583     0.65    7.32   1.9
rope                         58   0.000  18.245     0.75    7.26   1.9
norm                         78   0.000  16.515     0.75    6.57   1.7
AdamW                         1   0.000  13.867     0.75    5.52   1.5
norm, backward               42   0.000  13.212     0.75    5.26   1.4
router scores                20   0.050   7.864     0.65    4.29   1.1
copy                         58   0.000   9.123     0.75    3.63   1.0
output product, backward     20   2.013   0.000     0.65    3.13   0.8
output product               38   1.913   0.000     0.65    2.97   0.8
norm of the gradient          1   0.000   1.631     0.75    0.65   0.2
embedding                     2   0.000   0.472     0.75    0.19   0.0
router, backward             20   0.000   0.472     0.75    0.19   0.0
embedding, backward           2   0.000   0.325     0.75    0.13   0.0
router                       20   0.000   0.315     0.75    0.13   0.0
clear                         2   0.000   0.157     0.75    0.06   0.0
route plan and counts        20   0.000   0.059     0.75    0.02   0.0
376 ms for 122880 tokens: 327126 tokens/s
)");
}

TEST(ProfileStep, TakesAStepOfThosePassesThatItRan) {
  // The third of five measured steps takes a second, so five are enough.
  SmallStep step(2);
  double longest = 0;
  const StepProfile profile = ProfileStep(step.pool, [&] {
    const auto start = std::chrono::steady_clock::now();
    step.Run();
    if (step.step == 4) std::this_thread::sleep_for(std::chrono::seconds(1));
    const std::chrono::duration<double> taken =
        std::chrono::steady_clock::now() - start;
    longest = std::max(longest, taken.count());
  });
  EXPECT_EQ(step.step, 6);
  EXPECT_EQ(profile.threads, 2);
  // What no two cores miss, nor reach.
  EXPECT_GT(profile.peak_gflops, 0.1);
  EXPECT_LT(profile.peak_gflops, 1e4);
  EXPECT_GT(profile.copy_gigabytes, 0.1);
  EXPECT_LT(profile.copy_gigabytes, 1e4);
  EXPECT_GT(profile.Seconds(), 0);
  EXPECT_LT(profile.Seconds(), longest);
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

// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/step_table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "trainer/testing/trainer_test_util.h"

namespace softmoe::trainer {
namespace {

const Hdf5Kind kKind{.name = "step-table-test", .version = 1};

std::filesystem::path Write(const std::vector<StepRecord>& steps,
                            int64_t num_layers) {
  const auto path = FreshFolder("steps") / "steps.h5";
  Hdf5Writer file(path, kKind);
  WriteStepTable(steps, num_layers, "/steps", file);
  file.Commit();
  return path;
}

TEST(StepTable, ReadsBackEveryBit) {
  std::vector<StepRecord> steps;
  for (int64_t i = 1; i <= 5; ++i) steps.push_back(NumberedRecord(i, 3));
  const Hdf5Reader file(Write(steps, 3), kKind);
  const auto read = ReadStepTable(file, "/steps", 3);
  ExpectSameRecords(steps, read);
  EXPECT_EQ(steps[4].seconds, read[4].seconds);
  EXPECT_EQ(steps[4].tokens_per_second, read[4].tokens_per_second);
}

TEST(StepTable, ReadsBackEveryBitOfEvaluations) {
  const std::vector<EvaluationRecord> evaluations = {NumberedEvaluation(2),
                                                     NumberedEvaluation(7)};
  const auto path = FreshFolder("evaluations") / "evaluations.h5";
  Hdf5Writer writer(path, kKind);
  WriteEvaluationTable(evaluations, "/evaluations", writer);
  WriteEvaluationTable({}, "/none", writer);
  writer.Commit();
  const Hdf5Reader file(path, kKind);
  ExpectSameEvaluations(evaluations, ReadEvaluationTable(file, "/evaluations"));
  EXPECT_TRUE(file.Children("/none").empty());
  EXPECT_TRUE(ReadEvaluationTable(file, "/none").empty());
  EXPECT_THROW(ReadEvaluationTable(file, "/other"), DataError);
}

TEST(StepTable, SaysUnits) {
  const Hdf5Reader file(Write({NumberedRecord(1, 2)}, 2), kKind);
  EXPECT_EQ(file.ReadString("/steps/loss", "unit"), "nat/token");
  EXPECT_EQ(file.ReadString("/steps/allocation", "unit"), "experts/token");
}

TEST(StepTable, MayBeEmpty) {
  const Hdf5Reader file(Write({}, 3), kKind);
  EXPECT_TRUE(file.Children("/steps").empty());  // not even datasets of none
  EXPECT_TRUE(ReadStepTable(file, "/steps", 3).empty());
  EXPECT_THROW(ReadStepTable(file, "/other", 3), DataError);
}

// The message of the DataError from reading `steps` as a table of `num_layers`.
std::string Refusal(const std::vector<StepRecord>& steps, int64_t num_layers) {
  const Hdf5Reader file(
      Write(steps, static_cast<int64_t>(steps[0].layer_active_experts.size())),
      kKind);
  return MessageOf<DataError>(
      [&] { ReadStepTable(file, "/steps", num_layers); });
}

TEST(StepTable, RefusesWhatNoRunWrites) {
  const std::vector<StepRecord> good = {NumberedRecord(1, 2),
                                        NumberedRecord(2, 2)};
  EXPECT_EQ(Refusal(good, 2), kNoError);
  EXPECT_TRUE(Says(Refusal(good, 3), "/steps/layer_active_experts"));
  std::vector<StepRecord> gap = good;
  gap[1].step = 3;
  EXPECT_TRUE(Says(Refusal(gap, 2), "holds 3 at row 1, expected 2"));
  std::vector<StepRecord> nan = good;
  nan[1].loss = std::nan("");
  EXPECT_TRUE(Says(Refusal(nan, 2), "/steps/loss"));
  nan = good;
  nan[0].allocation[1] = INFINITY;
  EXPECT_TRUE(Says(Refusal(nan, 2), "/steps/allocation"));
}

}  // namespace
}  // namespace softmoe::trainer

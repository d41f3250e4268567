// SPDX-License-Identifier: Apache-2.0
//
// Runs the program that checks everything on a device, with the simulated one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/config/router_traits.h"
#include "core/files/atomic_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/program_test_util.h"
#include "golden/gpu_runs/gpu_record.h"

namespace softmoe::gpu {
namespace {

namespace fs = std::filesystem;
using golden::GpuRecord;
using Json = nlohmann::ordered_json;

constexpr char kProgram[] = "property_tests/gpu/gpu_check_simulated";

ProgramResult Check(const fs::path& folder, const std::string& arguments) {
  return RunTestProgram(kProgram, arguments + " 2>&1", folder);
}
GpuRecord RecordIn(const fs::path& folder) {
  return golden::ReadGpuRecord(folder / "gpu_record.jsonl");
}

// The outcome of each stage, such as "passed".
std::map<std::string, std::string> OutcomesOf(const GpuRecord& record) {
  std::map<std::string, std::string> outcomes;
  for (const Json& stage : record.All("stage")) {
    outcomes[stage["name"]] = stage["outcome"];
  }
  return outcomes;
}

TEST(GpuCheck, RunsThroughOnTheSimulatedDevice) {
  const fs::path folder = FreshFolder("all");
  const ProgramResult result = Check(folder, "--minutes 60");
  EXPECT_TRUE(EndedWith(result, 0, "passed, on a simulated device",
                        " GiB free\n", "ok: rmsnorm bf16",
                        "no time: simulated"));
  const GpuRecord record = RecordIn(folder);
  EXPECT_EQ(record.Only("run")["backend"], "simulated");
  EXPECT_EQ(record.Only("run")["planted"], "");
  EXPECT_EQ(record.Only("facts")["model"], "simulated device");
  EXPECT_EQ(record.Only("end")["passed"], true);
  std::set<std::string> not_run = {"smoke grid"};
  for (const std::string tool : {"memcheck", "racecheck", "initcheck"}) {
    not_run.insert({tool + " of operations", tool + " of the model"});
  }
  for (const auto& [stage, outcome] : OutcomesOf(record)) {
    const bool runs =
        !not_run.contains(stage) && !stage.starts_with("bits of ");
    EXPECT_EQ(outcome, runs ? "passed" : "not run") << stage;
  }
  std::set<std::string> operations, timed;
  for (const Json& line : record.All("operation")) {
    operations.insert(line["name"].get<std::string>() + " " +
                      line["precision"].get<std::string>());
    EXPECT_EQ(line["passed"], true) << line.dump();
    EXPECT_EQ(line["cases"], 20) << line.dump();
    EXPECT_EQ(line["sources"].get<std::string>().size(), 64u) << line.dump();
    EXPECT_FALSE(line["bound"].get<std::string>().empty()) << line.dump();
    const double utilisation = line["utilisation"];
    EXPECT_TRUE(utilisation >= 0 && utilisation <= 1) << line.dump();
  }
  EXPECT_GE(operations.size(), 29u);
  for (const Json& line : record.All("time")) {
    timed.insert(line["operation"].get<std::string>() + " " +
                 line["precision"].get<std::string>());
  }
  // These two are computed by the router's kernels.
  timed.insert({"balance_sums fp32", "lapsum fp32"});
  EXPECT_EQ(timed, operations)
      << "operation_benchmark.cc does not time what operation_table.h has";
  EXPECT_EQ(record.All("ceiling").size(), 3u);
  // Each product has one algorithm, and at most eight are timed.
  EXPECT_GE(record.All("algorithm").size(), 2u * 10);
  EXPECT_LT(record.All("algorithm").size(), 2u * 10 * 8);
  // For each precision and router: a model, an update, a repetition.
  EXPECT_EQ(record.All("check").size(), 2u * 3 * kNumRouterKinds);
  EXPECT_EQ(record.All("step").size(), 5u);
}

// A fault is found and named, and everything else goes on.
TEST(GpuCheck, NamesAnOperationThatIsWrong) {
  const fs::path folder = FreshFolder("planted");
  const ProgramResult result = Check(
      folder,
      "--plant rmsnorm --only 'operation adamw' --only 'operation rmsnorm' "
      "--only 'operation sum'");
  EXPECT_TRUE(EndedWith(result, 1));
  EXPECT_TRUE(
      Says(result.output,
           "FAILED: operation rmsnorm (fp32); operation rmsnorm (bf16)\n",
           "ok: adamw fp32", "ok: sum_of_squares fp32", "REPRO"));
  const GpuRecord record = RecordIn(folder);
  EXPECT_EQ(record.Only("run")["planted"], "rmsnorm");
  EXPECT_EQ(record.Only("end")["passed"], false);
  EXPECT_EQ(record.Only("end")["failed"],
            "operation rmsnorm (fp32); operation rmsnorm (bf16)");
  for (const Json& line : record.All("operation")) {
    EXPECT_EQ(line["passed"], line["name"] != "rmsnorm") << line.dump();
    if (line["passed"] == false) {
      // The first wrong elements, and how to see them again.
      EXPECT_TRUE(
          Says(line["text"].get<std::string>(), "over their bound", "REPRO"));
      EXPECT_GT(line["utilisation"].get<double>(), 1) << line.dump();
      EXPECT_GT(line["failures"], 0) << line.dump();
    }
  }
  EXPECT_EQ(OutcomesOf(record).at("operation rmsnorm bf16"), "failed");
}

// A step that does not fit is no failure, but a step that breaks off on a large
// enough device is one.
TEST(GpuCheck, AStepThatDoesNotFitIsNotRun) {
  const auto check = [](const fs::path& folder, const char* device) {
    setenv("SOFTMOE_SIMULATED_DEVICE", device, 1);
    const ProgramResult result = Check(folder, "--only 'step sparse1'");
    unsetenv("SOFTMOE_SIMULATED_DEVICE");
    return result;
  };
  const fs::path small = FreshFolder("small");
  EXPECT_TRUE(EndedWith(check(small, "memory=2000300000"), 0, "  not run: ",
                        "no runtime.recompute makes it fit", "passed"));
  GpuRecord record = RecordIn(small);
  EXPECT_EQ(OutcomesOf(record).at("step sparse1/bf16"), "not run");
  EXPECT_EQ(record.Only("end")["passed"], true);

  const fs::path broken = FreshFolder("broken");
  EXPECT_TRUE(EndedWith(check(broken, "cudaLaunchKernelEx=999"), 1,
                        "FAILED: check \"step/sparse1/bf16/", "nvidia-smi"));
  record = RecordIn(broken);
  EXPECT_EQ(record.Only("end")["passed"], false);
  EXPECT_TRUE(record.All("step").empty());
}

// The record gets from the device to README's table; only in a test, since the
// device is simulated.
TEST(GpuCheck, ItsRecordIsImported) {
  const fs::path folder = FreshFolder("import");
  ASSERT_EQ(Check(folder, "--only 'operation sum' --only times").exit_status,
            0);
  const auto golden = [&](const std::string& arguments) {
    return RunTestProgram("golden/golden", arguments + " 2>&1", folder);
  };
  ProgramResult result = golden("import-gpu-run gpu_record.jsonl --to run.h5");
  EXPECT_TRUE(
      EndedWith(result, 2, "gpu_record.jsonl", "simulated", "run_all.sh"));
  EXPECT_FALSE(fs::exists(folder / "run.h5"));

  result = golden("import-gpu-run --of-tests gpu_record.jsonl");
  EXPECT_EQ(result.exit_status, 2);  // not a golden, so it has no default place
  EXPECT_TRUE(Says(result.output, "--to"));
  result = golden("import-gpu-run --of-tests gpu_record.jsonl --to run.h5");
  EXPECT_TRUE(EndedWith(result, 0));

  result = golden("gpu-table --runs .");
  EXPECT_TRUE(EndedWith(result, 2, "run.h5", "simulated"));
  result = golden("gpu-table --of-tests --runs .");
  EXPECT_TRUE(EndedWith(result, 0, "| adamw | not verified on a device |\n",
                        "| sum_of_squares | simulated device, 20",
                        ": fp32: 20 cases, largest error/bound "));
  EXPECT_FALSE(Says(result.output, " ms"));

  // Records that were changed or cut off, and files that are no records.
  const std::string record = ReadWholeFile(folder / "gpu_record.jsonl");
  WriteFileAtomically(folder / "half.jsonl",
                      record.substr(0, record.size() / 2));
  result = golden("import-gpu-run --of-tests half.jsonl --to half.h5");
  EXPECT_TRUE(EndedWith(result, 2, "half.jsonl:", "torn", "run_all.sh"));
  result = golden("import-gpu-run --of-tests run.h5 --to half.h5");
  EXPECT_EQ(result.exit_status, 2);
  result = golden("import-gpu-run --of-tests gone.jsonl --to half.h5");
  EXPECT_EQ(result.exit_status, 5);
  EXPECT_FALSE(fs::exists(folder / "half.h5"));
}

TEST(GpuCheck, SaysForWhatThereWasNoTime) {
  const fs::path folder = FreshFolder("no_time");
  const ProgramResult result =
      Check(folder, "--minutes 0.001 --only probes --only times");
  EXPECT_TRUE(
      EndedWith(result, 4, "no time left for: probes, times;", "minutes"));
  const GpuRecord record = RecordIn(folder);
  EXPECT_EQ(OutcomesOf(record).at("times"), "not run");
  EXPECT_EQ(record.Only("end")["passed"], false);
}

TEST(GpuCheck, RefusesWhatItDoesNotKnow) {
  const fs::path folder = FreshFolder("unknown");
  ProgramResult result = Check(folder, "--plant rmsnrom");
  EXPECT_TRUE(EndedWith(result, 2, "rmsnrom", "rmsnorm"));
  result = Check(folder, "--only dreams");
  EXPECT_TRUE(EndedWith(result, 2, "--only", "dreams"));
  result = Check(folder, "--minutes 0");
  EXPECT_EQ(result.exit_status, 2);
  EXPECT_TRUE(FilesIn(folder).empty());
  WriteFileAtomically(folder / "gpu_record.jsonl", "mine");
  result = Check(folder, "");
  EXPECT_TRUE(EndedWith(result, 5, "gpu_record.jsonl", "already"));
  EXPECT_EQ(ReadWholeFile(folder / "gpu_record.jsonl"), "mine");
}

}  // namespace
}  // namespace softmoe::gpu

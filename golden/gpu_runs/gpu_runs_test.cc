// SPDX-License-Identifier: Apache-2.0
#include "golden/gpu_runs/gpu_runs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/hdf5/hdf5_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Its minutes are a whole number, which is not the text "9.0", and one text is
// long.
GpuRecord ExampleRecord(const std::string& backend = "cuda") {
  GpuRecord record;
  record.lines = {
      Json{{"kind", "run"},
           {"version", kGpuRecordVersion},
           {"backend", backend},
           {"program", "test"},
           {"minutes", 9},
           {"planted", ""}},
      Json{{"kind", "facts"},
           {"model", "H100"},
           {"architecture", "sm_90"},
           {"libraries", "x"},
           {"memory_bytes", int64_t{1} << 40},
           {"date", "2026-11-22"}},
      Json{{"kind", "check"},
           {"name", "repeat"},
           {"passed", false},
           {"utilisation", "inf"},
           {"text",
            std::string(kMaxGpuTextBytes, 'x') + " \"with\"\nmore \xc3\xa4"}},
      Json{{"kind", "probe"},
           {"name", "order"},
           {"passed", true},
           {"answer", "yes"}},
      Json{{"kind", "check"},
           {"name", "update"},
           {"passed", true},
           {"utilisation", 0.1},
           {"text", ""}},
      Json{{"kind", "end"}, {"passed", false}, {"failed", "check \"repeat\""}}};
  return record;
}

TEST(GpuRunFile, ReadsWhatWasWritten) {
  const fs::path path = FreshFolder("gpu_run") / "run.h5";
  for (const char* backend : {"cuda", "simulated"}) {
    const GpuRecord record = ExampleRecord(backend);
    WriteGpuRun(path, record);
    const std::string bytes = ReadWholeFile(path);
    const GpuRecord again = ReadGpuRun(path);
    EXPECT_EQ(GpuRecordText(again), GpuRecordText(record));
    EXPECT_EQ(GpuRunName(again), GpuRunName(record));
    EXPECT_EQ(again.lines[1], record.lines[1]);
    WriteGpuRun(path, again);
    EXPECT_EQ(ReadWholeFile(path), bytes);
  }
}

// A file with a valid envelope that none of our programs wrote.
TEST(GpuRunFile, RefusesWhatNoRecordHolds) {
  const fs::path path = FreshFolder("gpu_run") / "run.h5";
  const auto refusal = [&](const std::string& lines) {
    Hdf5Writer file(path, {"gpu-run", 2});
    file.Bytes("/lines", lines);
    file.Commit();
    return MessageOf<DataError>([&] { (void)ReadGpuRun(path); });
  };
  const std::string good = GpuRecordText(ExampleRecord());
  EXPECT_TRUE(Says(refusal(Replaced(good, "\"probe\"", "\"dream\"")),
                   "run.h5: /lines:4: ", "\"dream\""));
  EXPECT_TRUE(Says(refusal(Replaced(good, "1099511627776", "0.5")),
                   ":2: \"memory_bytes\" of kind \"facts\" cannot be 0.5;"));
  for (const std::string day :
       {"2026-13-45", "2026-02-30", "2026-1-2", "2026-11-22x", "x", ""}) {
    EXPECT_TRUE(Says(refusal(Replaced(good, "2026-11-22", day)),
                     "run.h5: /lines: there is no day \"" + day + "\""));
  }
  // Spelled like this, the lines would have the name of other ones.
  EXPECT_TRUE(Says(refusal(Replaced(good, "\"minutes\":", "\"minutes\": ")),
                   ":1: ", "not formatted"));
  EXPECT_TRUE(Says(refusal(Replaced(good, "\"kind\":\"facts\"",
                                    "\"line\":1,\"kind\":\"facts\"")),
                   ":2: ", "\"line\" does not belong"));
  EXPECT_TRUE(Says(refusal(good.substr(1)), ":1: the line is no JSON object"));
  EXPECT_TRUE(Says(refusal(good.substr(0, good.size() - 1)), ":6: ", "torn"));
  EXPECT_TRUE(Says(refusal(good.substr(0, good.find("{\"kind\":\"end\""))),
                   "run.h5: /lines: ", "cut off"));
  EXPECT_TRUE(Says(refusal(""), "begins with"));
}

TEST(GpuRunFile, GoldensAreOfDevices) {
  RequireGolden(ExampleRecord("cuda"), AcceptedRuns::kOfDevices, "here");
  RequireGolden(ExampleRecord("simulated"), AcceptedRuns::kOfTests, "here");
  EXPECT_TRUE(Says(MessageOf<DataError>([] {
                     RequireGolden(ExampleRecord("simulated"),
                                   AcceptedRuns::kOfDevices, "here.jsonl");
                   }),
                   "here.jsonl: the record is of a simulated device"));
  GpuRecord planted = ExampleRecord();
  planted.lines[0]["planted"] = "gemm";
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     RequireGolden(planted, AcceptedRuns::kOfDevices, "here");
                   }),
                   "gemm was told to be wrong"));
  GpuRecord undated = ExampleRecord();
  undated.lines[1]["date"] = "1970-01-01";
  RequireGolden(undated, AcceptedRuns::kOfTests, "here");
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     RequireGolden(undated, AcceptedRuns::kOfDevices, "here");
                   }),
                   "here: the record is dated 1970-01-01", "clock"));
  GpuRecord without = ExampleRecord();
  std::erase_if(without.lines,
                [](const Json& line) { return line["kind"] == "facts"; });
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     RequireGolden(without, AcceptedRuns::kOfDevices, "here");
                   }),
                   "\"facts\""));
}

TEST(GpuRunFile, NamesAreOfWhatIsInIt) {
  GpuRecord record = ExampleRecord();
  const std::string name = GpuRunName(record);
  EXPECT_TRUE(name.starts_with("2026-11-22-sm_90-")) << name;
  EXPECT_EQ(name.size(), std::string("2026-11-22-sm_90-12345678").size());
  record.lines[3]["answer"] = "another";
  EXPECT_NE(GpuRunName(record), name);
}

// ---- The table

const std::string kOld(64, 'a');
const std::string kNew(64, 'b');

Json OperationLine(const std::string& name, const std::string& precision,
                   const std::string& sources, bool passed = true) {
  return {{"kind", "operation"},        {"name", name},
          {"precision", precision},     {"sources", sources},
          {"passed", passed},           {"cases", 100},
          {"failures", passed ? 0 : 7}, {"bound", "x/1"},
          {"utilisation", 0.25},        {"text", ""}};
}

GpuRecord RunOf(const std::string& date, std::vector<Json> lines) {
  GpuRecord record;
  record.lines = {{{"kind", "facts"},
                   {"model", "H100"},
                   {"architecture", "sm_90"},
                   {"libraries", "x"},
                   {"memory_bytes", 1},
                   {"date", date}}};
  record.lines.insert(record.lines.end(), lines.begin(), lines.end());
  return record;
}

std::string RowOf(const std::vector<GpuRecord>& runs) {
  const std::string table = GpuTable(runs, {{"gemm", kNew}});
  const std::string head = "| operation | on a device |\n|-|-|\n";
  EXPECT_TRUE(table.starts_with(head)) << table;
  return table.substr(head.size());
}

TEST(GpuTable, WithoutRecordsNothingIsVerified) {
  EXPECT_EQ(GpuTable({}, {{"gemm", kNew}, {"adamw", kOld}}),
            "| operation | on a device |\n|-|-|\n"
            "| gemm | not verified on a device |\n"
            "| adamw | not verified on a device |\n");
  EXPECT_EQ(
      RowOf({RunOf("2026-11-22", {OperationLine("adamw", "fp32", kNew)})}),
      "| gemm | not verified on a device |\n");
}

TEST(GpuTable, SaysWhatARunFound) {
  const Json time = {
      {"kind", "time"},      {"name", "qkv product"}, {"operation", "gemm"},
      {"precision", "bf16"}, {"shape", "1x1x1"},      {"flops", 1.0},
      {"bytes", 1.0},        {"seconds", 0.00125},    {"share", 0.834}};
  EXPECT_EQ(
      RowOf({RunOf("2026-11-22", {OperationLine("gemm", "fp32", kNew),
                                  OperationLine("gemm", "bf16", kNew), time})}),
      "| gemm | H100, 2026-11-22: fp32: 100 cases, largest error/bound "
      "0.25; bf16: 100 cases, largest error/bound 0.25; qkv product "
      "1.25 ms (83 %) |\n");
}

Json BitsLine(const std::string& precision, bool passed) {
  return {{"kind", "check"},
          {"name", NameOfBits("gemm", precision)},
          {"passed", passed},
          {"utilisation", 0.0},
          {"text", ""}};
}

TEST(GpuTable, SaysWhereBitsAreTheSimulations) {
  EXPECT_EQ(RowOf({RunOf("2026-11-22",
                         {OperationLine("gemm", "fp32", kNew),
                          OperationLine("gemm", "bf16", kNew),
                          BitsLine("fp32", true), BitsLine("bf16", false)})}),
            "| gemm | H100, 2026-11-22: fp32: 100 cases, largest error/bound "
            "0.25, bits as simulated; bf16: 100 cases, largest error/bound "
            "0.25, **other bits than simulated** |\n");
}

Json StageLine(const std::string& name, const std::string& outcome) {
  return {
      {"kind", "stage"}, {"name", name}, {"outcome", outcome}, {"text", ""}};
}

// Such a run leaves no line of an operation; what an older run found must not
// take its place.
TEST(GpuTable, SaysWhatLeftNoFinding) {
  const GpuRecord passed =
      RunOf("2026-11-21", {OperationLine("gemm", "fp32", kNew),
                           OperationLine("gemm", "bf16", kNew)});
  const auto row = [&](const std::vector<Json>& lines) {
    return RowOf({passed, RunOf("2026-11-22", lines)});
  };
  EXPECT_EQ(row({StageLine("operation gemm fp32", "crashed"),
                 StageLine("operation gemm bf16", "ran too long")}),
            "| gemm | H100, 2026-11-22: fp32 **crashed**; bf16 **ran too "
            "long** |\n");
  EXPECT_EQ(row({OperationLine("gemm", "fp32", kNew),
                 StageLine("operation gemm fp32", "passed"),
                 StageLine("operation gemm bf16", "crashed"),
                 StageLine("bits of gemm fp32", "crashed")}),
            "| gemm | H100, 2026-11-22: fp32: 100 cases, largest error/bound "
            "0.25, **bits crashed**; bf16 **crashed** |\n");
  // An operation that passed, in a stage that did not.
  EXPECT_EQ(row({OperationLine("gemm", "fp32", kNew),
                 StageLine("operation gemm fp32", "failed"),
                 OperationLine("gemm", "bf16", kNew)}),
            "| gemm | H100, 2026-11-22: fp32: 100 cases, largest error/bound "
            "0.25; fp32 **failed**; bf16: 100 cases, largest error/bound 0.25 "
            "|\n");
  // A failure is stated once; a stage that did not run says nothing, and hides
  // nothing.
  EXPECT_EQ(row({OperationLine("gemm", "fp32", kNew, false),
                 StageLine("operation gemm fp32", "failed"),
                 StageLine("operation gemm bf16", "not run")}),
            "| gemm | H100, 2026-11-22: fp32 **FAILED** (7 of 100 cases)<br>"
            "H100, 2026-11-21: bf16: 100 cases, largest error/bound 0.25 |\n");
  EXPECT_EQ(row({StageLine("operation gemm fp32", "stopped"),
                 StageLine("operation gemm_more fp32", "crashed")}),
            RowOf({passed}));
}

// `--only 'bits of gemm'` leaves no line of the operation.
TEST(GpuTable, OtherBitsAreNotHiddenByAnOlderRun) {
  const GpuRecord same =
      RunOf("2026-11-21", {OperationLine("gemm", "fp32", kNew),
                           OperationLine("gemm", "bf16", kNew),
                           BitsLine("fp32", true), BitsLine("bf16", true)});
  const auto row = [&](const std::vector<Json>& lines) {
    return RowOf({same, RunOf("2026-11-22", lines)});
  };
  EXPECT_EQ(row({BitsLine("fp32", false),
                 StageLine(NameOfBits("gemm", "bf16"), "crashed")}),
            "| gemm | H100, 2026-11-22: fp32 **other bits than simulated**; "
            "bf16 **bits crashed** |\n");
  for (const Json& nothing :
       {BitsLine("fp32", true),
        StageLine(NameOfBits("gemm", "fp32"), "not run")}) {
    EXPECT_EQ(row({nothing}), RowOf({same})) << nothing.dump();
  }
}

TEST(GpuTable, SaysWhatFailed) {
  EXPECT_EQ(RowOf({RunOf("2026-11-22",
                         {OperationLine("gemm", "fp32", kNew, false)})}),
            "| gemm | H100, 2026-11-22: fp32 **FAILED** (7 of 100 cases) |\n");
}

TEST(GpuTable, SaysWhatTheLatestRunOfEachModelFound) {
  const GpuRecord old =
      RunOf("2026-11-21", {OperationLine("gemm", "fp32", kNew, false)});
  GpuRecord latest = RunOf("2026-11-23", {OperationLine("gemm", "fp32", kNew)});
  GpuRecord other = RunOf("2026-11-22", {OperationLine("gemm", "fp32", kNew)});
  other.lines[0]["model"] = "H200";
  EXPECT_EQ(RowOf({old, other, latest}),
            "| gemm | H100, 2026-11-23: fp32: 100 cases, largest error/bound "
            "0.25<br>H200, 2026-11-22: fp32: 100 cases, largest error/bound "
            "0.25 |\n");
  // Neither of two runs of one day is the latest.
  const GpuRecord failed =
      RunOf("2026-11-23", {OperationLine("gemm", "fp32", kNew, false)});
  EXPECT_EQ(RowOf({old, latest, failed}),
            "| gemm | H100, 2026-11-23: fp32: 100 cases, largest error/bound "
            "0.25<br>H100, 2026-11-23: fp32 **FAILED** (7 of 100 cases) |\n");
}

// `--only 'operation gemm fp32'` leaves a record that knows nothing of bf16.
TEST(GpuTable, ARunOfOnePrecisionHidesNoFailureOfAnother) {
  const GpuRecord both =
      RunOf("2026-11-22", {OperationLine("gemm", "fp32", kNew, false),
                           OperationLine("gemm", "bf16", kNew, false)});
  const GpuRecord one =
      RunOf("2026-11-23", {OperationLine("gemm", "fp32", kNew)});
  GpuRecord other = RunOf("2026-11-24", {OperationLine("gemm", "bf16", kNew)});
  other.lines[0]["model"] = "H200";
  const std::string fp32 =
      "H100, 2026-11-23: fp32: 100 cases, largest error/bound 0.25";
  EXPECT_EQ(RowOf({both, one, other}),
            "| gemm | H200, 2026-11-24: bf16: 100 cases, largest error/bound "
            "0.25<br>" +
                fp32 +
                "<br>H100, 2026-11-22: bf16 **FAILED** (7 of 100 cases) |\n");
  // A run of bf16 on the same day or on a later one replaces that failure.
  const GpuRecord again =
      RunOf("2026-11-23", {OperationLine("gemm", "bf16", kNew)});
  EXPECT_EQ(RowOf({both, one, again}),
            "| gemm | " + fp32 +
                "<br>H100, 2026-11-23: bf16: 100 cases, largest error/bound "
                "0.25 |\n");
}

// In any order of the files, the latest run made from these sources counts;
// without one, the latest of all tells since when.
TEST(GpuTable, AnOperationWhoseSourcesChangedIsNotVerifiedSince) {
  const GpuRecord first =
      RunOf("2026-11-20", {OperationLine("gemm", "fp32", kOld)});
  const GpuRecord second =
      RunOf("2026-11-21", {OperationLine("gemm", "fp32", kOld)});
  for (const auto& runs : {std::vector{first, second}, {second, first}}) {
    EXPECT_EQ(RowOf(runs),
              "| gemm | not verified on a device since its sources changed, "
              "after 2026-11-21 |\n");
  }
  // One precision made from the present sources is not enough.
  EXPECT_EQ(
      RowOf({RunOf("2026-11-22", {OperationLine("gemm", "fp32", kNew),
                                  OperationLine("gemm", "bf16", kOld)})}),
      "| gemm | not verified on a device since its sources changed, after "
      "2026-11-22 |\n");
  const GpuRecord third =
      RunOf("2026-11-22", {OperationLine("gemm", "fp32", kNew)});
  const GpuRecord fourth =
      RunOf("2026-11-23", {OperationLine("gemm", "fp32", kNew, false)});
  EXPECT_EQ(RowOf({third, first}),
            "| gemm | H100, 2026-11-22: fp32: 100 cases, largest error/bound "
            "0.25 |\n");
  EXPECT_EQ(RowOf({fourth, third}),
            "| gemm | H100, 2026-11-23: fp32 **FAILED** (7 of 100 cases) |\n");
}

TEST(OperationSourcesFile, IsReadStrictly) {
  const OperationSources sources =
      ParseOperationSources("gemm " + kOld + "\nadamw " + kNew + "\n");
  EXPECT_EQ(sources, (OperationSources{{"gemm", kOld}, {"adamw", kNew}}));
  for (const std::string& text :
       {std::string("gemm\n"), "gemm " + kOld.substr(1) + "\n",
        "gemm " + kOld + " more\n"}) {
    EXPECT_THROW((void)ParseOperationSources(text), DataError) << text;
  }
}

}  // namespace
}  // namespace softmoe::golden

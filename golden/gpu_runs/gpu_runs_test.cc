// SPDX-License-Identifier: Apache-2.0
#include "golden/gpu_runs/gpu_runs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
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

// A value for each type of field.
Json Example(const GpuField& field, int number) {
  switch (field.type) {
    case GpuField::Type::kText:
    case GpuField::Type::kLongText:
      return field.name + (number == 0 ? "" : " \"with\"\nmore \xc3\xa4");
    case GpuField::Type::kNumber:
      return 0.1 + number;
    case GpuField::Type::kWhole:
      return int64_t{1} << (40 + number);
    case GpuField::Type::kYesNo:
      return number == 0;
  }
  return nullptr;
}

// Two lines of each kind that may repeat, the second without its optional
// fields.
GpuRecord Everything(const std::string& backend = "cuda") {
  GpuRecord record;
  for (const GpuLineKind& kind : GpuLineKinds()) {
    const bool once =
        kind.name == "run" || kind.name == "facts" || kind.name == "end";
    for (int number = 0; number < (once ? 1 : 2); ++number) {
      Json line = {{"kind", kind.name}};
      for (const GpuField& field : kind.fields) {
        if (field.measured && (number == 1 || backend != "cuda")) continue;
        line[field.name] = Example(field, number);
      }
      if (kind.name == "run") {
        line["version"] = kGpuRecordVersion;
        line["backend"] = backend;
        line["planted"] = "";
      }
      record.lines.push_back(line);
    }
  }
  CheckGpuRecord(record, "here");
  return record;
}

TEST(GpuRunFile, ReadsWhatWasWritten) {
  const fs::path path = FreshFolder("gpu_run") / "run.h5";
  for (const char* backend : {"cuda", "simulated"}) {
    GpuRecord record = Everything(backend);
    // Lines of one kind need not be adjacent, and numbers may be non-finite.
    std::swap(record.lines[2], record.lines[7]);
    for (Json& line : record.lines) {
      if (line["kind"] == "check") line["utilisation"] = "inf";
    }
    WriteGpuRun(path, record);
    const std::string bytes = ReadWholeFile(path);
    const GpuRecord again = ReadGpuRun(path);
    ASSERT_EQ(again.lines.size(), record.lines.size());
    for (size_t i = 0; i < record.lines.size(); ++i) {
      EXPECT_EQ(JsonLine(again.lines[i]), JsonLine(record.lines[i]));
    }
    WriteGpuRun(path, again);
    EXPECT_EQ(ReadWholeFile(path), bytes);
  }
}

// A file with a valid envelope that none of our programs wrote.
TEST(GpuRunFile, RefusesWhatNoRecordHolds) {
  const fs::path path = FreshFolder("gpu_run") / "run.h5";
  const auto refusal = [&](const std::vector<std::string>& order,
                           const std::function<void(Hdf5Writer*)>& write) {
    Hdf5Writer file(path, {"gpu-run", 1});
    file.WriteDataset("/order", order);
    write(&file);
    file.Commit();
    return MessageOf<DataError>([&] { (void)ReadGpuRun(path); });
  };
  const auto nothing = [](Hdf5Writer*) {};
  const auto end = [](int count, const std::string& json) {
    return [=](Hdf5Writer* file) {
      file->WriteDataset("/end/passed",
                         std::vector<uint8_t>(static_cast<size_t>(count), 1));
      file->WriteDataset("/end/failed",
                         std::vector<uint8_t>(json.begin(), json.end()));
    };
  };
  EXPECT_TRUE(Says(refusal({"dream"}, nothing), "\"dream\""));
  EXPECT_TRUE(Says(refusal({"end"}, nothing), "/end/passed"));
  EXPECT_TRUE(Says(refusal({"end"}, end(2, "[\"\"]")), "2 values for 1 lines"));
  EXPECT_TRUE(
      Says(refusal({"end"}, end(1, "[\"\",\"\"]")), "2 values for 1 lines"));
  EXPECT_TRUE(Says(refusal({"end"}, end(1, "[1]")), "no texts"));
  EXPECT_TRUE(Says(refusal({"end"}, end(1, "[\"")), "no JSON array"));
  EXPECT_TRUE(Says(refusal({"end"}, end(1, "[\"\"]")), "begins with"));
}

TEST(GpuRunFile, GoldensAreOfDevices) {
  RequireGolden(Everything("cuda"), AcceptedRuns::kOfDevices, "here");
  RequireGolden(Everything("simulated"), AcceptedRuns::kOfTests, "here");
  EXPECT_TRUE(Says(MessageOf<DataError>([] {
                     RequireGolden(Everything("simulated"),
                                   AcceptedRuns::kOfDevices, "here.jsonl");
                   }),
                   "here.jsonl: the record is of a simulated device"));
  GpuRecord planted = Everything();
  planted.lines[0]["planted"] = "gemm";
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     RequireGolden(planted, AcceptedRuns::kOfDevices, "here");
                   }),
                   "gemm was told to be wrong"));
  GpuRecord without = Everything();
  std::erase_if(without.lines,
                [](const Json& line) { return line["kind"] == "facts"; });
  EXPECT_TRUE(Says(MessageOf<DataError>([&] {
                     RequireGolden(without, AcceptedRuns::kOfDevices, "here");
                   }),
                   "\"facts\""));
}

TEST(GpuRunFile, NamesAreOfWhatIsInIt) {
  GpuRecord record = Everything();
  record.lines[1]["date"] = "2026-11-22";
  record.lines[1]["architecture"] = "sm_90";
  const std::string name = GpuRunName(record);
  EXPECT_TRUE(name.starts_with("2026-11-22-sm_90-")) << name;
  EXPECT_EQ(name.size(), std::string("2026-11-22-sm_90-12345678").size());
  record.lines[2]["answer"] = "another";
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

TEST(GpuTable, SaysWhereBitsAreTheSimulations) {
  const auto bits = [](const std::string& precision, bool passed) {
    return Json{{"kind", "check"},
                {"name", NameOfBits("gemm", precision)},
                {"passed", passed},
                {"utilisation", 0.0},
                {"text", ""}};
  };
  EXPECT_EQ(
      RowOf({RunOf("2026-11-22", {OperationLine("gemm", "fp32", kNew),
                                  OperationLine("gemm", "bf16", kNew),
                                  bits("fp32", true), bits("bf16", false)})}),
      "| gemm | H100, 2026-11-22: fp32: 100 cases, largest error/bound "
      "0.25, bits as simulated; bf16: 100 cases, largest error/bound "
      "0.25 |\n");
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

// In any order of the files, the latest run made from these sources counts;
// without one, the latest of all says since when.
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

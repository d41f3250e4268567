// SPDX-License-Identifier: Apache-2.0
#include "golden/gpu_runs/gpu_table.h"

#include <gtest/gtest.h>

#include <string>

#include "core/errors.h"

namespace softmoe::golden {
namespace {

using Json = nlohmann::ordered_json;

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

TEST(GpuTable, SaysWhatFailed) {
  EXPECT_EQ(RowOf({RunOf("2026-11-22",
                         {OperationLine("gemm", "fp32", kNew, false)})}),
            "| gemm | H100, 2026-11-22: fp32 **FAILED** (7 of 100 cases) |\n");
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

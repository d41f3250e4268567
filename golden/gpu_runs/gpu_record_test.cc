// SPDX-License-Identifier: Apache-2.0
#include "golden/gpu_runs/gpu_record.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "golden/gpu_runs/gpu_conclusions.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json RunLine(const std::string& backend = "simulated") {
  return {{"kind", "run"},      {"version", kGpuRecordVersion},
          {"backend", backend}, {"program", "test"},
          {"minutes", 9.0},     {"planted", ""}};
}
Json CheckLine() {
  return {{"kind", "check"},
          {"name", "repeat"},
          {"passed", true},
          {"utilisation", 0.25},
          {"text", "\"quoted\", \n and so on"}};
}
Json EndLine() { return {{"kind", "end"}, {"passed", true}, {"failed", ""}}; }

class GpuRecordFile : public testing::Test {
 protected:
  void SetUp() override { path_ = FreshFolder("gpu_record") / "record.jsonl"; }

  void Write(const std::vector<Json>& lines) {
    fs::remove(path_);
    GpuRecordWriter writer(path_);
    for (const Json& line : lines) writer.Write(line);
  }
  // Changes the file's text with `change` and returns the error of reading it.
  std::string RefusalOf(const std::function<void(std::string*)>& change) {
    std::string text = ReadWholeFile(path_);
    change(&text);
    const fs::path other = path_.parent_path() / "changed.jsonl";
    // Not atomically, which would wait for the disk each time.
    std::ofstream(other, std::ios::binary) << text;
    return MessageOf<DataError>([&] { (void)ReadGpuRecord(other); });
  }

  fs::path path_;
};

TEST_F(GpuRecordFile, ReadsWhatWasWritten) {
  Json not_finite = CheckLine();
  not_finite["utilisation"] = INFINITY;
  Write({RunLine(), CheckLine(), not_finite, EndLine()});
  const GpuRecord record = ReadGpuRecord(path_);
  ASSERT_EQ(record.lines.size(), 4u);
  EXPECT_EQ(record.lines[0], RunLine());
  EXPECT_EQ(record.lines[1], CheckLine());
  EXPECT_EQ(JsonNumber(record.lines[2], "utilisation", "here"), INFINITY);
  EXPECT_EQ(record.Only("end"), EndLine());
  EXPECT_EQ(record.All("check").size(), 2u);
  EXPECT_THROW((void)record.Only("check"), DataError);
  EXPECT_THROW((void)record.Only("facts"), DataError);
}

TEST_F(GpuRecordFile, ReplacesNoFile) {
  Write({RunLine()});
  EXPECT_THROW(GpuRecordWriter{path_}, EnvironmentError);
}

TEST_F(GpuRecordFile, RefusesEveryChangedByte) {
  Write({RunLine(), CheckLine(), EndLine()});
  const size_t size = ReadWholeFile(path_).size();
  for (size_t i = 0; i < size; ++i) {
    const std::string text =
        RefusalOf([&](std::string* bytes) { (*bytes)[i] ^= 1; });
    EXPECT_TRUE(Says(text, "changed.jsonl", "run_all.sh")) << "byte " << i;
  }
  EXPECT_TRUE(Says(RefusalOf([](std::string* bytes) {
                     *bytes = Replaced(*bytes, "\"test\"", "\"rest\"");
                   }),
                   "changed.jsonl:1: the line was changed after it was "));
}

TEST_F(GpuRecordFile, RefusesWhatIsNotWhole) {
  Write({RunLine(), CheckLine(), CheckLine(), EndLine()});
  const std::string text = ReadWholeFile(path_);
  std::vector<size_t> begins = {0};
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\n') begins.push_back(i + 1);
  }
  const auto without = [&](size_t line) {
    return RefusalOf([&](std::string* bytes) {
      bytes->erase(begins[line],
                   text.find('\n', begins[line]) + 1 - begins[line]);
    });
  };
  EXPECT_TRUE(Says(without(0), ":1: ", "number 0"));
  EXPECT_TRUE(Says(without(1), ":2: ", "number 1"));
  EXPECT_TRUE(Says(without(3), "changed.jsonl: the run was cut off: ",
                   "no line of kind \"end\""));
  // An "end" line exists but is not last.
  Write({RunLine(), EndLine(), CheckLine()});
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { (void)ReadGpuRecord(path_); }),
                   "cut off"));
  Write({RunLine(), CheckLine(), CheckLine(), EndLine()});
  // Half a line at the end; no lines at all.
  EXPECT_TRUE(Says(RefusalOf([](std::string* bytes) { bytes->pop_back(); }),
                   ":4: ", "torn"));
  EXPECT_TRUE(
      Says(RefusalOf([&](std::string* bytes) { bytes->resize(begins[3] + 9); }),
           ":4: ", "torn"));
  EXPECT_TRUE(Says(RefusalOf([](std::string* bytes) { bytes->clear(); }),
                   "changed.jsonl: a record begins with a line of kind "));
  EXPECT_TRUE(Says(
      RefusalOf([](std::string* bytes) {
        bytes->append(static_cast<size_t>(kMaxGpuRecordBytes), '\n');
      }),
      "changed.jsonl: ", " bytes are too many: ", "has at most 16777216;"));
}

// The hash of a line is that of its members, whatever stands between them.
TEST_F(GpuRecordFile, RefusesLinesOfAnotherSpelling) {
  Write({RunLine(), CheckLine(), EndLine()});
  EXPECT_TRUE(Says(RefusalOf([](std::string* bytes) {
                     *bytes = Replaced(*bytes, "\"minutes\":", "\"minutes\": ");
                   }),
                   ":1: ", "not formatted"));
}

// A line with a correct hash is refused, too, if no record can contain it.
TEST_F(GpuRecordFile, RefusesLinesOfAnotherRecord) {
  Write({RunLine(), EndLine()});
  const std::string text = ReadWholeFile(path_);
  Json other = RunLine();
  other["minutes"] = 8.0;
  Write({other, EndLine()});
  const std::string mixed = RefusalOf([&](std::string* bytes) {
    bytes->replace(0, bytes->find('\n'), text, 0, text.find('\n'));
  });
  EXPECT_TRUE(Says(mixed, ":2: ", "does not follow"));
}

TEST_F(GpuRecordFile, RefusesLinesThatAreNone) {
  GpuRecordWriter writer(path_);
  const auto refusal = [&](const Json& line) {
    return MessageOf<DataError>([&] { writer.Write(line); });
  };
  const auto changed = [](Json line, const std::string& key,
                          const Json& value) {
    line[key] = value;
    return line;
  };
  const auto without = [](Json line, const std::string& key) {
    line.erase(key);
    return line;
  };
  EXPECT_TRUE(Says(refusal({{"kind", "dream"}}), "\"dream\"", "unknown"));
  EXPECT_TRUE(Says(refusal({{"name", "x"}}), "null", "unknown"));
  EXPECT_TRUE(Says(refusal(Json::array()), "unknown"));
  EXPECT_TRUE(Says(refusal(changed(CheckLine(), "colour", 1)), "\"colour\""));
  EXPECT_TRUE(Says(refusal(changed(CheckLine(), "passed", 1)),
                   "jsonl:1: \"passed\" of kind \"check\" cannot be 1;"));
  EXPECT_TRUE(Says(refusal(changed(CheckLine(), "utilisation", "much")),
                   "\"utilisation\"", "much"));
  // One more than an int64_t can hold.
  EXPECT_TRUE(Says(refusal(changed(RunLine(), "version", uint64_t{1} << 63)),
                   "\"version\"", "9223372036854775808"));
  EXPECT_TRUE(Says(refusal(without(CheckLine(), "text")),
                   "jsonl:1: a line of kind \"check\" has no \"text\";"));
  EXPECT_TRUE(
      Says(refusal(without(CheckLine(), "name")), "\"passed\"", "belong"));
  // Measured fields may be left out; the others keep their order.
  const Json stage = {
      {"kind", "stage"}, {"name", "x"}, {"outcome", "passed"}, {"text", ""}};
  writer.Write(stage);
  writer.Write(changed(stage, "seconds", 1.5));
}

// No run writes these: somebody changed the lines and sealed them again.
TEST_F(GpuRecordFile, RefusesFindingsThatContradictEachOther) {
  const auto operation = [](bool passed, int64_t cases, int64_t failures,
                            const Json& utilisation) {
    return Json{{"kind", "operation"},        {"name", "gemm"},
                {"precision", "fp32"},        {"sources", "x"},
                {"passed", passed},           {"cases", cases},
                {"failures", failures},       {"bound", "x/1"},
                {"utilisation", utilisation}, {"text", ""}};
  };
  const auto end = [](bool passed, const std::string& failed) {
    return Json{{"kind", "end"}, {"passed", passed}, {"failed", failed}};
  };
  const auto refusal = [&](const Json& line, const Json& last) {
    Write({RunLine(), line, last});
    return MessageOf<DataError>([&] { (void)ReadGpuRecord(path_); });
  };
  EXPECT_EQ(refusal(operation(true, 3, 0, 1.0), end(true, "")), kNoError);
  const std::string gemm = "operation gemm (fp32)";
  EXPECT_EQ(refusal(operation(false, 3, 3, "inf"), end(false, gemm)), kNoError);
  // An operation that is mistrusted.
  EXPECT_EQ(refusal(operation(false, 3, 0, 0.5), end(false, gemm)), kNoError);
  for (const Json& line :
       {operation(true, 3, 1, 0.5), operation(true, 3, 0, 1.7),
        operation(true, 3, 0, "nan"), operation(true, 0, 0, 0.5)}) {
    EXPECT_TRUE(Says(refusal(line, end(true, "")),
                     "record.jsonl: gemm cannot have passed with " +
                         line["failures"].dump() + " failures in " +
                         line["cases"].dump() + " cases and a largest "))
        << line.dump();
  }
  for (const Json& line :
       {operation(false, 3, 4, 1.7), operation(false, 3, -1, 1.7)}) {
    EXPECT_TRUE(
        Says(refusal(line, end(false, gemm)), "gemm cannot have failed"))
        << line.dump();
  }

  const std::string about =
      "record.jsonl: the line of kind \"end\" does not match the failures";
  const Json failed = operation(false, 3, 1, 1.7);
  const auto stage = [](const char* outcome) {
    return Json{
        {"kind", "stage"}, {"name", "x"}, {"outcome", outcome}, {"text", ""}};
  };
  EXPECT_TRUE(Says(refusal(failed, end(true, "")), about));
  EXPECT_TRUE(Says(refusal(failed, end(false, "")), about));
  EXPECT_TRUE(Says(refusal(failed, end(true, gemm)), about));
  EXPECT_TRUE(
      Says(refusal(failed, end(false, "operation gemm (bf16)")), about));
  EXPECT_TRUE(Says(refusal(stage("crashed"), end(true, "")), about));
  EXPECT_EQ(refusal(stage("crashed"), end(false, "stage \"x\" (crashed)")),
            kNoError);
  for (const char* outcome : {"passed", "not run"}) {
    EXPECT_TRUE(Says(refusal(stage(outcome), end(false, "x")), about));
    // The run's time ran out.
    EXPECT_EQ(refusal(stage(outcome), end(false, "")), kNoError) << outcome;
  }
  // A stage is named unless a line of its own is.
  Write({RunLine(), failed, stage("failed"), stage("crashed"),
         end(false, gemm + "; stage \"x\" (crashed)")});
  EXPECT_EQ(ReadGpuRecord(path_).lines.size(), 5u);
}

// The end names everything that failed, however much that is.
TEST_F(GpuRecordFile, ReadsAnEndThatWasCut) {
  std::vector<Json> lines = {RunLine()};
  GpuFailures failures;
  for (int i = 0; i < 1000; ++i) {
    lines.push_back({{"kind", "probe"},
                     {"name", std::to_string(i)},
                     {"passed", false},
                     {"answer", ""}});
    failures.Look(lines.back());
  }
  lines.push_back(
      {{"kind", "end"}, {"passed", false}, {"failed", failures.Text()}});
  Write(lines);
  EXPECT_TRUE(
      ReadGpuRecord(path_).Only("end")["failed"].get<std::string>().ends_with(
          "[cut]"));
}

TEST_F(GpuRecordFile, CutsLongTextsBetweenCharacters) {
  const auto written = [&](const std::string& text) {
    Json line = CheckLine();
    line["text"] = text;
    Write({RunLine(), line, EndLine()});
    return ReadGpuRecord(path_).lines[1]["text"].get<std::string>();
  };
  const std::string most(kMaxGpuTextBytes, 'x');
  EXPECT_EQ(written(most), most);
  EXPECT_EQ(written(most + "y"), most + " [cut]");
  // The limit is between the bytes of this letter; the last text has none.
  EXPECT_EQ(written(most.substr(1) + "\xc3\xa5"), most.substr(1) + " [cut]");
  EXPECT_EQ(written(std::string(kMaxGpuTextBytes + 1, '\x80')), " [cut]");
}

TEST_F(GpuRecordFile, RefusesWhatCannotStandBesideOtherLines) {
  const auto refusal = [&](const std::vector<Json>& lines) {
    std::vector<Json> all = {RunLine("cuda")};
    GpuFailures failures;
    for (const Json& line : lines) {
      all.push_back(line);
      failures.Look(line);
    }
    all.push_back({{"kind", "end"},
                   {"passed", failures.empty()},
                   {"failed", failures.Text()}});
    Write(all);
    return MessageOf<DataError>([&] { (void)ReadGpuRecord(path_); });
  };
  const auto changed = [](Json line, const char* key, const Json& value) {
    line[key] = value;
    return line;
  };
  const auto ceiling = [](const char* name, double value) {
    return Json{{"kind", "ceiling"},
                {"name", name},
                {"shape", ""},
                {"unit", ""},
                {"value", value}};
  };
  const Json copy = ceiling("copy", 1000),
             product = ceiling("product bf16", 400);
  const Json time = {
      {"kind", "time"},      {"name", "+="},   {"operation", "add"},
      {"precision", "bf16"}, {"shape", "8"},   {"flops", 1e12},
      {"bytes", 1e12},       {"seconds", 2.0}, {"share", 0.5}};
  EXPECT_EQ(refusal({copy, product, time}), kNoError);
  EXPECT_EQ(refusal({copy, product, time, changed(time, "name", "*=")}),
            kNoError);
  // A share other than the ceilings and the seconds give.
  for (const std::vector<Json>& lines :
       {std::vector<Json>{time},
        {product, time},
        {time, copy, product},
        {ceiling("copy", 2000), product, time},
        {copy, product, changed(time, "seconds", 0.2)},
        {copy, product, changed(time, "share", 0.5 + 7e-10)},
        {copy, product, changed(time, "share", "nan")}}) {
    EXPECT_NE(refusal(lines), kNoError) << lines.back().dump();
  }
  EXPECT_EQ(refusal({copy, product, changed(time, "share", 0.5 + 2e-10)}),
            kNoError);
  EXPECT_TRUE(Says(refusal({time}),
                   "record.jsonl: the share of += bf16 is 0.5, but its seconds "
                   "and the ceilings give 0;"));
  // Impossible numbers.
  for (const Json& value : {Json(0), Json(-1), Json("nan"), Json("inf")}) {
    EXPECT_TRUE(Says(refusal({changed(time, "seconds", value)}), "\"seconds\""))
        << value;
    EXPECT_TRUE(Says(refusal({changed(copy, "value", value)}), "\"value\""))
        << value;
  }
  EXPECT_TRUE(Says(refusal({changed(CheckLine(), "utilisation", -1)}),
                   "jsonl: \"utilisation\" of kind \"check\" cannot be -1"));
  // The same finding twice.
  EXPECT_TRUE(
      Says(refusal({copy, product, time, time}),
           "record.jsonl: there are two lines of kind \"time\" about += "
           "in bf16"));
  const auto operation = [](bool passed, const char* precision) {
    return Json{{"kind", "operation"},        {"name", "gemm"},
                {"precision", precision},     {"sources", "x"},
                {"passed", passed},           {"cases", 3},
                {"failures", passed ? 0 : 1}, {"bound", "x/1"},
                {"utilisation", 0.5},         {"text", ""}};
  };
  EXPECT_EQ(refusal({operation(true, "fp32"), operation(true, "bf16")}),
            kNoError);
  EXPECT_TRUE(Says(refusal({operation(true, "fp32"), operation(false, "fp32")}),
                   "two lines", "gemm in fp32"));
  // A stage that passed although its line did not; in `bench` it may.
  const auto stage = [](const char* outcome) {
    return Json{
        {"kind", "stage"}, {"name", "x"}, {"outcome", outcome}, {"text", ""}};
  };
  const Json other_bits = changed(
      changed(CheckLine(), "name", "bits of gemm fp32"), "passed", false);
  for (const Json& line : {operation(false, "fp32"), other_bits}) {
    EXPECT_TRUE(Says(refusal({line, stage("passed")}),
                     "record.jsonl: stage \"x\" cannot have passed"));
    for (const char* outcome : {"failed", "not run"}) {
      EXPECT_EQ(refusal({line, stage(outcome), stage("passed")}), kNoError);
    }
  }
  EXPECT_EQ(refusal({changed(CheckLine(), "passed", false), stage("passed")}),
            kNoError);
}

// From a clock that runs ahead, the record would be the latest for ever.
TEST_F(GpuRecordFile, RefusesADayThatIsToCome) {
  const auto refusal = [&](std::time_t time) {
    Write({RunLine(),
           {{"kind", "facts"},
            {"model", "H100"},
            {"architecture", "sm_90"},
            {"libraries", "x"},
            {"memory_bytes", 1},
            {"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(time))}},
           EndLine()});
    return MessageOf<DataError>([&] { (void)ReadGpuRecord(path_); });
  };
  constexpr std::time_t kDay = 24 * 60 * 60;
  const std::time_t now = std::time(nullptr);
  for (const int days : {-400, 0, 1}) {
    EXPECT_EQ(refusal(now + days * kDay), kNoError) << days;
  }
  for (const int days : {3, 400}) {
    EXPECT_TRUE(Says(refusal(now + days * kDay), "record.jsonl: ", "clock"))
        << days;
  }
}

TEST_F(GpuRecordFile, RefusesTimesOfASimulatedDevice) {
  const Json stage = {{"kind", "stage"},
                      {"name", "x"},
                      {"outcome", "passed"},
                      {"text", ""},
                      {"seconds", 1.5}};
  Write({RunLine("simulated"), stage, EndLine()});
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { (void)ReadGpuRecord(path_); }),
                   "record.jsonl: a simulated device has no \"seconds\""));
  Write({RunLine("cuda"), stage, EndLine()});
  EXPECT_EQ(ReadGpuRecord(path_).lines[1], stage);
}

TEST_F(GpuRecordFile, RefusesAnotherVersion) {
  Json run = RunLine();
  run["version"] = kGpuRecordVersion + 1;
  Write({run, EndLine()});
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { (void)ReadGpuRecord(path_); }),
                   "record.jsonl: the record is of version 2, and this "));
}

// However much is written, the record stays below its limit and ends properly.
// The lines are as long as possible, since each waits for the disk: control
// characters take six bytes.
TEST_F(GpuRecordFile, StaysBelowItsLimit) {
  const std::string most(2 * kMaxGpuTextBytes, '\1');
  Json line = {{"kind", "operation"}, {"name", most},   {"precision", most},
               {"sources", most},     {"passed", true}, {"cases", 1},
               {"failures", 0},       {"bound", most},  {"utilisation", 0.25},
               {"text", most}};
  GpuRecordWriter writer(path_);
  writer.Write(RunLine());
  const auto written = [&] {
    return static_cast<int64_t>(fs::file_size(path_));
  };
  int64_t lines = 0, longest = 0;
  const std::string text = MessageOf<DataError>([&] {
    for (;; ++lines) {
      const int64_t before = written();
      line["name"] = std::to_string(lines) + most;
      writer.Write(line);
      longest = std::max(longest, written() - before);
    }
  });
  EXPECT_TRUE(Says(text, "full"));
  // It is full no earlier than necessary: a MiB is reserved for the last lines.
  EXPECT_GT(written() + longest + (1 << 20), kMaxGpuRecordBytes);
  EXPECT_LE(written() + (1 << 20), kMaxGpuRecordBytes);
  writer.Write(EndLine());
  EXPECT_LE(written(), kMaxGpuRecordBytes);
  const GpuRecord record = ReadGpuRecord(path_);
  EXPECT_EQ(record.All("operation").size(), static_cast<size_t>(lines));
  EXPECT_TRUE(record.All("operation")[0]["text"].get<std::string>().ends_with(
      "\1 [cut]"));
}

}  // namespace
}  // namespace softmoe::golden

// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/task_report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

using nlohmann::json;

const AnsweringModel kModel{.config_hash = "c0ffee",
                            .tokenizer_sha256 = "7e57",
                            .step = 12,
                            .tau = 1.5,
                            .temperature = 1,
                            .device = "v3"};

// Two items: the first right by acc alone, the second right by all.
std::vector<ScoredTask> Tasks() {
  ScoredTask task{.task = {.name = "piqa",
                           .file = "data/valid.jsonl",
                           .sha256 = "ab",
                           .items = {{"c", {"x", "yyy"}, 0, {{"goal", "g"}}},
                                     {"é", {"y", "x"}, 0, {{"goal", "é"}}}}},
                  .scores = {},
                  .cut_contexts = 3,
                  .cut_continuations = 1};
  task.scores = {ScoreItem(task.task.items[0], {{-2, 1}, {-3, 3, true}}),
                 ScoreItem(task.task.items[1], {{-0.125, 1}, {-4, 1}})};
  return {task};
}

TEST(TaskReport, ShowsPercentWithErrorsAndWhatIsMissing) {
  EXPECT_TRUE(Says(TaskTable(Tasks()), "acc_tokens", "100.00 +- 0.00",
                   "50.00 +- 50.00", "2 of the 1838 items of the validation",
                   "3 requests were longer than the window and lost their "
                   "beginning; in 1 of them the choice"));
  std::vector<ScoredTask> tasks = Tasks();
  tasks[0].cut_contexts = 0;
  EXPECT_FALSE(Says(TaskTable(tasks), "requests were longer"));
}

TEST(TaskReport, HasResultsInTheHarnesssForm) {
  const std::string text = TaskResultsJson(kModel, Tasks());
  EXPECT_TRUE(text.starts_with("{\n  \"results\": {\n    \"piqa\": {\n"));
  const json results = json::parse(text);
  EXPECT_EQ(results.at("results").at("piqa").at("acc,none"), 1.0);
  EXPECT_EQ(results.at("results").at("piqa").at("acc_norm,none"), 0.5);
  EXPECT_EQ(results.at("results").at("piqa").at("acc_norm_stderr,none"), 0.5);
  EXPECT_EQ(results.at("n-samples").at("piqa"),
            (json{{"original", 1838}, {"effective", 2}}));
  EXPECT_EQ(results.at("n-shot").at("piqa"), 0);
  EXPECT_EQ(results.at("versions").at("piqa"), 1.0);
  for (const char* name : kTaskMeasureNames) {
    EXPECT_EQ(results.at("higher_is_better").at("piqa").at(name), true);
  }
  EXPECT_EQ(results.at("config").at("model_args"),
            (json{{"config_hash", "c0ffee"},
                  {"tokenizer_sha256", "7e57"},
                  {"step", 12},
                  {"tau", 1.5},
                  {"temperature", 1}}));
  EXPECT_EQ(results.at("files").at("piqa"), (json{{"file", "data/valid.jsonl"},
                                                  {"sha256", "ab"},
                                                  {"split", "validation"},
                                                  {"cut_contexts", 3},
                                                  {"cut_continuations", 1}}));
  std::vector<ScoredTask> one = Tasks();
  // JSON texts are UTF-8, but paths may be any bytes.
  one[0].task.file = "caf\xE9/valid.jsonl";
  EXPECT_EQ(json::parse(TaskResultsJson(kModel, one))
                .at("files")
                .at("piqa")
                .at("file"),
            "caf\uFFFD/valid.jsonl");
  one[0].task.items.pop_back();
  one[0].scores.pop_back();
  EXPECT_EQ(json::parse(TaskResultsJson(kModel, one))
                .at("results")
                .at("piqa")
                .at("acc_stderr,none"),
            "N/A");
}

TEST(TaskReport, HasASampleALine) {
  const std::string lines = TaskSamples(Tasks()[0]);
  const json first = json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first.at("doc_id"), 0);
  EXPECT_EQ(first.at("doc"), (json{{"goal", "g"}}));
  EXPECT_EQ(first.at("target"), "0");
  EXPECT_EQ(first.at("arguments").at("gen_args_1"),
            (json{{"arg_0", "c"}, {"arg_1", " yyy"}}));
  EXPECT_EQ(first.at("resps").dump(),
            R"([[["-2.0","False"]],[["-3.0","True"]]])");
  EXPECT_EQ(first.at("filtered_resps").dump(),
            R"([["-2.0","False"],["-3.0","True"]])");
  EXPECT_EQ(first.at("acc"), 1.0);
  EXPECT_EQ(first.at("acc_norm"), 0.0);
  EXPECT_EQ(first.at("acc_bytes"), 0.0);
  EXPECT_EQ(first.at("acc_tokens"), 0.0);
  const json second = json::parse(lines.substr(lines.find('\n') + 1));
  for (const char* name : kTaskMeasureNames) EXPECT_EQ(second.at(name), 1.0);
  EXPECT_EQ(first.at("doc_hash"), Sha256Hex("{\n  \"goal\": \"g\"\n}"));
  EXPECT_EQ(first.at("prompt_hash"), Sha256Hex("c"));
  EXPECT_TRUE(Says(lines, "é"));
}

TEST(TaskReport, IsWrittenWhole) {
  const std::filesystem::path folder = FreshFolder("report") / "out";
  // Files of an earlier model, and somebody's own.
  WriteTaskReport(kModel, Tasks(), folder);
  WriteFileAtomically(folder / "samples_hellaswag.jsonl", "{}\n");
  WriteFileAtomically(folder / "notes.txt", "mine\n");
  WriteTaskReport(kModel, Tasks(), folder);
  EXPECT_EQ(FilesIn(folder),
            (std::vector<std::string>{"notes.txt", "results.json",
                                      "samples_piqa.jsonl"}));
  EXPECT_EQ(ReadWholeFile(folder / "results.json"),
            TaskResultsJson(kModel, Tasks()));
  EXPECT_EQ(ReadWholeFile(folder / "samples_piqa.jsonl"),
            TaskSamples(Tasks()[0]));

  {
    const FullDisk full(100);
    EXPECT_THROW(WriteTaskReport(kModel, Tasks(), folder), EnvironmentError);
  }
  // Once there is room: the same bytes.
  WriteTaskReport(kModel, Tasks(), folder);
  EXPECT_EQ(ReadWholeFile(folder / "results.json"),
            TaskResultsJson(kModel, Tasks()));
}

// What is left, samples included, belongs to a report, which can be replaced.
TEST(TaskReport, InterruptedIsWrittenAgain) {
  const std::filesystem::path folder = FreshFolder("report_interrupted");
  WriteTaskReport(kModel, Tasks(), folder);
  std::vector<ScoredTask> more(2, Tasks()[0]);
  more[1].task.name = "hellaswag";
  // A folder in place of its samples, which no file can replace.
  const std::filesystem::path blocked = folder / "samples_hellaswag.jsonl";
  std::filesystem::create_directories(blocked / "full");
  EXPECT_THROW(WriteTaskReport(kModel, more, folder), EnvironmentError);
  EXPECT_TRUE(std::filesystem::exists(folder / "samples_piqa.jsonl"));
  std::filesystem::remove_all(blocked);
  WriteTaskReport(kModel, more, folder);
  EXPECT_EQ(FilesIn(folder),
            (std::vector<std::string>{"results.json", "samples_hellaswag.jsonl",
                                      "samples_piqa.jsonl"}));
}

// Neither the check before asking nor the writing deletes it.
TEST(TaskReport, KeepsWhatItWouldNotReplace) {
  const std::filesystem::path folder = FreshFolder("report_kept");
  const auto expect_refusal = [&](const std::string& message) {
    const std::vector<std::string> files = FilesIn(folder);
    const std::vector<TaskItems> asked = {Tasks()[0].task};
    EXPECT_EQ(MessageOf<ConfigError>(
                  [&] { RequireReplaceableReport(folder, asked); }),
              message);
    EXPECT_EQ(MessageOf<ConfigError>(
                  [&] { WriteTaskReport(kModel, Tasks(), folder); }),
              message);
    EXPECT_EQ(FilesIn(folder), files);
  };
  const std::string no_report =
      ": already exists and does not belong to a report on tasks; give another "
      "--out, or move it away";
  const std::filesystem::path results = folder / "results.json";
  // Files of the harness, of another program, and somebody's own.
  for (const char* other :
       {R"({"results": {"piqa": {}}, "config": {"model": "hf"}})",
        R"({"config": {"model": "softmoe"}, "files": ["piqa"]})",
        R"({"config": {"model": "hf"}, "files": {"piqa": {}}})", "[]", "{}",
        "notes"}) {
    WriteFileAtomically(results, other);
    expect_refusal(results.string() + no_report);
  }
  std::filesystem::remove(results);
  // Samples of the harness, of a task that is not asked, and of one that is.
  for (const char* name : {"samples_hellaswag.jsonl", "samples_piqa.jsonl"}) {
    WriteFileAtomically(folder / name, "{}\n");
    expect_refusal((folder / name).string() + no_report);
    std::filesystem::remove(folder / name);
  }

  std::vector<ScoredTask> three(3, Tasks()[0]);
  three[1].task.name = "hellaswag";
  three[2].task.name = "arc_easy";
  WriteTaskReport(kModel, three, folder);
  expect_refusal(results.string() +
                 ": holds answers to arc_easy, hellaswag, which would be lost; "
                 "ask all tasks at once, or give another --out");
  // A report on more tasks replaces one on fewer.
  std::filesystem::remove_all(folder);
  WriteTaskReport(kModel, Tasks(), folder);
  WriteTaskReport(kModel, three, folder);
  EXPECT_EQ(ReadWholeFile(results), TaskResultsJson(kModel, three));
}

}  // namespace
}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
//
// Prompts are compared with the harness's own in
// property_tests/tasks_oracle_test.cc; here are forms, places and bad files.
#include "trainer/tasks/task_items.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;

constexpr char kPiqa[] = R"({"goal": "g", "sol1": "a", "sol2": " b "})";
constexpr char kHellaSwag[] =
    R"({"activity_label": "A", "ctx_a": "b.", "ctx_b": "THE c",)"
    R"( "endings": ["w", "x", "y", "z"], "label": 3})";
constexpr char kArc[] =
    R"({"id": "i", "question": {"stem": "q", "choices": [)"
    R"({"text": "a", "label": "1"}, {"text": "b", "label": "2"}]},)"
    R"( "answerKey": "2"})";

class Items : public testing::Test {
 protected:
  const fs::path folder_ = FreshFolder("items");

  fs::path Write(const std::string& name, const std::string& content) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << content;
    return folder_ / name;
  }
  TaskItems Read(const std::string& task, const std::string& content) const {
    return ReadTaskItems({task, Write(task + ".jsonl", content)});
  }
  // What is said of a file whose second line is bad.
  std::string Refusal(const std::string& task, const std::string& good,
                      const std::string& bad) const {
    const std::string message =
        MessageOf<DataError>([&] { Read(task, good + "\n" + bad + "\n"); });
    EXPECT_TRUE(
        Says(message, "/" + task + ".jsonl:2: ", "; take the authors'"));
    return message;
  }
};

TEST_F(Items, OfBothFormsAreTheSame) {
  Write("piqa-labels.lst", "1\n");
  const TaskItems piqa = Read("piqa", kPiqa);
  const TaskItems piqa_hub =
      Read("piqa", Replaced(kPiqa, "}", R"(, "label": 1})"));
  ASSERT_EQ(piqa.items.size(), 1u);
  EXPECT_EQ(piqa.items[0].context, "Question: g\nAnswer:");
  EXPECT_EQ(piqa.items[0].choices, (std::vector<std::string>{"a", " b "}));
  EXPECT_EQ(piqa.items[0].gold, 1);
  EXPECT_EQ(piqa.sha256, Sha256Hex(std::string(kPiqa) + "1\n"));
  EXPECT_EQ(piqa.items[0].document.dump(), piqa_hub.items[0].document.dump());
  EXPECT_EQ(Continuation(piqa.items[0].choices[1]), "  b ");

  const TaskItem arc = Read("arc_easy", kArc).items[0];
  const TaskItem arc_hub =
      Read("arc_easy",
           R"({"id": "i", "question": "q", "choices": {"text": ["a", "b"],)"
           R"( "label": ["1", "2"]}, "answerKey": "2"})")
          .items[0];
  EXPECT_EQ(arc.gold, 1);
  EXPECT_EQ(arc.context, arc_hub.context);
  EXPECT_EQ(arc.choices, arc_hub.choices);
  EXPECT_EQ(arc.document.dump(), arc_hub.document.dump());

  const TaskItem number = Read("hellaswag", kHellaSwag).items[0];
  const TaskItem text =
      Read("hellaswag", Replaced(kHellaSwag, ": 3", R"(: "3")")).items[0];
  EXPECT_EQ(number.context, "A: b. The c");
  EXPECT_EQ(number.gold, 3);
  EXPECT_EQ(number.document.dump(), text.document.dump());
}

TEST_F(Items, MayEndWithoutALineEndAndHaveBlankLines) {
  const std::string line(kHellaSwag);
  EXPECT_EQ(Read("hellaswag", line).items.size(), 1u);
  EXPECT_EQ(Read("hellaswag", line + "\r\n\n" + line + "\n").items.size(), 2u);
}

TEST_F(Items, AreRefusedWithTheirLineAndARemedy) {
  const std::string arc(kArc), hellaswag(kHellaSwag);
  const std::string piqa = Replaced(kPiqa, "}", R"(, "label": 1})");
  EXPECT_TRUE(Says(Refusal("piqa", piqa, "{"), "not a JSON object"));
  EXPECT_TRUE(Says(Refusal("piqa", piqa, "[1]"), "not a JSON object"));
  EXPECT_TRUE(Says(Refusal("piqa", piqa, "{\"goal\": \"\xFF\"}"), "UTF-8"));
  EXPECT_TRUE(Says(Refusal("piqa", piqa, kPiqa), "no \"label\""));
  EXPECT_TRUE(Says(Refusal("piqa", piqa, Replaced(piqa, ": 1", ": 2")),
                   "label 2, but the 2 choices"));
  EXPECT_TRUE(Says(Refusal("piqa", piqa, Replaced(piqa, ": 1", ": -1")),
                   "label -1, but the 2 choices"));
  EXPECT_TRUE(Says(Refusal("piqa", piqa, Replaced(piqa, "\"a\"", "7")),
                   "\"sol1\" is number, not a string"));
  EXPECT_TRUE(
      Says(Refusal("piqa", piqa, Replaced(piqa, "\"a\"", "\"\\u0000\"")),
           "\"sol1\" has a NUL"));
  EXPECT_TRUE(Says(Refusal("hellaswag", hellaswag,
                           Replaced(hellaswag, R"(, "label": 3)", "")),
                   "no \"label\""));
  EXPECT_TRUE(Says(
      Refusal("hellaswag", hellaswag, Replaced(hellaswag, ": 3", R"(: "")")),
      "test split"));
  EXPECT_TRUE(Says(
      Refusal("hellaswag", hellaswag, Replaced(hellaswag, ": 3", R"(: "x")")),
      "\"x\", not a number"));
  EXPECT_TRUE(
      Says(Refusal("hellaswag", hellaswag,
                   Replaced(hellaswag, R"(["w", "x", "y", "z"])", "[\"w\"]")),
           "fewer than two choices (1)"));
  EXPECT_TRUE(
      Says(Refusal("hellaswag", hellaswag,
                   Replaced(hellaswag, R"(["w", "x", "y", "z"])", "{}")),
           "\"endings\" is object, not a list"));
  EXPECT_TRUE(Says(
      Refusal("arc_easy", arc,
              Replaced(arc, "\"answerKey\": \"2\"", "\"answerKey\": \"B\"")),
      "\"answerKey\" is \"B\", not one of the labels 1, 2"));
  EXPECT_TRUE(Says(Refusal("arc_easy", arc, Replaced(arc, "stem", "stern")),
                   "no \"stem\""));
  EXPECT_TRUE(
      Says(Refusal("arc_easy", arc,
                   R"({"question": "q", "choices": {"text": ["a", "b"],)"
                   R"( "label": ["A"]}, "answerKey": "A"})"),
           "1 labels of 2 choices"));
}

TEST_F(Items, MayHaveAnEmptyChoice) {
  const TaskItems task =
      Read("hellaswag", Replaced(kHellaSwag, "\"w\"", "\" [title] \""));
  EXPECT_EQ(task.items[0].choices[0], "");
}

TEST_F(Items, NeedAsManyLabels) {
  const std::string two = std::string(kPiqa) + "\n" + kPiqa + "\n";
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { Read("piqa", two); }),
                   "piqa-labels.lst"));
  for (const char* labels : {"0\n", "0\n1\n1\n"}) {
    Write("piqa-labels.lst", labels);
    EXPECT_TRUE(Says(MessageOf<DataError>([&] { Read("piqa", two); }),
                     "has 2 items", "labels"));
  }
  Write("piqa-labels.lst", "0\n2\n");
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { Read("piqa", two); }),
                   "piqa-labels.lst:2: the label is \"2\""));
  Write("piqa-labels.lst", " 0\r\n1\t");
  EXPECT_EQ(Read("piqa", two).items[1].gold, 1);
}

// Nobody knows which of two labels is right.
TEST_F(Items, HaveOneLabelEach) {
  const std::string own = Replaced(kPiqa, "}", R"(, "label": 0})");
  Write("piqa-labels.lst", "1\n1\n");
  EXPECT_TRUE(Says(Refusal("piqa", kPiqa, own), "\"label\" is not 1"));
  const std::string same = std::string(kPiqa) + "\n" + own + "\n";
  Write("piqa-labels.lst", "1\n0\n");
  EXPECT_EQ(Read("piqa", same).items[1].gold, 0);
  Write("piqa_labels.lst", "1\n0\n");
  EXPECT_EQ(Read("piqa", same).items[0].gold, 1);
  Write("piqa_labels.lst", "0\n0\n");
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { Read("piqa", same); }),
                   "piqa-labels.lst and ", "piqa_labels.lst differ"));
}

TEST_F(Items, AreNotNone) {
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { Read("arc_easy", "\n \n"); }),
                   "no items"));
  EXPECT_THROW(ReadTaskItems({"arc_easy", folder_ / "none.jsonl"}),
               EnvironmentError);
  EXPECT_THROW(ReadTaskItems({"arc_easy", folder_}), EnvironmentError);
}

TEST_F(Items, SayIfTheyArePartOfASplit) {
  TaskItems task;
  task.name = "piqa";
  task.items.resize(200);
  EXPECT_EQ(PartText(task),
            "piqa: 200 of the 1838 items of the validation split");
  task.items.resize(1838);
  EXPECT_EQ(PartText(task), "");
  std::vector<int64_t> published;
  for (const TaskSplit& split : TaskSplits()) {
    published.push_back(split.num_items);
  }
  EXPECT_EQ(published, (std::vector<int64_t>{1838, 10042, 2376, 570, 2251}));
}

TEST_F(Items, AreFoundUnderTheAuthorsNames) {
  const fs::path piqa = Write("piqa/valid.jsonl", "");
  const fs::path hellaswag = Write("hellaswag_val.jsonl", "");
  const fs::path test = Write("ARC-Easy/ARC-Easy-Test.jsonl", "");
  const fs::path dev = Write("arc_easy_validation.jsonl", "");
  const auto files =
      FindTaskFiles({"arc_easy", "piqa", "hellaswag"}, folder_.string());
  std::vector<std::pair<std::string, fs::path>> found;
  for (const TaskFile& file : files) found.emplace_back(file.name, file.items);
  EXPECT_EQ(found, (std::vector<std::pair<std::string, fs::path>>{
                       {"piqa", piqa},
                       {"hellaswag", hellaswag},
                       {"arc_easy", test},
                       {"arc_easy_validation", dev}}));
  // A file given by name, wherever it is: then arc_easy is only that split.
  const auto one = FindTaskFiles({"arc_easy=" + dev.string()}, "");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].items, dev);
  EXPECT_TRUE(FindTaskFiles({}, "").empty());
}

TEST_F(Items, ThatAreNotFoundAreSaidWithTheRemedy) {
  const auto find = [&](const std::vector<std::string>& wanted) {
    FindTaskFiles(wanted, folder_.string());
  };
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { find({"hellaswag"}); }),
                   folder_.string(), "hellaswag_val.jsonl", "github.com",
                   "--task hellaswag=FILE"));
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { find({"hellswag"}); }),
                   "no task 'hellswag'", "'hellaswag'"));
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { FindTaskFiles({"piqa"}, ""); }),
                   "--task-files"));
  Write("valid.jsonl", "");
  Write("piqa/valid.jsonl", "");
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { find({"piqa"}); }),
                   "both are items of piqa"));
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] {
                     find({"piqa=a", "piqa=b"});
                   }),
                   "piqa twice"));
}

}  // namespace
}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
//
// Zero-shot tasks against golden/oracles/tasks.json: the results of
// lm-evaluation-harness itself for the same made-up items, with a tokenizer
// whose pieces cross spaces and a model whose log-likelihoods are multiples of
// 1/8; and what Python's str does to every character.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/testing/utf8_test_util.h"
#include "trainer/corpora/python_text.h"
#include "trainer/tasks/requests.h"
#include "trainer/tasks/task_items.h"
#include "trainer/tasks/task_report.h"
#include "trainer/tasks/task_scores.h"

namespace softmoe::property_tests {
namespace {

using nlohmann::json;
using trainer::TaskItem;
using trainer::TaskMeasure;

json OpenOracle() {
  std::ifstream file(RunfilePath("golden/oracles/tasks.json"));
  return json::parse(file);
}

// Mirrors encode() in tasks_oracle.py: the longest piece that fits, or a byte.
std::vector<int32_t> Encode(const std::vector<std::string>& pieces,
                            std::string_view text) {
  std::vector<int32_t> ids;
  while (!text.empty()) {
    size_t length = 1;
    int32_t id = 2 + static_cast<uint8_t>(text[0]);
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (pieces[i].size() > length && text.starts_with(pieces[i])) {
        length = pieces[i].size();
        id = 258 + static_cast<int32_t>(i);
      }
    }
    ids.push_back(id);
    text.remove_prefix(length);
  }
  return ids;
}

// Mirrors made_up_likelihood() in tasks_oracle.py.
double LogLikelihood(const trainer::RequestTokens& request) {
  double sum = 0;
  const size_t last = request.ids.size() - 1;
  for (size_t t = last - static_cast<size_t>(request.scored); t < last; ++t) {
    sum += (request.ids[t] * 7 + request.ids[t + 1] * 13) % 31 + 1;
  }
  return -sum / 8;
}

// Holds the task's items, requests and scores to what the harness `recorded`.
void ExpectAsHarness(const std::string& name, const json& recorded,
                     const json& oracle) {
  SCOPED_TRACE(name);
  const trainer::TaskSplit& split = trainer::FindTaskSplit(name);
  const std::filesystem::path folder =
      RunfilePath("golden/oracles/tasks/" + split.places[0]).parent_path();
  const trainer::TaskItems task =
      trainer::ReadTaskItems(trainer::FindInFolder(split, folder, ""));
  ASSERT_EQ(task.items.size(), recorded.at("items").size());
  const std::vector<std::string> pieces = oracle.at("pieces");
  trainer::ScoredTask scored{.task = task, .scores = {}};
  for (size_t i = 0; i < task.items.size(); ++i) {
    const TaskItem& item = task.items[i];
    const json& theirs = recorded.at("items")[i];
    SCOPED_TRACE(theirs.dump());
    EXPECT_EQ(item.context, theirs.at("context"));
    EXPECT_EQ(item.gold, theirs.at("gold"));
    const trainer::ItemHashes hashes = trainer::HashItem(item);
    EXPECT_EQ(hashes.document, theirs.at("doc_hash"));
    EXPECT_EQ(hashes.prompt, theirs.at("prompt_hash"));
    EXPECT_EQ(hashes.target, theirs.at("target_hash"));

    ASSERT_EQ(item.choices.size(), theirs.at("continuations").size());
    std::vector<trainer::ChoiceScore> choices;
    for (size_t c = 0; c < item.choices.size(); ++c) {
      const std::string continuation = trainer::Continuation(item.choices[c]);
      EXPECT_EQ(continuation, theirs.at("continuations")[c]);
      const trainer::RequestTokens request = trainer::TokenizeRequest(
          item.context, continuation,
          [&](std::string_view text) { return Encode(pieces, text); },
          oracle.at("end_of_document"), oracle.at("window"));
      EXPECT_EQ(json(request.ids), theirs.at("ids")[c]);
      EXPECT_EQ(request.scored, theirs.at("scored")[c]);
      EXPECT_EQ(LogLikelihood(request), theirs.at("log_likelihoods")[c]);
      choices.push_back({LogLikelihood(request), request.scored});
    }
    scored.scores.push_back(trainer::ScoreItem(item, choices));
    for (const TaskMeasure measure :
         {TaskMeasure::kAcc, TaskMeasure::kAccNorm, TaskMeasure::kAccBytes}) {
      const auto m = static_cast<size_t>(measure);
      EXPECT_EQ(scored.scores.back().answers[m] == item.gold,
                theirs.at(trainer::kTaskMeasureNames[m]) == 1);
    }
  }

  const trainer::TaskAccuracy accuracy = trainer::Accuracies({&scored, 1})[0];
  for (const TaskMeasure measure :
       {TaskMeasure::kAcc, TaskMeasure::kAccNorm, TaskMeasure::kAccBytes}) {
    const std::string name =
        trainer::kTaskMeasureNames[static_cast<size_t>(measure)];
    const json& theirs = recorded.at("accuracies");
    EXPECT_EQ(accuracy.Mean(measure), theirs.at(name));
    // They add 20 squares: 25 roundings, whose error the root halves.
    EXPECT_NEAR(accuracy.StandardError(measure), theirs.at(name + "_stderr"),
                13 * 2.3e-16);
  }
}

TEST(TasksOracle, AsksAndScoresAsTheHarness) {
  const json oracle = OpenOracle();
  for (const auto& [name, recorded] : oracle.at("tasks").items()) {
    ExpectAsHarness(name, recorded, oracle);
  }
}

// All splits of a task have names that begin with the task's.
TEST(TasksOracle, HasEveryTask) {
  const json tasks = OpenOracle().at("tasks");
  for (const trainer::TaskSplit& split : trainer::TaskSplits()) {
    const auto is_of = [&](const auto& task) {
      return split.name.starts_with(task.key());
    };
    const auto all = tasks.items();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), is_of))
        << "trainer/tasks/task_items.cc has " << split.name
        << ", golden/oracles/tasks.json lacks it: record it with "
           "tasks_oracle.py there";
  }
}

// The hash of what `method` gives for every code point, as
// hash_over_characters() in tasks_oracle.py.
template <typename Method>
std::string HashOverCharacters(const Method& method) {
  const std::string sigma = "\u03A3";
  Sha256 hash;
  for (uint32_t point = 1; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    const std::string c = Utf8(point);
    for (const std::string& text : {c, "x" + c, c + c, "a" + c + sigma,
                                    "a" + sigma + c, "a" + sigma + c + "a"}) {
      hash.Update(std::string(method(text)) + "\n");
    }
  }
  return Sha256Hex(hash.Finish());
}

TEST(PythonText, TreatsEveryCharacterAsPythonDoes) {
  const json oracle = OpenOracle();
  EXPECT_EQ(HashOverCharacters(trainer::Capitalize), oracle.at("capitalize"));
  EXPECT_EQ(HashOverCharacters(trainer::Strip), oracle.at("strip"));
}

}  // namespace
}  // namespace softmoe::property_tests

// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as the items of a task, and for PIQA as labels, too; items
// that are accepted can be asked, with bytes as tokens.
#include "core/fuzzing/fuzz_support.h"
#include "trainer/corpora/python_text.h"
#include "trainer/tasks/requests.h"
#include "trainer/tasks/task_items.h"
#include "trainer/tasks/task_report.h"

namespace softmoe::fuzz {
namespace {

void Ask(const trainer::TaskItem& item, int64_t window) {
  Require(item.choices.size() >= 2, "an item without a choice");
  Require(
      item.gold >= 0 && item.gold < static_cast<int64_t>(item.choices.size()),
      "an answer that is no choice");
  trainer::HashItem(item);
  for (const std::string& choice : item.choices) {
    Require(trainer::Strip(choice).size() <= choice.size(), "a longer choice");
    const trainer::RequestTokens request = trainer::TokenizeRequest(
        item.context, trainer::Continuation(choice),
        [](std::string_view text) {
          return std::vector<int32_t>(text.begin(), text.end());
        },
        -1, window);
    const auto size = static_cast<int64_t>(request.ids.size());
    Require(size <= window + 1, "more tokens than the window");
    Require(request.scored >= 1 && request.scored < size, "a wrong cut");
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  Choices choices(input);
  const trainer::TaskSplit& split = choices.Pick(trainer::TaskSplits());
  const auto window = static_cast<int64_t>(1 + choices.Below(64));
  const auto path = ScratchFolder() / "items.jsonl";
  WriteScratch(ScratchFolder() / "items-labels.lst", choices.Text(16));
  WriteScratch(path, choices.Rest());
  Accepts([&] {
    const trainer::TaskItems task = trainer::ReadTaskItems({split.name, path});
    Require(!task.items.empty(), "a task without items");
    for (const trainer::TaskItem& item : task.items) Ask(item, window);
    trainer::RequestLines(task);
  });
}

std::vector<std::string> Seeds() {
  // The split, the window, the length of the labels, the labels, the items.
  const auto seed = [](char split, const std::string& labels,
                       const std::string& items) {
    return std::string{split, 20, static_cast<char>(labels.size())} + labels +
           items;
  };
  const std::string hellaswag =
      R"({"ind": 4, "activity_label": "\u00df", "ctx_a": "A [x] b [title] c.",)"
      R"( "ctx_b": "\u03a3A\u03a3  d", "endings": ["w ", "[x] x", "", "z"],)"
      R"( "label": )";
  return {
      seed(0, "1\n", R"({"goal": "g", "sol1": " a", "sol2": "b "})"),
      seed(0, "", R"({"goal": "g", "sol1": "a", "sol2": "b", "label": 1})"),
      seed(1, "", hellaswag + "3}\n" + hellaswag + "\"0\"}"),
      seed(2, "",
           R"({"id": "i", "question": {"stem": "q", "choices": [{"text": "a",)"
           R"( "label": "A"}, {"text": "b", "label": "B"}]},)"
           R"( "answerKey": "B"})"),
      seed(3, "",
           R"({"id": "i", "question": "q", "choices": {"text": ["a", "b"],)"
           R"( "label": ["1", "2"]}, "answerKey": "1"})")};
}

}  // namespace softmoe::fuzz

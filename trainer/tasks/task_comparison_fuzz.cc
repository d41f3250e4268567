// SPDX-License-Identifier: Apache-2.0
//
// tasks.h5 with hostile contents, compared with a good one: what is accepted
// has as many items, and counts that fit them.
#include "core/fuzzing/fuzz_support.h"
#include "core/fuzzing/hdf5_hostile.h"
#include "trainer/tasks/task_comparison.h"
#include "trainer/tasks/task_report.h"

namespace softmoe::fuzz {
namespace {

namespace fs = std::filesystem;
using trainer::AnswerComparison;
using trainer::ScoredTask;
using trainer::TaskItem;

fs::path GoodFolder() {
  ScoredTask task{.task = {.name = "piqa",
                           .file = "valid.jsonl",
                           .sha256 = "feed",
                           .items = {{"c", {"x", "yy"}, 1, {{"goal", "c"}}},
                                     {"d", {"x", ""}, 0, {{"goal", "d"}}}}},
                  .scores = {}};
  for (const TaskItem& item : task.task.items) {
    task.scores.push_back(trainer::ScoreItem(item, {{-1, 1}, {-1.5, 2}}));
  }
  const fs::path folder = ScratchFolder() / "good";
  trainer::WriteTaskReport({}, {&task, 1}, folder);
  return folder;
}

}  // namespace

void FuzzOne(std::string_view input) {
  static const fs::path good = GoodFolder();
  static const HostileHdf5 hostile(good / trainer::kTaskScoresName);
  const fs::path folder = ScratchFolder() / "hostile";
  fs::create_directories(folder);
  if (!hostile.Write(folder / trainer::kTaskScoresName, Choices(input))) return;
  const bool accepted = Accepts([&] {
    for (const AnswerComparison& one : trainer::CompareAnswers(good, folder)) {
      const trainer::AnswerPairs& pairs = one.pairs;
      Require(pairs.num_items == 2, "other items than the good file's");
      Require(pairs.only_first <= one.first_correct &&
                  pairs.only_second <= one.second_correct &&
                  pairs.only_first + pairs.only_second <= one.other_answer &&
                  one.other_answer <= pairs.num_items,
              "counts of more items than there are");
      trainer::ComparisonTable({one});
    }
  });
  Require(accepted || !input.empty(), "the good file is refused");
}

std::vector<std::string> Seeds() { return HostileSeeds(); }

}  // namespace softmoe::fuzz

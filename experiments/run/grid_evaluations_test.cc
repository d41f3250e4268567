// SPDX-License-Identifier: Apache-2.0
//
// Evaluations that a grid asks for after training, zero-shot tasks among them,
// and the fate of the checkpoints.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/folder_lock.h"
#include "core/files/sha256.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "experiments/run/run_folder.h"
#include "experiments/run/run_grid.h"
#include "experiments/testing/grid_test_util.h"
#include "trainer/evaluation/evaluation.h"
#include "trainer/evaluation/final_evaluations.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/run_result_file.h"
#include "trainer/run/trainer.h"
#include "trainer/tasks/task_items.h"
#include "trainer/testing/trainer_test_util.h"
#include "trainer/tokens/prepare.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

class GridEvaluations : public GridProgram {
 protected:
  void SetUp() override {
    GridProgram::SetUp();
    WriteGrid(MicroGrid(5));
    // Only training uses these: evaluations have T = 1 and no noise.
    grid_ = Micro({"data.corpus=path:" + (folder_ / "text.txt").string(),
                   "router.temperature_end=2", "router.noise=logit_gauss",
                   "router.noise_amplitude=0.5"});
    all_ = {.inference_tau_factors = {0.5, 1, 2},
            .active_histogram = true,
            .router_health = true,
            .keep_checkpoint = false};
  }

  // Returns the outcome; lines_ holds what the user sees meanwhile.
  GridOutcome Run(const std::string& out,
                  const trainer::EvaluationPlan& evaluations) {
    for (GridRun& run : grid_.runs) run.evaluations = evaluations;
    GridRunOptions options = options_;
    options.folder = folder_ / out;
    for (size_t r = 0; r < grid_.runs.size(); ++r) {
      options.selected.push_back(r);
    }
    struct Capture {  // ends where RunGrid throws, too
      explicit Capture(std::string* lines) : lines(lines) {
        testing::internal::CaptureStderr();
      }
      ~Capture() { *lines = testing::internal::GetCapturedStderr(); }
      std::string* lines;
    } capture(&lines_);
    return RunGrid(grid_, options);
  }
  Strings Files(const std::string& out, size_t n) const {
    return FilesIn(folder_ / out / RunFolderName(grid_.runs[n]));
  }
  int Mentions(const std::string& text) const { return Count(lines_, text); }

  experiments::Grid grid_;
  trainer::EvaluationPlan all_;
  GridRunOptions options_;  // folder and selection are Run's
  std::string lines_;
};

TEST_F(GridEvaluations, AreMeasuredAndThenTheCheckpointsGo) {
  const GridOutcome outcome = Run("runs", all_);
  for (size_t n = 0; n < 3; ++n) {
    SCOPED_TRACE(n);
    EXPECT_EQ(Files("runs", n), (Strings{"metrics.jsonl", "result.h5"}));
    const trainer::RunResult& result = *outcome.runs[n].result;
    EXPECT_EQ(trainer::MissingEvaluations(all_, result), "");
    ASSERT_TRUE(result.final_evaluations.has_value());
    // The first row is sparse: it has no tau.
    EXPECT_EQ(result.final_evaluations->inference_tau.size(), n == 0 ? 0u : 3u);
    EXPECT_EQ(result.final_evaluations->router_health.size(), 2u);
  }
  Run("runs", all_);
  EXPECT_EQ(Mentions("was not measured"), 0) << lines_;
  EXPECT_EQ(Mentions("earlier"), 3) << lines_;
}

TEST_F(GridEvaluations, OfFinishedRunsTakeTheCheckpointsNotTheTraining) {
  const GridOutcome expected = Run("at once", all_);
  // The runs were trained without a list of evaluations.
  Run("later", {});
  const GridOutcome later = Run("later", all_);
  EXPECT_EQ(Mentions("step "), 0) << lines_;
  EXPECT_EQ(Mentions("was not measured"), 0) << lines_;
  for (size_t n = 0; n < 3; ++n) {
    SCOPED_TRACE(n);
    trainer::ExpectSameResult(*expected.runs[n].result, *later.runs[n].result);
    EXPECT_EQ(Files("later", n), (Strings{"metrics.jsonl", "result.h5"}));
  }
}

TEST_F(GridEvaluations, WhatCannotBeMeasuredAnyMoreIsSaidAndTheGridGoesOn) {
  const GridOutcome before =
      Run("runs", {.inference_tau_factors = {}, .keep_checkpoint = false});
  const GridOutcome outcome = Run("runs", all_);
  for (size_t n = 0; n < 3; ++n) {
    SCOPED_TRACE(n);
    EXPECT_EQ(outcome.runs[n].state, RunState::kFinished);
    trainer::ExpectSameResult(*before.runs[n].result, *outcome.runs[n].result);
    const std::string& id = grid_.runs[n].id;
    EXPECT_EQ(Mentions(id + (n == 0 ? " was not measured (router health): "
                                    : " was not measured (inference tau x0.5, "
                                      "x1, x2; router health): ")),
              1)
        << lines_;
  }
  EXPECT_EQ(Mentions("the checkpoint is gone; delete the result"), 3) << lines_;

  // The suggested remedy works.
  fs::remove(folder_ / "runs" / RunFolderName(grid_.runs[1]) / "result.h5");
  const GridOutcome again = Run("runs", all_);
  EXPECT_EQ(trainer::MissingEvaluations(all_, *again.runs[1].result), "");
  EXPECT_EQ(Mentions("was not measured"), 2) << lines_;
}

// Another process holds the second run, measures it and deletes its checkpoint
// while this one measures the others.
TEST_F(GridEvaluations, WhatAnotherProcessMeasuredCountsAsMeasured) {
  Run("at once", all_);
  Run("later", {});
  const auto path = [&](const std::string& out, size_t n, const char* name) {
    return folder_ / out / RunFolderName(grid_.runs[n]) / name;
  };
  auto held = std::make_unique<FolderLock>(path("later", 1, ""));
  std::thread other([&] {
    WaitFor(60, [&] {
      return !fs::exists(path("later", 2, trainer::kCheckpointName));
    });
    WriteFileAtomically(
        path("later", 1, trainer::kResultName),
        ReadWholeFile(path("at once", 1, trainer::kResultName)));
    fs::remove(path("later", 1, trainer::kCheckpointName));
    held.reset();
  });
  const GridOutcome outcome = Run("later", all_);
  other.join();
  EXPECT_EQ(Mentions("star-1.5 is held by"), 1) << lines_;
  EXPECT_EQ(Mentions("was not measured"), 0) << lines_;
  EXPECT_EQ(trainer::MissingEvaluations(all_, *outcome.runs[1].result), "");
}

class GridTasks : public GridEvaluations {
 protected:
  void SetUp() override {
    GridEvaluations::SetUp();
    options_.task_files = folder_ / "items";
    std::string piqa, hellaswag, arc;
    for (int i = 0; i < 40; ++i) {
      const std::string n = std::to_string(i);
      piqa += R"({"goal": "Count )" + n + R"(", "sol1": "up to )" + n +
              R"(.", "sol2": "down", "label": )" + std::to_string(i % 2) +
              "}\n";
      hellaswag +=
          R"({"activity_label": "Counting", "ctx_a": "One, )" + n +
          R"(.", "ctx_b": "then", "endings": ["two", "three", "four", )"
          R"("five"], "label": )" +
          std::to_string(i % 4) + "}\n";
      // Every third item has three choices.
      const bool four = i % 3 != 0;
      arc += R"({"question": "Which is )" + n +
             R"(?", "choices": {"text": ["a", "b", "c")" +
             (four ? R"(, "d"], "label": ["A", "B", "C", "D"]})"
                   : R"(], "label": ["A", "B", "C"]})") +
             R"(, "answerKey": "B"})" + "\n";
    }
    WriteFileAtomically(File("valid.jsonl"), piqa);
    WriteFileAtomically(File("hellaswag_val.jsonl"), hellaswag);
    WriteFileAtomically(File("ARC-Easy-Dev.jsonl"), arc);
    all_.tasks = {"hellaswag", "arc_easy_validation", "piqa"};
  }

  // Options for the same run outside the grid.
  trainer::RunOptions OptionsOf(const GridRun& run,
                                const std::string& out) const {
    trainer::PrepareOptions prepare;
    prepare.quiet = true;
    const auto corpus = trainer::PrepareCorpus(
        run.config.data, run.config.model.vocab_size, prepare);
    trainer::RunOptions options =
        trainer::QuietOptions(folder_ / out, corpus.prefix);
    options.task_files = options_.task_files;
    return options;
  }

  // A path in the folder of items.
  fs::path File(const std::string& name) const {
    fs::create_directories(options_.task_files);
    return folder_ / "items" / name;
  }

  // What `//:evaluate --task` would say of the run's checkpoint at `tau`.
  void ExpectWhatEvaluateSays(const std::string& run, std::optional<double> tau,
                              const std::vector<trainer::TaskResult>& got) {
    std::vector<trainer::TaskItems> items;
    for (const auto& file : trainer::FindTaskFiles(
             {"piqa", "hellaswag"}, options_.task_files.string())) {
      items.push_back(trainer::ReadTaskItems(file));
    }
    items.push_back(trainer::ReadTaskItems(
        {"arc_easy_validation", File("ARC-Easy-Dev.jsonl")}));
    trainer::EvaluationOptions evaluate;
    evaluate.folder = folder_ / run;
    evaluate.tau = tau;
    const trainer::TaskReport report = trainer::EvaluateTasks(evaluate, items);
    const auto accuracies = trainer::Accuracies(report.tasks);
    ASSERT_EQ(got.size(), accuracies.size());
    for (size_t t = 0; t < got.size(); ++t) {
      SCOPED_TRACE(accuracies[t].name);
      EXPECT_EQ(got[t].name, accuracies[t].name);
      EXPECT_EQ(got[t].right, accuracies[t].right);
      ASSERT_EQ(got[t].measures.size(), 4u);
      for (size_t m = 0; m < 4; ++m) {
        const auto measure = static_cast<trainer::TaskMeasure>(m);
        EXPECT_EQ(got[t].measures[m].correct, accuracies[t].correct[m]);
        EXPECT_EQ(got[t].measures[m].accuracy, accuracies[t].Mean(measure));
        EXPECT_EQ(got[t].measures[m].standard_error,
                  accuracies[t].StandardError(measure));
      }
    }
    // The answers by acc, item by item.
    for (size_t t = 0; t < report.tasks.size(); ++t) {
      const trainer::ScoredTask& task = report.tasks[t];
      EXPECT_EQ(got[t].sha256, Sha256OfFile(task.task.file));
      for (size_t i = 0; i < task.scores.size(); ++i) {
        EXPECT_EQ(got[t].right[i] & 1,
                  task.scores[i].answers[0] == task.task.items[i].gold);
      }
    }
  }
};

TEST_F(GridTasks, AreAskedWithEveryTau) {
  all_.keep_checkpoint = true;
  const GridOutcome outcome = Run("runs", all_);
  bool other_answers = false;
  for (size_t n = 0; n < 3; ++n) {
    SCOPED_TRACE(n);
    const trainer::RunResult& result = *outcome.runs[n].result;
    EXPECT_EQ(trainer::MissingEvaluations(all_, result), "");
    const auto& measured = *result.final_evaluations;
    const std::string run = "runs/" + RunFolderName(grid_.runs[n]);
    ExpectWhatEvaluateSays(run, {}, measured.tasks);
    ASSERT_EQ(measured.tasks.size(), 4u);
    EXPECT_EQ(measured.tasks[2].right.size(), 40u);
    EXPECT_EQ(measured.tasks[3].name, "arc_easy_validation_four_choices");
    EXPECT_EQ(measured.tasks[3].right.size(), 26u);
    for (const trainer::InferenceTau& at : measured.inference_tau) {
      SCOPED_TRACE(at.factor);
      ExpectWhatEvaluateSays(run, at.tau, at.tasks);
      for (size_t t = 0; t < at.tasks.size(); ++t) {
        other_answers |= at.tasks[t].right != measured.tasks[t].right;
      }
    }
  }
  // Otherwise another tau could not be told from that of training.
  EXPECT_TRUE(other_answers);
}

TEST_F(GridTasks, GiveTheSameBitsLaterAndWithAnyRanks) {
  all_.keep_checkpoint = true;
  const GridOutcome expected = Run("at once", all_);
  options_.ranks = 2;
  const GridOutcome ranks = Run("ranks", all_);
  options_.ranks = 1;
  trainer::EvaluationPlan less = all_;
  less.tasks = {"piqa"};
  Run("later", less);
  Run("later", all_);
  EXPECT_EQ(Mentions("step "), 0) << lines_;
  // A plan without earlier evaluations measures them again, beside new ones.
  trainer::EvaluationPlan more = all_;
  more.tasks.clear();
  more.inference_tau_factors = {3};
  const GridOutcome later = Run("later", more);
  for (size_t n = 0; n < 3; ++n) {
    SCOPED_TRACE(n);
    trainer::ExpectSameResult(*expected.runs[n].result, *ranks.runs[n].result);
    trainer::RunResult result = *later.runs[n].result;
    auto& at = result.final_evaluations->inference_tau;
    if (n > 0) {
      ASSERT_EQ(at.size(), 4u);
      EXPECT_EQ(at.back().tasks.size(), 4u);
      at.pop_back();
    }
    trainer::ExpectSameResult(*expected.runs[n].result, result);
  }
  // Without the items of the tasks it is refused before anything is measured.
  options_.task_files = "";
  more.inference_tau_factors = {4};
  EXPECT_TRUE(
      Says(MessageOf<EnvironmentError>([&] { Run("later", more); }),
           "the tasks arc_easy_validation, hellaswag, piqa were not given",
           "--task-files",
           "asks its tasks again: to avoid that, leave the new ones out"));
  EXPECT_EQ(lines_, "");
}

TEST_F(GridTasks, APartIsSaidAndAskedAgainWhenTheRestIsThere) {
  all_.keep_checkpoint = true;
  all_.tasks = {"piqa"};
  const GridOutcome whole = Run("whole", all_);
  const std::string items = ReadWholeFile(File("valid.jsonl"));
  size_t end = 0;
  for (int i = 0; i < 10; ++i) end = items.find('\n', end) + 1;
  WriteFileAtomically(File("valid.jsonl"), items.substr(0, end));
  const GridOutcome part = Run("runs", all_);
  EXPECT_EQ(Mentions("piqa: 10 of the 1838 items of the validation split"), 1)
      << lines_;
  EXPECT_EQ(part.runs[0].result->final_evaluations->tasks[0].right.size(), 10u);

  // One of the runs cannot be asked again.
  fs::remove(folder_ / "runs" / RunFolderName(grid_.runs[0]) /
             trainer::kCheckpointName);
  WriteFileAtomically(File("valid.jsonl"), items);
  const GridOutcome again = Run("runs", all_);
  EXPECT_EQ(Mentions("step "), 0) << lines_;
  EXPECT_EQ(Mentions("was not measured"), 1) << lines_;
  EXPECT_EQ(Mentions("was not measured (tasks piqa (other items)): "), 1)
      << lines_;
  for (size_t n = 0; n < 3; ++n) {
    SCOPED_TRACE(n);
    EXPECT_EQ(again.runs[n].state, RunState::kFinished);
    trainer::ExpectSameResult(*(n == 0 ? part : whole).runs[n].result,
                              *again.runs[n].result);
  }

  // Answers to a part do not replace answers to more items.
  WriteFileAtomically(File("valid.jsonl"), items.substr(0, end));
  trainer::ExpectSameResult(*whole.runs[1].result,
                            *Run("runs", all_).runs[1].result);

  // Without a folder of items nothing is asked again.
  options_.task_files = "";
  Run("runs", all_);
  EXPECT_EQ(Mentions("was not measured"), 0) << lines_;
}

// Not even if the run is asked again because something else is lacking.
TEST_F(GridTasks, APartReplacesNoAnswersToMoreWhateverElseIsLacking) {
  trainer::EvaluationPlan plan{.tasks = {"piqa"}};
  const GridOutcome whole = Run("runs", plan);
  trainer::RunOptions alone = OptionsOf(grid_.runs[2], "alone");
  alone.evaluations = plan;
  const trainer::RunResult asked =
      trainer::TrainRun(grid_.runs[2].config, alone);

  const std::string items = ReadWholeFile(File("valid.jsonl"));
  size_t end = 0;
  for (int i = 0; i < 5; ++i) end = items.find('\n', end) + 1;
  WriteFileAtomically(File("valid.jsonl"), items.substr(0, end));
  plan.router_health = true;
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { Run("runs", plan); }),
                   grid_.runs[0].id + ": has answers to 40 items of piqa",
                   "asking the 5 items of " + File("valid.jsonl").string(),
                   "give the whole file"));
  EXPECT_EQ(lines_, "");
  alone.evaluations = plan;
  const auto train = [&] {
    return trainer::TrainRun(grid_.runs[2].config, alone);
  };
  EXPECT_TRUE(Says(MessageOf<ConfigError>([&] { train(); }),
                   (alone.folder / trainer::kResultName).string() +
                       ": has answers to 40 items of piqa"));
  trainer::ExpectSameResult(
      asked, trainer::ReadRunResult(alone.folder / trainer::kResultName));

  WriteFileAtomically(File("valid.jsonl"), items);
  const GridOutcome again = Run("runs", plan);
  for (size_t n = 0; n < 3; ++n) {
    const auto& before = *whole.runs[n].result->final_evaluations;
    const auto& after = *again.runs[n].result->final_evaluations;
    EXPECT_EQ(after.tasks[0].right, before.tasks[0].right);
    EXPECT_FALSE(after.router_health.empty());
  }
  EXPECT_FALSE(train().final_evaluations->router_health.empty());
}

TEST_F(GridTasks, InterruptedAreAskedAgain) {
  const GridRun& run = grid_.runs[2];
  trainer::RunOptions options = OptionsOf(run, "whole");
  options.evaluations = all_;
  int calls = 0;
  options.on_evaluation = [&] { ++calls; };
  const trainer::RunResult whole = trainer::TrainRun(run.config, options);
  // Four balance groups, then batches of the tasks, at each of three tau.
  EXPECT_GT(calls, 3 * (4 + 3));
  options.folder = folder_ / "broken";
  for (const int at : {6, calls}) {
    calls = 0;
    options.on_evaluation = [&] {
      if (++calls == at) ::raise(SIGTERM);
    };
    EXPECT_THROW(trainer::TrainRun(run.config, options), StoppedError);
    EXPECT_FALSE(fs::exists(options.folder / trainer::kResultName));
  }
  options.on_evaluation = nullptr;
  trainer::ExpectSameResult(whole, trainer::TrainRun(run.config, options));
}

TEST_F(GridTasks, NeedTheirItemsBeforeAnythingIsTrained) {
  const auto refusal = [&]<typename Error>(Error*) {
    return MessageOf<Error>([&] { Run("runs", all_); });
  };
  EnvironmentError* const missing = nullptr;
  DataError* const damaged = nullptr;
  WriteFileAtomically(File("hellaswag_val.jsonl"), "{}\n");
  EXPECT_TRUE(Says(refusal(damaged), "hellaswag_val.jsonl:1: no "));
  fs::remove(File("hellaswag_val.jsonl"));
  EXPECT_TRUE(Says(refusal(missing), "no items of hellaswag",
                   "hellaswag_val.jsonl", "github.com", "`tasks`"));
  all_.tasks = {"piqa"};
  WriteFileAtomically(File("valid.jsonl"),
                      R"({"goal": "g", "sol1": "a", "sol2": "b", "label": 1})"
                      "\n");
  EXPECT_TRUE(Says(refusal(damaged), "valid.jsonl: a single item"));
  options_.task_files = "";
  EXPECT_TRUE(Says(refusal(missing), "the tasks piqa", "--task-files"));
  EXPECT_FALSE(fs::exists(folder_ / "runs"));

  // Runs that lack nothing, or that cannot be measured, need no items.
  all_.tasks.clear();
  Run("runs", all_);
  all_.tasks = {"piqa"};
  const GridOutcome outcome = Run("runs", all_);
  EXPECT_EQ(Mentions("was not measured (tasks piqa): "), 3) << lines_;
  EXPECT_EQ(outcome.runs[0].state, RunState::kFinished);
}

}  // namespace
}  // namespace softmoe::experiments

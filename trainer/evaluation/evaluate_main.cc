// SPDX-License-Identifier: Apache-2.0
//
// //:evaluate - validation loss and active experts of a trained model, or its
// accuracies on zero-shot tasks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/files/replacing.h"
#include "core/text/command_line.h"
#include "optimized/step.h"
#include "trainer/evaluation/evaluation.h"
#include "trainer/evaluation/routing_trace.h"
#include "trainer/tasks/requests.h"
#include "trainer/tasks/task_items.h"
#include "trainer/tasks/task_report.h"

namespace softmoe::trainer {
namespace {

constexpr char kDescription[] =
    "Measures the model of a finished or interrupted run on its held-out "
    "split: loss in nats per token, active experts per token and layer, how "
    "evenly the experts are loaded. With --task, on zero-shot tasks: which "
    "answers it finds likelier, as lm-evaluation-harness 0.4.13 asks.";

constexpr char kExamples[] = R"(
Examples:
  evaluate --run runs/train/tiny-0123456789abcdef
      the numbers of the tables: T = 1, noise off, tau as trained
  evaluate --run DIR --tau 1.8
      the inference ablation: another cutoff than in training
  evaluate --run DIR --data other/tokens --json
      the held-out split of other token files of the same vocabulary, which
      prepare_data makes with --tokenizer
  evaluate --run DIR --trace 8 --out OUT
      of the first eight held-out sequences, also the scores, soft weights and
      active experts of every token in every layer: OUT/trace.h5, plain HDF5
  evaluate --run DIR --task piqa,hellaswag,arc_easy --task-files DATA --out OUT
      accuracies, from the files of the tasks' authors in the folder DATA:
      valid.jsonl and valid-labels.lst of PIQA, hellaswag_val.jsonl,
      ARC-Easy-Test.jsonl and ARC-Easy-Dev.jsonl, each also in a folder of its
      task; OUT gets results.json and samples_TASK.jsonl in the harness's form
  evaluate --run DIR --task hellaswag=FILE,arc_easy_train=OTHER
      single files, also jsonl of the Hugging Face form
  evaluate --task piqa --task-files DATA --dump-requests OUT.jsonl
      what a model would be asked; needs no model

Exit codes: 0 done; 1 the loss is not finite; 2 usage, or a damaged file;
5 a file or the device is missing, or the device failed; 75 stopped by a signal.)";

constexpr char kAgain[] = "run the same command again";

struct Arguments {
  std::string run, data, task_files, dump, out;
  std::vector<std::string> tasks;
  int64_t traced = 0;
  bool json = false;
  EvaluationOptions options;  // those that the command line gives as they are
};

std::string SplitNames() {
  std::vector<std::string> names;
  for (const TaskSplit& split : TaskSplits()) names.push_back(split.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void AddOptions(CLI::App* app, Arguments* arguments) {
  app->footer(kExamples);
  app->add_option("--run", arguments->run,
                  "folder of the run: holds checkpoint.h5");
  CLI::Option* const task =
      app->add_option("--task", arguments->tasks,
                      fmt::format("{} (arc_easy: also its validation "
                                  "split), or NAME=FILE; several with commas",
                                  SplitNames()))
          ->delimiter(',');
  app->add_option("--task-files", arguments->task_files,
                  "folder of the tasks' items, as their authors name them")
      ->needs(task);
  CLI::Option* const dump_requests =
      app->add_option("--dump-requests", arguments->dump,
                      "write the requests of --task there, and ask no model")
          ->needs(task);
  CLI::Option* const to =
      app->add_option("--out", arguments->out,
                      "folder for the trace, or for what --task found [only "
                      "print that]. Answers to the same tasks are replaced; if "
                      "it holds answers to other tasks, nothing is asked")
          ->excludes(dump_requests);
  app->add_option("--tau", arguments->options.tau,
                  "cutoff in units of k_l/num_experts [as trained]");
  app->add_option("--temperature", arguments->options.temperature,
                  "temperature of the soft routers [1]");
  app->add_option("--data", arguments->data,
                  "prefix of .bin/.idx token files [those of the run]");
  CLI::Option* const sequences =
      app->add_option("--sequences", arguments->options.sequences,
                      "held-out sequences; 0: all [as configured]")
          ->check(CLI::Range(int64_t{0}, int64_t{1} << 40, "COUNT"))
          ->check(RefuseOctal)
          ->excludes(task);
  app->add_option("--trace", arguments->traced,
                  "evaluate this many held-out sequences, and write what "
                  "the routers do with each token to OUT/trace.h5")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40, "COUNT"))
      ->check(RefuseOctal)
      ->needs(to)
      ->excludes(sequences)
      ->excludes(task);
  app->add_flag("--json", arguments->json, "print one JSON object");
  app->add_option("--threads", arguments->options.runtime.threads,
                  "threads; 0: one per core [0]")
      ->check(CLI::Range(0, 1 << 12, "COUNT"))
      ->check(RefuseOctal);
  app->add_option("--isa", arguments->options.runtime.isa,
                  "instruction set, v3 or v4 [the best here]");
  app->add_option("--device", arguments->options.runtime.device,
                  "cpu, or cuda: device 0 [cpu]");
  // If no model is asked, options for a model make no sense.
  for (const char* of_a_model :
       {"--run", "--tau", "--temperature", "--data", "--sequences", "--trace",
        "--json", "--threads", "--isa", "--device"}) {
    dump_requests->excludes(app->get_option(of_a_model));
  }
}

void Print(const std::string& text) { std::fputs(text.c_str(), stdout); }

std::vector<TaskItems> ItemsOf(const Arguments& arguments) {
  std::vector<TaskItems> items;
  for (const TaskFile& file :
       FindTaskFiles(arguments.tasks, arguments.task_files)) {
    items.push_back(ReadTaskItems(file));
  }
  return items;
}

// The files that items may have been read from, labels included.
std::vector<std::filesystem::path> FilesRead(
    const std::vector<TaskItems>& items) {
  std::vector<std::filesystem::path> files;
  for (const TaskItems& task : items) {
    files.push_back(task.file);
    for (const char* end : {"-labels.lst", "_labels.lst"}) {
      files.push_back(task.file.parent_path() /
                      (task.file.stem().string() + end));
    }
  }
  return files;
}

void DumpRequests(const std::vector<TaskItems>& items,
                  const std::filesystem::path& path) {
  RefuseReplacing("--dump-requests", path, FilesRead(items));
  std::string lines;
  for (const TaskItems& asked : items) lines += RequestLines(asked);
  WriteFileAtomically(path, lines);
}

// The folder of --out. It is made before anything is evaluated, since that may
// fail, and goes again if nothing was written to it.
class OutFolder {
 public:
  explicit OutFolder(const std::filesystem::path& folder) {
    std::error_code unreadable;  // then making it reports it
    for (std::filesystem::path part = folder;
         part.has_relative_path() && !std::filesystem::exists(part, unreadable);
         part = part.parent_path()) {
      made_.push_back(part);
    }
    MakeFolder(folder);
  }
  ~OutFolder() {
    std::error_code not_empty;
    for (const auto& part : made_) std::filesystem::remove(part, not_empty);
  }
  OutFolder(const OutFolder&) = delete;
  OutFolder& operator=(const OutFolder&) = delete;

 private:
  std::vector<std::filesystem::path> made_;  // the innermost first
};

// Returns the options for a model. Throws ConfigError if something is missing
// or of no use.
EvaluationOptions OptionsOf(const Arguments& arguments) {
  if (arguments.run.empty()) {
    throw ConfigError(
        "--run is missing; give the folder of the run to measure (only "
        "--dump-requests needs none)");
  }
  EvaluationOptions options = arguments.options;
  options.folder = UserPath(arguments.run);
  if (!arguments.data.empty()) options.tokens = UserPath(arguments.data);
  const bool traces = arguments.traced > 0;
  if (!arguments.out.empty() && arguments.tasks.empty() && !traces) {
    throw ConfigError(
        "--out is for what --task or --trace finds; add one of them, or "
        "leave it out");
  }
  if (traces) {
    options.sequences = arguments.traced;
    options.trace = UserPath(arguments.out) / kTraceName;
  }
  return options;
}

void EvaluateRunHere(const EvaluationOptions& options, bool json) {
  const EvaluationReport report =
      optimized::WithDeviceErrors(kAgain, [&] { return EvaluateRun(options); });
  Print(json ? EvaluationJson(report) : EvaluationText(report));
}

void EvaluateTasksHere(const EvaluationOptions& options,
                       std::vector<TaskItems> items,
                       const Arguments& arguments) {
  if (!arguments.out.empty()) {
    const std::filesystem::path folder = UserPath(arguments.out);
    const std::vector<std::filesystem::path> read = FilesRead(items);
    for (const std::filesystem::path& path : TaskReportFiles(folder)) {
      RefuseReplacing("--out", path, read);
    }
    RequireReplaceableReport(folder, items);
  }
  const TaskReport report = optimized::WithDeviceErrors(
      kAgain, [&] { return EvaluateTasks(options, std::move(items)); });
  if (!arguments.out.empty()) {
    WriteTaskReport(Answering(report), report.tasks, UserPath(arguments.out));
  }
  Print(arguments.json ? TaskResultsJson(Answering(report), report.tasks)
                       : TaskText(report));
}

ExitCode Run(const Arguments& arguments) {
  std::vector<TaskItems> items = ItemsOf(arguments);
  if (!arguments.dump.empty()) {
    DumpRequests(items, UserPath(arguments.dump));
    return ExitCode::kDone;
  }
  const EvaluationOptions options = OptionsOf(arguments);
  std::optional<OutFolder> out;
  if (!arguments.out.empty()) out.emplace(UserPath(arguments.out));
  if (arguments.tasks.empty()) {
    EvaluateRunHere(options, arguments.json);
  } else {
    EvaluateTasksHere(options, std::move(items), arguments);
  }
  return ExitCode::kDone;
}

ExitCode ParseAndRun(int argc, char** argv) {
  CLI::App app{kDescription, "evaluate"};
  Arguments arguments;
  AddOptions(&app, &arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::kDone : ExitCode::kUsage;
  }
  RequireValues(app);
  return Run(arguments);
}

}  // namespace
}  // namespace softmoe::trainer

int main(int argc, char** argv) {
  return softmoe::RunMain(
      "evaluate", [&] { return softmoe::trainer::ParseAndRun(argc, argv); });
}

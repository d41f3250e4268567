// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/task_report.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/code_version.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/text/text_table.h"

namespace softmoe::trainer {
namespace {

using nlohmann::ordered_json;

constexpr char kTaskResultsName[] = "results.json";
constexpr char kModelName[] = "softmoe";  // in results.json: who wrote it

std::filesystem::path SamplesPath(const std::filesystem::path& folder,
                                  const std::string& task) {
  return folder / fmt::format("samples_{}.jsonl", task);
}

ordered_json MeasuresJson(const TaskAccuracy& accuracy) {
  ordered_json json = {{"alias", accuracy.name}};
  for (int m = 0; m < kNumTaskMeasures; ++m) {
    const auto measure = static_cast<TaskMeasure>(m);
    const std::string name = kTaskMeasureNames[m];
    const double error = accuracy.StandardError(measure);
    json[name + ",none"] = accuracy.Mean(measure);
    json[name + "_stderr,none"] =
        std::isfinite(error) ? ordered_json(error) : ordered_json("N/A");
  }
  return json;
}

[[noreturn]] void RefuseNoReport(const std::filesystem::path& path) {
  throw ConfigError(fmt::format(
      "{}: already exists and does not belong to a report on tasks; give "
      "another --out, or move it away",
      path.string()));
}

// Returns the tasks of the report with this results.json, sorted. Throws
// ConfigError if it belongs to no report.
std::vector<std::string> TasksOfReport(const std::filesystem::path& results) {
  std::vector<std::string> tasks;
  try {
    const auto report = ordered_json::parse(ReadWholeFile(results));
    if (report.at("config").at("model") != kModelName) RefuseNoReport(results);
    const auto files =
        report.at("files").get<std::map<std::string, ordered_json>>();
    for (const auto& [task, file] : files) tasks.push_back(task);
  } catch (const ordered_json::exception&) {
    RefuseNoReport(results);
  }
  return tasks;
}

// As RequireReplaceableReport, by the names of the tasks.
void RequireReplaceableBy(const std::set<std::string>& asked,
                          const std::filesystem::path& folder) {
  const std::filesystem::path results = folder / kTaskResultsName;
  if (!std::filesystem::exists(results)) {
    for (const std::filesystem::path& path : TaskReportFiles(folder)) {
      if (std::filesystem::exists(path)) RefuseNoReport(path);
    }
    return;
  }
  std::vector<std::string> lost = TasksOfReport(results);
  std::erase_if(lost,
                [&](const std::string& task) { return asked.contains(task); });
  if (lost.empty()) return;
  throw ConfigError(fmt::format(
      "{}: holds answers to {}, which would be lost; ask all tasks at once, or "
      "give another --out",
      results.string(), fmt::join(lost, ", ")));
}

}  // namespace

ItemHashes HashItem(const TaskItem& item) {
  return {.document = Sha256Hex(item.document.dump(2)),
          .prompt = Sha256Hex(item.context),
          .target = Sha256Hex(std::to_string(item.gold))};
}

std::string TaskTable(std::span<const ScoredTask> tasks) {
  std::vector<std::string> header = {"task", "items"};
  for (const char* name : kTaskMeasureNames) header.push_back(name);
  TextTable table(std::move(header));
  for (const TaskAccuracy& accuracy : Accuracies(tasks)) {
    std::vector<std::string> row = {accuracy.name,
                                    std::to_string(accuracy.num_items)};
    for (int m = 0; m < kNumTaskMeasures; ++m) {
      const auto measure = static_cast<TaskMeasure>(m);
      row.push_back(fmt::format("{:.2f} +- {:.2f}",
                                100 * accuracy.Mean(measure),
                                100 * accuracy.StandardError(measure)));
    }
    table.Add(std::move(row));
  }
  std::string text = table.Text();
  for (const ScoredTask& task : tasks) {
    const std::string part = PartText(task.task);
    if (!part.empty()) text += part + "\n";
    if (task.cut_contexts > 0) {
      text += fmt::format(
          "{}: {} requests were longer than the window and lost their "
          "beginning; in {} of them the choice itself was cut\n",
          task.task.name, task.cut_contexts, task.cut_continuations);
    }
  }
  return text;
}

std::string TaskResultsJson(const AnsweringModel& model,
                            std::span<const ScoredTask> tasks) {
  ordered_json results, versions, shots, better, samples;
  for (const TaskAccuracy& accuracy : Accuracies(tasks)) {
    results[accuracy.name] = MeasuresJson(accuracy);
    versions[accuracy.name] = 1.0;
    shots[accuracy.name] = 0;
    for (const char* name : kTaskMeasureNames) {
      better[accuracy.name][name] = true;
    }
    samples[accuracy.name] = {{"original", accuracy.num_items},
                              {"effective", accuracy.num_items}};
  }
  ordered_json files;
  for (const ScoredTask& task : tasks) {
    const TaskSplit& split = FindTaskSplit(task.task.name);
    samples[split.name]["original"] = split.num_items;
    files[split.name] = {{"file", task.task.file.string()},
                         {"sha256", task.task.sha256},
                         {"split", split.split},
                         {"cut_contexts", task.cut_contexts},
                         {"cut_continuations", task.cut_continuations}};
  }
  const ordered_json arguments = {{"config_hash", model.config_hash},
                                  {"tokenizer_sha256", model.tokenizer_sha256},
                                  {"step", model.step},
                                  {"tau", model.tau},
                                  {"temperature", model.temperature}};
  const ordered_json all = {
      {"results", results},
      {"versions", versions},
      {"n-shot", shots},
      {"higher_is_better", better},
      {"n-samples", samples},
      {"config",
       {{"model", kModelName},
        {"model_args", arguments},
        {"device", model.device}}},
      {"files", files},
      {"git_hash", CodeVersion()},
  };
  return JsonText(all, 2) + "\n";
}

std::string TaskSamples(const ScoredTask& scored) {
  std::string lines;
  for (size_t i = 0; i < scored.task.items.size(); ++i) {
    const TaskItem& item = scored.task.items[i];
    const ItemScore& score = scored.scores[i];
    ordered_json arguments, responses = ordered_json::array(),
                            filtered = ordered_json::array();
    for (size_t c = 0; c < item.choices.size(); ++c) {
      arguments[fmt::format("gen_args_{}", c)] = {
          {"arg_0", item.context}, {"arg_1", Continuation(item.choices[c])}};
      const ordered_json response = ordered_json::array(
          {ordered_json(score.choices[c].log_likelihood).dump(),
           score.choices[c].is_greedy ? "True" : "False"});
      responses.push_back(ordered_json::array({response}));
      filtered.push_back(response);
    }
    const ItemHashes hashes = HashItem(item);
    ordered_json line = {{"doc_id", i},
                         {"doc", item.document},
                         {"target", std::to_string(item.gold)},
                         {"arguments", arguments},
                         {"resps", responses},
                         {"filtered_resps", filtered},
                         {"filter", "none"},
                         {"metrics", kTaskMeasureNames},
                         {"doc_hash", hashes.document},
                         {"prompt_hash", hashes.prompt},
                         {"target_hash", hashes.target}};
    for (int m = 0; m < kNumTaskMeasures; ++m) {
      line[kTaskMeasureNames[m]] = score.answers[m] == item.gold ? 1.0 : 0.0;
    }
    lines += JsonLine(line) + "\n";
  }
  return lines;
}

std::vector<std::filesystem::path> TaskReportFiles(
    const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const TaskSplit& split : TaskSplits()) {
    files.push_back(SamplesPath(folder, split.name));
  }
  files.push_back(folder / kTaskResultsName);
  return files;
}

void RequireReplaceableReport(const std::filesystem::path& folder,
                              std::span<const TaskItems> asked) {
  std::set<std::string> names;
  for (const TaskItems& task : asked) names.insert(task.name);
  RequireReplaceableBy(names, folder);
}

void WriteTaskReport(const AnsweringModel& model,
                     std::span<const ScoredTask> tasks,
                     const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const ScoredTask& scored : tasks) names.insert(scored.task.name);
  RequireReplaceableBy(names, folder);
  MakeFolder(folder);
  // Removes an earlier model's answers, which must not lie beside this one's.
  // The results are deleted last and written first, as they say that the
  // samples belong to them.
  std::error_code ignored;
  for (const std::filesystem::path& path : TaskReportFiles(folder)) {
    std::filesystem::remove(path, ignored);
  }
  WriteFileAtomically(folder / kTaskResultsName, TaskResultsJson(model, tasks));
  for (const ScoredTask& task : tasks) {
    WriteFileAtomically(SamplesPath(folder, task.task.name), TaskSamples(task));
  }
}

}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/task_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/text/ascii.h"
#include "core/text/suggestion.h"
#include "trainer/corpora/python_text.h"

namespace softmoe::trainer {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Far more than the items of any of these tasks have.
constexpr int64_t kMaxFileBytes = int64_t{1} << 28;

std::string OriginOf(const TaskFile& file) {
  return FindTaskSplit(file.name).origin;
}

// One JSON object of a file, and the refusals that name its place.
class Line {
 public:
  Line(const TaskFile& file, int64_t number, std::string_view text)
      : file_(file), number_(number), json_(ParseJsonObject(text)) {
    if (json_.is_null()) Refuse("not a JSON object in UTF-8");
  }

  [[noreturn]] void Refuse(const std::string& what) const {
    throw DataError(fmt::format(
        "{}:{}: {}; take the authors' file ({}), or jsonl of the Hugging Face "
        "form",
        file_.items.string(), number_, what, OriginOf(file_)));
  }

  bool Has(const char* key) const { return json_.contains(key); }

  const ordered_json& Member(const ordered_json& object,
                             const char* key) const {
    if (!object.is_object() || !object.contains(key)) {
      Refuse(fmt::format("no \"{}\"", key));
    }
    return object.at(key);
  }
  const ordered_json& Member(const char* key) const {
    return Member(json_, key);
  }

  std::string Text(const ordered_json& value, const std::string& what) const {
    if (!value.is_string()) {
      Refuse(fmt::format("{} is {}, not a string", what, value.type_name()));
    }
    std::string text = value.get<std::string>();
    if (text.find('\0') != std::string::npos) {
      Refuse(fmt::format("{} has a NUL character", what));
    }
    return text;
  }
  std::string Text(const char* key) const {
    return Text(Member(key), fmt::format("\"{}\"", key));
  }
  std::vector<std::string> Texts(const ordered_json& value,
                                 const char* key) const {
    if (!value.is_array()) {
      Refuse(fmt::format("\"{}\" is {}, not a list", key, value.type_name()));
    }
    std::vector<std::string> texts;
    for (const ordered_json& one : value) {
      texts.push_back(Text(one, fmt::format("\"{}\"[{}]", key, texts.size())));
    }
    return texts;
  }

  // The label in the file of labels, or else the item's own: a number, or a
  // text that is one. If there are both, they must agree.
  int64_t Label() const {
    if (!label_beside_) return OwnLabel();
    if (Has("label") && OwnLabel() != *label_beside_) {
      Refuse(fmt::format("\"label\" is not {}, which the file of labels says",
                         *label_beside_));
    }
    return *label_beside_;
  }
  void SetLabel(int64_t of_file) { label_beside_ = of_file; }

  // Copies a member that prompts do not need.
  void Copy(const char* key, ordered_json* document) const {
    if (Has(key)) (*document)[key] = json_.at(key);
  }

  // Refuses an item that nobody could answer.
  void Check(const TaskItem& item) const {
    const auto choices = static_cast<int64_t>(item.choices.size());
    if (choices < 2) {
      Refuse(fmt::format("fewer than two choices ({})", choices));
    }
    if (item.gold < 0 || item.gold >= choices) {
      Refuse(fmt::format("label {}, but the {} choices count from 0", item.gold,
                         choices));
    }
  }

 private:
  int64_t OwnLabel() const {
    const ordered_json& value = Member("label");
    if (value.is_number_integer()) return value.get<int64_t>();
    const std::string text = Text(value, "\"label\"");
    if (text.empty()) {
      Refuse("\"label\" is empty: a test split, whose labels are not public");
    }
    const std::optional<int64_t> label = ParseNumber<int64_t>(text);
    if (!label) Refuse(fmt::format("\"label\" is \"{}\", not a number", text));
    return *label;
  }

  const TaskFile& file_;
  int64_t number_;
  ordered_json json_;
  std::optional<int64_t> label_beside_;
};

// goal, sol1, sol2; label, or a file of labels beside: one a line.
TaskItem PiqaItem(const Line& line) {
  TaskItem item;
  const std::string goal = line.Text("goal");
  item.context = "Question: " + goal + "\nAnswer:";
  item.choices = {line.Text("sol1"), line.Text("sol2")};
  item.gold = line.Label();
  item.document = {{"goal", goal},
                   {"sol1", item.choices[0]},
                   {"sol2", item.choices[1]},
                   {"label", item.gold}};
  return item;
}

// The text without what WikiHow's pages left behind.
std::string WithoutArtifacts(const std::string& text) {
  return ReplaceAll(RemoveBrackets(ReplaceAll(Strip(text), " [title]", ". ")),
                    "  ", " ");
}

// activity_label, ctx_a, ctx_b, endings; label, a number or text.
TaskItem HellaSwagItem(const Line& line) {
  TaskItem item;
  const std::string activity = line.Text("activity_label");
  const std::string begin = line.Text("ctx_a"), end = line.Text("ctx_b");
  const std::vector<std::string> endings =
      line.Texts(line.Member("endings"), "endings");
  item.context =
      WithoutArtifacts(activity + ": " + begin + " " + Capitalize(end));
  for (const std::string& ending : endings) {
    item.choices.push_back(WithoutArtifacts(ending));
  }
  item.gold = line.Label();
  ordered_json& document = item.document;
  line.Copy("ind", &document);
  document["activity_label"] = activity;
  document["ctx_a"] = begin;
  document["ctx_b"] = end;
  line.Copy("ctx", &document);
  document["endings"] = endings;
  for (const char* key : {"source_id", "split", "split_type"}) {
    line.Copy(key, &document);
  }
  document["label"] = std::to_string(item.gold);
  document["query"] = item.context;
  document["choices"] = item.choices;
  document["gold"] = item.gold;
  return item;
}

// question and choices.{text, label}, or the authors' question.{stem, choices};
// answerKey, one of the labels.
TaskItem ArcItem(const Line& line) {
  TaskItem item;
  const ordered_json& question = line.Member("question");
  std::string stem;
  std::vector<std::string> labels;
  if (question.is_object()) {
    stem = line.Text(line.Member(question, "stem"), "\"question.stem\"");
    const ordered_json& choices = line.Member(question, "choices");
    if (!choices.is_array()) line.Refuse("\"question.choices\" is not a list");
    for (const ordered_json& choice : choices) {
      item.choices.push_back(
          line.Text(line.Member(choice, "text"), "\"choices.text\""));
      labels.push_back(
          line.Text(line.Member(choice, "label"), "\"choices.label\""));
    }
  } else {
    stem = line.Text("question");
    const ordered_json& choices = line.Member("choices");
    item.choices = line.Texts(line.Member(choices, "text"), "choices.text");
    labels = line.Texts(line.Member(choices, "label"), "choices.label");
  }
  if (labels.size() != item.choices.size()) {
    line.Refuse(fmt::format("{} labels of {} choices", labels.size(),
                            item.choices.size()));
  }
  const std::string key = line.Text("answerKey");
  if (std::ranges::count(labels, key) != 1) {
    line.Refuse(fmt::format("\"answerKey\" is \"{}\", not one of the labels {}",
                            key, fmt::join(labels, ", ")));
  }
  item.gold = std::ranges::find(labels, key) - labels.begin();
  item.context = "Question: " + stem + "\nAnswer:";
  line.Copy("id", &item.document);
  item.document["question"] = stem;
  item.document["choices"] = {{"text", item.choices}, {"label", labels}};
  item.document["answerKey"] = key;
  return item;
}

// A split, and how a line of its file becomes an item.
struct TaskForm {
  TaskSplit split;
  TaskItem (*item)(const Line& line);
  bool labels_beside = false;  // labels may be in a file of their own
};

std::vector<TaskForm> MakeForms() {
  std::vector<TaskForm> forms = {
      {.split = {.name = "piqa",
                 .split = "validation",
                 .num_items = 1838,
                 .places = {"valid.jsonl", "piqa/valid.jsonl", "piqa/dev.jsonl",
                            "physicaliqa-train-dev/dev.jsonl",
                            "piqa_validation.jsonl"},
                 .origin = "https://yonatanbisk.com/piqa/data"},
       .item = PiqaItem,
       .labels_beside = true},
      {.split = {.name = "hellaswag",
                 .split = "validation",
                 .num_items = 10042,
                 .places = {"hellaswag_val.jsonl",
                            "hellaswag/hellaswag_val.jsonl",
                            "hellaswag_validation.jsonl"},
                 .origin = "https://github.com/rowanz/hellaswag, folder data"},
       .item = HellaSwagItem}};
  const auto arc = [&](const char* name, const char* split, int64_t num_items,
                       const std::string& authors) {
    const std::string file = "ARC-Easy-" + authors + ".jsonl";
    forms.push_back(
        {.split = {.name = name,
                   .split = split,
                   .num_items = num_items,
                   .places = {file, "ARC-Easy/" + file,
                              "ARC-V1-Feb2018-2/ARC-Easy/" + file,
                              fmt::format("arc_easy_{}.jsonl", split)},
                   .origin = "https://allenai.org/data/arc"},
         .item = ArcItem});
  };
  arc("arc_easy", "test", 2376, "Test");
  arc("arc_easy_validation", "validation", 570, "Dev");
  arc("arc_easy_train", "train", 2251, "Train");
  return forms;
}

// All of them, in the order of reports.
const std::vector<TaskForm>& Forms() {
  static const std::vector<TaskForm> forms = MakeForms();
  return forms;
}

// The line without white space at both ends; any bytes.
std::string_view Trimmed(std::string_view line) {
  constexpr char kSpaces[] = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(kSpaces), line.size()));
  return line.substr(0, line.find_last_not_of(kSpaces) + 1);
}

// Calls visit(number, line) for every line that is not blank.
template <typename Visit>
void ForEachLine(std::string_view text, const Visit& visit) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!Trimmed(line).empty()) visit(number, line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string ReadItemsFile(const fs::path& path) {
  RequireRegular(path);
  if (static_cast<int64_t>(fs::file_size(path)) > kMaxFileBytes) {
    throw DataError(
        fmt::format("{}: larger than {} MB, so it cannot be the items of a "
                    "task; give their jsonl file",
                    path.string(), kMaxFileBytes >> 20));
  }
  return ReadWholeFile(path);
}

// The labels of items in a file of their own.
class Labels {
 public:
  explicit Labels(const TaskFile& file) {
    const fs::path& items = file.items;
    for (const char* end : {"-labels.lst", "_labels.lst"}) {
      const fs::path path = items.parent_path() / (items.stem().string() + end);
      if (!fs::exists(path)) continue;
      const std::string content = ReadItemsFile(path);
      if (!path_.empty() && content != content_) {
        throw DataError(fmt::format(
            "{} and {} differ; keep only the one that belongs to {}",
            path_.string(), path.string(), items.string()));
      }
      path_ = path;
      content_ = content;
    }
    if (path_.empty()) {
      throw EnvironmentError(fmt::format(
          "{0}: its items have no \"label\", and there is no {1}-labels.lst "
          "beside it; put the authors' file of labels there ({2})",
          items.string(), items.stem().string(), OriginOf(file)));
    }
    ForEachLine(content_, [&](int64_t number, std::string_view line) {
      line = Trimmed(line);
      if (line != "0" && line != "1") {
        throw DataError(
            fmt::format("{}:{}: the label is \"{}\", not 0 or 1; take the "
                        "authors' file again ({})",
                        path_.string(), number, line, OriginOf(file)));
      }
      labels_.push_back(line == "1" ? 1 : 0);
    });
  }

  int64_t size() const { return static_cast<int64_t>(labels_.size()); }
  const std::string& content() const { return content_; }
  const fs::path& path() const { return path_; }
  // The label of the item at `index`; missing ones are counted at the end.
  int64_t At(int64_t index) const {
    return index < size() ? labels_[static_cast<size_t>(index)] : 0;
  }

 private:
  fs::path path_;
  std::string content_;
  std::vector<int64_t> labels_;
};

// Finds the split's file in the folder that the user gave with --task-files.
TaskFile FindForUser(const TaskSplit& split, const std::string& folder) {
  const std::string otherwise =
      fmt::format(", or name its file, --task {}=FILE", split.name);
  if (folder.empty()) {
    throw ConfigError(
        fmt::format("--task {}: say with --task-files in which folder its "
                    "items are{}",
                    split.name, otherwise));
  }
  return FindInFolder(split, UserPath(folder), otherwise);
}

}  // namespace

const std::vector<TaskSplit>& TaskSplits() {
  static const std::vector<TaskSplit> splits = [] {
    std::vector<TaskSplit> all;
    for (const TaskForm& form : Forms()) all.push_back(form.split);
    return all;
  }();
  return splits;
}

const TaskSplit& FindTaskSplit(const std::string& name) {
  std::vector<std::string> names;
  for (const TaskSplit& split : TaskSplits()) {
    if (split.name == name) return split;
    names.push_back(split.name);
  }
  throw ConfigError(
      fmt::format("no task '{}'; {}", name, Suggestion(name, names)));
}

std::vector<TaskFile> FindTaskFiles(const std::vector<std::string>& wanted,
                                    const std::string& folder) {
  std::vector<TaskFile> files;
  const auto add = [&](const TaskFile& file) {
    if (std::ranges::find(files, file.name, &TaskFile::name) != files.end()) {
      throw ConfigError(fmt::format(
          "--task: {} twice; name each split once (arc_easy is test and "
          "validation)",
          file.name));
    }
    files.push_back(file);
  };
  for (const std::string& one : wanted) {
    const size_t equals = one.find('=');
    const TaskSplit& split = FindTaskSplit(one.substr(0, equals));
    if (equals != std::string::npos) {
      add({split.name, UserPath(one.substr(equals + 1))});
      continue;
    }
    add(FindForUser(split, folder));
    if (split.name == "arc_easy") {
      add(FindForUser(FindTaskSplit("arc_easy_validation"), folder));
    }
  }
  std::ranges::sort(files, {}, [](const TaskFile& file) {
    return &FindTaskSplit(file.name);
  });
  return files;
}

TaskFile FindInFolder(const TaskSplit& split, const fs::path& folder,
                      const std::string& otherwise) {
  std::vector<fs::path> found;
  for (const std::string& place : split.places) {
    if (fs::exists(folder / place)) found.push_back(folder / place);
  }
  if (found.empty()) {
    throw EnvironmentError(fmt::format(
        "{}: no items of {} ({} split) there, named {}; get them from {}{}",
        folder.string(), split.name, split.split,
        fmt::join(split.places, " or "), split.origin, otherwise));
  }
  if (found.size() > 1) {
    throw ConfigError(fmt::format(
        "{} and {}: both are items of {}; keep only one{}", found[0].string(),
        found[1].string(), split.name, otherwise));
  }
  return {.name = split.name, .items = found.front()};
}

std::string Continuation(const std::string& choice) { return " " + choice; }

std::string PartText(const TaskItems& task) {
  const TaskSplit& split = FindTaskSplit(task.name);
  const auto items = static_cast<int64_t>(task.items.size());
  if (items == split.num_items) return "";
  return fmt::format("{}: {} of the {} items of the {} split", split.name,
                     items, split.num_items, split.split);
}

TaskItems ReadTaskItems(const TaskFile& file) {
  const std::string content = ReadItemsFile(file.items);
  const TaskForm& form = Forms()[static_cast<size_t>(&FindTaskSplit(file.name) -
                                                     TaskSplits().data())];
  TaskItems task{.name = file.name,
                 .file = file.items,
                 .sha256 = Sha256Hex(content),
                 .items = {}};
  std::optional<Labels> labels;
  ForEachLine(content, [&](int64_t number, std::string_view text) {
    Line line(file, number, text);
    if (form.labels_beside && task.items.empty() && !line.Has("label")) {
      labels.emplace(file);
    }
    if (labels) {
      line.SetLabel(labels->At(static_cast<int64_t>(task.items.size())));
    }
    TaskItem item = form.item(line);
    line.Check(item);
    task.items.push_back(std::move(item));
  });
  if (task.items.empty()) {
    throw DataError(fmt::format("{}: no items; take the authors' file ({})",
                                file.items.string(), OriginOf(file)));
  }
  if (labels) {
    if (labels->size() != static_cast<int64_t>(task.items.size())) {
      throw DataError(fmt::format(
          "{} has {} labels, but {} has {} items; take both again from where "
          "they belong together ({})",
          labels->path().string(), labels->size(), file.items.string(),
          task.items.size(), OriginOf(file)));
    }
    task.sha256 = Sha256Hex(content + labels->content());
  }
  return task;
}

}  // namespace softmoe::trainer

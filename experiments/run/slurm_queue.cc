// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/slurm_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <sstream>
#include <string_view>

#include "core/errors.h"
#include "core/process/process.h"

namespace softmoe::experiments {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string OneLine(const std::string& text) {
  std::string line;
  for (const std::string& each : Lines(text)) {
    if (!each.empty()) line += (line.empty() ? "" : "; ") + each;
  }
  return line.empty() ? "nothing" : line;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isdigit(c) != 0;
  });
}

std::string OnCluster(const SlurmJobId& job) {
  return job.cluster.empty() ? "" : "--clusters=" + job.cluster + " ";
}

// INDEX|STATE|REASON
std::optional<SlurmTask> ParseTask(const std::string& line) {
  const size_t first = line.find('|');
  if (first == std::string::npos) return std::nullopt;
  const size_t second = line.find('|', first + 1);
  if (second == std::string::npos) return std::nullopt;
  SlurmTask task;
  const std::string index = line.substr(0, first);
  if (!IsNumber(index)) return std::nullopt;
  std::from_chars(index.data(), index.data() + index.size(), task.index);
  task.state = line.substr(first + 1, second - first - 1);
  task.reason = line.substr(second + 1);
  return task;
}

}  // namespace

void RequireSlurm() {
  for (const char* program : {"sbatch", "squeue"}) {
    if (HaveProgram(program)) continue;
    throw EnvironmentError(fmt::format(
        "--launcher=slurm: there is no {} in PATH; call this where jobs of a "
        "Slurm cluster are submitted (its commands are in Debian's package "
        "slurm-client), or train here with --launcher=local",
        program));
  }
}

SlurmJobId SubmitScript(const std::filesystem::path& script) {
  const ProgramResult result = RunProgram(
      {"sbatch", "--parsable", script.string()}, script.parent_path());
  if (result.exit_status == 0) {
    // NUMBER or NUMBER;CLUSTER, perhaps among warnings.
    for (const std::string& line : Lines(result.output)) {
      const size_t end = line.find(';');
      const std::string number = line.substr(0, end);
      if (!IsNumber(number)) continue;
      return {.number = number,
              .cluster = end == std::string::npos ? "" : line.substr(end + 1)};
    }
  }
  throw EnvironmentError(fmt::format(
      "sbatch {} ended with {} and said: {}. Options that this cluster asks "
      "for, such as \"--account=me\", belong into sbatch = [...] of [cluster] "
      "in the grid's file",
      script.string(), result.exit_status, OneLine(result.output)));
}

std::optional<std::vector<SlurmTask>> TasksInQueue(const SlurmJobId& job,
                                                   std::string* failure) {
  std::vector<std::string> command = {"squeue", "--noheader", "--array",
                                      "--jobs=" + job.number,
                                      "--format=%K|%T|%r"};
  if (!job.cluster.empty()) command.push_back("--clusters=" + job.cluster);
  const ProgramResult result = RunProgram(command, "/");
  std::vector<SlurmTask> tasks;
  if (result.exit_status != 0) {
    // Slurm's answer for a job that ended some minutes ago.
    if (result.output.find("Invalid job id") != std::string::npos) return tasks;
    *failure = OneLine(result.output);
    return std::nullopt;
  }
  for (const std::string& line : Lines(result.output)) {
    if (const auto task = ParseTask(line)) tasks.push_back(*task);
  }
  return tasks;
}

std::string DescribeTasks(const std::vector<SlurmTask>& tasks) {
  std::map<std::string, int64_t> counts;
  for (const SlurmTask& task : tasks) {
    std::string what = task.state;
    std::ranges::transform(what, what.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    if (task.state == "PENDING") what += " (" + task.reason + ")";
    ++counts[what];
  }
  std::string text;
  for (const auto& [what, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  }
  return text;
}

std::string FollowCommand(const SlurmJobId& job) {
  return "squeue " + OnCluster(job) + "--jobs=" + job.number;
}

std::string CancelCommand(const SlurmJobId& job) {
  return "scancel " + OnCluster(job) + job.number;
}

}  // namespace softmoe::experiments

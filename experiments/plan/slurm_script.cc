// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/slurm_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/errors.h"

namespace softmoe::experiments {
namespace {

constexpr double kTimeMargin = 1.5;

}  // namespace

std::string ShellQuoted(const std::string& word) {
  const bool plain =
      !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) ||
               std::string("-_./=:,+@%").find(c) != std::string::npos;
      });
  if (plain) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

NodeLayout LayOutNodes(int64_t gpus, int64_t gpus_per_node) {
  SOFTMOE_CHECK(gpus > 0 && gpus_per_node > 0)
      << gpus << " GPUs, " << gpus_per_node << " a node";
  int64_t per_node = std::min(gpus, gpus_per_node);
  while (gpus % per_node != 0) --per_node;
  return {.nodes = gpus / per_node, .gpus_per_node = per_node};
}

std::string SlurmScript(const SlurmJob& job) {
  SOFTMOE_CHECK(!job.rows.empty()) << job.name << " has no rows";
  const NodeLayout layout = LayOutNodes(job.gpus, job.gpus_per_node);
  const int64_t hours =
      std::max<int64_t>(1, std::llround(std::ceil(kTimeMargin * job.hours)));
  std::string script = fmt::format(
      R"(#!/bin/bash
# Needs the multi-GPU trainer, and tasks that share a results folder. The build
# that printed this has neither.
#SBATCH --job-name={}
#SBATCH --array=0-{}
#SBATCH --nodes={}
#SBATCH --ntasks-per-node={}
#SBATCH --gpus-per-node={}
#SBATCH --time={:02}:00:00
#SBATCH --signal=TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%A_%a.log
)",
      job.name, job.rows.size() - 1, layout.nodes, layout.gpus_per_node,
      layout.gpus_per_node, hours);
  for (const std::string& option : job.options) {
    script += "#SBATCH " + option + "\n";
  }
  script += "\nrows=(\n";
  for (const std::string& row : job.rows) {
    script += "  " + ShellQuoted(row) + "\n";
  }
  script += ")\nstatus=0\nsrun bazel-bin/experiments/grid";
  for (const std::string& word : job.command) {
    script += (word.starts_with("--") ? " \\\n  " : " ") + ShellQuoted(word);
  }
  script += R"( \
  --rows "${rows[$SLURM_ARRAY_TASK_ID]}" || status=$?
# 75: stopped in time, state saved. Go on from there in a new allocation. (The
# SLURM_JOB_ID of the last task is the number of the whole array.)
task=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID
if [ "$status" -eq 75 ]; then scontrol requeue "$task"; fi
exit "$status"
)";
  return script;
}

}  // namespace softmoe::experiments

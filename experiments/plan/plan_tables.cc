// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/config/router_traits.h"
#include "core/text/text_table.h"
#include "experiments/plan/plan_numbers.h"
#include "trainer/results/metrics.h"

namespace softmoe::experiments {
namespace {

constexpr size_t kWidth = 98;

using Rows = std::vector<RowEstimate>;

std::string StepLine(const RowEstimate& row) {
  const TrainingConfig& t = row.run.config.training;
  const int64_t length = row.run.config.model.sequence_length;
  std::string line =
      fmt::format("{} steps of {} = {} tokens", Thousands(t.steps),
                  Count(t.global_batch_sequences, "sequence"),
                  Thousands(t.global_batch_sequences * length));
  const int64_t gpus = row.run.corpus.gpus;
  if (gpus == 0) return line;
  const BatchSplit split = SplitBatch(t, gpus);
  if (!split.problem.empty()) return line;
  return line +
         fmt::format("; on each of {}: {} sequences = {} of {} = {} of {}",
                     Count(gpus, "GPU"), t.global_batch_sequences / gpus,
                     Count(split.micro_batches, "micro-batch", "micro-batches"),
                     t.micro_batch_sequences,
                     Count(split.groups_per_gpu, "balance group"),
                     t.balance_group_sequences);
}

// Empty if no row calibrates tau.
std::string CalibrationLine(const Rows& rows) {
  int64_t bytes = 0;
  for (const RowEstimate& row : rows) {
    bytes = std::max(bytes, row.calibration_bytes);
  }
  if (bytes == 0) return "";
  return fmt::format("calibrating tau: up to {} of host memory, while it lasts",
                     FormatBytes(bytes));
}

std::string Tau(const RowEstimate& row) {
  if (!TraitsOf(row.run.config).cutoff) return "-";
  return fmt::format("{}{:.3f}", row.run.config.router.tau ? "" : "~",
                     row.initial.tau);
}

std::string WhatIsTrained(const Rows& rows) {
  TextTable table({"row", "k", "tau", "start",
                   trainer::metrics::kZeroActiveFraction.title, "AE", "from",
                   "parameters", "active"});
  for (const RowEstimate& row : rows) {
    table.Add({row.run.row.id,
               fmt::format("{:.4g}", row.run.config.router.mean_active_experts),
               Tau(row), fmt::format("{:.2f}", row.initial.active_experts),
               Shown(trainer::metrics::kZeroActiveFraction,
                     row.initial.zero_active_fraction),
               fmt::format("{:.2f}", row.active_experts),
               row.active_from_paper ? "paper" : "k",
               Thousands(row.cost.parameters),
               Thousands(std::llround(row.cost.active_parameters))});
  }
  return table.Text();
}

std::vector<std::string> GpuColumns(const RowEstimate& row) {
  return {
      fmt::format("{:.1f}", row.cost.gpu_hours),
      row.paper_gpu_hours ? fmt::format("{:.1f}", *row.paper_gpu_hours) : "-"};
}

std::string WhatItTakes(const Rows& rows, bool gpus) {
  const bool minutes = std::all_of(
      rows.begin(), rows.end(),
      [](const RowEstimate& row) { return row.cost.core_hours < 1; });
  std::vector<std::string> header = {"row", "steps", "tokens", "FLOPs"};
  const std::vector<std::string> more =
      gpus ? std::vector<std::string>{"GPU h", "paper", "disk"}
           : std::vector<std::string>{"memory", minutes ? "core min" : "core h",
                                      "disk"};
  header.insert(header.end(), more.begin(), more.end());
  TextTable table(header);
  for (const RowEstimate& row : rows) {
    std::vector<std::string> entry = {row.run.row.id, Thousands(row.cost.steps),
                                      Thousands(row.cost.tokens),
                                      Scientific(row.cost.train_flops)};
    if (gpus) {
      for (std::string& text : GpuColumns(row)) {
        entry.push_back(std::move(text));
      }
    } else {
      entry.push_back(FormatBytes(row.cpu_bytes));
      entry.push_back(
          fmt::format("{:.2f}", row.cost.core_hours * (minutes ? 60 : 1)));
    }
    entry.push_back(FormatBytes(row.disk_bytes));
    table.Add(std::move(entry));
  }
  return table.Text();
}

// The time of the paper's own runs of the rows listed here, each counted once.
std::string PaperTotal(const Rows& rows) {
  std::set<std::string> seen;
  double hours = 0;
  for (const RowEstimate& row : rows) {
    if (row.paper_gpu_hours && seen.insert(row.run.paper_id()).second) {
      hours += *row.paper_gpu_hours;
    }
  }
  if (seen.empty()) return "";
  return fmt::format(" (the paper's {}: {})",
                     Count(static_cast<int64_t>(seen.size()), "row"),
                     Amount(hours));
}

}  // namespace

std::string Paragraph(const std::string& text, size_t first) {
  return std::string(first, ' ') + Wrap(text, kWidth - first, first + 2) + "\n";
}

std::string DescribeModel(const ModelConfig& m) {
  return fmt::format(
      "{} layers, d_model {}, {} heads, {} experts of width {} a layer, "
      "vocabulary {}, sequences of {} tokens",
      m.num_layers, m.d_model, m.num_heads, m.num_experts, m.d_ffn,
      Thousands(m.vocab_size), Thousands(m.sequence_length));
}

std::string DescribeCorpus(const Rows& rows) {
  const GridCorpus& corpus = rows.front().run.corpus;
  const bool gpus = corpus.gpus > 0;
  std::string text = fmt::format("{}: {}{}\n", corpus.id, corpus.title,
                                 gpus ? ", " + Count(corpus.gpus, "GPU") : "");
  const std::string step = StepLine(rows.front());
  if (std::all_of(rows.begin(), rows.end(), [&](const RowEstimate& row) {
        return StepLine(row) == step;
      })) {
    text += Paragraph(step);
  }
  const std::string calibration = CalibrationLine(rows);
  if (!calibration.empty()) text += Paragraph(calibration);
  return text + "\n" + WhatIsTrained(rows) + "\n" + WhatItTakes(rows, gpus);
}

std::string PlanLegend(const Cluster& cluster, bool gpus) {
  using trainer::metrics::kZeroActiveFraction;
  std::string text = Paragraph(fmt::format(
      "k: the mean of active experts asked for. tau: the cutoff in units of "
      "k/E; ~: calibrated on the first batches, expected value. start, {}: "
      "active experts per token and layer, and the {}; before the first "
      "update, from random scores through the router. AE: the mean that the "
      "active parameters, FLOPs and hours assume: the paper's Train-AE of the "
      "row (from paper), or k. active: the exact count at AE.",
      kZeroActiveFraction.title, kZeroActiveFraction.definition));
  text += Paragraph(
      "FLOPs: all training steps, a multiply-add as two; causal attention; "
      "nothing for recomputation, calibration and validation.");
  if (gpus) {
    text += Paragraph(fmt::format(
        "GPU h: at an assumed {:.0f} % of {:.0f} TFLOP/s; paper: what the "
        "paper's own run took. What each GPU holds: see the ranks of each "
        "corpus.",
        100 * cluster.assumed_mfu, cluster.peak_flops / 1e12));
  } else {
    text += Paragraph(fmt::format(
        "memory: weights, moments, gradients, activations of one balance group "
        "with as many active experts as the caps allow, and the soft weights "
        "that calibrating tau ranks, fp32; not the program, its tokens and "
        "buffers of threads. Core time: at an assumed "
        "{:.0f} GFLOP/s of one core; divide by the cores.",
        cluster.core_flops / 1e9));
  }
  return text + Paragraph(
                    "disk: the most that a run's folder holds at one time, "
                    "while one checkpoint replaces another.");
}

std::string CostInWords(const GridTotal& total, bool gpus) {
  if (gpus) return Amount(total.gpu_hours) + " GPU hours";
  if (total.core_hours < 1) {
    return Amount(60 * total.core_hours) + " core minutes";
  }
  return Amount(total.core_hours) + " core hours";
}

std::string TotalLine(const std::string& name, const Rows& rows, bool gpus) {
  const GridTotal total = Total(rows);
  return fmt::format("{}: {}, {} tokens, {} FLOPs, {}{}, {} on disk", name,
                     Count(total.runs, "run"), Scientific(total.tokens),
                     Scientific(total.train_flops), CostInWords(total, gpus),
                     gpus ? PaperTotal(rows) : "",
                     FormatBytes(total.disk_bytes));
}

}  // namespace softmoe::experiments

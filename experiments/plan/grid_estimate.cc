// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/grid_estimate.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/text/suggestion.h"
#include "golden/document/fingerprint.h"
#include "optimized/device.h"
#include "optimized/rank_groups.h"
#include "trainer/run/resources.h"

namespace softmoe::experiments {
namespace {

// Cached per router and model, since rows occur on several corpora.
class InitialActivities {
 public:
  const InitialActivity& Of(const Config& config) {
    Config key;
    key.model = config.model;
    key.router = config.router;
    const auto [entry, is_new] = known_.try_emplace(ConfigHash(key));
    if (is_new) entry->second = EstimateInitialActivity(config);
    return entry->second;
  }

 private:
  std::map<std::string, InitialActivity> known_;
};

// The tokens of a corpus of the paper, if `data` takes all of it.
std::optional<double> PaperTokens(const golden::Document& paper,
                                  const DataConfig& data) {
  if (data.max_bytes != 0) return {};
  for (const golden::Row& row : paper.FindTable("main_results")->rows) {
    if (golden::FieldValue(paper, row, "data.corpus") == data.corpus) {
      return std::stod(golden::FieldValue(paper, row, "data.num_tokens"));
    }
  }
  return {};
}

RowEstimate EstimateRow(const GridRun& run, const Cluster& machine,
                        const golden::Document& paper,
                        InitialActivities& activities) {
  RowEstimate row;
  row.run = run;
  row.seeds = 1;
  const AssumedActivity assumed = AssumedActiveExperts(run, paper);
  row.active_experts = assumed.active_experts;
  row.active_from_paper = assumed.from_paper;
  if (!run.corpus.paper_dataset.empty()) {
    row.paper_gpu_hours =
        PaperNumber(paper, "compute", run.paper_id(), "gpu_hours");
  }
  Cluster cluster = machine;
  if (run.corpus.gpus > 0) cluster.gpus = run.corpus.gpus;
  row.cost = EstimateCost(run.config, row.active_experts, cluster);
  const DataConfig& data = run.config.data;
  if (const auto tokens = PaperTokens(paper, data)) {
    row.epochs = static_cast<double>(row.cost.tokens) /
                 (*tokens * (1 - data.validation_fraction));
  }
  row.initial = activities.Of(run.config);
  const trainer::ResourceNeed need = trainer::EstimateResources(run.config);
  row.disk_bytes = need.disk_bytes;
  row.checkpoint_bytes = need.checkpoint_bytes;
  row.left_bytes = need.disk_bytes - (run.evaluations.keep_checkpoint ? 1 : 2) *
                                         need.checkpoint_bytes;
  row.calibration_bytes = need.calibration_bytes;
  row.cpu_bytes = need.state_bytes + need.calibration_bytes +
                  static_cast<int64_t>(CpuActivationBytes(run.config));
  return row;
}

}  // namespace

golden::Document ReadPaper() {
  return golden::ReadDocument(RunfilePath("golden/paper/paper.h5"));
}

std::optional<double> PaperNumber(const golden::Document& paper,
                                  const std::string& table,
                                  const std::string& row,
                                  const std::string& column) {
  const golden::Table* found = paper.FindTable(table);
  if (found == nullptr) return {};
  const golden::Row* cells = found->FindRow(row);
  const int64_t index = found->FindColumn(column);
  if (cells == nullptr || index < 0) return {};
  const golden::Cell& cell = cells->cells[static_cast<size_t>(index)];
  if (cell.empty()) return {};
  return cell.value;
}

AssumedActivity AssumedActiveExperts(const GridRun& run,
                                     const golden::Document& paper) {
  AssumedActivity assumed;
  assumed.active_experts = run.config.router.mean_active_experts;
  if (run.corpus.paper_dataset.empty()) return assumed;
  const std::optional<double> train_ae =
      PaperNumber(paper, "main_results", run.paper_id(), "train_ae");
  if (train_ae) assumed.active_experts = *train_ae;
  assumed.from_paper = train_ae.has_value();
  return assumed;
}

void CheckPrecisionOfTasks(const GridRun& run) {
  RuntimeConfig runtime = run.runtime;
  if (run.corpus.gpus > 0 && runtime.device.empty()) runtime.device = "cuda";
  optimized::CheckPrecision(run.config, runtime);
}

std::vector<RowEstimate> EstimateGrid(const Grid& grid,
                                      const golden::Document& paper) {
  std::vector<RowEstimate> rows;
  InitialActivities activities;
  for (const GridRun& run : grid.runs) {
    if (!rows.empty() && rows.back().run.corpus.id == run.corpus.id &&
        rows.back().run.row.id == run.row.id) {
      ++rows.back().seeds;
    } else {
      rows.push_back(EstimateRow(run, grid.cluster, paper, activities));
    }
  }
  return rows;
}

void RefuseTokens(const std::string& name, const std::filesystem::path& prefix,
                  const std::vector<std::string>& corpora) {
  std::vector<std::string> known;  // each once
  for (const std::string& corpus : corpora) {
    if (std::ranges::find(known, corpus) == known.end()) {
      known.push_back(corpus);
    }
  }
  throw ConfigError(fmt::format("--tokens {}={}: no run has that corpus; {}",
                                name, prefix.string(),
                                Suggestion(name, known)));
}

void UsePrepared(const TokenPrefixes& tokens, std::vector<RowEstimate>* rows) {
  for (const auto& [name, prefix] : tokens) {
    std::vector<std::string> names;
    bool used = false;
    for (RowEstimate& row : *rows) {
      const Config& config = row.run.config;
      names.push_back(config.data.corpus);
      if (config.data.corpus != name) continue;
      used = true;
      row.prepared =
          trainer::ReadPreparedCorpus(prefix, config.model.vocab_size);
      trainer::RequireTokensOf(config.data, *row.prepared);
      row.epochs = static_cast<double>(row.cost.tokens) /
                   (static_cast<double>(row.prepared->num_tokens) *
                    (1 - config.data.validation_fraction));
    }
    if (!used) RefuseTokens(name, prefix, names);
  }
}

GridTotal Total(const std::vector<RowEstimate>& rows, size_t at_work) {
  GridTotal total;
  std::vector<int64_t> peaks;  // beside what a run leaves
  for (const RowEstimate& row : rows) {
    const double runs = static_cast<double>(row.seeds);
    total.runs += row.seeds;
    total.tokens += runs * static_cast<double>(row.cost.tokens);
    total.disk_bytes += row.seeds * row.left_bytes;
    peaks.push_back(row.disk_bytes - row.left_bytes);
    total.train_flops += runs * row.cost.train_flops;
    if (row.run.corpus.gpus > 0) {
      total.gpu_runs += row.seeds;
      total.gpu_hours += runs * row.cost.gpu_hours;
    } else {
      total.core_hours += runs * row.cost.core_hours;
    }
  }
  std::ranges::sort(peaks, std::greater());
  for (size_t i = 0; i < std::min(peaks.size(), at_work); ++i) {
    total.disk_bytes += peaks[i];
  }
  return total;
}

BatchSplit SplitBatch(const TrainingConfig& t, int64_t gpus) {
  BatchSplit split;
  const int64_t groups = optimized::NumGroups(t);
  if (groups % gpus != 0) {
    split.problem = fmt::format(
        "{} balance groups of {} sequences cannot be divided evenly among {} "
        "GPUs, and a group must stay on one; ",
        groups, t.balance_group_sequences, gpus);
    split.problem +=
        t.global_batch_sequences % gpus == 0
            ? fmt::format(
                  "set training.balance_group_sequences to a divisor of {}, or "
                  "the GPUs to a divisor of {}",
                  t.global_batch_sequences / gpus, groups)
            : fmt::format("set the GPUs to a divisor of {}", groups);
    return split;
  }
  split.groups_per_gpu = groups / gpus;
  const int64_t per_gpu = t.global_batch_sequences / gpus;
  if (per_gpu % t.micro_batch_sequences != 0) {
    split.problem = fmt::format(
        "micro-batches of {} sequences do not divide the {} sequences that "
        "each of {} GPUs has in a step; set training.micro_batch_sequences to "
        "a divisor of {} that is a multiple of {}",
        t.micro_batch_sequences, per_gpu, gpus, per_gpu,
        t.balance_group_sequences);
    return split;
  }
  split.micro_batches = per_gpu / t.micro_batch_sequences;
  return split;
}

}  // namespace softmoe::experiments

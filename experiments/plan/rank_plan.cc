// SPDX-License-Identifier: Apache-2.0
#include "experiments/plan/rank_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/config/config_enums.h"
#include "core/config/parameter_layout.h"
#include "core/text/text_table.h"
#include "experiments/plan/plan_text.h"
#include "experiments/plan/slurm_jobs.h"
#include "optimized/allocation.h"
#include "optimized/rank_groups.h"
#include "optimized/step_memory.h"
#include "optimized/step_traffic.h"

namespace softmoe::experiments {
namespace {

using optimized::MemoryPlan;
using optimized::StepTraffic;

double Gib(int64_t bytes) { return static_cast<double>(bytes) / kGibibyte; }

std::string MemoryTable(const std::vector<RowEstimate>& rows, int64_t ranks,
                        double gpu_bytes) {
  TextTable table({"row", "weights", "gradients", "moments", "activations",
                   "routed", "GiB", "recompute"});
  for (const RowEstimate& row : rows) {
    const Config& config = row.run.config;
    const MemoryPlan plan =
        RankMemory(config, ranks, row.run.runtime.recompute);
    std::vector<std::string> entry = {row.run.row.id};
    for (const char* part :
         {"parameters", "gradients", "moments", "activations", "routed rows"}) {
      entry.push_back(fmt::format("{:.2f}", Gib(plan.bytes(part))));
    }
    entry.push_back(fmt::format("{:.2f}", Gib(plan.bytes())));
    const auto fits = RecomputeThatFits(config, ranks, gpu_bytes);
    entry.push_back(fits ? EnumName(*fits) : "nothing");
    table.Add(std::move(entry));
  }
  return table.Text();
}

std::string TimeTable(const std::vector<RowEstimate>& rows,
                      const Cluster& cluster) {
  TextTable table(
      {"row", "backward ms", "gradients ms", "parameters ms", "can be hidden"});
  for (const RowEstimate& row : rows) {
    const RankTimes times =
        EstimateRankTimes(row.run.config, row.active_experts, cluster);
    table.Add({row.run.row.id, fmt::format("{:.0f}", 1e3 * times.backward),
               fmt::format("{:.0f}", 1e3 * times.gradients),
               fmt::format("{:.0f}", 1e3 * times.parameters),
               fmt::format("{:.0f}%", 100 * times.share())});
  }
  return table.Text();
}

std::string BitsLine(const Config& config) {
  const RankNumbers numbers =
      NumbersOfRanks(optimized::NumGroups(config.training));
  return fmt::format(
      "bits: {} ranks give the same as one{}",
      fmt::join(numbers.same_bits, ", "),
      numbers.own_bits.empty()
          ? "; no other number divides the balance groups"
          : fmt::format("; {} give other bits, different for each number",
                        fmt::join(numbers.own_bits, ", ")));
}

std::string WireLine(const Config& config, int ranks) {
  StepTraffic sent;
  for (int to = 0; to < ranks; ++to) {
    const StepTraffic one = optimized::TrafficOfStep(config, ranks, 0, to);
    sent.gradients += one.gradients;
    sent.parameters += one.parameters;
    sent.norm += one.norm;
    sent.statistics += one.statistics;
  }
  return fmt::format(
      "on the wire: in each step rank 0 sends {} bytes: gradients {}, "
      "parameters {}, the norm {}, statistics {}; no rank sends more than {}",
      Thousands(sent.total()), Thousands(sent.gradients),
      Thousands(sent.parameters), Thousands(sent.norm),
      Thousands(sent.statistics),
      Thousands(optimized::MostBytesOfStep(config, ranks)));
}

// What `line` says of the rows: once if it is the same for all of them, else
// each text after the names of its rows.
std::string LineOfRows(const std::vector<RowEstimate>& rows,
                       const std::function<std::string(const Config&)>& line) {
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;
  for (const RowEstimate& row : rows) {
    const std::string text = line(row.run.config);
    auto known = lines.begin();
    while (known != lines.end() && known->first != text) ++known;
    if (known == lines.end()) known = lines.insert(known, {text, {}});
    known->second.push_back(row.run.row.id);
  }
  if (lines.size() == 1) return Paragraph(lines.front().first, 2);
  std::string text;
  for (const auto& [of_rows, names] : lines) {
    text +=
        Paragraph(fmt::format("of {}: {}", fmt::join(names, ", "), of_rows), 2);
  }
  return text;
}

}  // namespace

MemoryPlan RankMemory(const Config& config, int64_t ranks,
                      Recompute recompute) {
  (void)optimized::GroupsOfRank(optimized::NumGroups(config.training), ranks,
                                /*rank=*/0);
  return optimized::PlanStep(
      config, optimized::InitialAllocations(config, /*tau=*/0),
      config.training.balance_group_sequences, recompute,
      optimized::kProductWorkspaces, static_cast<int>(ranks));
}

std::optional<Recompute> RecomputeThatFits(const Config& config, int64_t ranks,
                                           double gpu_bytes) {
  const auto number = static_cast<int>(ranks);
  return optimized::LeastRecompute(
      config, optimized::InitialAllocations(config, /*tau=*/0),
      config.training.balance_group_sequences, optimized::kProductWorkspaces,
      optimized::PlannableMemory(static_cast<int64_t>(gpu_bytes), number),
      number);
}

RankTimes EstimateRankTimes(const Config& config, double active_experts,
                            const Cluster& cluster) {
  const int ranks = static_cast<int>(cluster.gpus);
  const int64_t groups = optimized::NumGroups(config.training);
  const int64_t own_groups = optimized::GroupsOfRank(groups, ranks, 0).size();
  const int64_t tokens = own_groups * config.training.balance_group_sequences *
                         config.model.sequence_length;
  RankTimes times;
  // A backward pass is two forward passes (cost_model.h).
  times.backward = 2 * CountForwardFlops(config.model, active_experts).total() *
                   static_cast<double>(tokens) / GpuFlops(config, cluster);
  if (ranks == 1) return times;

  const int64_t in_node =
      LayOutNodes(cluster.gpus, cluster.gpus_per_node).gpus_per_node;
  StepTraffic near, far;
  for (int to = 1; to < ranks; ++to) {
    StepTraffic& sum = to < in_node ? near : far;
    const StepTraffic one = optimized::TrafficOfStep(config, ranks, 0, to);
    sum.gradients += one.gradients;
    sum.parameters += one.parameters;
  }
  const auto seconds = [](int64_t near_bytes, int64_t far_bytes) {
    return std::max(static_cast<double>(near_bytes) / kLinkInNode,
                    static_cast<double>(far_bytes) / kLinkBetweenNodes);
  };
  times.gradients = seconds(near.gradients, far.gradients);
  times.parameters = seconds(near.parameters, far.parameters);

  const ParameterLayout layout(config);
  const int64_t comes_last = config.model.num_layers > 1
                                 ? layout.layers[1].attention_norm
                                 : layout.final_norm;
  const double early =
      1 - static_cast<double>(comes_last) / static_cast<double>(layout.total);
  if (own_groups == 1) {
    times.can_be_hidden = std::min(early * times.gradients, times.backward);
  }
  return times;
}

RankNumbers NumbersOfRanks(int64_t groups) {
  RankNumbers numbers;
  for (int64_t n = 1; n <= groups; ++n) {
    if (groups % n != 0) continue;
    (optimized::RanksAreSubtrees(groups, n) ? numbers.same_bits
                                            : numbers.own_bits)
        .push_back(n);
  }
  return numbers;
}

std::string DescribeRanks(const std::vector<RowEstimate>& rows,
                          const Cluster& machine) {
  const GridCorpus& corpus = rows.front().run.corpus;
  if (corpus.gpus == 0) return "";
  for (const RowEstimate& row : rows) {
    if (!SplitBatch(row.run.config.training, corpus.gpus).problem.empty()) {
      return "";
    }
  }
  Cluster cluster = machine;
  cluster.gpus = corpus.gpus;
  const int ranks = static_cast<int>(corpus.gpus);
  const NodeLayout nodes = LayOutNodes(corpus.gpus, machine.gpus_per_node);
  std::string text =
      fmt::format("Ranks of {}: {} on {}, {} on each\n", corpus.id,
                  Count(corpus.gpus, "GPU"), Count(nodes.nodes, "node"),
                  nodes.gpus_per_node);
  text += LineOfRows(rows, &BitsLine);
  std::map<std::string, std::string> sent;  // keyed by what decides it
  text += LineOfRows(rows, [&](const Config& config) {
    // Of the router's settings, only the kind decides which parameters exist.
    Config sends = config;
    sends.router = RouterConfig();
    sends.router.kind = config.router.kind;
    std::string& line = sent[ConfigToToml(sends)];
    if (line.empty()) line = WireLine(sends, ranks);
    return line;
  });
  text += "\n" + MemoryTable(rows, corpus.gpus, machine.gpu_bytes);
  if (ranks > 1) text += "\n" + TimeTable(rows, cluster);
  return text;
}

std::string RankLegend(const Cluster& machine) {
  const auto gigabytes = [](int64_t bytes) {
    return static_cast<double>(bytes) / 1e9;
  };
  const int64_t exchanged = optimized::kExchangePiece * int64_t{sizeof(float)};
  return Paragraph(fmt::format(
      "Ranks: what this trainer holds on each GPU in the first step, by part. "
      "weights: in fp32, all parameters on every rank; in bf16, all that "
      "passes read (for products a copy in bf16) and a shard of the fp32 "
      "parameters. moments: shards. gradients: a rank with g groups adds up "
      "theirs in ceil(log2 g) more buffers, and holds at most {} MiB of each "
      "other rank's at a time. routed: what the caps allow. GiB: all of it, "
      "with scratch and products, but without {:.3g} GB that kernels and "
      "{:.3g} GB that NCCL may take later. recompute: the setting that "
      "recomputes least of those with which all of it, including these, fits "
      "into {:.3g} GB. backward: at the assumed MFU. gradients, parameters: "
      "what a rank sends in a step, over links ASSUMED to carry {:.0f} GB/s "
      "each way in a node and {:.0f} GB/s between nodes. can be hidden: the "
      "share of the time on the wire that the backward pass can cover: over "
      "NCCL, a rank of one group sends each layer's gradients once they are "
      "complete; a rank of several groups can hide none.",
      exchanged >> 20, gigabytes(optimized::kReservedMemory),
      gigabytes(optimized::kReservedForNccl), machine.gpu_bytes / 1e9,
      kLinkInNode / 1e9, kLinkBetweenNodes / 1e9));
}

}  // namespace softmoe::experiments

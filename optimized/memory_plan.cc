// SPDX-License-Identifier: Apache-2.0
#include "optimized/memory_plan.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/text/format_bytes.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/embedding.h"
#include "kernels/rmsnorm.h"
#include "kernels/route_plan.h"
#include "kernels/router.h"

namespace softmoe::optimized {
namespace {

constexpr const char* kActivations = "activations";
constexpr const char* kRouting = "routing";
constexpr const char* kRoutedRows = "routed rows";
constexpr const char* kScratch = "scratch";
constexpr const char* kLogits = "logits";

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Notes what is taken.
class Planner : public ArraySource {
 public:
  explicit Planner(MemoryPlan* plan) : plan_(plan) {}

 private:
  void* TakeBytes(const char* part, const char* name, int64_t bytes) override {
    plan_->Add(part, name, bytes);
    return nullptr;
  }
  MemoryPlan* plan_;
};

bool HasJitter(const Config& config) {
  return config.router.noise == NoiseKind::kInputJitter;
}

// What a layer's backward pass needs besides its input and its routing.
void TakeActivations(const Config& config, int64_t n, ArraySource& source,
                     LayerActivations* layer) {
  const int64_t d = config.model.d_model;
  const auto take = [&](const char* name, int64_t size) {
    return source.Take<float>(kActivations, name, size);
  };
  layer->attention_normed = take("attention_normed", n * d);
  layer->attention_rstd = take("attention_rstd", n);
  layer->qkv = take("qkv", n * 3 * d);
  layer->attention_out = take("attention_out", n * d);
  layer->log_sum_exp = take("log_sum_exp", n * config.model.num_heads);
  layer->moe_residual = take("moe_residual", n * d);
  layer->moe_normed = take("moe_normed", n * d);
  layer->moe_rstd = take("moe_rstd", n);
  layer->jittered = take("jittered", HasJitter(config) ? n * d : 0);
}

void TakeRouting(const Config& config, int64_t n, ArraySource& source,
                 LayerActivations* layer) {
  const int64_t e = config.model.num_experts;
  layer->scores = source.Take<float>(kRouting, "scores", n * e);
  layer->soft_weights = source.Take<float>(kRouting, "soft_weights", n * e);
  layer->root = source.Take<float>(kRouting, "root", n * 2);
  layer->num_active = source.Take<int32_t>(kRouting, "num_active", n);
  layer->expert_offsets =
      source.Take<int32_t>(kRouting, "expert_offsets", e + 1);
  layer->d_probability = source.Take<float>(kRouting, "d_probability", e);
}

void TakeScratch(const Config& config, const PassSizes& sizes, MemoryKind kind,
                 ArraySource& source, PassArrays* arrays) {
  const ModelConfig& m = config.model;
  const int64_t n = sizes.num_tokens, rows = sizes.rows;
  const int64_t d = m.d_model, f = m.d_ffn, e = m.num_experts;
  const auto take = [&](const char* name, int64_t size) {
    return source.Take<float>(kScratch, name, size);
  };
  arrays->row_output = take("row_output", rows * d);
  arrays->route_scratch = source.Take<int32_t>(kScratch, "route_plan",
                                               kernels::RoutePlanScratch(n, e));
  arrays->router_scratch =
      source.Take<double>(kScratch, "router", kernels::RouterScratch(n, e));
  arrays->probability_sums =
      source.Take<double>(kScratch, "probability_sums", e);
  arrays->z_sum = source.Take<double>(kScratch, "z_sum", 1);
  arrays->d_residual = take("d_residual", n * d);
  arrays->d_normed = take("d_normed", n * d);
  arrays->d_attention_out = take("d_attention_out", n * d);
  arrays->d_qkv = take("d_qkv", n * 3 * d);
  arrays->d_jittered = take("d_jittered", HasJitter(config) ? n * d : 0);
  arrays->d_scores = take("d_scores", n * e);
  arrays->d_gates = take("d_gates", rows);
  arrays->d_row_gate = take("d_row_gate", rows);
  arrays->d_gate_up = take("d_gate_up", rows * 2 * f);
  arrays->activation = take("activation", rows * f);
  arrays->norm_scratch = take("norm", kernels::RmsNormScratch(n, d));
  arrays->embedding_scratch = source.Take<int32_t>(
      kScratch, "embedding",
      kind == MemoryKind::kDevice ? kernels::EmbeddingDeviceScratch(n)
                                  : n + m.vocab_size + 1);
  arrays->attention_scratch =
      take("attention",
           kernels::AttentionScratch(n / m.sequence_length, m.sequence_length,
                                     QueryBlock(config, kind)));
}

}  // namespace

void MemoryPlan::Add(const std::string& part, const std::string& name,
                     int64_t bytes) {
  SOFTMOE_CHECK(bytes >= 0) << name << ": " << bytes << " bytes";
  if (bytes == 0) return;
  arrays_.push_back({part, name, RoundUp(bytes, kAlignment)});
}

void MemoryPlan::Add(const MemoryPlan& other) {
  arrays_.insert(arrays_.end(), other.arrays_.begin(), other.arrays_.end());
}

int64_t MemoryPlan::bytes() const {
  int64_t total = 0;
  for (const PlannedArray& array : arrays_) total += array.bytes;
  return total;
}

int64_t MemoryPlan::bytes(const std::string& part) const {
  int64_t total = 0;
  for (const PlannedArray& array : arrays_) {
    if (array.part == part) total += array.bytes;
  }
  return total;
}

std::string MemoryPlan::Text() const {
  constexpr size_t kNamed = 3;  // arrays
  // Of each part, the arrays of one name together, in their order.
  std::vector<std::pair<std::string, std::vector<PlannedArray>>> parts;
  for (const PlannedArray& array : arrays_) {
    auto part = std::ranges::find(
        parts, array.part, [](const auto& entry) { return entry.first; });
    if (part == parts.end()) {
      part =
          parts.insert(parts.end(), {array.part, std::vector<PlannedArray>()});
    }
    const auto same =
        std::ranges::find(part->second, array.name, &PlannedArray::name);
    if (same == part->second.end()) {
      part->second.push_back(array);
    } else {
      same->bytes += array.bytes;
    }
  }
  const auto padded = [](const std::string& text, size_t width, bool right) {
    const size_t missing = text.size() < width ? width - text.size() : 0;
    return right ? std::string(missing, ' ') + text
                 : text + std::string(missing, ' ');
  };
  const auto line = [&](const std::string& name, int64_t bytes) {
    return "  " + padded(name, 14, false) +
           padded(FormatBytes(bytes), 12, true);
  };
  std::string text;
  for (auto& [name, named] : parts) {
    std::ranges::stable_sort(named, std::ranges::greater(),
                             &PlannedArray::bytes);
    text += line(name, bytes(name));
    for (size_t i = 0; i < std::min(kNamed, named.size()); ++i) {
      text += (i == 0 ? "  " : ", ") + named[i].name + " " +
              FormatBytes(named[i].bytes);
    }
    text += named.size() > kNamed ? ", ...\n" : "\n";
  }
  return text + line("together", bytes()) + "\n";
}

int64_t SharePairs(int64_t num_tokens, int64_t max_active) {
  return RoundUp(num_tokens * max_active,
                 MemoryPlan::kAlignment / static_cast<int64_t>(sizeof(float)));
}

PassSizes SizesOf(std::span<const LayerAllocation> allocations,
                  int64_t num_tokens) {
  PassSizes sizes = {num_tokens, 0, 0};
  for (const LayerAllocation& layer : allocations) {
    sizes.pairs += SharePairs(num_tokens, layer.max_active);
    sizes.rows = std::max(sizes.rows, num_tokens * layer.max_active);
  }
  return sizes;
}

PassSizes LargestSizes(const Config& config, int64_t num_tokens) {
  // Each layer's share may be rounded up, unless N tokens never are.
  const int64_t largest_rounding =
      SharePairs(num_tokens, 1) == num_tokens ? 0 : SharePairs(1, 1) - 1;
  return {num_tokens,
          num_tokens * LargestTotalActive(config) +
              config.model.num_layers * largest_rounding,
          num_tokens * LargestMaxActive(config)};
}

PassArrays TakePassArrays(const Config& config, const PassSizes& sizes,
                          Recompute recompute, MemoryKind kind,
                          ArraySource& source) {
  const ModelConfig& m = config.model;
  const int64_t n = sizes.num_tokens, d = m.d_model;
  PassArrays arrays;
  arrays.layers.resize(static_cast<size_t>(m.num_layers));
  for (size_t l = 0; l < arrays.layers.size(); ++l) {
    LayerActivations& layer = arrays.layers[l];
    if (recompute == Recompute::kLayer && l > 0) {
      layer = arrays.layers[0];
    } else {
      TakeActivations(config, n, source, &layer);
    }
    layer.residual = source.Take<float>(kActivations, "residual", n * d);
    TakeRouting(config, n, source, &layer);
  }
  arrays.final_residual =
      source.Take<float>(kActivations, "final_residual", n * d);
  arrays.final_normed = source.Take<float>(kActivations, "final_normed", n * d);
  arrays.final_rstd = source.Take<float>(kActivations, "final_rstd", n);

  const auto take_pairs = [&]<typename T>(const char* name,
                                          std::span<T>* pairs) {
    *pairs = source.Take<T>(kRouting, name, sizes.pairs);
  };
  take_pairs("selected", &arrays.selected);
  take_pairs("token_rows", &arrays.token_rows);
  take_pairs("row_token", &arrays.row_token);
  take_pairs("gates", &arrays.gates);
  take_pairs("row_gate", &arrays.row_gate);
  arrays.gate_up = source.Take<float>(
      kRoutedRows, "gate_up",
      (recompute == Recompute::kNone ? sizes.pairs : sizes.rows) * 2 * m.d_ffn);
  TakeScratch(config, sizes, kind, source, &arrays);

  const bool device = kind == MemoryKind::kDevice;
  arrays.inputs = source.Take<int32_t>(kScratch, "inputs", device ? n : 0);
  arrays.targets = source.Take<int32_t>(kScratch, "targets", device ? n : 0);
  arrays.budget_shares =
      source.Take<double>(kScratch, "budget_shares", device ? m.num_layers : 0);
  arrays.token_loss = source.Take<float>(kLogits, "token_loss", n);
  arrays.logits = source.Take<float>(kLogits, "logits",
                                     HeadChunk(config, n, kind) * m.vocab_size);
  return arrays;
}

MemoryPlan PlanPasses(const Config& config, const PassSizes& sizes,
                      Recompute recompute, MemoryKind kind) {
  MemoryPlan plan;
  Planner planner(&plan);
  (void)TakePassArrays(config, sizes, recompute, kind, planner);
  return plan;
}

MemoryPlan PlanModel(const Config& config) {
  const ModelConfig& m = config.model;
  const int64_t num_passes = NumPasses(config.training);
  const int64_t angles = m.sequence_length * (m.head_dim() / 2) * 4;
  MemoryPlan plan;
  plan.Add("parameters", "parameters", 4 * ParameterLayout(config).total);
  plan.Add("tables", "cosine", angles);
  plan.Add("tables", "sine", angles);
  plan.Add("reports", "counts", 8 * num_passes * ReportCounts(m));
  plan.Add("reports", "sums", 8 * num_passes * ReportSums(m));
  return plan;
}

MemoryPlan PlanUpdates(const Config& config) {
  const int64_t total = ParameterLayout(config).total;
  const int64_t num_groups = NumGroups(config.training);
  MemoryPlan plan;
  plan.Add("moments", "first", 4 * total);
  plan.Add("moments", "second", 4 * total);
  plan.Add("gradients", "sum", 4 * total);
  for (int64_t i = 0; i < TreeBuffers(num_groups); ++i) {
    plan.Add("gradients", "tree", 4 * total);
  }
  plan.Add("scratch", "sum_of_squares",
           8 * kernels::SumOfSquaresScratch(total));
  plan.Add("scratch", "sum_of_squares", 8);
  return plan;
}

MemoryPlan PlanStep(const Config& config,
                    std::span<const LayerAllocation> allocations,
                    int64_t group_sequences, Recompute recompute,
                    int64_t product_workspaces) {
  MemoryPlan plan = PlanModel(config);
  plan.Add(PlanUpdates(config));
  plan.Add(PlanPasses(
      config,
      SizesOf(allocations, group_sequences * config.model.sequence_length),
      recompute, MemoryKind::kDevice));
  plan.Add("products", "workspaces", product_workspaces);
  return plan;
}

void RequireMemory(const MemoryPlan& plan, int64_t free_bytes) {
  if (plan.bytes() <= free_bytes) return;
  throw EnvironmentError(
      "the device has " + FormatBytes(free_bytes) +
      " of memory left, and what comes next needs " +
      FormatBytes(plan.bytes()) + ":\n" + plan.Text() +
      "let runtime.recompute be \"experts\" or \"layer\", which takes time for "
      "memory and changes no result, or take smaller groups "
      "(training.balance_group_sequences)");
}

std::optional<Recompute> LeastRecompute(
    const Config& config, std::span<const LayerAllocation> allocations,
    int64_t group_sequences, int64_t product_workspaces, int64_t memory) {
  for (const Recompute recompute :
       {Recompute::kNone, Recompute::kExperts, Recompute::kLayer}) {
    if (PlanStep(config, allocations, group_sequences, recompute,
                 product_workspaces)
            .bytes() <= memory) {
      return recompute;
    }
  }
  return std::nullopt;
}

int64_t NumGroups(const TrainingConfig& training) {
  return training.global_batch_sequences / training.balance_group_sequences;
}

int64_t NumPasses(const TrainingConfig& training) {
  return std::max<int64_t>(1, NumGroups(training));
}

int64_t ReportCounts(const ModelConfig& model) {
  return model.num_layers * (3 * model.num_experts + 3);
}

int64_t ReportSums(const ModelConfig& model) {
  return model.num_layers * 4 + 1;
}

int64_t QueryBlock(const Config& config, MemoryKind kind) {
  return kind == MemoryKind::kHost
             ? 0
             : std::min<int64_t>(config.model.sequence_length, 128);
}

int64_t HeadChunk(const Config& config, int64_t num_tokens, MemoryKind kind) {
  if (kind == MemoryKind::kHost) return 0;
  // 256 MiB of logits, or 64 tokens'.
  const int64_t fitting = (int64_t{1} << 26) / config.model.vocab_size;
  return std::min(num_tokens, std::max<int64_t>(fitting, 64));
}

int64_t TreeBuffers(int64_t num_groups) {
  int64_t buffers = 0;
  for (int64_t leaves = 1; leaves < num_groups; leaves *= 2) ++buffers;
  return buffers;
}

}  // namespace softmoe::optimized

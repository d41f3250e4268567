// SPDX-License-Identifier: Apache-2.0
#include "optimized/memory_plan.h"

#include <algorithm>
#include <functional>
#include <iomanip>
#include <sstream>
#include <type_traits>
#include <utility>

#include "core/config/parameter_layout.h"
#include "core/errors.h"
#include "core/text/text_table.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/embedding.h"
#include "kernels/rmsnorm.h"
#include "kernels/route_plan.h"
#include "kernels/router.h"
#include "optimized/communicator/shards.h"
#include "optimized/parameter_shards.h"
#include "optimized/rank_groups.h"

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

// Notes the arrays that are taken.
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

template <typename Activation>
inline constexpr bool kIsBf16 = std::is_same_v<Activation, kernels::Bf16>;

// Whether the router reads an array of its own.
template <typename Activation>
bool HasRouterInput(const Config& config) {
  return kIsBf16<Activation> || config.router.noise == NoiseKind::kInputJitter;
}

// Takes arrays of one part; their type is that of their destination.
class PartSource {
 public:
  PartSource(const char* part, ArraySource& source)
      : part_(part), source_(source) {}

  template <typename T>
  void operator()(const char* name, int64_t size, std::span<T>* array) const {
    *array = source_.Take<T>(part_, name, size);
  }

 private:
  const char* part_;
  ArraySource& source_;
};

// What a layer's backward pass needs besides its input and its routing.
template <typename Activation>
void TakeActivations(const Config& config, int64_t n, ArraySource& source,
                     LayerActivationsOf<Activation>* layer) {
  const int64_t d = config.model.d_model;
  const PartSource take(kActivations, source);
  take("attention_normed", n * d, &layer->attention_normed);
  take("attention_rstd", n, &layer->attention_rstd);
  take("qkv", n * 3 * d, &layer->qkv);
  take("attention_out", n * d, &layer->attention_out);
  take("log_sum_exp", n * config.model.num_heads, &layer->log_sum_exp);
  take("moe_residual", n * d, &layer->moe_residual);
  take("moe_normed", n * d, &layer->moe_normed);
  take("moe_rstd", n, &layer->moe_rstd);
  take("router_input", HasRouterInput<Activation>(config) ? n * d : 0,
       &layer->router_input);
}

template <typename Activation>
void TakeRouting(const Config& config, int64_t n, ArraySource& source,
                 LayerActivationsOf<Activation>* layer) {
  const int64_t e = config.model.num_experts;
  const PartSource take(kRouting, source);
  take("scores", n * e, &layer->scores);
  take("soft_weights", n * e, &layer->soft_weights);
  take("root", n * 2, &layer->root);
  take("num_active", n, &layer->num_active);
  take("expert_offsets", e + 1, &layer->expert_offsets);
  take("d_probability", e, &layer->d_probability);
}

// Floats of attention scratch.
template <typename Activation>
int64_t AttentionScratch(const ModelConfig& m, int64_t num_tokens,
                         int64_t query_block) {
  const int64_t sequences = num_tokens / m.sequence_length;
  return kIsBf16<Activation> ? kernels::AttentionScratchForBf16(
                                   sequences, m.sequence_length, m.num_heads,
                                   m.head_dim(), query_block)
                             : kernels::AttentionScratch(
                                   sequences, m.sequence_length, query_block);
}

template <typename Activation>
void TakeScratch(const Config& config, const PassSizes& sizes, MemoryKind kind,
                 ArraySource& source, PassArraysOf<Activation>* arrays) {
  const ModelConfig& m = config.model;
  const int64_t n = sizes.num_tokens, rows = sizes.rows;
  const int64_t d = m.d_model, f = m.d_ffn, e = m.num_experts;
  const PartSource take(kScratch, source);
  take("row_output", rows * d, &arrays->row_output);
  take("route_plan", kernels::RoutePlanScratch(n, e), &arrays->route_scratch);
  take("router", kernels::RouterScratch(n, e), &arrays->router_scratch);
  take("probability_sums", e, &arrays->probability_sums);
  take("z_sum", 1, &arrays->z_sum);
  take("d_residual", n * d, &arrays->d_residual);
  take("d_normed", n * d, &arrays->d_normed);
  take("d_attention_out", n * d, &arrays->d_attention_out);
  take("d_qkv", n * 3 * d, &arrays->d_qkv);
  take("d_router_input", HasRouterInput<Activation>(config) ? n * d : 0,
       &arrays->d_router_input);
  take("d_scores", n * e, &arrays->d_scores);
  take("d_gates", rows, &arrays->d_gates);
  take("d_row_gate", rows, &arrays->d_row_gate);
  take("d_gate_up", rows * 2 * f, &arrays->d_gate_up);
  take("activation", rows * f, &arrays->activation);
  take("norm", kernels::RmsNormScratch(n, d), &arrays->norm_scratch);
  take("embedding",
       kind == MemoryKind::kDevice ? kernels::EmbeddingDeviceScratch(n, d)
                                   : n + m.vocab_size + 1,
       &arrays->embedding_scratch);
  take("attention",
       AttentionScratch<Activation>(m, n, QueryBlock(config, kind)),
       &arrays->attention_scratch);
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
  // The arrays of each part in their order, those of one name added up.
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
  std::ostringstream text;
  const auto add_line = [&](const std::string& name, int64_t bytes) {
    text << "  " << std::left << std::setw(14) << name << std::right
         << std::setw(12) << FormatBytes(bytes);
  };
  for (auto& [name, named] : parts) {
    std::ranges::stable_sort(named, std::ranges::greater(),
                             &PlannedArray::bytes);
    add_line(name, bytes(name));
    for (size_t i = 0; i < std::min(kNamed, named.size()); ++i) {
      text << (i == 0 ? "  " : ", ") << named[i].name << " "
           << FormatBytes(named[i].bytes);
    }
    text << (named.size() > kNamed ? ", ...\n" : "\n");
  }
  add_line("total", bytes());
  text << "\n";
  return text.str();
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
  // Each layer's share may be rounded up, unless N tokens need no rounding.
  const int64_t largest_rounding =
      SharePairs(num_tokens, 1) == num_tokens ? 0 : SharePairs(1, 1) - 1;
  return {num_tokens,
          num_tokens * LargestTotalActive(config) +
              config.model.num_layers * largest_rounding,
          num_tokens * LargestMaxActive(config)};
}

template <typename Activation>
PassArraysOf<Activation> TakePassArrays(const Config& config,
                                        const PassSizes& sizes,
                                        Recompute recompute, MemoryKind kind,
                                        ArraySource& source) {
  const ModelConfig& m = config.model;
  const int64_t n = sizes.num_tokens, d = m.d_model;
  const PartSource activations(kActivations, source);
  const PartSource routing(kRouting, source);
  const PartSource routed_rows(kRoutedRows, source);
  const PartSource scratch(kScratch, source), logits(kLogits, source);
  PassArraysOf<Activation> arrays;
  arrays.layers.resize(static_cast<size_t>(m.num_layers));
  for (size_t l = 0; l < arrays.layers.size(); ++l) {
    LayerActivationsOf<Activation>& layer = arrays.layers[l];
    if (recompute == Recompute::kLayer && l > 0) {
      layer = arrays.layers[0];
    } else {
      TakeActivations(config, n, source, &layer);
    }
    activations("residual", n * d, &layer.residual);
    TakeRouting(config, n, source, &layer);
  }
  activations("final_residual", n * d, &arrays.final_residual);
  activations("final_normed", n * d, &arrays.final_normed);
  activations("final_rstd", n, &arrays.final_rstd);

  routing("selected", sizes.pairs, &arrays.selected);
  routing("token_rows", sizes.pairs, &arrays.token_rows);
  routing("row_token", sizes.pairs, &arrays.row_token);
  routing("gates", sizes.pairs, &arrays.gates);
  routing("row_gate", sizes.pairs, &arrays.row_gate);
  routed_rows(
      "gate_up",
      (recompute == Recompute::kNone ? sizes.pairs : sizes.rows) * 2 * m.d_ffn,
      &arrays.gate_up);
  TakeScratch(config, sizes, kind, source, &arrays);

  const bool device = kind == MemoryKind::kDevice;
  scratch("inputs", device ? n : 0, &arrays.inputs);
  scratch("targets", device ? n : 0, &arrays.targets);
  scratch("budget_shares", device ? m.num_layers : 0, &arrays.budget_shares);
  logits("token_loss", n, &arrays.token_loss);
  logits("is_greedy", n, &arrays.is_greedy);
  const int64_t logits_size = HeadChunk(config, n, kind) * m.vocab_size;
  logits("logits", logits_size, &arrays.logits);
  logits("d_logits", kIsBf16<Activation> ? logits_size : 0, &arrays.d_logits);
  return arrays;
}

template PassArraysOf<float> TakePassArrays(const Config&, const PassSizes&,
                                            Recompute, MemoryKind,
                                            ArraySource&);
template PassArraysOf<kernels::Bf16> TakePassArrays(const Config&,
                                                    const PassSizes&, Recompute,
                                                    MemoryKind, ArraySource&);

MemoryPlan PlanPasses(const Config& config, const PassSizes& sizes,
                      Recompute recompute, MemoryKind kind) {
  MemoryPlan plan;
  Planner planner(&plan);
  switch (config.training.precision) {
    case Precision::kFp32:
      (void)TakePassArrays<float>(config, sizes, recompute, kind, planner);
      break;
    case Precision::kBf16:
      (void)TakePassArrays<kernels::Bf16>(config, sizes, recompute, kind,
                                          planner);
      break;
  }
  return plan;
}

namespace {

void PlanParameters(const Config& config, int ranks, MemoryPlan* plan) {
  const ParameterLayout layout(config);
  if (config.training.precision == Precision::kFp32) {
    plan->Add("parameters", "parameters", 4 * layout.total);
    return;
  }
  if (ranks > 1) {
    plan->Add("parameters", "own shard",
              4 * LargestPart(ParameterBuckets(layout, ranks)));
    plan->Add("parameters", "read in fp32",
              4 * Fp32Tensors(layout).packed().total);
    plan->Add("parameters", "staged", 4 * StagedParameters(layout.total));
  } else {
    plan->Add("parameters", "parameters", 4 * layout.total);
  }
  plan->Add("parameters", "copy in bf16", 2 * layout.total);
}

}  // namespace

MemoryPlan PlanModel(const Config& config, int ranks) {
  const ModelConfig& m = config.model;
  const int64_t num_passes = NumPasses(config.training);
  const int64_t angles = m.sequence_length * (m.head_dim() / 2) * 4;
  MemoryPlan plan;
  PlanParameters(config, ranks, &plan);
  plan.Add("tables", "cosine", angles);
  plan.Add("tables", "sine", angles);
  plan.Add("reports", "counts", 8 * num_passes * ReportCounts(m));
  plan.Add("reports", "sums", 8 * num_passes * ReportSums(m));
  return plan;
}

MemoryPlan PlanUpdates(const Config& config, int ranks) {
  const ParameterLayout layout(config);
  const int64_t total = layout.total;
  const int64_t num_groups = NumGroups(config.training);
  const std::vector<Bucket> buckets = ParameterBuckets(layout, ranks);
  const int64_t shard = LargestPart(buckets);
  const int64_t piece = std::min(kExchangePiece, LargestShard(buckets));
  MemoryPlan plan;
  plan.Add("moments", "first", 4 * shard);
  plan.Add("moments", "second", 4 * shard);
  plan.Add("gradients", ranks > 1 ? "sum of a rank" : "sum", 4 * total);
  for (int64_t i = 0; i < TreeBuffers(num_groups / ranks); ++i) {
    plan.Add("gradients", "tree", 4 * total);
  }
  plan.Add("gradients", "from ranks", 4 * (ranks - 1) * piece);
  const auto add_norm = [&](int64_t size) {
    plan.Add("scratch", "sum_of_squares",
             8 * kernels::SumOfSquaresScratch(size));
    plan.Add("scratch", "sum_of_squares", 8);
  };
  add_norm(total);
  if (ranks > 1) add_norm(shard);  // the optimizer of this rank's shards
  return plan;
}

MemoryPlan PlanStep(const Config& config,
                    std::span<const LayerAllocation> allocations,
                    int64_t group_sequences, Recompute recompute,
                    int64_t product_workspaces, int ranks) {
  MemoryPlan plan = PlanModel(config, ranks);
  plan.Add(PlanUpdates(config, ranks));
  plan.Add(PlanPasses(
      config,
      SizesOf(allocations, group_sequences * config.model.sequence_length),
      recompute, MemoryKind::kDevice));
  plan.Add("products", "workspaces", product_workspaces);
  return plan;
}

int64_t StagedParameters(int64_t total) {
  return std::min(total, int64_t{1} << 15);
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
  // 256 MiB of logits, but at least 64 tokens.
  const int64_t fitting = (int64_t{1} << 26) / config.model.vocab_size;
  return std::min(num_tokens, std::max<int64_t>(fitting, 64));
}

int64_t TreeBuffers(int64_t num_groups) {
  int64_t buffers = 0;
  for (int64_t leaves = 1; leaves < num_groups; leaves *= 2) ++buffers;
  return buffers;
}

}  // namespace softmoe::optimized

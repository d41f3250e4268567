// SPDX-License-Identifier: Apache-2.0
#include "optimized/expected_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "core/config/config_enums.h"
#include "core/config/parameter_layout.h"
#include "core/text/text_table.h"
#include "optimized/allocation.h"
#include "optimized/rank_groups.h"

namespace softmoe::optimized {
namespace {

// NVIDIA H100 SXM5, data sheet: without sparsity.
constexpr double kBf16Flops = 989.4e12;
constexpr double kBytesPerSecond = 3.35e12;
constexpr double kMemoryShare = 0.75;
constexpr double kProductShare = 0.65;

// Shares for causal attention, forward and backward: flash attention in bf16;
// in fp32 products of cuBLASLt with softmax between them.
struct AttentionShares {
  double forward, backward;
};
constexpr AttentionShares kAttentionBf16 = {0.28, 0.24};
constexpr AttentionShares kAttentionFp32 = {0.17, 0.20};

class StepForecast {
 public:
  StepForecast(const Config& config, Recompute recompute, int ranks)
      : config_(config),
        m_(config.model),
        recompute_(recompute),
        bf16_(config.training.precision == Precision::kBf16),
        passes_(NumGroups(config.training) / ranks),
        n_(config.training.balance_group_sequences * m_.sequence_length),
        ranks_(ranks) {}

  std::vector<ExpectedOperation> Operations() {
    const double nd = Real(n_ * m_.d_model);
    // The caps do not depend on tau.
    const std::vector<LayerAllocation> layers = InitialAllocations(config_, 0);
    AddMoves("embedding", 1, (4 + size()) * nd);
    for (const LayerAllocation& layer : layers) {
      AddAttention();
      AddMoe(n_ * layer.max_active);
    }
    AddMoves("norm", 1, 2 * size() * nd);
    // Logits are floats, read twice; their gradient is an activation.
    AddProducts("head and loss", 3, m_.vocab_size, m_.d_model,
                (8 + size()) * Real(n_ * m_.vocab_size));
    AddMoves("clear", 1, size() * nd);
    AddMoves("norm, backward", 1, 4 * size() * nd);
    for (size_t l = layers.size(); l-- > 0;) {
      const int64_t rows = n_ * layers[l].max_active;
      if (l + 1 < layers.size()) AddRecomputed(rows);
      AddMoeBackward(rows);
      AddAttentionBackward();
    }
    AddMoves("embedding, backward", 1,
             size() * nd + 4 * Real(m_.vocab_size * m_.d_model));
    for (ExpectedOperation& operation : operations_) {
      operation.calls *= passes_;
      operation.work.flops *= Real(passes_);
      operation.work.bytes *= Real(passes_);
    }
    AddUpdate();
    for (ExpectedOperation& operation : operations_) SetSeconds(&operation);
    return std::move(operations_);
  }

 private:
  static double Real(int64_t count) { return static_cast<double>(count); }
  // Bytes of an activation.
  double size() const { return bf16_ ? 2 : 4; }
  double peak(const std::string& name) const {
    return bf16_ && !name.starts_with("router") ? kBf16Flops : kH100Fp32Flops;
  }

  void Add(const std::string& name, int64_t calls, double flops, double bytes,
           double product_share) {
    auto found = std::ranges::find(operations_, name, &ExpectedOperation::name);
    if (found == operations_.end()) {
      operations_.push_back({.name = name, .product_share = product_share});
      found = operations_.end() - 1;
    }
    found->calls += calls;
    found->work.flops += flops;
    found->work.bytes += bytes;
  }
  void AddMoves(const std::string& name, int64_t calls, double bytes) {
    Add(name, calls, 0, bytes, 0);
  }
  // `count` products of [n, k] and [k, columns].
  void AddProducts(const std::string& name, int count, int64_t columns,
                   int64_t k, double bytes = 0) {
    Add(name, 1, 2.0 * count * Real(n_) * Real(columns) * Real(k), bytes,
        kProductShare);
  }

  void AddAttention() {
    const int64_t d = m_.d_model;
    const double nd = Real(n_ * d);
    AddMoves("norm", 1, 2 * size() * nd);
    AddProducts("qkv product", 1, 3 * d, d);
    AddMoves("rope", 1, 4 * size() * nd);
    Add("attention", 1, 2 * nd * Real(m_.sequence_length + 1), 0,
        attention().forward);
    AddMoves("copy", 1, 2 * size() * nd);
    AddProducts("output product", 1, d, d);
  }
  void AddAttentionBackward() {
    const int64_t d = m_.d_model;
    const double nd = Real(n_ * d);
    AddProducts("output product, backward", 2, d, d);
    Add("attention, backward", 1, 5 * nd * Real(m_.sequence_length + 1), 0,
        attention().backward);
    AddMoves("rope", 1, 4 * size() * nd);
    AddProducts("qkv product, backward", 2, 3 * d, d);
    AddMoves("norm, backward", 1, 4 * size() * nd);
  }

  // Experts' rows are gathered, activated and combined by kernels that move
  // 2 d, 3 f and 2 d numbers per row. The router reads floats.
  void AddMoe(int64_t rows) {
    const double nd = Real(n_ * m_.d_model);
    AddMoves("norm", 1, 2 * size() * nd);
    AddProducts("router scores", 1, m_.num_experts, m_.d_model,
                4 * nd + (bf16_ ? (size() + 4) * nd : 0));
    AddMoves("router", 1, 8 * Real(n_ * m_.num_experts));
    AddMoves("route plan and counts", 1, 24 * Real(rows));
    AddMoves("copy", 1, 2 * size() * nd);
    AddExperts("experts", 3, rows, 4, 3);
  }
  void AddMoeBackward(int64_t rows) {
    const double nd = Real(n_ * m_.d_model);
    AddExperts("experts, backward", 6, rows, 4, 6);
    AddMoves("router, backward", 1, 12 * Real(n_ * m_.num_experts));
    AddProducts("router scores, backward", 2, m_.num_experts, m_.d_model,
                8 * nd + (bf16_ ? (4 + 2 * size()) * nd : 0));
    AddMoves("norm, backward", 1, 4 * size() * nd);
  }
  // Without the experts' last product.
  void AddRecomputed(int64_t rows) {
    if (recompute_ == Recompute::kNone) return;
    if (recompute_ == Recompute::kLayer) {
      AddAttention();
      const double nd = Real(n_ * m_.d_model);
      AddMoves("norm", 1, (2 * size() + (bf16_ ? size() + 4 : 0)) * nd);
    }
    AddExperts("experts", 2, rows, 2, 3);
  }
  // `count` products with each row; besides, `d` * d_model + `f` * d_ffn
  // numbers of each row are moved.
  void AddExperts(const std::string& name, int count, int64_t rows, int d,
                  int f) {
    Add(name, 1, 2.0 * count * Real(rows) * Real(m_.d_model) * Real(m_.d_ffn),
        size() * Real(rows * (d * m_.d_model + f * m_.d_ffn)), kProductShare);
  }

  AttentionShares attention() const {
    return bf16_ ? kAttentionBf16 : kAttentionFp32;
  }

  void AddUpdate() {
    const double total = Real(ParameterLayout(config_).total);
    if (passes_ > 1) {
      AddMoves("sum over groups", passes_ - 1, 12 * total * Real(passes_ - 1));
    }
    AddMoves("norm of the gradient", 1, 4 * total / ranks_);
    AddMoves("AdamW", 1, (28 + (bf16_ ? 6 : 0)) * total / ranks_);
  }

  void SetSeconds(ExpectedOperation* operation) const {
    operation->seconds =
        operation->work.bytes / (kMemoryShare * kBytesPerSecond);
    if (operation->product_share > 0) {
      operation->seconds += operation->work.flops /
                            (operation->product_share * peak(operation->name));
    }
  }

  const Config& config_;
  const ModelConfig& m_;
  const Recompute recompute_;
  const bool bf16_;
  const int64_t passes_, n_;
  const int ranks_;
  std::vector<ExpectedOperation> operations_;
};

}  // namespace

std::vector<ExpectedOperation> ExpectedStep(const Config& config,
                                            Recompute recompute, int ranks) {
  return StepForecast(config, recompute, ranks).Operations();
}

std::string ExpectedStepText(const Config& config, Recompute recompute,
                             int ranks) {
  std::vector<ExpectedOperation> step = ExpectedStep(config, recompute, ranks);
  double total = 0;
  for (const ExpectedOperation& operation : step) total += operation.seconds;
  std::ranges::stable_sort(step, std::greater(), &ExpectedOperation::seconds);
  TextTable table({"operation", "calls", "TFLOP", "GB", "of peak", "ms", "%"});
  for (const ExpectedOperation& operation : step) {
    table.Add({operation.name, fmt::format("{}", operation.calls),
               fmt::format("{:.3f}", operation.work.flops / 1e12),
               fmt::format("{:.3f}", operation.work.bytes / 1e9),
               fmt::format("{:.2f}", operation.product_share > 0
                                         ? operation.product_share
                                         : kMemoryShare),
               fmt::format("{:.2f}", 1e3 * operation.seconds),
               fmt::format("{:.1f}", 100 * operation.seconds / total)});
  }
  const TrainingConfig& training = config.training;
  const double tokens = static_cast<double>(training.global_batch_sequences *
                                            config.model.sequence_length) /
                        ranks;
  return fmt::format(
      "expected step{} on an H100 SXM, at ASSUMED shares of its peaks, every "
      "token using as many experts as its router allows;\nlaunch overhead{} "
      "and waits are not counted:\n{}{:.0f} ms for {:.0f} tokens: {:.0f} "
      "tokens/s\n",
      ranks > 1 ? fmt::format(" of one of {} ranks", ranks) : "",
      ranks > 1 ? ", exchange" : "", table.Text(), 1e3 * total, tokens,
      tokens / total);
}

}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
#include "optimized/workspace.h"

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "optimized/step_memory.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {
namespace {

// Rotation of pair i at position t: t * base^(-2i/head_dim) (SPEC.md 3.2).
void FillRopeTables(const ModelConfig& model, Queue& queue,
                    Buffer<float>* cosine, Buffer<float>* sine) {
  const int64_t pairs = model.head_dim() / 2;
  std::vector<float> cosines(cosine->size()), sines(sine->size());
  for (int64_t i = 0; i < pairs; ++i) {
    const double frequency =
        std::pow(model.rope_base, -2.0 * static_cast<double>(i) /
                                      static_cast<double>(model.head_dim()));
    for (int64_t t = 0; t < model.sequence_length; ++t) {
      const double angle = static_cast<double>(t) * frequency;
      cosines[t * pairs + i] = static_cast<float>(std::cos(angle));
      sines[t * pairs + i] = static_cast<float>(std::sin(angle));
    }
  }
  WriteArray<float>(queue, cosines, cosine->data());
  WriteArray<float>(queue, sines, sine->data());
}

// Allocates every array by itself.
class SingleArrays : public ArraySource {
 public:
  explicit SingleArrays(std::vector<Buffer<std::byte>>* memory)
      : memory_(memory) {}

 private:
  void* TakeBytes(const char* /*part*/, const char* /*name*/,
                  int64_t bytes) override {
    return memory_->emplace_back(bytes).data();
  }
  std::vector<Buffer<std::byte>>* memory_;
};

// Places one array after the other, as planned.
class Arena : public ArraySource {
 public:
  Arena(const MemoryPlan& plan, std::byte* memory)
      : plan_(plan), memory_(memory) {}

 private:
  void* TakeBytes(const char* part, const char* name, int64_t bytes) override {
    if (bytes == 0) return nullptr;
    SOFTMOE_CHECK(next_ < plan_.arrays().size()) << name << " was not planned";
    const PlannedArray& array = plan_.arrays()[next_++];
    SOFTMOE_CHECK(array.part == part && array.name == name &&
                  bytes <= array.bytes)
        << name << ", " << bytes << " bytes, where " << array.name << ", "
        << array.bytes << " bytes, was planned";
    std::byte* taken = memory_;
    memory_ += array.bytes;
    return taken;
  }
  const MemoryPlan& plan_;
  std::byte* memory_;
  size_t next_ = 0;
};

}  // namespace

Workspace::Workspace(const Config& config, int64_t max_tokens,
                     Recompute recompute, Queue& queue)
    : cosine(config.model.sequence_length * (config.model.head_dim() / 2)),
      sine(cosine.size()),
      report(config.model, NumPasses(config.training)),
      query_block(QueryBlock(config, kMemory)),
      head_chunk(HeadChunk(config, max_tokens, kMemory)),
      config_(config),
      max_tokens_(max_tokens),
      recompute_(recompute),
      sizes_{max_tokens, 0, 0} {
  FillRopeTables(config.model, queue, &cosine, &sine);
  const size_t num_layers = static_cast<size_t>(config.model.num_layers);
  shares.resize(num_layers);
  host_offsets_.resize(num_layers);
  Take(kMemory == MemoryKind::kHost
           ? LargestSizes(config, max_tokens)
           : SizesOf(InitialAllocations(config, /*tau=*/0), max_tokens));
}

void Workspace::Reserve(std::span<const LayerAllocation> allocations,
                        Queue& queue) {
  const PassSizes needed = SizesOf(allocations, max_tokens_);
  if (sizes_.Holds(needed)) return;
  WaitFor(queue);
  Take({max_tokens_, std::max(sizes_.pairs, needed.pairs),
        std::max(sizes_.rows, needed.rows)});
}

void Workspace::Take(const PassSizes& sizes) {
  memory_.clear();
  sizes_ = {max_tokens_, 0, 0};
  PassArrays& arrays = *this;
  if constexpr (kMemory == MemoryKind::kHost) {
    SingleArrays source(&memory_);
    arrays =
        TakePassArrays<Activation>(config_, sizes, recompute_, kMemory, source);
  } else {
    const MemoryPlan plan = PlanPasses(config_, sizes, recompute_, kMemory);
    RequireMemory(plan, FreeBytes());
    Arena source(plan, memory_.emplace_back(plan.bytes()).data());
    arrays =
        TakePassArrays<Activation>(config_, sizes, recompute_, kMemory, source);
  }
  sizes_ = sizes;
}

void Workspace::PlaceShares(std::span<const LayerAllocation> allocations,
                            int64_t num_tokens) {
  SOFTMOE_CHECK(allocations.size() == shares.size());
  const PassSizes needed = SizesOf(allocations, num_tokens);
  SOFTMOE_CHECK(sizes_.Holds(needed))
      << needed.num_tokens << " tokens and " << needed.pairs
      << " pairs in a workspace for " << sizes_.num_tokens << " and "
      << sizes_.pairs;
  int64_t pair = 0;
  for (size_t l = 0; l < shares.size(); ++l) {
    const int64_t max_active = allocations[l].max_active;
    const int64_t first_row = recompute_ == Recompute::kNone ? pair : 0;
    shares[l] = {max_active,
                 selected.data() + pair,
                 gates.data() + pair,
                 token_rows.data() + pair,
                 row_token.data() + pair,
                 row_gate.data() + pair,
                 gate_up.data() + first_row * 2 * config_.model.d_ffn};
    pair += SharePairs(num_tokens, max_active);
  }
}

kernels::RoutePlan Workspace::FetchPlan(Queue& queue, int64_t layer,
                                        int64_t num_tokens) {
  host_offsets_[layer].Start(queue, layers[layer].expert_offsets.data(),
                             config_.model.num_experts + 1);
  Finish(queue);
  return Plan(layer, num_tokens);
}

kernels::RoutePlan Workspace::Plan(int64_t layer, int64_t num_tokens) const {
  const RoutedShare& share = shares[layer];
  return {.num_tokens = num_tokens,
          .num_experts = config_.model.num_experts,
          .num_routed = host_offsets_[layer].view().back(),
          .max_active = share.max_active,
          .expert_offsets = layers[layer].expert_offsets.data(),
          .row_token = share.row_token,
          .row_gate = share.row_gate,
          .token_rows = share.token_rows};
}

int64_t Workspace::bytes() const {
  int64_t total = cosine.bytes() + sine.bytes() + report.bytes();
  for (const Buffer<std::byte>& memory : memory_) total += memory.bytes();
  return total;
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

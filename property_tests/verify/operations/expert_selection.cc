// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/operations/expert_selection.h"

#include <algorithm>
#include <utility>

#include "property_tests/verify/engine/expected.h"

namespace softmoe::verify {

Tensor Selection(const Case& c, const Filler& filler) {
  const Window rows = filler.Axis("rows");
  const Window experts = filler.Axis("num_experts");
  const std::string& fill = c.fill.name;
  Tensor active(Dtype::kI32, {rows.count, experts.count});
  for (int64_t t = 0; t < rows.count; ++t) {
    const int64_t row = rows.first + t;
    double* out = &active.values[t * experts.count];
    if (fill == "one_expert_all") out[0] = 1;
    if (fill == "one_expert_all" || fill == "empty") continue;
    int64_t wanted = filler.Words("active", {row, kMaxIndex - 1})[0] %
                     (c.Size("max_active") + 1);
    if (fill == "uneven_ranks") wanted = std::max<int64_t>(wanted, 1);
    std::vector<std::pair<uint32_t, int64_t>> order;
    for (int64_t e = 0; e < experts.count; ++e) {
      const int64_t expert = experts.first + e;
      if (fill == "uneven_ranks" &&
          (expert < Filler::kRankExperts) != Filler::GoesToTheFirstRank(row)) {
        continue;
      }
      order.emplace_back(filler.Words("active", {row, expert})[0], e);
    }
    std::ranges::sort(order);
    wanted = std::min(wanted, static_cast<int64_t>(order.size()));
    for (int64_t i = 0; i < wanted; ++i) out[order[i].second] = 1;
    if (fill == "expert_0_and_1") {
      out[0] = 0;
      if (experts.count > 1) out[1] = 0;
      if (experts.count > 1 && t == 0) {
        std::fill(out, out + experts.count, 0.0);
        out[1] = 1;
      }
    }
  }
  return active;
}

void KeepActive(const Tensor& active, Tensor* values) {
  for (int64_t i = 0; i < values->size(); ++i) {
    values->values[i] *= active.values[i];
  }
}

void ZeroSomeGates(const Filler& filler, Tensor* gates) {
  const Window rows = filler.Axis("rows");
  const Window experts = filler.Axis("num_experts");
  for (int64_t t = 0; t < rows.count; ++t) {
    for (int64_t e = 0; e < experts.count; ++e) {
      const auto words =
          filler.Words("gate of 0", {rows.first + t, experts.first + e});
      if (words[0] % 4 == 0) gates->values[t * experts.count + e] = 0;
    }
  }
}

std::string WhyNoSelection(const Case& c, const TensorMap& inputs) {
  const Tensor& active = At(inputs, "active");
  const Tensor& gates = At(inputs, "gates");
  const int64_t experts = c.Size("num_experts");
  const std::string no_set = WhyNoIds(inputs, "active", 2);
  if (!no_set.empty()) return no_set;
  for (int64_t t = 0; t < c.Size("rows"); ++t) {
    int64_t count = 0;
    for (int64_t i = t * experts; i < (t + 1) * experts; ++i) {
      count += active.values[i] == 1;
      if (active.values[i] == 0 && gates.values[i] != 0) {
        return "gates must stay 0 where active is";
      }
    }
    if (count > c.Size("max_active")) return "more are active than the cap";
  }
  return "";
}

SelectedExperts::SelectedExperts(const Case& c, const TensorMap& inputs)
    : rows(c.Size("rows")),
      num_experts(c.Size("num_experts")),
      max_active(c.Size("max_active")),
      num_active(rows),
      selected(num_slots(), -1),
      gates(num_slots()),
      expert_offsets({0}),
      token_rows(num_slots(), -1) {
  const Tensor& active = At(inputs, "active");
  const Tensor& all_gates = At(inputs, "gates");
  for (int64_t e = 0; e < num_experts; ++e) {
    for (int64_t t = 0; t < rows; ++t) {
      if (active.values[t * num_experts + e] == 0) continue;
      const int64_t slot = t * max_active + num_active[t]++;
      selected[slot] = static_cast<int32_t>(e);
      gates[slot] = static_cast<float>(all_gates.values[t * num_experts + e]);
      token_rows[slot] = static_cast<int32_t>(row_token.size());
      row_token.push_back(static_cast<int32_t>(t));
      row_gate.push_back(gates[slot]);
    }
    expert_offsets.push_back(static_cast<int32_t>(row_token.size()));
  }
}

Tensor SelectedExperts::ByExpert(const std::vector<float>& of_slots) const {
  Tensor values(Dtype::kF32, {rows, num_experts});
  for (int64_t slot = 0; slot < num_slots(); ++slot) {
    if (selected[slot] < 0) continue;
    values.values[slot / max_active * num_experts + selected[slot]] =
        of_slots[slot];
  }
  return values;
}

}  // namespace softmoe::verify

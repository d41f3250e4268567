// SPDX-License-Identifier: Apache-2.0
//
// config_fields.h - the one list of configuration keys and their ranges, which
// drives parsing, printing, hashing and checking.
#ifndef SOFTMOE_CORE_CONFIG_CONFIG_FIELDS_H_
#define SOFTMOE_CORE_CONFIG_CONFIG_FIELDS_H_

#include <cstdint>
#include <limits>
#include <string>

#include "core/config/config.h"

namespace softmoe {

// The range of a single number. Relations between keys: config_check.cc.
struct AllowedRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_excluded = false;
  bool high_excluded = false;

  // False for NaN and for infinities, whatever the range.
  bool Contains(double value) const;
  std::string Describe() const;  // ">= 1", "> 0", "in [0, 1)"
};

constexpr AllowedRange AtLeast(double low) { return {.low = low}; }
constexpr AllowedRange Above(double low) {
  return {.low = low, .low_excluded = true};
}
constexpr AllowedRange Between(double low, double high) {
  return {.low = low, .high = high};
}
// [low, high)
constexpr AllowedRange Below(double low, double high) {
  return {.low = low, .high = high, .high_excluded = true};
}
constexpr AllowedRange kAnyText = {};
// The range of numbers that kernels take as floats: neither such a float nor
// its inverse becomes 0 or infinite.
constexpr AllowedRange kFloat = Between(1e-30, 1e30);
constexpr AllowedRange kFloatOrZero = Between(0, 1e30);
// The range of AdamW's betas. Kernels take them as floats, up to 2^-25 away,
// but correct moments by 1 - beta^t in double, so a first step is wrong by up
// to 2^-25 / (1 - beta1) + 2^-26 / (1 - beta2) of itself: 4.5e-4 at 0.9999.
constexpr AllowedRange kBeta = Between(0, 0.9999);
// The range of AdamW's epsilon. An update of v may flush a square and a sum to
// 0, each below 2^-126. Then v / (1 - beta2^t) lacks up to 2^-125 / (1 -
// beta2), and its root up to 1.6e-17, 1.6 % of this lowest epsilon. With a much
// lower one, a step of 1 could become any m / epsilon.
constexpr AllowedRange kAdamEpsilon = Between(1e-15, 1e30);
// The most sequences in a batch, a micro-batch or a balance group.
constexpr int64_t kMaxSequences = 1 << 20;

// The range of a key that was added later. Its default must mean what is done
// without the key, and must never change. A key with its default is left out of
// the hashed text (config_text.h), so that configurations keep their hashes,
// and runs their folders.
struct LaterKey : AllowedRange {};
constexpr LaterKey Later(const AllowedRange& range) { return {range}; }

// Calls visit(section, key, field, range) for every field of `config` (const or
// not) in the canonical order. The upper limits of sizes keep the sizes of a
// model within 63 bits and, with the checks of products in config_check.cc, the
// sizes of a pass. The range of a new key is Later(...).
template <typename ConfigType, typename Visitor>
void VisitConfig(ConfigType& config, Visitor&& visit) {
  auto& m = config.model;
  visit("model", "num_layers", m.num_layers, Between(1, 1 << 10));
  visit("model", "d_model", m.d_model, Between(2, 1 << 16));
  visit("model", "num_heads", m.num_heads, Between(1, 1 << 15));
  visit("model", "d_ffn", m.d_ffn, Between(1, 1 << 18));
  // The router's kernels hold all scores of a token (kernels/router.h).
  visit("model", "num_experts", m.num_experts, Between(1, 256));
  visit("model", "vocab_size", m.vocab_size, Between(2, 1 << 24));
  visit("model", "sequence_length", m.sequence_length, Between(1, 1 << 20));
  visit("model", "rope_base", m.rope_base, AtLeast(1));
  visit("model", "norm_epsilon", m.norm_epsilon, kFloat);
  visit("model", "init_std", m.init_std, kFloat);

  auto& r = config.router;
  visit("router", "kind", r.kind, kAnyText);
  visit("router", "mean_active_experts", r.mean_active_experts, AtLeast(1));
  visit("router", "expansion_factor", r.expansion_factor, Between(1, 1 << 12));
  visit("router", "tau", r.tau, Above(0));
  visit("router", "calibration_batches", r.calibration_batches,
        Between(1, 1 << 20));
  visit("router", "fallback", r.fallback, kAnyText);
  visit("router", "noise", r.noise, kAnyText);
  visit("router", "noise_amplitude", r.noise_amplitude, kFloatOrZero);
  visit("router", "temperature_start", r.temperature_start, kFloat);
  visit("router", "temperature_end", r.temperature_end, kFloat);
  visit("router", "load_balance", r.load_balance, kAnyText);
  visit("router", "aux_loss_coeff", r.aux_loss_coeff, kFloatOrZero);
  visit("router", "z_loss_coeff", r.z_loss_coeff, kFloatOrZero);
  visit("router", "init_std", r.init_std, Later(kFloatOrZero));

  auto& t = config.training;
  visit("training", "steps", t.steps, Between(1, (int64_t{1} << 31) - 1));
  visit("training", "global_batch_sequences", t.global_batch_sequences,
        Between(1, kMaxSequences));
  visit("training", "micro_batch_sequences", t.micro_batch_sequences,
        Between(1, kMaxSequences));
  visit("training", "balance_group_sequences", t.balance_group_sequences,
        Between(1, kMaxSequences));
  visit("training", "learning_rate", t.learning_rate, kFloat);
  visit("training", "min_learning_rate", t.min_learning_rate, AtLeast(0));
  visit("training", "warmup_fraction", t.warmup_fraction, Below(0, 1));
  visit("training", "beta1", t.beta1, kBeta);
  visit("training", "beta2", t.beta2, kBeta);
  visit("training", "adam_epsilon", t.adam_epsilon, kAdamEpsilon);
  visit("training", "weight_decay", t.weight_decay, kFloatOrZero);
  visit("training", "clip_norm", t.clip_norm, AtLeast(0));
  visit("training", "seed", t.seed, AtLeast(0));
  visit("training", "eval_every", t.eval_every, AtLeast(0));
  visit("training", "eval_sequences", t.eval_sequences, AtLeast(0));
  visit("training", "precision", t.precision, Later(kAnyText));

  auto& d = config.data;
  visit("data", "corpus", d.corpus, kAnyText);
  visit("data", "validation_fraction", d.validation_fraction,
        AllowedRange{0, 1, true, true});
  visit("data", "max_bytes", d.max_bytes, AtLeast(0));
  visit("data", "normalise", d.normalise, Later(kAnyText));
}

// Does the same for the fields outside the hash, in section "runtime".
template <typename RuntimeType, typename Visitor>
void VisitRuntime(RuntimeType& runtime, Visitor&& visit) {
  visit("runtime", "threads", runtime.threads, Between(0, 1 << 12));
  visit("runtime", "isa", runtime.isa, kAnyText);
  visit("runtime", "device", runtime.device, kAnyText);
  visit("runtime", "log_every", runtime.log_every, AtLeast(1));
  visit("runtime", "checkpoint_every", runtime.checkpoint_every, AtLeast(0));
  visit("runtime", "recompute", runtime.recompute, kAnyText);
  visit("runtime", "place_owt", runtime.place_owt, kAnyText);
  visit("runtime", "place_c4", runtime.place_c4, kAnyText);
}

// Fails to compile when a struct gains or loses a field: update the lists above
// and the counts here.
inline void CheckFieldCounts() {
  [[maybe_unused]] const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] =
      ModelConfig();
  [[maybe_unused]] const auto& [r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11,
                                r12, r13, r14] = RouterConfig();
  [[maybe_unused]] const auto& [t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11,
                                t12, t13, t14, t15, t16] = TrainingConfig();
  [[maybe_unused]] const auto& [d1, d2, d3, d4] = DataConfig();
  [[maybe_unused]] const auto& [c1, c2, c3, c4] = Config();
  [[maybe_unused]] const auto& [u1, u2, u3, u4, u5, u6, u7, u8] =
      RuntimeConfig();
}

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_CONFIG_FIELDS_H_

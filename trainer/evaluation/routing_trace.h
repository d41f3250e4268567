// SPDX-License-Identifier: Apache-2.0
//
// routing_trace.h - what every router of a model did with every token of some
// held-out sequences, for other programs. Kind "routing_trace", version 1:
//
//   /               attrs: config (TOML), config_hash and the rest of the
//                   identity (data_sha256, ..., isa) of model and tokens,
//                   code_version, step, tau, temperature
//   /tokens         i32 [sequences, length]  what the model read
//   /targets        i32 [sequences, length]  what follows each of them
//   /scores         f32 [layers, tokens, experts]  r = x W_g, without noise
//   /soft_weights   f32 [layers, tokens, experts]  p before cutoff and cap;
//                   sparse: the softmax over all experts
//   /active         u8  [layers, tokens, experts]  1 where the expert is
//                   active, even if only by the fallback. This decides, not the
//                   weight: an active expert's gate is its soft weight, which
//                   is below the cutoff if the fallback chose it, and all other
//                   gates are 0
//   /mean_active    f64 [layers]  k_l: the soft weights of a token add up to it
//                   (sparse: to 1)
//   /cutoff         f64 [layers]  tau k_l / experts, exceeded strictly; sparse:
//                   0
//   /max_active     i64 [layers]  the cap; sparse: k
//
// tokens = sequences * length: token t is that of sequence t / length, position
// t % length. Formulas: reference/SPEC.md 2.
#ifndef SOFTMOE_TRAINER_EVALUATION_ROUTING_TRACE_H_
#define SOFTMOE_TRAINER_EVALUATION_ROUTING_TRACE_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/config/config.h"
#include "core/hdf5/hdf5_envelope.h"
#include "optimized/allocation.h"
#include "optimized/model.h"
#include "trainer/identity/run_identity.h"

namespace softmoe::trainer {

// The file's name in the folder of --out.
inline constexpr char kTraceName[] = "trace.h5";

inline Hdf5Kind RoutingTraceKind() { return {"routing_trace", 1}; }

// Throws ConfigError if a trace written to `path` would replace a file of
// another kind.
void RequireReplaceableTrace(const std::filesystem::path& path);

// What a trace belongs to.
struct TracedModel {
  RunIdentity identity;  // of the model, and of the tokens that it read here
  int64_t step = 0;
  double tau = 0;
  double temperature = 1;
};

// Collects a trace group by group, in memory: nine bytes for each layer, token
// and expert, which is 6 MB a sequence at the paper's sizes.
class RoutingTrace {
 public:
  RoutingTrace(const Config& config, int64_t num_sequences);

  // Appends the next tokens of every layer, which LastRouting has after a pass.
  // All calls together may not add more than num_sequences sequences.
  void Add(std::span<const optimized::RoutingView> layers);

  // Requires that all tokens have been added. Replaces the file atomically.
  //
  //   tokens, targets  [num_sequences, sequence_length]
  //   allocations      of each layer
  // Errors   EnvironmentError if it cannot be written.
  void Write(const std::filesystem::path& path, const TracedModel& model,
             std::span<const int32_t> tokens, std::span<const int32_t> targets,
             std::span<const optimized::LayerAllocation> allocations) const;

 private:
  const int64_t num_layers_, num_experts_, num_sequences_, length_;
  int64_t added_ = 0;  // tokens
  // [layer, token, expert]
  std::vector<float> scores_, soft_weights_;
  std::vector<uint8_t> active_;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_EVALUATION_ROUTING_TRACE_H_

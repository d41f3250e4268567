// SPDX-License-Identifier: Apache-2.0
//
// config.h - everything that determines a training run, as plain structs.
//
// Two configurations with the same ConfigHash produce the same bits on one
// backend and ISA level, with one version of the C library (DESIGN.md,
// "Determinism"). Whatever does not change results (threads, places of corpora,
// logging interval) is in RuntimeConfig and stays out of the hash. Two keys of
// TrainingConfig, micro_batch_sequences and eval_every, change no results
// either but are hashed, since they shape the computation and its log.
//
// Field names are the keys of the TOML files. Adding a field means adding it
// to VisitConfig (config_fields.h), which alone drives parsing, printing and
// hashing.
#ifndef SOFTMOE_CORE_CONFIG_CONFIG_H_
#define SOFTMOE_CORE_CONFIG_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>

namespace softmoe {

// The decoder: pre-norm, RoPE, RMSNorm, SwiGLU experts in every layer, untied
// head, no biases (SPEC.md 3). Defaults are the paper's sizes: 1,631,409,280
// parameters.
struct ModelConfig {
  int64_t num_layers = 10;  // all of them MoE layers
  int64_t d_model = 640;
  int64_t num_heads = 10;  // d_model / num_heads must be even (RoPE)
  int64_t d_ffn = 2560;    // width of one expert, per matrix
  int64_t num_experts = 32;
  int64_t vocab_size = 32768;
  int64_t sequence_length = 2048;  // tokens predicted per sequence
  double rope_base = 10000.0;
  double norm_epsilon = 1e-5;
  double init_std = 0.02;  // output projections: / sqrt(2 num_layers)

  int64_t head_dim() const { return d_model / num_heads; }
};

enum class RouterKind {
  kSparse,       // softmax over all experts, top-k, no renormalisation
  kSoftFixed,    // SoftMoE*: LapSum weights, cutoff, cap; allocation fixed
  kSoftLearned,  // SoftMoE: as above, allocation from budget logits
};
enum class Fallback { kNone, kTop1 };
enum class NoiseKind { kNone, kInputJitter, kLogitGauss };
enum class LoadBalanceKind { kMegatron, kSoft };

// What happens before the experts (SPEC.md 2). Everything the paper leaves open
// is a key here.
struct RouterConfig {
  RouterKind kind = RouterKind::kSparse;
  double mean_active_experts = 1.0;  // paper's k: in [1, num_experts]
  double expansion_factor = 2.0;     // cap = ceil(factor*k_l - 1e-6)
  // Cutoff tau*k_l/num_experts. Empty: "calibrated", so that the first
  // `calibration_batches` batches activate mean_active_experts on average,
  // before any fallback.
  std::optional<double> tau;
  int64_t calibration_batches = 10;
  Fallback fallback = Fallback::kNone;  // tokens without an active expert
  NoiseKind noise = NoiseKind::kNone;   // training only
  double noise_amplitude = 0.0;         // epsilon of jitter, sigma of Gauss
  double temperature_start = 5.0;       // soft routers; cosine over the run
  double temperature_end = 1.0;
  LoadBalanceKind load_balance = LoadBalanceKind::kSoft;
  double aux_loss_coeff = 1e-2;  // per layer, summed over layers
  double z_loss_coeff = 0.0;
  double init_std = 0.0;  // of the scores' weights; 0: model.init_std
};

// What operands and activations are stored as (DESIGN.md, "Types on a device").
enum class Precision {
  kFp32,
  kBf16,  // on a device only
};

// Optimizer, schedules and batch (SPEC.md 4).
struct TrainingConfig {
  int64_t steps = 18000;
  int64_t global_batch_sequences = 240;
  // If a file omits either of these, it is derived from what the file does set,
  // as near to the default as possible (config_check.h).
  int64_t micro_batch_sequences = 30;    // divides the global batch
  int64_t balance_group_sequences = 30;  // divides the micro-batch (ruling 6)
  double learning_rate = 1e-3;
  double min_learning_rate = 1e-5;
  double warmup_fraction = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double adam_epsilon = 1e-8;
  double weight_decay = 0.01;  // not on 1-D parameters
  double clip_norm = 1.0;      // global L2; 0 switches clipping off
  int64_t seed = 1234;
  int64_t eval_every = 0;      // steps; 0: only at the end
  int64_t eval_sequences = 0;  // 0: the whole validation split
  Precision precision = Precision::kFp32;
};

// Changes made to the text of documents.
enum class Normalise {
  kNone,
  kHfOpenWebText,  // as in Hugging Face's OpenWebText
};

// The corpus and how it becomes tokens.
struct DataConfig {
  std::string corpus;  // a name, or FORMAT:PATH (trainer/corpora/corpus.h)
  double validation_fraction = 0.02;  // whole documents at the end
  int64_t max_bytes = 0;  // use only this much of the corpus; 0: all
  Normalise normalise = Normalise::kNone;
};

struct Config {
  ModelConfig model;
  RouterConfig router;
  TrainingConfig training;
  DataConfig data;

  // Standard deviation of the initial weights of the router scores.
  double router_init_std() const {
    return router.init_std > 0 ? router.init_std : model.init_std;
  }
};

// What a backward pass recomputes instead of keeping it from the forward pass.
// Changes no bit.
enum class Recompute {
  kNone,
  kExperts,  // the products of the experts' first matrices
  kLayer,    // everything in a layer but its input and its routing
};

// How and where to run: never part of the hash.
struct RuntimeConfig {
  int64_t threads = 0;           // 0: one per available core
  std::string isa;               // "", "v3" or "v4"; "" takes the best here
  std::string device;            // "", "cpu" or "cuda"; "" is the CPU
  int64_t log_every = 10;        // steps between progress lines
  int64_t checkpoint_every = 0;  // steps; 0: only at the end and on a signal
  Recompute recompute = Recompute::kNone;  // memory for time
  std::string place_owt, place_c4;  // of the corpora's files; "": the cache
};

// Checks every range and relation of `config`. Throws a ConfigError that names
// the key, the value and the allowed range.
void ValidateConfig(const Config& config);

// Returns the resolved configuration as canonical TOML: fixed order, and the
// shortest decimals that read back as the same doubles. Keys that were added
// later are left out if they have their default (config_fields.h).
std::string ConfigToToml(const Config& config);

// First 16 hex digits of SHA-256 over ConfigToToml.
std::string ConfigHash(const Config& config);

const char* RouterKindName(RouterKind kind);  // "sparse", "soft_fixed", ...

}  // namespace softmoe

#endif  // SOFTMOE_CORE_CONFIG_CONFIG_H_

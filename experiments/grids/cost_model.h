// SPDX-License-Identifier: Apache-2.0
//
// cost_model.h - what a run will cost, computed from its configuration alone:
// parameters, tokens, FLOPs, memory of the CPU trainer, GPU hours or core
// hours. `grid plan` prints these without touching a device;
// optimized/memory_plan.h says what a GPU holds.
//
// FLOPs count a multiply-add as two and a training step as three forward
// passes (the usual MFU convention, which counts no recomputation). Attention
// is causal: a query sees (sequence_length + 1)/2 keys on average.
#ifndef SOFTMOE_EXPERIMENTS_GRIDS_COST_MODEL_H_
#define SOFTMOE_EXPERIMENTS_GRIDS_COST_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "optimized/expected_step.h"

namespace softmoe::experiments {

// Forward FLOPs of one token, by the place where they are spent.
struct ForwardFlops {
  double attention_projections = 0;  // q, k, v and output
  double attention = 0;              // scores and weighted sum
  double router = 0;
  double experts = 0;
  double head = 0;

  double total() const {
    return attention_projections + attention + router + experts + head;
  }
};

// active_experts is the mean per token and layer (the paper's AE).
ForwardFlops CountForwardFlops(const ModelConfig& model, double active_experts);

// The paper's Active-Param column in millions, 58.54464 + 49.2 AE for its
// sizes, comes from a rounded expert; this is the exact count (ruling 17).
double ActiveParameters(const ModelConfig& model, double active_experts);

// Where a grid runs: GPUs that train data-parallel, in fp32 or in bf16 with
// fp32 master weights, or, for corpora without GPUs, CPU cores.
struct Cluster {
  int64_t gpus = 8;
  double peak_flops = 989e12;  // dense bf16 of one H100 or GH200
  double fp32_peak_flops = optimized::kH100Fp32Flops;
  double assumed_mfu = 0.3;         // share of the peak that the step reaches
  double gpu_bytes = 96e9;          // memory of one GPU; GH200, as in the paper
  int64_t gpus_per_node = 4;        // at most
  std::vector<std::string> sbatch;  // extra lines: "--partition=gpu"
  // FLOP/s of the fp32 training step on one core. 40e9 is half of what the midi
  // grid's step reached on one AVX-512 core (//:bench).
  double core_flops = 40e9;
};

// FLOP/s of one GPU that trains `config` in its precision, at the assumed MFU.
double GpuFlops(const Config& config, const Cluster& cluster);

struct RunCost {
  int64_t parameters = 0;  // including budget logits, L in SoftMoE rows
  double active_parameters = 0;
  int64_t tokens = 0;  // steps * global batch * sequence length
  int64_t steps = 0;
  double train_flops = 0;
  double gpu_hours = 0;  // at the assumed MFU
  double hours = 0;
  double core_hours = 0;  // if run on CPUs, at the assumed core_flops
};

// Bytes that the fp32 CPU trainer reserves for one balance group: activations
// and scratch space of a forward and backward pass, with as many active experts
// as the caps allow (optimized/workspace.h; anything that does not grow with
// d_model, d_ffn or num_experts is left out).
double CpuActivationBytes(const Config& config);

// The cost of training `config` with `active_experts` on `cluster`.
RunCost EstimateCost(const Config& config, double active_experts,
                     const Cluster& cluster);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_GRIDS_COST_MODEL_H_

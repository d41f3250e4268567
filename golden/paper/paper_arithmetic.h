// SPDX-License-Identifier: Apache-2.0
//
// paper_arithmetic.h - whether the paper agrees with itself: every derived
// column, count, repeated number and bold print, in exact decimal arithmetic.
#ifndef SOFTMOE_GOLDEN_PAPER_PAPER_ARITHMETIC_H_
#define SOFTMOE_GOLDEN_PAPER_PAPER_ARITHMETIC_H_

#include <string>
#include <vector>

#include "golden/document/document.h"

namespace softmoe::golden {

// One number of the paper, computed from its other numbers or compared with
// what the text says about it.
struct ArithmeticCheck {
  std::string rule = {};      // "active_params_law", ...
  std::string place = {};     // "main_results/owt/sparse/k1/active_params"
  std::string printed = {};   // as the paper prints it
  std::string computed = {};  // what it should be
  bool consistent = false;
  std::string note = {};  // the note that explains an inconsistency: "N1"
  std::string explanation = {};  // how `computed` is obtained
};

// All checks of the paper's document, consistent or not, in a fixed order:
//   active_params_law   58.54464 + 49.2 Infer-AE, rounded half up (ruling 17)
//   active_params_true  58.54528 + 49.152 Infer-AE, what the model really has
//   total_params        from the sizes in T2 and a vocabulary of 32768
//   hours               GPU hours / GPUs rounds to the printed hours
//   iteration_hours     18000 steps x iteration time, T4
//   iteration_gpu_hours 8 GPUs x the same
//   throughput_nominal  240*2048/8 tokens / iteration time
//   throughput_factor   printed / nominal = 1.0205 in every row: 1/0.98
//   time_order          more active experts of Sparse MoE take no less time
//   expert_budget       Infer-AE within the bound of its group
//   cap                 AE <= ceil(alpha k); SoftMoE: AE < alpha k + 1
//   count               a percentage is a count of items, by the table's rule
//   repeat              numbers that two tables have are equal
//   bold                bold if and only if not worse than the group's baseline
//   soft_time           soft routing takes at most the GPU hours of the sparse
//                       baseline of its group, having fewer active experts
//   load_balance        its load is no less even than the baseline's
//   mean_active         Infer-AE is at most k, "the mean number of active
//                       experts"
//   tau_order           a smaller tau leaves no fewer experts active
// Throws DataError for a document that is not the paper's, or lacks a table,
// row or column of it.
std::vector<ArithmeticCheck> CheckArithmetic(const Document& paper);

}  // namespace softmoe::golden

#endif  // SOFTMOE_GOLDEN_PAPER_PAPER_ARITHMETIC_H_

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/attention.h"
#include "kernels/attention_rows_body.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Doubles = std::vector<double>;
using Lane = body::SerialLane<double>;

}  // namespace

template <typename Activation>
TensorMap RunAttention(const Case& c, const TensorMap& inputs,
                       const RowKernelsOf<Activation>& run) {
  const int64_t sequences = c.Size("sequences"), length = c.Size("length");
  const int64_t heads = c.Size("heads"), dim = c.Size("head_dim");
  const int64_t rows = sequences * length, width = heads * dim;
  const auto qkv = ToElements<Activation>(At(inputs, "qkv"));
  const auto d_out = ToElements<Activation>(At(inputs, "d_out"));
  Guarded<Activation> out("out", rows * width);
  Guarded<Activation> d_qkv("d_qkv", 3 * rows * width);
  Guarded<float> lse("log_sum_exp", rows * heads);
  const int64_t query_block = 1 + length / 3;  // several blocks on a device
  Guarded<float> scratch(
      "scratch", kDtypeOf<Activation> == Dtype::kF32
                     ? kernels::AttentionScratch(sequences, length, query_block)
                     : kernels::AttentionScratchForBf16(
                           sequences, length, heads, dim, query_block));
  run.attention_forward({sequences, length, heads, dim, qkv.data(), out.data(),
                         lse.data(), query_block, scratch.data()});
  run.attention_backward({sequences, length, heads, dim, qkv.data(), out.data(),
                          lse.data(), d_out.data(), d_qkv.data(), query_block,
                          scratch.data()});
  scratch.Take();
  lse.Take();
  return {{"out", TakeElements(out, {rows, width})},
          {"d_qkv", TakeElements(d_qkv, {rows, 3 * width})}};
}
template TensorMap RunAttention(const Case&, const TensorMap&,
                                const RowKernels&);
template TensorMap RunAttention(const Case&, const TensorMap&,
                                const Bf16Kernels&);

TensorMap RunAttentionAtDouble(const Case& c, const TensorMap& inputs) {
  const int64_t sequences = c.Size("sequences"), length = c.Size("length");
  const int64_t heads = c.Size("heads"), dim = c.Size("head_dim");
  const int64_t rows = sequences * length, width = heads * dim;
  const Tensor& qkv = At(inputs, "qkv");
  const Tensor& d_out = At(inputs, "d_out");
  Tensor out(Dtype::kF64, {rows, width}), d_qkv(Dtype::kF64, {rows, 3 * width});
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  for (int64_t i = 0; i < rows * heads; ++i) {
    const int64_t row = i / heads, head = i % heads, query = row % length;
    const int64_t first = row - query, column = head * dim;
    // The offset of part 0, 1, 2 (q, k, v) in the row of a key.
    const auto at = [&](int64_t key, int64_t part) {
      return ((first + key) * 3 + part) * width + column;
    };
    const double* q = &qkv.values[at(query, 0)];
    const double* d_head = &d_out.values[row * width + column];
    double* head_out = &out.values[row * width + column];
    // Holds more keys than the query sees; their scores must not matter.
    Doubles scores(length, NAN), d_weights(length, NAN);
    for (int64_t s = 0; s <= query; ++s) {
      scores[s] = d_weights[s] = 0;
      for (int64_t j = 0; j < dim; ++j) {
        scores[s] += q[j] * qkv.values[at(s, 1) + j];
        d_weights[s] += d_head[j] * qkv.values[at(s, 2) + j];
      }
    }
    Doubles exponentials = scores, weights(length), d_scores(length);
    double log_sum_exp = 0;
    body::CausalSoftmaxRow(Lane(), query + 1, length, scale,
                           exponentials.data(), weights.data(), &log_sum_exp);
    for (int64_t s = 0; s < length; ++s) {
      for (int64_t j = 0; j < dim; ++j) {
        head_out[j] += weights[s] * qkv.values[at(s, 2) + j];
      }
    }
    body::CausalSoftmaxBackwardRow(
        Lane(), query + 1, length, dim, scale, log_sum_exp, head_out, d_head,
        scores.data(), d_weights.data(), weights.data(), d_scores.data());
    for (int64_t s = 0; s < length; ++s) {
      for (int64_t j = 0; j < dim; ++j) {
        d_qkv.values[at(query, 0) + j] +=
            d_scores[s] * qkv.values[at(s, 1) + j];
        d_qkv.values[at(s, 1) + j] += d_scores[s] * q[j];
        d_qkv.values[at(s, 2) + j] += weights[s] * d_head[j];
      }
    }
  }
  return {{"out", out}, {"d_qkv", d_qkv}};
}

}  // namespace softmoe::verify

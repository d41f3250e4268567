// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/operations/attention/attention_adapters.h"

#include "kernels/attention.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"

namespace softmoe::verify {
namespace {

using Floats = std::vector<float>;

}  // namespace

TensorMap RunAttention(const Case& c, const TensorMap& inputs,
                       const RowKernels& run) {
  const int64_t sequences = c.Size("sequences"), length = c.Size("length");
  const int64_t heads = c.Size("heads"), dim = c.Size("head_dim");
  const int64_t rows = sequences * length, width = heads * dim;
  const Floats qkv = ToFloats(At(inputs, "qkv"));
  const Floats d_out = ToFloats(At(inputs, "d_out"));
  Guarded<float> out("out", rows * width), lse("log_sum_exp", rows * heads);
  Guarded<float> d_qkv("d_qkv", 3 * rows * width);
  const int64_t query_block = 1 + length / 3;  // of a device: several
  Guarded<float> scratch(
      "scratch", kernels::AttentionScratch(sequences, length, query_block));
  run.attention_forward({sequences, length, heads, dim, qkv.data(), out.data(),
                         lse.data(), query_block, scratch.data()});
  run.attention_backward({sequences, length, heads, dim, qkv.data(), out.data(),
                          lse.data(), d_out.data(), d_qkv.data(), query_block,
                          scratch.data()});
  scratch.Take();
  lse.Take();
  return {{"out", out.TakeTensor(Dtype::kF32, {rows, width})},
          {"d_qkv", d_qkv.TakeTensor(Dtype::kF32, {rows, 3 * width})}};
}

}  // namespace softmoe::verify

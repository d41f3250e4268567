// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
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
  const int64_t query_block = 1 + length / 3;  // of a device: several
  Guarded<float> scratch(
      "scratch", kDtypeOf<Activation> == Dtype::kF32
                     ? kernels::AttentionScratch(sequences, length, query_block)
                     : kernels::AttentionScratchForBf16(sequences, length, dim,
                                                        query_block));
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

}  // namespace softmoe::verify

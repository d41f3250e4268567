// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/permute_body.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Floats = std::vector<float>;
using Lane = body::SerialLane<double>;

}  // namespace

template <typename Activation>
TensorMap RunEmbedding(const Case& c, const TensorMap& inputs,
                       const RowKernelsOf<Activation>& run) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const int64_t vocab = c.Size("vocab_size");
  const Floats table = ToFloats(At(inputs, "table"));
  const auto d_out = ToElements<Activation>(At(inputs, "d_out"));
  const std::vector<int32_t> ids = ToInts(At(inputs, "ids"));
  Guarded<Activation> out("out", n * d);
  Guarded<float> d_table("d_table", vocab * d);
  Guarded<int32_t> scratch(
      "scratch",
      std::max(n + vocab + 1, kernels::EmbeddingDeviceScratch(n, d)));
  run.embedding_forward({n, d, ids.data(), table.data(), out.data()});
  run.embedding_backward(
      {n, d, vocab, ids.data(), d_out.data(), d_table.data(), scratch.data()});
  scratch.Take();
  return {{"out", TakeElements(out, {n, d})},
          {"d_table", TakeElements(d_table, {vocab, d})}};
}
template TensorMap RunEmbedding(const Case&, const TensorMap&,
                                const RowKernels&);
template TensorMap RunEmbedding(const Case&, const TensorMap&,
                                const Bf16Kernels&);

TensorMap RunEmbeddingAtDouble(const Case& c, const TensorMap& inputs) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const int64_t vocab = c.Size("vocab_size");
  const Tensor& table = At(inputs, "table");
  const Tensor& d_out = At(inputs, "d_out");
  const std::vector<int32_t> ids = ToInts(At(inputs, "ids"));
  Tensor out(Dtype::kF64, {n, d}), d_table(Dtype::kF64, {vocab, d});
  for (int64_t t = 0; t < n; ++t) {
    body::CopyRow(Lane(), d, &table.values[ids[t] * d], &out.values[t * d]);
    const int32_t rows[] = {static_cast<int32_t>(t)};
    body::UnpermuteToken(Lane(), d, 1, d_out.values.data(), rows,
                         /*accumulate=*/true, &d_table.values[ids[t] * d]);
  }
  return {{"out", out}, {"d_table", d_table}};
}

}  // namespace softmoe::verify

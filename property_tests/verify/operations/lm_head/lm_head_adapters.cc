// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/operations/lm_head/lm_head_adapters.h"

#include "kernels/cross_entropy.h"
#include "kernels/cross_entropy_body.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Lane = body::SerialLane<double>;

}  // namespace

TensorMap RunLmHeadOnCpu(const Case& c, const TensorMap& inputs,
                         ThreadPool& pool) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const int64_t vocab = c.Size("vocab_size");
  const Floats hidden = ToFloats(At(inputs, "hidden"));
  const Floats weight = ToFloats(At(inputs, "head_weight"));
  const std::vector<int32_t> targets = ToInts(At(inputs, "targets"));
  Guarded<float> loss("loss", n), only("loss", n), d_hidden("d_hidden", n * d);
  Guarded<float> d_weight("d_head_weight", vocab * d);
  kernels::HeadCrossEntropy(
      {n, d, vocab, hidden.data(), weight.data(), targets.data(), loss.data(),
       static_cast<float>(ScalarOf(inputs, "grad_scale")), d_hidden.data(),
       d_weight.data()},
      pool);
  // Evaluation needs only the loss.
  kernels::HeadCrossEntropy(
      {n, d, vocab, hidden.data(), weight.data(), targets.data(), only.data()},
      pool);
  if (!SameBits(loss.TakeTensor(Dtype::kF32, {n}),
                only.TakeTensor(Dtype::kF32, {n}))) {
    throw NumericsError("the loss without gradients has other bits");
  }
  return {{"loss", loss.TakeTensor(Dtype::kF32, {n})},
          {"d_hidden", d_hidden.TakeTensor(Dtype::kF32, {n, d})},
          {"d_head_weight", d_weight.TakeTensor(Dtype::kF32, {vocab, d})}};
}

TensorMap RunLmHeadAtDouble(const Case& c, const TensorMap& inputs) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const int64_t vocab = c.Size("vocab_size");
  const Doubles& hidden = At(inputs, "hidden").values;
  const Doubles& weight = At(inputs, "head_weight").values;
  const std::vector<int32_t> targets = ToInts(At(inputs, "targets"));
  Tensor loss(Dtype::kF64, {n}), d_hidden(Dtype::kF64, {n, d});
  Tensor d_weight(Dtype::kF64, {vocab, d});
  for (int64_t t = 0; t < n; ++t) {
    Doubles row(vocab);
    for (int64_t i = 0; i < vocab * d; ++i) {
      row[i / d] += hidden[t * d + i % d] * weight[i];
    }
    body::CrossEntropyRow(Lane(), vocab, targets[t],
                          ScalarOf(inputs, "grad_scale"),
                          /*want_gradient=*/true, row.data(), &loss.values[t]);
    for (int64_t i = 0; i < vocab * d; ++i) {
      d_hidden.values[t * d + i % d] += row[i / d] * weight[i];
      d_weight.values[i] += row[i / d] * hidden[t * d + i % d];
    }
  }
  return {{"loss", loss}, {"d_hidden", d_hidden}, {"d_head_weight", d_weight}};
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cmath>

#include "core/errors.h"
#include "kernels/cross_entropy.h"
#include "kernels/cross_entropy_body.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Lane = body::SerialLane<double>;

// Sums of doubles in two orders differ by less than 2 n 2^-53 sum |x|.
void CheckLossSum(const Floats& losses, double got) {
  double sum = 0, magnitude = 0;
  for (const float loss : losses) {
    sum += loss;
    magnitude += std::abs(static_cast<double>(loss));
  }
  const double bound =
      2 * static_cast<double>(losses.size()) * 0x1p-53 * magnitude;
  if (std::isfinite(sum) ? !(std::abs(got - sum) <= bound)
                         : std::isfinite(got)) {
    throw NumericsError(
        fmt::format("loss_sum is {}, the losses' sum is {}", got, sum));
  }
}

// Throws NumericsError if a token is called the most likely one, or not,
// against the logits: dot products within n u sum |ab| in any order, or twice
// that where tensor cores truncate. What this leaves open may be either.
void CheckGreedy(const Case& c, const TensorMap& inputs,
                 const std::vector<int32_t>& targets,
                 const std::vector<int32_t>& is_greedy) {
  const int64_t d = c.Size("d_model"), vocab = c.Size("vocab_size");
  const double unit = (c.dtype == Dtype::kBf16 ? 2 : 1) * kFloatUnit;
  const Doubles& hidden = At(inputs, "hidden").values;
  const Doubles& weight = At(inputs, "head_weight").values;
  for (size_t t = 0; t < targets.size(); ++t) {
    Doubles logits(vocab), error(vocab);
    for (int64_t w = 0; w < vocab; ++w) {
      for (int64_t j = 0; j < d; ++j) {
        const double term = hidden[t * d + j] * weight[w * d + j];
        logits[w] += term;
        error[w] += static_cast<double>(d + 1) *
                    (std::abs(term) * unit + FloatRounding::kUnderflow);
      }
    }
    const int32_t target = targets[t];
    // Nothing is known of logits that are not finite in float.
    bool surely = std::isfinite(static_cast<float>(logits[target]));
    bool surely_not = false;
    for (int64_t id = 0; id < vocab; ++id) {
      if (id == target) continue;
      const double above = logits[id] - logits[target];
      const double either = error[id] + error[target];
      surely &= above < -either;
      surely_not |= above > either;
    }
    if (is_greedy[t] == 1 ? !surely_not : is_greedy[t] == 0 && !surely)
      continue;
    throw NumericsError(fmt::format("is_greedy is {} of token {}, target {}",
                                    is_greedy[t], t, target));
  }
}

}  // namespace

template <typename Activation>
TensorMap RunLmHead(const Case& c, const TensorMap& inputs,
                    const RowKernelsOf<Activation>& run) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const int64_t vocab = c.Size("vocab_size");
  const auto hidden = ToElements<Activation>(At(inputs, "hidden"));
  const auto weight = ToElements<Activation>(At(inputs, "head_weight"));
  const std::vector<int32_t> targets = ToInts(At(inputs, "targets"));
  Guarded<float> loss("loss", n), only("loss", n);
  Guarded<Activation> d_hidden("d_hidden", n * d);
  Guarded<float> d_weight("d_head_weight", vocab * d);
  const int64_t chunk = 1 + n / 2;  // more than one chunk on a device
  Guarded<float> logits("logits", chunk * vocab);
  // Gradients in f32 take the place of the logits.
  Guarded<Activation> d_logits(
      "d_logits", kDtypeOf<Activation> == Dtype::kF32 ? 0 : chunk * vocab);
  Guarded<double> loss_sum("loss_sum", 1);
  kernels::HeadCrossEntropyArgsOf<Activation> args = {
      .num_tokens = n,
      .d_model = d,
      .vocab_size = vocab,
      .hidden = hidden.data(),
      .head_weight = weight.data(),
      .targets = targets.data(),
      .token_loss = loss.data(),
      .grad_scale = static_cast<float>(ScalarOf(inputs, "grad_scale")),
      .d_hidden = d_hidden.data(),
      .d_head_weight = d_weight.data(),
      .loss_sum = loss_sum.data(),
      .chunk_tokens = chunk,
      .logits = logits.data(),
      .d_logits = d_logits.size() == 0 ? nullptr : d_logits.data()};
  run.head_cross_entropy(args);
  // Evaluation needs only the loss.
  args.token_loss = only.data();
  args.d_hidden = nullptr;
  args.d_head_weight = nullptr;
  Guarded<int32_t> is_greedy("is_greedy", n);
  args.is_greedy = is_greedy.data();
  run.head_cross_entropy(args);
  CheckGreedy(c, inputs, targets, is_greedy.Take());
  logits.Take();
  d_logits.Take();
  CheckLossSum(loss.Take(), loss_sum.Take()[0]);
  if (!SameBits(loss.TakeTensor(Dtype::kF32, {n}),
                only.TakeTensor(Dtype::kF32, {n}))) {
    throw NumericsError("the loss without gradients has other bits");
  }
  return {{"loss", loss.TakeTensor(Dtype::kF32, {n})},
          {"d_hidden", TakeElements(d_hidden, {n, d})},
          {"d_head_weight", TakeElements(d_weight, {vocab, d})}};
}
template TensorMap RunLmHead(const Case&, const TensorMap&, const RowKernels&);
template TensorMap RunLmHead(const Case&, const TensorMap&, const Bf16Kernels&);

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
    for (int64_t w = 0; w < vocab; ++w) {
      for (int64_t j = 0; j < d; ++j) {
        row[w] += hidden[t * d + j] * weight[w * d + j];
      }
    }
    body::CrossEntropyRow(Lane(), vocab, targets[t],
                          ScalarOf(inputs, "grad_scale"), row.data(),
                          row.data(), &loss.values[t]);
    for (int64_t w = 0; w < vocab; ++w) {
      for (int64_t j = 0; j < d; ++j) {
        d_hidden.values[t * d + j] += row[w] * weight[w * d + j];
        d_weight.values[w * d + j] += row[w] * hidden[t * d + j];
      }
    }
  }
  return {{"loss", loss}, {"d_hidden", d_hidden}, {"d_head_weight", d_weight}};
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
//
// What happens once per step, and the matrix product, on the CPU: the
// optimized library's own optimizer and allocation, and kernels.
#include <cmath>

#include "kernels/adamw.h"
#include "kernels/gemm.h"
#include "optimized/allocation.h"
#include "optimized/optimizer.h"
#include "property_tests/verify/adamw_case.h"
#include "property_tests/verify/cpu_implementation.h"
#include "property_tests/verify/expected.h"
#include "property_tests/verify/guarded.h"

namespace softmoe::verify {
namespace {

using Floats = std::vector<float>;

// `tensor` [rows, columns] with `padding` NaN behind each row.
Floats Padded(const Tensor& tensor, int64_t padding) {
  const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
  Floats padded(rows * (columns + padding), NAN);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    padded[i / columns * (columns + padding) + i % columns] =
        static_cast<float>(tensor.values[i]);
  }
  return padded;
}

}  // namespace

TensorMap RunBudgetOnCpu(const Case& c, const TensorMap& inputs,
                         ThreadPool& pool) {
  (void)pool;
  Config config;
  config.model.num_layers = c.Size("layers");
  config.model.num_experts = c.Size("num_experts");
  config.router.kind = RouterKind::kSoftLearned;
  config.router.mean_active_experts = ScalarOf(inputs, "mean_active_experts");
  config.router.expansion_factor = ScalarOf(inputs, "expansion_factor");
  const int64_t layers = config.model.num_layers;
  const Floats logits = ToFloats(At(inputs, "budget_logits"));
  const auto allocations =
      optimized::ComputeAllocations(config, logits, ScalarOf(inputs, "tau"));
  Tensor k(Dtype::kF64, {layers}), cutoff(Dtype::kF64, {layers});
  Tensor cap(Dtype::kI32, {layers}), top(Dtype::kI32, {layers});
  for (int64_t l = 0; l < layers; ++l) {
    const optimized::LayerAllocation& each = allocations.at(l);
    k.values[l] = each.mean_active;
    cutoff.values[l] = each.cutoff;
    cap.values[l] = static_cast<double>(each.max_active);
    top.values[l] = static_cast<double>(each.balance_top);
  }
  Guarded<float> d_logits("d_budget_logits", layers);
  optimized::BudgetLogitGradient(
      config, logits, At(inputs, "d_mean_active").values,
      {d_logits.data(), static_cast<size_t>(layers)});
  return {{"mean_active", k},
          {"cutoff", cutoff},
          {"max_active", cap},
          {"balance_top", top},
          {"d_budget_logits", d_logits.TakeTensor(Dtype::kF32, {layers})}};
}

TensorMap RunAdamWOnCpu(const Case& c, const TensorMap& inputs,
                        ThreadPool& pool) {
  const AdamWCase update(c, inputs);
  const int64_t size = update.layout.total, steps = c.Size("steps");
  optimized::Optimizer optimizer(update.training, update.layout, pool);
  const Floats m = ToFloats(At(inputs, "first_moment"));
  const Floats v = ToFloats(At(inputs, "second_moment"));
  std::ranges::copy(m, optimizer.first_moment().begin());
  std::ranges::copy(v, optimizer.second_moment().begin());
  const Floats gradients = ToFloats(At(inputs, "gradient"));
  Guarded<float> parameter("parameter", ToFloats(At(inputs, "parameter")));
  Tensor norm(Dtype::kF64, {steps});
  for (int64_t s = 0; s < steps; ++s) {
    norm.values[s] = optimizer.Update(
        ScalarOf(inputs, "learning_rate"), update.completed + s,
        std::span(gradients).subspan(s * size, size),
        {parameter.data(), static_cast<size_t>(size)});
  }
  const auto moment = [&](std::span<const float> x) {
    return FromVector(Dtype::kF32, {size}, Floats(x.begin(), x.end()));
  };
  return {{"parameter", parameter.TakeTensor(Dtype::kF32, {size})},
          {"first_moment", moment(optimizer.first_moment())},
          {"second_moment", moment(optimizer.second_moment())},
          {"norm", norm}};
}

TensorMap RunSumOfSquaresOnCpu(const Case& c, const TensorMap& inputs,
                               ThreadPool& pool) {
  const int64_t size = c.Size("size");
  const Floats x = ToFloats(At(inputs, "x"));
  Guarded<double> sum("sum_of_squares", 1);
  Guarded<double> scratch("scratch", kernels::SumOfSquaresScratch(size));
  kernels::SumOfSquares({size, x.data(), sum.data(), scratch.data()}, pool);
  scratch.Take();
  return {{"sum_of_squares", sum.TakeTensor(Dtype::kF64, {})}};
}

TensorMap RunGemmOnCpu(const Case& c, const TensorMap& inputs,
                       ThreadPool& pool) {
  const int64_t m = c.Size("m"), n = c.Size("n"), padding = c.Size("padding");
  const Tensor& a = At(inputs, "a");
  const Tensor& b = At(inputs, "b");
  const bool accumulate = c.Choice("accumulate") == "yes";
  const Floats padded_a = Padded(a, padding), padded_b = Padded(b, padding);
  Tensor before = At(inputs, "c_before");
  // Without accumulation what was there must not be read.
  if (!accumulate) before.values.assign(before.values.size(), NAN);
  Guarded<float> out("c", Padded(before, padding));
  kernels::Gemm({.a = padded_a.data(),
                 .b = padded_b.data(),
                 .c = out.data(),
                 .m = m,
                 .n = n,
                 .k = c.Size("k"),
                 .lda = a.shape[1] + padding,
                 .ldb = b.shape[1] + padding,
                 .ldc = n + padding,
                 .transpose_a = c.Choice("transpose_a") == "yes",
                 .transpose_b = c.Choice("transpose_b") == "yes",
                 .accumulate = accumulate},
                pool);
  const Floats padded = out.Take();
  Tensor result(Dtype::kF32, {m, n});
  for (int64_t i = 0; i < m * (n + padding); ++i) {
    const int64_t row = i / (n + padding), column = i % (n + padding);
    if (column < n) {
      result.values[row * n + column] = padded[i];
    } else if (!std::isnan(padded[i])) {
      throw NumericsError("c: written between its rows");
    }
  }
  return {{"c", result}};
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "kernels/permute_body.h"
#include "kernels/rmsnorm_body.h"
#include "kernels/rope_body.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

namespace body = kernels::SOFTMOE_ISA;
using Lane = body::SerialLane<double>;

// Sine and cosine for every pair at every position.
template <typename Real>
struct Tables {
  std::vector<Real> cosine, sine;  // [length, head_dim/2]

  Tables(const Case& c, const TensorMap& inputs) {
    const double base = ScalarOf(inputs, "base");
    const auto dim = static_cast<double>(c.Size("head_dim"));
    for (int64_t t = 0; t < c.Size("length"); ++t) {
      for (int64_t i = 0; i < c.Size("head_dim") / 2; ++i) {
        const double angle = static_cast<double>(t) *
                             std::pow(base, -2 * static_cast<double>(i) / dim);
        cosine.push_back(static_cast<Real>(std::cos(angle)));
        sine.push_back(static_cast<Real>(std::sin(angle)));
      }
    }
  }
};

}  // namespace

template <typename Activation>
TensorMap RunEmbedding(const Case& c, const TensorMap& inputs,
                       const RowKernelsOf<Activation>& run) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const int64_t vocab = c.Size("vocab_size");
  const std::vector<float> table = ToFloats(At(inputs, "table"));
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

template <typename Activation>
TensorMap RunRmsNorm(const Case& c, const TensorMap& inputs,
                     const RowKernelsOf<Activation>& run) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const auto x = ToElements<Activation>(At(inputs, "x"));
  const auto d_y = ToElements<Activation>(At(inputs, "d_y"));
  const std::vector<float> weight = ToFloats(At(inputs, "weight"));
  Guarded<Activation> y("y", n * d);
  Guarded<Activation> d_x("d_x",
                          ToElements<Activation>(At(inputs, "d_x_before")));
  Guarded<float> rstd("rstd", n), d_weight("d_weight", d);
  Guarded<float> scratch("scratch", kernels::RmsNormScratch(n, d));
  run.rmsnorm_forward({n, d, static_cast<float>(ScalarOf(inputs, "epsilon")),
                       x.data(), weight.data(), y.data(), rstd.data()});
  run.rmsnorm_backward({n, d, x.data(), weight.data(), rstd.data(), d_y.data(),
                        d_x.data(), d_weight.data(), scratch.data()});
  scratch.Take();
  return {{"y", TakeElements(y, {n, d})},
          {"rstd", TakeElements(rstd, {n})},
          {"d_x", TakeElements(d_x, {n, d})},
          {"d_weight", TakeElements(d_weight, {d})}};
}
template TensorMap RunRmsNorm(const Case&, const TensorMap&, const RowKernels&);
template TensorMap RunRmsNorm(const Case&, const TensorMap&,
                              const Bf16Kernels&);

TensorMap RunRmsNormAtDouble(const Case& c, const TensorMap& inputs) {
  const int64_t n = c.Size("rows"), d = c.Size("d_model");
  const Tensor& x = At(inputs, "x");
  const Tensor& weight = At(inputs, "weight");
  Tensor y(Dtype::kF64, {n, d}), rstd(Dtype::kF64, {n});
  Tensor d_x = At(inputs, "d_x_before"), d_weight(Dtype::kF64, {d});
  for (int64_t t = 0; t < n; ++t) {
    body::RmsNormForwardRow(Lane(), d, ScalarOf(inputs, "epsilon"),
                            &x.values[t * d], weight.values.data(),
                            &y.values[t * d], &rstd.values[t]);
  }
  body::RmsNormBackwardRows(Lane(), 0, n, d, x.values.data(),
                            weight.values.data(), rstd.values.data(),
                            At(inputs, "d_y").values.data(), d_x.values.data(),
                            d_weight.values.data());
  return {{"y", y}, {"rstd", rstd}, {"d_x", d_x}, {"d_weight", d_weight}};
}

template <typename Activation>
TensorMap RunRope(const Case& c, const TensorMap& inputs,
                  const RowKernelsOf<Activation>& run) {
  const Tables<float> tables(c, inputs);
  const auto rotate = [&](const char* output, const char* input, bool inverse) {
    const Tensor& qkv = At(inputs, input);
    Guarded<Activation> rotated(output, ToElements<Activation>(qkv));
    run.rope({c.Size("sequences"), c.Size("length"), c.Size("heads"),
              c.Size("head_dim"), tables.cosine.data(), tables.sine.data(),
              rotated.data(), inverse});
    return TakeElements(rotated, qkv.shape);
  };
  return {{"rotated", rotate("rotated", "qkv", false)},
          {"d_qkv", rotate("d_qkv", "d_rotated", true)}};
}
template TensorMap RunRope(const Case&, const TensorMap&, const RowKernels&);
template TensorMap RunRope(const Case&, const TensorMap&, const Bf16Kernels&);

TensorMap RunRopeAtDouble(const Case& c, const TensorMap& inputs) {
  const Tables<double> tables(c, inputs);
  const int64_t half = c.Size("head_dim") / 2;
  const auto rotate = [&](const char* input, double sign) {
    Tensor rotated = At(inputs, input);
    for (int64_t t = 0; t < rotated.shape[0]; ++t) {
      for (int64_t head = 0; head < 2 * c.Size("heads"); ++head) {
        double* x = &rotated.values[t * rotated.shape[1] + head * 2 * half];
        for (int64_t i = 0; i < half; ++i) {
          const int64_t at = t % c.Size("length") * half + i;
          kernels::SOFTMOE_ISA::RotatePair(
              tables.cosine[at], sign * tables.sine[at], x[i], x[half + i]);
        }
      }
    }
    return rotated;
  };
  return {{"rotated", rotate("qkv", 1)}, {"d_qkv", rotate("d_rotated", -1)}};
}

}  // namespace softmoe::verify

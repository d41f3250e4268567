// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/rope_body.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

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

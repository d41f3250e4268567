// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/gemm.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/implementations/elements.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

// `tensor` [rows, columns] with `padding` NaNs after each row.
Tensor Padded(const Tensor& tensor, int64_t padding) {
  const int64_t rows = tensor.shape[0], columns = tensor.shape[1];
  Tensor padded(tensor.dtype, {rows, columns + padding});
  padded.values.assign(padded.values.size(), NAN);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    padded.values[i / columns * (columns + padding) + i % columns] =
        tensor.values[i];
  }
  return padded;
}

}  // namespace

template <typename Activation>
TensorMap RunGemm(const Case& c, const TensorMap& inputs,
                  const RowKernelsOf<Activation>& run) {
  const int64_t m = c.Size("m"), n = c.Size("n"), padding = c.Size("padding");
  const Tensor& a = At(inputs, "a");
  const Tensor& b = At(inputs, "b");
  const bool accumulate = c.Choice("accumulate") == "yes";
  const auto padded_a = ToElements<Activation>(Padded(a, padding));
  const auto padded_b = ToElements<Activation>(Padded(b, padding));
  Tensor before = At(inputs, "c_before");
  // Without accumulation, the old content must not be read.
  if (!accumulate) before.values.assign(before.values.size(), NAN);
  Guarded<Activation> out("c", ToElements<Activation>(Padded(before, padding)));
  run.gemm({.a = padded_a.data(),
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
            .accumulate = accumulate});
  const Tensor padded = TakeElements(out, {m, n + padding});
  Tensor result(padded.dtype, {m, n});
  for (int64_t i = 0; i < m * (n + padding); ++i) {
    const int64_t row = i / (n + padding), column = i % (n + padding);
    if (column < n) {
      result.values[row * n + column] = padded.values[i];
    } else if (!std::isnan(padded.values[i])) {
      throw NumericsError("c: written between its rows");
    }
  }
  return {{"c", result}};
}
template TensorMap RunGemm(const Case&, const TensorMap&, const RowKernels&);
template TensorMap RunGemm(const Case&, const TensorMap&, const Bf16Kernels&);

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
//
// tensor.h - named tensors, shared by operations, implementations, replay
// bundles and conformance vectors.
//
// Whatever its dtype, a tensor holds doubles that are exactly representable in
// that dtype, so that every implementation is given the same numbers and no
// output is rounded on its way to the comparator.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_TENSOR_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_TENSOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace softmoe::verify {

enum class Dtype { kF64, kF32, kBf16, kI32 };
const char* DtypeName(Dtype dtype);  // "f64", "f32", "bf16", "i32"
// Throws ConfigError with a suggestion.
Dtype ParseDtype(const std::string& name);

// The nearest number of `dtype`, ties to even; an infinity beyond the largest
// finite one (for i32, the nearest end of the range).
double RoundTo(Dtype dtype, double value);

// The number `steps` representable numbers above `value` (below, if negative).
double StepBy(Dtype dtype, double value, int64_t steps);

struct Tensor {
  Dtype dtype = Dtype::kF64;
  std::vector<int64_t> shape;  // {} is a scalar
  std::vector<double> values;  // row-major

  Tensor() = default;
  Tensor(Dtype type, std::vector<int64_t> dims);  // zeros
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  bool operator==(const Tensor&) const = default;
};
using TensorMap = std::map<std::string, Tensor>;

int64_t NumElements(const std::vector<int64_t>& shape);

// "[7, 33]"
std::string ShapeText(const std::vector<int64_t>& shape);
// "[5, 12]" for a flat index; "[]" for a scalar.
std::string IndexText(const std::vector<int64_t>& shape, int64_t flat);

// Rounds every value to the tensor's dtype.
void RoundValues(Tensor& tensor);

// Equal shapes and bit patterns, NaN included.
bool SameBits(const Tensor& a, const Tensor& b);

// Copies to and from the kernels' types.
std::vector<float> ToFloats(const Tensor& tensor);
std::vector<int32_t> ToInts(const Tensor& tensor);
template <typename T>
Tensor FromVector(Dtype dtype, std::vector<int64_t> shape,
                  const std::vector<T>& values) {
  Tensor tensor(dtype, std::move(shape));
  tensor.values.assign(values.begin(), values.end());
  return tensor;
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_TENSOR_H_

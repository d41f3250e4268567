// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/expected.h"

#include <fmt/format.h>

#include <cmath>

#include "core/errors.h"

namespace softmoe::verify {

const Tensor& At(const TensorMap& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  SOFTMOE_CHECK(found != tensors.end()) << "no tensor " << name;
  return found->second;
}

double ScalarOf(const TensorMap& tensors, const std::string& name) {
  return At(tensors, name).values.at(0);
}

reference::Matrix ToMatrix(const Tensor& tensor) {
  const int64_t rows = tensor.shape.size() > 1 ? tensor.shape[0] : 1;
  const int64_t columns = rows == 0 ? 0 : tensor.size() / rows;
  reference::Matrix matrix(rows, columns);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    matrix.data()[i] = tensor.values[i];
  }
  return matrix;
}

reference::Vector ToVector(const Tensor& tensor) {
  reference::Vector vector(tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) vector[i] = tensor.values[i];
  return vector;
}

Tensor ToTensor(const reference::Matrix& matrix, std::vector<int64_t> shape) {
  Tensor tensor(Dtype::kF64, std::move(shape));
  SOFTMOE_CHECK(tensor.size() == matrix.size()) << ShapeText(tensor.shape);
  tensor.values.assign(matrix.data(), matrix.data() + matrix.size());
  return tensor;
}

Tensor ToTensor(const reference::Vector& vector) {
  Tensor tensor(Dtype::kF64, {vector.size()});
  tensor.values.assign(vector.data(), vector.data() + vector.size());
  return tensor;
}

std::vector<Bounded> Values(const std::vector<BoundedSum>& sums) {
  std::vector<Bounded> values;
  values.reserve(sums.size());
  for (const BoundedSum& sum : sums) values.push_back(sum.Get());
  return values;
}

ExpectedOutput FromBounds(const std::string& output, const Tensor& values,
                          const std::vector<Bounded>& bounds,
                          const std::string& derivation) {
  SOFTMOE_CHECK(values.values.size() == bounds.size())
      << output << ": " << values.size() << " values, " << bounds.size()
      << " bounds";
  ExpectedOutput expected{values, {}, derivation, {}};
  expected.bounds.reserve(bounds.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    const double limit = bounds[i].error + property_tests::kUnderflow;
    const double value = values.values[i];
    // Reference and bound sum the same n terms in double, in other orders:
    // 2^-29 of the float bound each. A NaN fails.
    const double drift = std::abs(bounds[i].value - value);
    SOFTMOE_CHECK(drift <= 0x1p-26 * limit + 0x1p-50 * std::abs(value))
        << output << IndexText(values.shape, static_cast<int64_t>(i))
        << fmt::format(
               ": the bound is for another formula: {:.17g} instead of {:.17g}"
               " +- {:.3g}",
               bounds[i].value, value, limit);
    expected.bounds.push_back(limit);
  }
  return expected;
}

ExpectedOutput Exactly(Tensor values, const std::string& derivation) {
  ExpectedOutput expected;
  expected.bounds.assign(values.values.size(), 0.0);
  expected.values = std::move(values);
  expected.derivation = derivation;
  return expected;
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
//
// elements.h - converts tensors to arrays of the kernels' storage type, float
// or bf16, and back.
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ELEMENTS_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ELEMENTS_H_

#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/simt/bf16.h"
#include "property_tests/verify/engine/guarded.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

template <typename T>
inline constexpr Dtype kDtypeOf =
    std::is_same_v<T, kernels::Bf16> ? Dtype::kBf16 : Dtype::kF32;

// The tensor's numbers, each of which T must represent exactly.
template <typename T>
std::vector<T> ToElements(const Tensor& tensor) {
  const std::vector<float> floats = ToFloats(tensor);
  if constexpr (kDtypeOf<T> == Dtype::kF32) {
    return floats;
  } else {
    std::vector<T> elements;
    for (const float x : floats) {
      elements.push_back(
          {static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16)});
    }
    return elements;
  }
}

// The array's content as a tensor of T's dtype.
template <typename T>
Tensor TakeElements(const Guarded<T>& array, std::vector<int64_t> shape) {
  if constexpr (kDtypeOf<T> == Dtype::kF32) {
    return array.TakeTensor(Dtype::kF32, std::move(shape));
  } else {
    std::vector<float> floats;
    for (const T element : array.Take()) {
      floats.push_back(std::bit_cast<float>(uint32_t{element.bits} << 16));
    }
    return FromVector(kDtypeOf<T>, std::move(shape), floats);
  }
}

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_IMPLEMENTATIONS_ELEMENTS_H_

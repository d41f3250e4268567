// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/errors.h"
#include "core/text/suggestion.h"

namespace softmoe::verify {
namespace {

// Rounds a float to 8 significant bits, ties to even.
float RoundToBf16(double value) {
  // Rounding through float would round twice: a value just above a tie of bf16
  // could become the tie. Rounding to float by the odd rule first is safe
  // (Boldo, Melquiond).
  float near = static_cast<float>(value);
  if (!std::isfinite(near)) return near;
  uint32_t bits = std::bit_cast<uint32_t>(near);
  if (static_cast<double>(near) != value && (bits & 1u) == 0) {
    const bool up = static_cast<double>(near) < value;
    near = std::nextafter(near, up ? HUGE_VALF : -HUGE_VALF);
    if (!std::isfinite(near)) return near;
    bits = std::bit_cast<uint32_t>(near);
  }
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return std::bit_cast<float>(bits & 0xffff0000u);
}

// The number `ulps` further on the line of numbers, at most infinity. `Bits`
// holds the bits of a Float; without the sign, it is an integer that preserves
// order.
template <typename Bits, typename Float>
Float Step(Float value, int64_t ulps) {
  constexpr Bits kSign = ~(~Bits{0} >> 1);
  const Bits bits = std::bit_cast<Bits>(value);
  const int64_t from = static_cast<int64_t>(bits & ~kSign);
  const int64_t line = (bits & kSign ? -from : from) + ulps;
  const int64_t limit = static_cast<int64_t>(
      std::bit_cast<Bits>(std::numeric_limits<Float>::infinity()));
  const Bits magnitude = static_cast<Bits>(std::min(std::abs(line), limit));
  return std::bit_cast<Float>(line < 0 ? magnitude | kSign : magnitude);
}

}  // namespace

const char* DtypeName(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
      return "f64";
    case Dtype::kF32:
      return "f32";
    case Dtype::kBf16:
      return "bf16";
    case Dtype::kI32:
      return "i32";
  }
  return "?";
}

Dtype ParseDtype(const std::string& name) {
  for (const Dtype dtype :
       {Dtype::kF64, Dtype::kF32, Dtype::kBf16, Dtype::kI32}) {
    if (name == DtypeName(dtype)) return dtype;
  }
  throw ConfigError("unknown dtype '" + name + "'; " +
                    Suggestion(name, {"f64", "f32", "bf16", "i32"}));
}

double RoundTo(Dtype dtype, double value) {
  switch (dtype) {
    case Dtype::kF64:
      return value;
    case Dtype::kF32:
      return static_cast<float>(value);
    case Dtype::kBf16:
      return RoundToBf16(value);
    case Dtype::kI32:
      return std::clamp(
          std::nearbyint(value),
          static_cast<double>(std::numeric_limits<int32_t>::min()),
          static_cast<double>(std::numeric_limits<int32_t>::max()));
  }
  return value;
}

double StepBy(Dtype dtype, double value, int64_t steps) {
  switch (dtype) {
    case Dtype::kF64:
      return Step<uint64_t>(value, steps);
    case Dtype::kF32:
      return Step<uint32_t>(static_cast<float>(value), steps);
    case Dtype::kBf16:
      return Step<uint32_t>(RoundToBf16(value), steps * (int64_t{1} << 16));
    case Dtype::kI32:
      return RoundTo(dtype, value + static_cast<double>(steps));
  }
  return value;
}

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

Tensor::Tensor(Dtype type, std::vector<int64_t> dims)
    : dtype(type),
      shape(std::move(dims)),
      values(static_cast<size_t>(NumElements(shape))) {}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string IndexText(const std::vector<int64_t>& shape, int64_t flat) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    const int64_t size = std::max<int64_t>(shape[d], 1);
    index[d] = flat % size;
    flat /= size;
  }
  return ShapeText(index);
}

void RoundValues(Tensor& tensor) {
  for (double& value : tensor.values) value = RoundTo(tensor.dtype, value);
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape == b.shape &&
         std::ranges::equal(a.values, b.values, [](double x, double y) {
           return std::bit_cast<uint64_t>(x) == std::bit_cast<uint64_t>(y);
         });
}

std::vector<float> ToFloats(const Tensor& tensor) {
  return {tensor.values.begin(), tensor.values.end()};
}

std::vector<int32_t> ToInts(const Tensor& tensor) {
  return {tensor.values.begin(), tensor.values.end()};
}

}  // namespace softmoe::verify

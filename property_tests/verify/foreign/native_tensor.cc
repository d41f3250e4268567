// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/native_tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/errors.h"

namespace softmoe::verify {
namespace {

uint16_t ToBf16Bits(double value) {
  // Exact in bf16, or NaN: the lower half is 0, or does not matter.
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<uint16_t>(
      std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16);
}

Tensor Unwritten(const Wanted& output) {
  Tensor tensor(output.dtype, output.shape);
  std::ranges::fill(tensor.values,
                    output.dtype == Dtype::kI32
                        ? double{std::numeric_limits<int32_t>::min()}
                        : std::numeric_limits<double>::quiet_NaN());
  return tensor;
}

}  // namespace

int32_t AbiDtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF64:
      return SOFTMOE_VERIFY_F64;
    case Dtype::kF32:
      return SOFTMOE_VERIFY_F32;
    case Dtype::kBf16:
      return SOFTMOE_VERIFY_BF16;
    case Dtype::kI32:
      return SOFTMOE_VERIFY_I32;
  }
  return 0;
}

NativeTensor::Data NativeTensor::MakeData(const std::string& name,
                                          const Tensor& content) {
  switch (content.dtype) {
    case Dtype::kF64:
      return Guarded<double>(name, content.values, 0);
    case Dtype::kF32:
      return Guarded<float>(name, ToFloats(content), 0);
    case Dtype::kBf16: {
      std::vector<uint16_t> bits(content.values.size());
      std::ranges::transform(content.values, bits.begin(), ToBf16Bits);
      return Guarded<uint16_t>(name, bits, 0);
    }
    case Dtype::kI32:
      break;
  }
  return Guarded<int32_t>(name, ToInts(content), 0);
}

NativeTensor::NativeTensor(const std::string& name, const Tensor& content)
    : name_(name),
      dtype_(content.dtype),
      shape_(content.shape),
      data_(MakeData(name, content)),
      original_(data_) {}

NativeTensor::NativeTensor(const Wanted& output)
    : NativeTensor(output.name, Unwritten(output)) {}

softmoe_verify_tensor NativeTensor::Abi() {
  void* data = std::visit(
      [](auto& guarded) { return static_cast<void*>(guarded.data()); }, data_);
  return {name_.c_str(), shape_.data(), data,
          static_cast<int32_t>(shape_.size()), AbiDtype(dtype_)};
}

Tensor NativeTensor::Take() const {
  return std::visit(
      [this](const auto& guarded) {
        const auto values = guarded.Take();
        Tensor tensor(dtype_, shape_);
        for (size_t i = 0; i < values.size(); ++i) {
          if constexpr (std::is_same_v<decltype(values[i]), const uint16_t&>) {
            tensor.values[i] = std::bit_cast<float>(uint32_t{values[i]} << 16);
          } else {
            tensor.values[i] = static_cast<double>(values[i]);
          }
        }
        return tensor;
      },
      data_);
}

void NativeTensor::CheckUnchanged() const {
  std::visit(
      [this](const auto& guarded) {
        using Type = std::decay_t<decltype(guarded)>;
        const auto now = guarded.Take();
        const auto before = std::get<Type>(original_).Take();
        if (!now.empty() && std::memcmp(now.data(), before.data(),
                                        now.size() * sizeof(now[0])) != 0) {
          throw NumericsError("input " + name_ + " was changed by the library");
        }
      },
      data_);
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
//
// device_array.h - arrays on the device compiled for (SOFTMOE_DEVICE is
// isa_cuda or isa_shim), and timing of work on it.
#ifndef SOFTMOE_PROPERTY_TESTS_GPU_DEVICE_ARRAY_H_
#define SOFTMOE_PROPERTY_TESTS_GPU_DEVICE_ARRAY_H_

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/philox.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/device_facts.h"
#include "kernels/simt/bf16.h"
#include "property_tests/gpu/stages.h"

namespace softmoe::gpu {

namespace device = ::softmoe::kernels::SOFTMOE_DEVICE;

template <typename T>
class DeviceArray {
 public:
  // Repeats numbers in [-1, 1): with zeros a device would be faster, and
  // cooler, than with data.
  explicit DeviceArray(int64_t size) : size_(size) {
    Allocate();
    const std::vector<T> pattern = Pattern(std::min(size, kPattern));
    const auto count = static_cast<int64_t>(pattern.size());
    for (int64_t begin = 0; begin < size; begin += count) {
      const int64_t part = std::min(count, size - begin);
      if (begin == 0) {
        device::CopyAcrossDevice(data_, pattern.data(), Bytes(part));
      } else {
        device::CopyOnDevice(data_ + begin, data_, Bytes(part),
                             device::DeviceStream());
      }
    }
  }
  explicit DeviceArray(const std::vector<T>& values)
      : size_(static_cast<int64_t>(values.size())) {
    Allocate();
    device::CopyAcrossDevice(data_, values.data(), Bytes(size_));
  }
  ~DeviceArray() {
    device::WaitForStream(device::DeviceStream());
    device::FreeOnDevice(data_);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  int64_t size() const { return size_; }
  int64_t bytes() const { return static_cast<int64_t>(Bytes(size_)); }

 private:
  static constexpr int64_t kPattern = int64_t{1} << 20;

  static size_t Bytes(int64_t count) {
    return static_cast<size_t>(count) * sizeof(T);
  }

  static std::vector<T> Pattern(int64_t count) {
    const RandomKey key{1, RandomStream::kTestData, 0, 0};
    std::vector<T> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) {
      const uint32_t word = PhiloxWords(key, i)[0];
      const float number = static_cast<float>(word >> 8) * 0x1p-23f - 1.0f;
      if constexpr (std::is_same_v<T, kernels::Bf16>) {
        values[i] = {
            static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16)};
      } else {
        values[i] = static_cast<T>(number);
      }
    }
    return values;
  }

  void Allocate() {
    data_ = static_cast<T*>(device::AllocateOnDevice(Bytes(size_)));
  }

  int64_t size_;
  T* data_ = nullptr;
};

// Seconds per run of `launch`, as the median over three bursts of back-to-back
// runs of a tenth of a second. A launch costs the host a few microseconds;
// anything shorter appears to take as long. On the simulated device `launch`
// runs once and there is no time.
inline std::optional<double> SecondsOf(const std::function<void()>& launch) {
  using Clock = std::chrono::steady_clock;
  CUstream_st* const stream = device::DeviceStream();
  const auto burst = [&](int64_t count) {
    const auto begin = Clock::now();
    for (int64_t i = 0; i < count; ++i) launch();
    device::FinishStream(stream);
    const std::chrono::duration<double> passed = Clock::now() - begin;
    return passed.count() / static_cast<double>(count);
  };
  (void)burst(1);  // touches all memory and chooses algorithms
  if (IsSimulated()) return std::nullopt;
  const double once = burst(1);
  const auto count = static_cast<int64_t>(std::clamp(0.1 / once, 1.0, 1000.0));
  std::vector<double> seconds = {burst(count), burst(count), burst(count)};
  std::ranges::sort(seconds);
  return seconds[1];
}

}  // namespace softmoe::gpu

#endif  // SOFTMOE_PROPERTY_TESTS_GPU_DEVICE_ARRAY_H_

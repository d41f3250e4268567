// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/implementations/mirrored_kernels.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"

namespace softmoe::verify {
namespace {

// The size of the canaries on both sides of an array: the alignment of
// cudaMalloc.
constexpr size_t kGuard = 256;
constexpr unsigned char kCanary = 0xad;

// The arrays of one call.
class Mirror {
 public:
  explicit Mirror(const DeviceMemory& memory) : memory_(memory) {}
  ~Mirror() {
    for (const Array& array : arrays_) memory_.free(array.device);
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // Replaces a host pointer to `size` elements by one to their copy on the
  // device; null stays null. The kernel must not write to const elements.
  template <typename T>
  void Copy(const char* name, T*& pointer, int64_t size) {
    if (pointer == nullptr) return;
    constexpr bool kWritten = !std::is_const_v<T>;
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    Array array{.name = name, .bytes = bytes};
    array.content.assign(bytes + 2 * kGuard, kCanary);
    if (bytes > 0) std::memcpy(&array.content[kGuard], pointer, bytes);
    if constexpr (kWritten) array.host = pointer;
    array.device =
        static_cast<unsigned char*>(memory_.allocate(array.content.size()));
    const Array& kept = arrays_.emplace_back(std::move(array));
    memory_.copy(kept.device, kept.content.data(), kept.content.size());
    pointer = reinterpret_cast<T*>(kept.device + kGuard);
  }

  // Must be called after the kernel. Copies outputs to the host.
  void TakeBack() {
    for (const Array& array : arrays_) {
      std::vector<unsigned char> now(array.content.size());
      memory_.copy(now.data(), array.device, now.size());
      const auto changed = [&](size_t begin, size_t end) {
        return !std::equal(now.begin() + begin, now.begin() + end,
                           array.content.begin() + begin);
      };
      const size_t end = kGuard + array.bytes;
      if (changed(0, kGuard) || changed(end, now.size())) {
        throw NumericsError(fmt::format(
            "{}: written {} on the device", array.name,
            changed(0, kGuard) ? "before the beginning" : "past the end"));
      }
      if (array.host == nullptr) {
        if (!changed(kGuard, end)) continue;
        throw NumericsError(
            fmt::format("{}: an input, written to on the device", array.name));
      }
      if (array.bytes > 0) {
        std::memcpy(array.host, &now[kGuard], array.bytes);
      }
    }
  }

 private:
  struct Array {
    const char* name;
    size_t bytes;                             // without the canaries
    std::vector<unsigned char> content = {};  // as it was sent
    void* host = nullptr;                     // outputs
    unsigned char* device = nullptr;
  };

  const DeviceMemory& memory_;
  std::vector<Array> arrays_;
};

template <typename Args>
std::function<void(const Args&)> Mirrored(
    std::function<void(const Args&)> device, const DeviceMemory& memory) {
  return [device, memory](const Args& args) {
    Mirror mirror(memory);
    Args copies = args;
    ForEachArray(copies,
                 [&](const char* name, auto*& pointer, int64_t elements) {
                   mirror.Copy(name, pointer, elements);
                 });
    device(copies);
    mirror.TakeBack();
  };
}

}  // namespace

template <typename Activation>
RowKernelsOf<Activation> MirroredKernels(const RowKernelsOf<Activation>& device,
                                         const DeviceMemory& memory) {
#define SOFTMOE_MIRRORED(_, name, ...) Mirrored(device.name, memory),
  return {SOFTMOE_KERNELS(SOFTMOE_MIRRORED, )};
}

template RowKernels MirroredKernels(const RowKernels&, const DeviceMemory&);
template Bf16Kernels MirroredKernels(const Bf16Kernels&, const DeviceMemory&);

}  // namespace softmoe::verify

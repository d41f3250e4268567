// SPDX-License-Identifier: Apache-2.0
//
// simulated_case.h - runs CUDA kernels on a simulated device
// (kernels/simt/device) in three schedules and demands equal bits.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_

#include <rapidcheck.h>

#include <cstring>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/simt/shim/simulator.h"
#include "property_tests/testing/kernel_case.h"

namespace softmoe::property_tests {

inline bool SameBits(const std::vector<Floats>& a,
                     const std::vector<Floats>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    if (!a[i].empty() && std::memcmp(a[i].data(), b[i].data(),
                                     a[i].size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

// Copies of host arrays on the simulated device, freed with this.
class DeviceArrays {
 public:
  DeviceArrays() = default;
  ~DeviceArrays() {
    for (const Array& array : arrays_) {
      kernels::isa_shim::FreeOnDevice(array.device);
    }
  }
  DeviceArrays(const DeviceArrays&) = delete;
  DeviceArrays& operator=(const DeviceArrays&) = delete;

  template <typename T>
  const T* In(const std::vector<T>& x) {
    return static_cast<const T*>(Copy(x.data(), nullptr, x.size() * sizeof(T)));
  }
  // TakeBack writes to `x`, which must live until then.
  float* InOut(Floats& x) {
    return static_cast<float*>(
        Copy(x.data(), x.data(), x.size() * sizeof(float)));
  }

  CUstream_st* stream() const { return kernels::isa_shim::DeviceStream(); }

  // To be called after the kernels.
  void TakeBack() {
    for (const Array& array : arrays_) {
      if (array.host == nullptr) continue;
      kernels::isa_shim::CopyAcrossDevice(array.host, array.device,
                                          array.bytes);
    }
  }

 private:
  struct Array {
    void* device;
    void* host;  // null: an input
    size_t bytes;
  };

  void* Copy(const void* from, void* back, size_t bytes) {
    void* memory = kernels::isa_shim::AllocateOnDevice(bytes);
    arrays_.push_back({memory, back, bytes});
    kernels::isa_shim::CopyAcrossDevice(memory, from, bytes);
    return memory;
  }

  std::vector<Array> arrays_;
};

// body() launches kernels of isa_shim and returns all their outputs.
template <typename Body>
std::vector<Floats> RunInTheSimulator(const Body& body) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const std::vector<Floats> outputs = body();
  for (const simt::Schedule schedule :
       {simt::Schedule::kDescending, simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule, 3);
    RC_ASSERT(SameBits(body(), outputs));
  }
  return outputs;
}

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_

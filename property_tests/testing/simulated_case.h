// SPDX-License-Identifier: Apache-2.0
//
// simulated_case.h - runs CUDA kernels on a simulated device
// (kernels/simt/device) in three schedules and demands equal bits.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_

#include <rapidcheck.h>

#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/simt/shim/simulator.h"
#include "property_tests/testing/kernel_case.h"

namespace softmoe::property_tests {

// Arrays for CPU kernels, with the interface of DeviceArrays.
struct HostArrays {
  template <typename T>
  const T* In(const std::vector<T>& x) {
    return x.data();
  }
  template <typename T>
  T* InOut(std::vector<T>& x) {
    return x.data();
  }
};

// Copies of host arrays on the simulated device, freed with this object.
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
  template <typename T>
  T* InOut(std::vector<T>& x) {
    return static_cast<T*>(Copy(x.data(), x.data(), x.size() * sizeof(T)));
  }

  CUstream_st* stream() const { return kernels::isa_shim::DeviceStream(); }

  // Call it after the kernels.
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
    void* host;  // nullptr: an input
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

// body() launches kernels of isa_shim and returns all its outputs, as for
// RunAtEveryLevel.
template <typename Body>
auto RunInTheSimulator(const Body& body) {
  simt::SetSchedule(simt::Schedule::kAscending);
  const auto outputs = body();
  for (const simt::Schedule schedule :
       {simt::Schedule::kDescending, simt::Schedule::kRandom}) {
    simt::SetSchedule(schedule, 3);
    RC_ASSERT(SameBits(body(), outputs));
  }
  return outputs;
}

// Demands that the CUDA kernel gives the CPU kernel's bits at every level.
// run(arrays, kernel) calls kernel(args) once, with pointers of `arrays`, and
// returns all outputs, as above.
template <typename Args, typename Run>
void ExpectTheBitsOfTheCpu(void (*on_cpu)(const Args&, ThreadPool&),
                           void (*on_device)(const Args&, CUstream_st*),
                           const Run& run) {
  const auto simulated = RunInTheSimulator([&] {
    DeviceArrays arrays;
    return run(arrays, [&](const Args& args) {
      on_device(args, arrays.stream());
      arrays.TakeBack();
    });
  });
  const auto levels = RunAtEveryLevel([&](ThreadPool& pool) {
    HostArrays arrays;
    return run(arrays, [&](const Args& args) { on_cpu(args, pool); });
  });
  for (const auto& level : levels) RC_ASSERT(SameBits(simulated, level));
}

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_SIMULATED_CASE_H_

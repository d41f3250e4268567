// SPDX-License-Identifier: Apache-2.0
//
// shim_test_support.h - what the simulator tests of kernels share: the arrays
// of a call, and the check that each of three schedules writes all outputs,
// with equal bits, and that nothing stays allocated.
//
// These programs run under each sanitizer and see only the kernels; whether the
// results are right is tested in property_tests/. No iostream: MSan knows
// nothing of the library's compiled half.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_SHIM_TEST_SUPPORT_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_SHIM_TEST_SUPPORT_H_

#include <algorithm>
#include <bit>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/testing/random_test_util.h"
#include "kernels/simt/bf16.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/device/guarded_memory.h"
#include "kernels/simt/device/include/cuda_runtime_api.h"
#include "kernels/simt/shim/sanitizer_hooks.h"
#include "kernels/simt/shim/simulator.h"
#include "kernels/simt/shim/variant.h"

// Arguments that are not given are null until Complete fills them in.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace softmoe::kernels {

// Random numbers that bf16 can hold, so that they are the same in all types;
// over many binades, so that the order of a sum shows in its bits.
template <typename T>  // Bf16, float or double
std::vector<T> RandomNumbers(int64_t size, uint64_t seed) {
  Draws draws(seed);
  std::vector<T> x(static_cast<size_t>(size));
  for (T& value : x) {
    // In (-2, 2): a sign, 5 bits of the exponent, 7 of the fraction.
    const auto drawn = static_cast<uint32_t>(draws.Integer(0, (1 << 13) - 1));
    const uint32_t upper = drawn >> 12 << 15 | 96 << 7 | (drawn & 0xfff);
    if constexpr (std::is_same_v<T, Bf16>) {
      value = {static_cast<uint16_t>(upper)};
    } else {
      value = std::bit_cast<float>(upper << 16);
    }
  }
  return x;
}

// Indices in [0, limit).
inline std::vector<int32_t> RandomIndices(int64_t size, int64_t limit,
                                          uint64_t seed) {
  Draws draws(seed);
  std::vector<int32_t> x(static_cast<size_t>(size));
  for (int32_t& index : x) {
    index = static_cast<int32_t>(draws.Integer(0, limit - 1));
  }
  return x;
}

// Ends the program if a call of the runtime failed.
inline void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "simulated device: %s\n", cudaGetErrorString(error));
  exit(1);
}

using Names = std::initializer_list<std::string_view>;

// The exceptions to the rule that const arrays of a call are inputs, others
// outputs, and `scratch` is scratch.
struct Roles {
  Names added_to = {};  // outputs that hold numbers before the call
  Names scratch = {};
  Names absent = {};  // null
};

// The stream of one run and its arrays, in device memory. Each array has
// exactly the size that the kernel may use. Before the run, what the kernel
// writes holds a pattern that differs from run to run; to MSan it is
// uninitialised. If `shifted`, arrays begin one element after a multiple of 256
// bytes: kernels that would access 16 bytes at a time must notice.
class DeviceRun {
 public:
  explicit DeviceRun(int filler, bool shifted = false)
      : filler_(filler), shifted_(shifted) {
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~DeviceRun() {
    Check(cudaStreamSynchronize(stream_));
    for (const Array& array : arrays_) Check(cudaFree(array.allocation));
    Check(cudaStreamDestroy(stream_));
  }
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;

  cudaStream_t stream() const { return stream_; }

  // Returns the arguments with every array on the device: a host array is
  // copied; a missing one is made, with random numbers if it is an input.
  // Indices must be given: the pointer to missing ones stays null.
  template <typename Args>
  Args Complete(Args args, const Roles& roles = {}) {
    ForEachArray(args, [&]<typename T>(std::string_view name, T*& pointer,
                                       int64_t size) {
      using Element = std::remove_const_t<T>;
      const auto is_one_of = [&](Names names) {
        return std::ranges::find(names, name) != names.end();
      };
      constexpr bool kIsInput = std::is_const_v<T>;
      if (is_one_of(roles.absent) || simt::DeviceMemory().Holds(pointer)) {
        return;
      }
      if (pointer != nullptr) {
        pointer = Copy(std::vector<Element>(pointer, pointer + size),
                       /*is_output=*/!kIsInput);
      } else if (!kIsInput && !is_one_of(roles.added_to)) {
        pointer = name == "scratch" || is_one_of(roles.scratch)
                      ? Scratch<Element>(size)
                      : Out<Element>(size);
      } else if constexpr (!std::is_integral_v<Element>) {
        pointer = Copy(RandomNumbers<Element>(size, arrays_.size()),
                       /*is_output=*/!kIsInput);
      }
    });
    return args;
  }

  // Launches the kernel with these arguments, completed, and returns them.
  template <typename Args>
  Args Call(void (*kernel)(const Args&, cudaStream_t), const Args& given,
            const Roles& roles = {}) {
    const Args args = Complete(given, roles);
    kernel(args, stream_);
    return args;
  }

  // In: an input. Out: an output, which is compared. InOut: an output that has
  // numbers before. Scratch: not compared.
  template <typename T>
  const T* In(const std::vector<T>& x) {
    return Copy(x, /*is_output=*/false);
  }
  template <typename T>
  T* Out(int64_t size) {
    return Allocate<T>(size, /*is_output=*/true);
  }
  template <typename T>
  T* InOut(const std::vector<T>& x) {
    return Copy(x, /*is_output=*/true);
  }
  template <typename T>
  T* Scratch(int64_t size) {
    return Allocate<T>(size, /*is_output=*/false);
  }

  // What the kernels have written there so far.
  template <typename T>
  std::vector<T> Read(const T* memory, int64_t size) const {
    std::vector<T> x(static_cast<size_t>(size));
    ToHost(memory, x.size() * sizeof(T), x.data());
    return x;
  }

  // The bytes of each output, all of which must have been written.
  std::vector<std::vector<char>> Outputs() const {
    std::vector<std::vector<char>> outputs;
    for (const Array& array : arrays_) {
      if (!array.is_output) continue;
      outputs.emplace_back(array.bytes);
      ToHost(array.memory, array.bytes, outputs.back().data());
      simt::RequireInitialized(outputs.back().data(), array.bytes);
    }
    return outputs;
  }

 private:
  struct Array {
    void *allocation, *memory;
    size_t bytes;
    bool is_output;
  };

  template <typename T>
  T* Allocate(int64_t size, bool is_output) {
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    const size_t before = shifted_ ? sizeof(T) : 0;
    void* allocation = nullptr;
    Check(cudaMalloc(&allocation, before + bytes));
    void* memory = allocation == nullptr
                       ? nullptr
                       : static_cast<char*>(allocation) + before;
    arrays_.push_back({allocation, memory, bytes, is_output});
    // Fresh memory is what MSan needs.
    if (simt::kVariant != simt::kMsan) {
      Check(cudaMemsetAsync(memory, filler_, bytes, stream_));
    }
    return static_cast<T*>(memory);
  }
  template <typename T>
  T* Copy(const std::vector<T>& x, bool is_output) {
    const size_t bytes = x.size() * sizeof(T);
    T* memory = Allocate<T>(static_cast<int64_t>(x.size()), is_output);
    // Kept until the copy has run.
    const char* from = reinterpret_cast<const char*>(x.data());
    copied_.emplace_back(from, from + bytes);
    Check(cudaMemcpyAsync(memory, copied_.back().data(), bytes,
                          cudaMemcpyHostToDevice, stream_));
    return memory;
  }
  void ToHost(const void* memory, size_t bytes, void* to) const {
    Check(cudaMemcpyAsync(to, memory, bytes, cudaMemcpyDeviceToHost, stream_));
    Check(cudaStreamSynchronize(stream_));
  }

  int filler_;
  bool shifted_;
  cudaStream_t stream_ = nullptr;
  std::vector<Array> arrays_;
  std::vector<std::vector<char>> copied_;
};

inline int& Failures() {
  static int failures = 0;
  return failures;
}
inline int& Cases() {
  static int cases = 0;
  return cases;
}

// Says what failed, and counts it.
[[gnu::format(printf, 1, 2)]] inline void Fail(const char* format, ...) {
  ++Failures();
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
}

// Runs launch(run), which launches kernels on run.stream() with arrays of
// `run`, in each schedule. `what` names the case. Returns the outputs.
template <typename Launch>
std::vector<std::vector<char>> CheckSchedules(const char* what,
                                              const Launch& launch,
                                              bool shifted = false) {
  ++Cases();
  const int allocations = simt::LiveAllocations();
  constexpr std::pair<simt::Schedule, int> kSchedules[] = {
      {simt::Schedule::kAscending, 0x7f},   // fillers, as floats: large,
      {simt::Schedule::kDescending, 0xff},  // NaN,
      {simt::Schedule::kRandom, 0x00},      // zero
  };
  std::vector<std::vector<char>> first;
  for (const auto& [schedule, filler] : kSchedules) {
    simt::SetSchedule(schedule, 11);
    DeviceRun run(filler, shifted);
    launch(run);
    auto outputs = run.Outputs();
    if (schedule == kSchedules[0].first) {
      first = std::move(outputs);
    } else if (outputs != first) {
      Fail("%s: schedule %d gives other bits than the first", what,
           static_cast<int>(schedule));
    }
  }
  // Memory that queued work still uses cannot be freed.
  if (simt::LiveAllocations() != allocations) {
    Fail("%s: %d allocations were not freed", what,
         simt::LiveAllocations() - allocations);
  }
  return first;
}

// Checks the schedules twice, the second time with arrays that no kernel can
// access 16 bytes at a time. If `same_bits`, because that makes no difference
// to the results (no sum over a row), both must have the same bits.
template <typename Launch>
void CheckSchedulesAndShifted(const char* what, bool same_bits,
                              const Launch& launch) {
  const auto outputs = CheckSchedules(what, launch);
  const auto shifted = CheckSchedules(what, launch, /*shifted=*/true);
  if (same_bits && outputs != shifted) {
    Fail("%s: arrays that begin elsewhere get other bits", what);
  }
}

// The exit code of main().
inline int Summary() {
  printf("%d cases in 3 schedules, %d failures\n", Cases(), Failures());
  return Failures() == 0 && Cases() > 0 ? 0 : 1;
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_SHIM_TEST_SUPPORT_H_

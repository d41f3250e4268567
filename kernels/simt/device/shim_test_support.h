// SPDX-License-Identifier: Apache-2.0
//
// shim_test_support.h - what the simulator tests of kernels share: buffers and
// the check that each of three schedules writes all outputs, with equal bits,
// and that nothing stays allocated.
//
// These programs run under each sanitizer and see only the kernels; that the
// results are right is for property_tests/. No iostream: MSan knows nothing of
// the library's compiled half.
#ifndef SOFTMOE_KERNELS_SIMT_DEVICE_SHIM_TEST_SUPPORT_H_
#define SOFTMOE_KERNELS_SIMT_DEVICE_SHIM_TEST_SUPPORT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/simt/bf16.h"
#include "kernels/simt/device/device.h"
#include "kernels/simt/device/include/cuda_runtime_api.h"
#include "kernels/simt/shim/sanitizer_hooks.h"
#include "kernels/simt/shim/simulator.h"
#include "kernels/simt/shim/variant.h"

namespace softmoe::kernels {

// Numbers in [-1, 1), the same for the same seed.
class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed * 2 + 1) {}
  float Signed() {
    return static_cast<float>(static_cast<double>(Next()) * 0x1p-31 - 1);
  }
  int64_t Below(int64_t limit) { return Next() % limit; }

 private:
  int64_t Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>(state_ >> 32);
  }
  uint64_t state_;
};

inline std::vector<float> RandomFloats(int64_t size, uint64_t seed,
                                       float scale = 1) {
  Draws draws(seed);
  std::vector<float> x(static_cast<size_t>(size));
  for (float& value : x) value = scale * draws.Signed();
  return x;
}

// The nearest bf16, ties to even, of a finite number: compares with both
// neighbours, as no kernel does.
inline Bf16 NearestBf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(x));
  const auto value = [](uint32_t upper) {
    const uint32_t all = upper << 16;
    float y;
    memcpy(&y, &all, sizeof(y));
    return static_cast<double>(y);
  };
  const uint32_t near = bits >> 16, far = near + 1;  // from zero
  const double below = std::abs(x - value(near));
  const double above = std::abs(value(far) - x);
  const bool up = above < below || (above == below && far % 2 == 0);
  return {static_cast<uint16_t>(up ? far : near)};
}
inline float ToFloat(float x) { return x; }
inline float ToFloat(Bf16 x) {
  const uint32_t bits = uint32_t{x.bits} << 16;
  float y;
  memcpy(&y, &bits, sizeof(y));
  return y;
}

// RandomFloats, as bf16; and as T, which is float or Bf16.
inline std::vector<Bf16> RandomBf16(int64_t size, uint64_t seed,
                                    float scale = 1) {
  std::vector<Bf16> x;
  for (const float value : RandomFloats(size, seed, scale)) {
    x.push_back(NearestBf16(value));
  }
  return x;
}
template <typename T>
std::vector<T> RandomElements(int64_t size, uint64_t seed, float scale = 1) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return RandomFloats(size, seed, scale);
  } else {
    return RandomBf16(size, seed, scale);
  }
}
inline std::vector<float> ToFloats(const std::vector<Bf16>& x) {
  std::vector<float> floats;
  for (const Bf16 value : x) floats.push_back(ToFloat(value));
  return floats;
}

// Ends the program if a call of the runtime failed.
inline void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "simulated device: %s\n", cudaGetErrorString(error));
  exit(1);
}

// The arrays of one run, in memory of the device, and its stream. Outputs are
// of exactly the size that the kernel may write, with contents that differ from
// run to run; to MSan they are uninitialised.
class Outputs {
 public:
  explicit Outputs(int filler) : filler_(filler) {
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~Outputs() {
    if (stream_ == nullptr) return;  // moved from
    Check(cudaStreamSynchronize(stream_));
    for (const Array& array : arrays_) Check(cudaFree(array.memory));
    Check(cudaStreamDestroy(stream_));
  }
  Outputs(Outputs&& other) noexcept
      : filler_(other.filler_),
        stream_(std::exchange(other.stream_, nullptr)),
        arrays_(std::move(other.arrays_)),
        inputs_(std::move(other.inputs_)) {}
  Outputs& operator=(Outputs&&) = delete;

  cudaStream_t stream() const { return stream_; }

  // Adds an input, which is not compared.
  template <typename T>
  const T* In(const std::vector<T>& x) {
    return Copy(x, /*is_output=*/false);
  }
  template <typename T>
  T* Add(int64_t size) {
    T* memory = Allocate<T>(size, /*is_output=*/true);
    // Fresh memory is what MSan needs.
    if (simt::kVariant != simt::kMsan) {
      Check(cudaMemsetAsync(memory, filler_, Bytes<T>(size), stream_));
    }
    return memory;
  }
  // Adds scratch, which is written but not compared.
  template <typename T>
  T* AddScratch(int64_t size) {
    return Allocate<T>(size, /*is_output=*/false);
  }
  // Adds an output that the kernel adds to.
  template <typename T>
  T* AddCopy(const std::vector<T>& x) {
    return Copy(x, /*is_output=*/true);
  }

  // What the kernels have written there so far.
  template <typename T>
  std::vector<T> Read(const T* memory, int64_t size) const {
    std::vector<T> x(static_cast<size_t>(size));
    ToHost(memory, Bytes<T>(size), x.data());
    return x;
  }

  // Call it before outputs are compared.
  void RequireWritten() {
    for (Array& array : arrays_) {
      if (!array.is_output) continue;
      array.content.resize(array.bytes);
      ToHost(array.memory, array.bytes, array.content.data());
      simt::RequireInitialized(array.content.data(), array.bytes);
    }
  }
  bool operator==(const Outputs& other) const {
    if (arrays_.size() != other.arrays_.size()) return false;
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (arrays_[i].content != other.arrays_[i].content) return false;
    }
    return true;
  }

 private:
  struct Array {
    void* memory;
    size_t bytes;
    bool is_output;
    std::vector<char> content;  // of an output, in the end
  };

  template <typename T>
  static size_t Bytes(int64_t size) {
    return static_cast<size_t>(size) * sizeof(T);
  }
  template <typename T>
  T* Allocate(int64_t size, bool is_output) {
    void* memory = nullptr;
    Check(cudaMalloc(&memory, Bytes<T>(size)));
    arrays_.push_back({memory, Bytes<T>(size), is_output, {}});
    return static_cast<T*>(memory);
  }
  template <typename T>
  T* Copy(const std::vector<T>& x, bool is_output) {
    T* memory = Allocate<T>(static_cast<int64_t>(x.size()), is_output);
    // Kept until the copy has run.
    inputs_.emplace_back(x.size() * sizeof(T));
    if (!x.empty())
      memcpy(inputs_.back().data(), x.data(), x.size() * sizeof(T));
    Check(cudaMemcpyAsync(memory, inputs_.back().data(), x.size() * sizeof(T),
                          cudaMemcpyHostToDevice, stream_));
    return memory;
  }
  void ToHost(const void* memory, size_t bytes, void* to) const {
    Check(cudaMemcpyAsync(to, memory, bytes, cudaMemcpyDeviceToHost, stream_));
    Check(cudaStreamSynchronize(stream_));
  }

  int filler_;
  cudaStream_t stream_ = nullptr;
  std::vector<Array> arrays_;
  std::vector<std::vector<char>> inputs_;
};

inline int& Failures() {
  static int failures = 0;
  return failures;
}
inline int& Cases() {
  static int cases = 0;
  return cases;
}

// Complains unless `stored` are the numbers of `computed`, each rounded once:
// kernels compute the same in float, whatever they store.
inline void RequireRounded(const char* what, const std::vector<float>& computed,
                           const std::vector<Bf16>& stored) {
  ++Cases();
  for (size_t i = 0; i < computed.size(); ++i) {
    if (stored.size() == computed.size() &&
        stored[i].bits == NearestBf16(computed[i]).bits) {
      continue;
    }
    fprintf(stderr, "%s: element %zu is %.9g in bf16, %.9g in float\n", what, i,
            static_cast<double>(ToFloat(stored.at(i))),
            static_cast<double>(computed[i]));
    ++Failures();
    return;
  }
}
inline void RequireEqual(const char* what, const std::vector<float>& a,
                         const std::vector<float>& b) {
  ++Cases();
  if (a.size() == b.size() &&
      (a.empty() ||
       memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0)) {
    return;
  }
  fprintf(stderr, "%s: floats differ beside bf16\n", what);
  ++Failures();
}

// run(outputs) adds its outputs and launches. `what` names the case.
template <typename Run>
void CheckSchedules(const char* what, const Run& run) {
  ++Cases();
  const int allocations = simt::LiveAllocations();
  constexpr std::pair<simt::Schedule, int> kSchedules[] = {
      {simt::Schedule::kAscending, 0x7f},   // fillers, as floats: large,
      {simt::Schedule::kDescending, 0xff},  // NaN,
      {simt::Schedule::kRandom, 0x00},      // zero
  };
  {
    std::vector<Outputs> results;
    results.reserve(std::size(kSchedules));
    for (const auto& [schedule, filler] : kSchedules) {
      simt::SetSchedule(schedule, 11);
      results.emplace_back(filler);
      run(results.back());
      results.back().RequireWritten();
      if (results.back() == results.front()) continue;
      ++Failures();
      fprintf(stderr, "%s: schedule %d gives other bits than the first\n", what,
              static_cast<int>(schedule));
    }
  }
  // Memory that queued work still uses cannot be freed.
  if (simt::LiveAllocations() == allocations) return;
  ++Failures();
  fprintf(stderr, "%s: %d allocations were not freed\n", what,
          simt::LiveAllocations() - allocations);
}

// The exit code of main().
inline int Summary() {
  printf("%d cases in 3 schedules, %d failures\n", Cases(), Failures());
  return Failures() == 0 && Cases() > 0 ? 0 : 1;
}

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_SIMT_DEVICE_SHIM_TEST_SUPPORT_H_

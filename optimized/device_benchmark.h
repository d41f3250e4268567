// SPDX-License-Identifier: Apache-2.0
//
// device_benchmark.h - how calls are timed on a device: compiled for each of
// its backends (backend.h), and registered for `bench --device=cuda`.
//
// A benchmark is named KIND/OPERATION/PRECISION/NAME/SHAPE, with /ALGORITHM
// behind if that is chosen, and has the counters "flops" and "bytes" unless
// they are 0; from these `gpu_check` makes its record
// (property_tests/gpu/time_stages.cc).
#ifndef SOFTMOE_OPTIMIZED_DEVICE_BENCHMARK_H_
#define SOFTMOE_OPTIMIZED_DEVICE_BENCHMARK_H_

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/config/config_enums.h"
#include "core/errors.h"
#include "core/philox.h"
#include "kernels/cuda/device_facts.h"
#include "optimized/backend.h"
#include "optimized/buffer.h"
#include "optimized/paper_shapes.h"

// Arguments that are not given are null until they are filled in.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

// A call, and the least that it must compute and move: each operand read once,
// each result written once. Scratch and recomputation do not count.
struct Timed {
  std::string operation, name, shape;
  double flops = 0, bytes = 0;
  std::string kind = "time";  // or "ceiling", "algorithm"
  // Which algorithm of cuBLASLt's heuristic a product takes; nullopt: the
  // first, as models do.
  std::optional<int> algorithm = {};

  std::string FullName() const {
    const std::string text = fmt::format("{}/{}/{}/{}/{}", kind, operation,
                                         EnumName(kPrecision), name, shape);
    return algorithm ? fmt::format("{}/{}", text, *algorithm) : text;
  }
};

inline Shapes TheShapes() { return ShapesOn(device::RequireDevice().backend); }

// A queue, and arrays on its device that live as long as the queue.
class Bench {
 public:
  explicit Bench(std::optional<int> algorithm) {
    CUstream_st* const stream = device::DeviceStream();
    const int64_t workspace = TheShapes().workspace;
    queue_ = algorithm
                 ? device::MakeQueueOfChoice(stream, *algorithm, workspace)
                 : device::MakeQueue(stream, workspace);
  }
  ~Bench() { WaitFor(*queue_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  Queue& queue() { return *queue_; }

  // An array of repeating numbers in [-1, 1): on zeros a device would be
  // faster, and cooler, than on data.
  template <typename T>
  T* Numbers(int64_t size) {
    static const std::vector<T> pattern = Pattern<T>();
    T* const data = Array<T>(size);
    const auto count = static_cast<int64_t>(pattern.size());
    for (int64_t begin = 0; begin < size; begin += count) {
      const int64_t part = std::min(count, size - begin);
      if (begin == 0) {
        WriteArray<T>(*queue_, std::span(pattern).first(part), data);
      } else {
        CopyArray(*queue_, part, data, data + begin);
      }
    }
    return data;
  }
  template <typename T>
  T* Copied(const std::vector<T>& values) {
    T* const data = Array<T>(static_cast<int64_t>(values.size()));
    WriteArray<T>(*queue_, values, data);
    return data;
  }
  template <typename T>
  T* Zeros(int64_t size) {
    T* const data = Array<T>(size);
    ClearArray(*queue_, size, data);
    return data;
  }

  // A copy on the host.
  template <typename T>
  const T* OnHost(const T* array, int64_t size) {
    const auto copy =
        std::make_shared<std::vector<T>>(static_cast<size_t>(size));
    ReadArray<T>(*queue_, array, *copy);
    arrays_.push_back(copy);
    return copy->data();
  }

  // Fills those arrays of `args` that are null, except for `without`.
  template <typename Args>
  Args Filled(Args args, std::initializer_list<std::string_view> without = {}) {
    ForEachArray(
        args, [&]<typename T>(std::string_view name, T*& array, int64_t size) {
          if (array == nullptr && std::ranges::count(without, name) == 0) {
            array = Numbers<std::remove_const_t<T>>(size);
          }
        });
    return args;
  }

 private:
  template <typename T>
  static std::vector<T> Pattern() {
    const RandomKey key{1, RandomStream::kTestData, 0, 0};
    std::vector<T> values(size_t{1} << 20);
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

  template <typename T>
  T* Array(int64_t size) {
    const auto array = std::make_shared<Buffer<T>>(size);
    arrays_.push_back(array);
    return array->data();
  }

  std::unique_ptr<Queue> queue_;
  std::vector<std::shared_ptr<const void>> arrays_;
};

// Registers the benchmark of op(args, queue), where make(bench) returns `args`.
// The host does not wait between runs; a launch costs it a few microseconds,
// and anything shorter appears to take as long. If the device has no memory or
// no algorithm, that is an error of this benchmark alone.
template <typename Make, typename Args = std::invoke_result_t<Make, Bench&>>
void AddTimed(const Timed& timed, const Make& make,
              void (*op)(const std::type_identity_t<Args>&, Queue&)) {
  const auto run = [=](benchmark::State& state) {
    // (The library turns a counter that is 0 into a variation that is NaN.)
    if (timed.flops > 0) state.counters["flops"] = timed.flops;
    if (timed.bytes > 0) state.counters["bytes"] = timed.bytes;
    try {
      Bench bench(timed.algorithm);
      const Args args = make(bench);
      op(args, bench.queue());  // touches all memory and chooses algorithms
      Finish(bench.queue());
      int64_t left = state.max_iterations;
      for (auto _ : state) {
        op(args, bench.queue());
        if (--left == 0) Finish(bench.queue());
      }
    } catch (const EnvironmentError& error) {
      state.SkipWithError(error.what());
    }
  };
  benchmark::RegisterBenchmark(timed.FullName().c_str(), run)->UseRealTime();
}

// Does the same with arbitrary numbers in all arrays that `args` lacks.
template <typename Args>
void AddTimedCall(const Timed& timed, const Args& args,
                  void (*op)(const std::type_identity_t<Args>&, Queue&)) {
  AddTimed(
      timed, [=](Bench& bench) { return bench.Filled(args); }, op);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_DEVICE_BENCHMARK_H_

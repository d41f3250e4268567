// SPDX-License-Identifier: Apache-2.0
#include <cublasLt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/device_probes.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/queue.h"
#include "kernels/simt/scalar.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;
constexpr int kValues = 4096;
constexpr int kResults = 6;  // per value

// Results of single instructions for x, whose neighbour is y.
__global__ void __launch_bounds__(kThreads)
    ArithmeticKernel(const float* x, float* results) {
  const int i =
      static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= kValues) return;
  const float a = x[i], b = x[(i + 1) % kValues];
  float* const out = results + i * kResults;
  out[0] = a / b;
  out[1] = sqrtf(fabsf(a));
  out[2] = fmaf(a, b, a);
  out[3] = a * b + a;  // compiled without contraction: two roundings
  out[4] = FloatOf(RoundToBf16(a));
  out[5] = a * 0x1p-130f;  // often subnormal
}

__global__ void __launch_bounds__(kThreads) SharedKernel(int* result) {
  if (threadIdx.x == 0) *result = 1;
}

// Numbers of all sizes that float has, subnormal ones too, without NaN.
std::vector<float> Values() {
  std::vector<float> values;
  uint32_t state = 1;
  while (values.size() < kValues) {
    state = state * 1664525u + 1013904223u;
    const uint32_t mixed = state ^ (state >> 15);
    // Half of them near 1, where results neither overflow nor vanish.
    const uint32_t bits =
        values.size() % 2 == 0
            ? mixed
            : (mixed & 0x807fffffu) | (120 + (mixed >> 23) % 15) << 23;
    const float value = std::bit_cast<float>(bits);
    if (std::isfinite(value)) values.push_back(value);
  }
  return values;
}

// Memory of the device that frees itself.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values)
      : size_(values.size()),
        data_(static_cast<T*>(AllocateOnDevice(size_ * sizeof(T)))) {
    CopyAcrossDevice(data_, values.data(), size_ * sizeof(T));
  }
  ~DeviceArray() { FreeOnDevice(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    CopyAcrossDevice(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  size_t size_;
  T* data_;
};

// A finite number rounded to bf16, to the nearest, ties to even.
float Bf16OnHost(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

std::vector<DeviceProbe> Arithmetic() {
  const std::vector<float> x = Values();
  const DeviceArray<float> inputs(x);
  const DeviceArray<float> outputs(std::vector<float>(kValues * kResults));
  Launch("ArithmeticKernel", ArithmeticKernel, Blocks(kValues, kThreads),
         kThreads, 0, DeviceStream(), inputs.data(), outputs.data());
  const std::vector<float> got = outputs.Read();
  const char* const names[kResults] = {
      "a division rounds to the nearest",
      "a square root rounds to the nearest",
      "fmaf rounds once",
      "a product and a sum round twice",
      "a cast to bf16 rounds to the nearest, ties to even",
      "subnormal numbers are kept"};
  int same[kResults] = {};
  for (int i = 0; i < kValues; ++i) {
    const float a = x[i], b = x[(i + 1) % kValues];
    const volatile float product = a * b;  // no contraction here either
    const float expected[kResults] = {
        a / b,       std::sqrt(std::abs(a)), std::fma(a, b, a),
        product + a, Bf16OnHost(a),          a * 0x1p-130f};
    for (int r = 0; r < kResults; ++r) {
      const float value = got[i * kResults + r];
      same[r] += std::isnan(expected[r])
                     ? std::isnan(value)
                     : std::bit_cast<uint32_t>(expected[r]) ==
                           std::bit_cast<uint32_t>(value);
    }
  }
  std::vector<DeviceProbe> probes;
  for (int r = 0; r < kResults; ++r) {
    probes.push_back({names[r], same[r] == kValues,
                      std::to_string(same[r]) + " of " +
                          std::to_string(kValues) + " are the host's"});
  }
  return probes;
}

DeviceProbe AtLeast(const std::string& name, int64_t value, int64_t needed) {
  return {name, value >= needed, std::to_string(value)};
}

DeviceProbe SharedMemory() {
  DeviceProbe probe = {"a block may ask for 163 KiB of shared memory", false,
                       "it did not run"};
  const DeviceArray<int> result(std::vector<int>{0});
  try {
    Launch("SharedKernel", SharedKernel, 1, kThreads, 163 * 1024,
           DeviceStream(), result.data());
    probe.holds = result.Read()[0] == 1;
    if (probe.holds) probe.answer = "it ran";
  } catch (const Error& error) {
    probe.answer = error.what();
  }
  return probe;
}

DeviceProbe Alignment() {
  uintptr_t all = 0;
  std::vector<void*> memory;
  for (size_t bytes = 1; bytes < 100'000; bytes = bytes * 3 + 1) {
    memory.push_back(AllocateOnDevice(bytes));
    all |= reinterpret_cast<uintptr_t>(memory.back());
  }
  for (void* each : memory) FreeOnDevice(each);
  const auto common = static_cast<int64_t>(all & -all);
  return AtLeast("what cudaMalloc gives begins at a multiple of 256", common,
                 256);
}

// c = a b of 24x40 and 40x16 numbers.
ProductArgs SmallProduct(const float* a, const float* b, float* c) {
  return ProductOf(GemmArgs{.a = a,
                            .b = b,
                            .c = c,
                            .m = 24,
                            .n = 16,
                            .k = 40,
                            .lda = 40,
                            .ldb = 16,
                            .ldc = 16});
}

std::vector<DeviceProbe> Products() {
  std::vector<float> a, b;
  for (int i = 0; i < 24 * 40; ++i) a.push_back(std::sin(0.7f * (i + 1)));
  for (int i = 0; i < 40 * 16; ++i) b.push_back(std::cos(0.3f * (i + 1)));
  const DeviceArray<float> on_a(a), on_b(b);
  const auto queue = MakeQueue(DeviceStream(), 1 << 20);
  std::vector<std::vector<float>> results;
  for (int run = 0; run < 2; ++run) {
    const DeviceArray<float> c(std::vector<float>(24 * 16, NAN));
    queue->Multiply(SmallProduct(on_a.data(), on_b.data(), c.data()));
    results.push_back(c.Read());
  }
  const bool finite = std::ranges::all_of(
      results[0], [](float value) { return std::isfinite(value); });
  // A float can hold these sums, but neither TF32 nor bf16 their factors.
  const DeviceArray<float> large(std::vector<float>(24 * 40, 4097)),
      one(std::vector<float>(40 * 16, 1)), sums(std::vector<float>(24 * 16));
  queue->Multiply(SmallProduct(large.data(), one.data(), sums.data()));
  const std::vector<float> each = sums.Read();
  const auto exact = std::ranges::count(each, 40 * 4097.0f);
  return {{"a product does not read C when beta is 0", finite,
           finite ? "no NaN of C is in D" : "a NaN of C is in D"},
          {"a product gives the same bits twice", results[0] == results[1],
           results[0] == results[1] ? "the same" : "others"},
          {"products of floats do not round their factors to TF32",
           exact == std::ssize(each),
           std::to_string(exact) + " of " + std::to_string(each.size()) +
               " sums are exact"}};
}

// Whether the heuristic has an algorithm for a matrix of 8 rows whose columns
// are `distance` elements apart.
bool Accepts(cublasLtHandle_t handle, int64_t distance) {
  cublasLtMatrixLayout_t layout = nullptr, square = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  bool accepted = cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 8, 8,
                                             distance) == CUBLAS_STATUS_SUCCESS;
  if (accepted) {
    (void)cublasLtMatrixLayoutCreate(&square, CUDA_R_32F, 8, 8, 8);
    (void)cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    (void)cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, operation, layout, square, layout, layout, preference, 1,
        &result, &found);
    accepted = status == CUBLAS_STATUS_SUCCESS && found > 0 &&
               result.state == CUBLAS_STATUS_SUCCESS;
    (void)cublasLtMatmulPreferenceDestroy(preference);
    (void)cublasLtMatmulDescDestroy(operation);
    (void)cublasLtMatrixLayoutDestroy(square);
    (void)cublasLtMatrixLayoutDestroy(layout);
  }
  return accepted;
}

std::vector<DeviceProbe> Refusals() {
  cublasLtHandle_t handle = nullptr;
  const cublasStatus_t created = cublasLtCreate(&handle);
  if (created != CUBLAS_STATUS_SUCCESS) {
    throw EnvironmentError(std::string("cuBLASLt: ") +
                           cublasLtGetStatusString(created));
  }
  const auto probe = [&](const std::string& name, int64_t distance,
                         bool wanted) {
    const bool accepted = Accepts(handle, distance);
    return DeviceProbe{name, accepted == wanted,
                       accepted ? "accepted" : "refused"};
  };
  std::vector<DeviceProbe> probes = {
      probe("cuBLASLt takes matrices of 8 rows", 8, true),
      probe("cuBLASLt refuses columns that overlap", 7, false)};
  (void)cublasLtDestroy(handle);
  return probes;
}

}  // namespace

std::vector<DeviceProbe> AskDevice() {
  cudaDeviceProp properties;
  CheckCuda(cudaGetDeviceProperties(&properties, 0), "the device");
  std::vector<DeviceProbe> probes = {
      {"warps are 32 threads", properties.warpSize == 32,
       std::to_string(properties.warpSize)},
      AtLeast("a block may have 1024 threads", properties.maxThreadsPerBlock,
              1024),
      SharedMemory(),
      Alignment()};
  for (const auto& more : {Arithmetic(), Products(), Refusals()}) {
    probes.insert(probes.end(), more.begin(), more.end());
  }
  return probes;
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

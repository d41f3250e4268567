// SPDX-License-Identifier: Apache-2.0
//
// Matrix products on the simulated device: right ones, which must be within
// bounds whatever the order of their sums, and wrong ones, which must be
// refused.
#include <cublasLt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/simt/device/device.h"
#include "kernels/simt/shim/planted_bugs.h"
#include "kernels/simt/shim/sanitizer_hooks.h"

namespace softmoe::simt {
namespace {

// Rounds to bfloat16, to nearest, ties to even.
uint16_t ToBf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float FromBf16(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

struct Matrix {
  cudaDataType type = CUDA_R_32F;
  int64_t rows = 0, cols = 0;
  int64_t ld = 0;  // 0: the smallest
  cublasLtOrder_t order = CUBLASLT_ORDER_COL;
  int32_t batch = 1;
  int64_t stride = 0;  // 0: one after the other
  bool broadcast = false;

  int64_t Line() const { return order == CUBLASLT_ORDER_ROW ? cols : rows; }
  int64_t Lines() const { return order == CUBLASLT_ORDER_ROW ? rows : cols; }
  int64_t Ld() const { return ld == 0 ? Line() : ld; }
  int64_t Stride() const {
    return broadcast ? 0 : stride == 0 ? Lines() * Ld() : stride;
  }
  int64_t Size() const {  // elements
    return (batch - 1) * Stride() + (Lines() - 1) * Ld() + Line();
  }
  int64_t At(int64_t b, int64_t row, int64_t col) const {
    return b * Stride() +
           (order == CUBLASLT_ORDER_ROW ? row * Ld() + col : col * Ld() + row);
  }
  size_t Element() const { return type == CUDA_R_16BF ? 2 : 4; }
};

// A product; everything about it can be changed before Run.
class Program {
 public:
  static constexpr size_t kWorkspace = 64 * 1024;

  Program(int64_t m, int64_t n, int64_t k, cudaDataType input = CUDA_R_32F,
          cudaDataType output = CUDA_R_32F) {
    a = {.type = input, .rows = m, .cols = k};
    b = {.type = input, .rows = k, .cols = n};
    c = d = {.type = output, .rows = m, .cols = n};
    Try(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    Try(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    Try(cublasLtCreate(&handle));
    Try(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    Try(cublasLtMatmulPreferenceCreate(&preference));
    workspace = Allocate(kWorkspace);
    Prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspace});
    Prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  }

  // Ignores what cannot be destroyed or freed: some programs have done so, or
  // must not do so.
  ~Program() {
    (void)cudaDeviceSynchronize();
    for (const cublasLtMatrixLayout_t layout : layouts) {
      (void)cublasLtMatrixLayoutDestroy(layout);
    }
    (void)cublasLtMatmulDescDestroy(desc);
    (void)cublasLtMatmulPreferenceDestroy(preference);
    (void)cublasLtDestroy(handle);
    for (void* memory : allocations) (void)cudaFree(memory);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void Try(cudaError_t error) {
    if (error != cudaSuccess) Refuse(cudaGetErrorString(error));
  }
  void Try(cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS) {
      Refuse(cublasLtGetStatusString(status));
    }
  }
  void Refuse(const char* why) {
    if (!refused) fprintf(stderr, "simulator: %s\n", why);
    refused = true;
  }

  void* Allocate(size_t bytes) {
    void* memory = nullptr;
    Try(cudaMalloc(&memory, bytes));
    allocations.push_back(memory);
    return memory;
  }
  template <typename T>
  void Prefer(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    Try(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value,
                                             sizeof(value)));
  }
  void Transpose(cublasLtMatmulDescAttributes_t which) {
    const int32_t operation = CUBLAS_OP_T;
    Try(cublasLtMatmulDescSetAttribute(desc, which, &operation,
                                       sizeof(operation)));
    Matrix& matrix = which == CUBLASLT_MATMUL_DESC_TRANSA ? a : b;
    transpose[which == CUBLASLT_MATMUL_DESC_TRANSB] = true;
    std::swap(matrix.rows, matrix.cols);
  }

  cublasLtMatrixLayout_t Layout(const Matrix& x) {
    cublasLtMatrixLayout_t layout = nullptr;
    Try(cublasLtMatrixLayoutCreate(&layout, x.type,
                                   static_cast<uint64_t>(x.rows),
                                   static_cast<uint64_t>(x.cols), x.Ld()));
    layouts.push_back(layout);
    const int32_t order = x.order;
    const int64_t stride = x.Stride();
    Try(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ORDER,
                                         &order, sizeof(order)));
    if (x.batch == 1) return layout;
    Try(cublasLtMatrixLayoutSetAttribute(
        layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &x.batch, sizeof(x.batch)));
    Try(cublasLtMatrixLayoutSetAttribute(
        layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
        sizeof(stride)));
    return layout;
  }

  // Values in [-1, 1), or small integers; gaps have none.
  std::vector<float> Values(const Matrix& x) {
    std::vector<float> values(static_cast<size_t>(x.Size()));
    for (float& value : values) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const auto bits = static_cast<int32_t>(state >> 32);
      value = integers ? static_cast<float>(bits % 3)
                       : static_cast<float>(bits) * 0x1p-31f;
      if (x.type == CUDA_R_16BF) value = FromBf16(ToBf16(value));
    }
    return values;
  }
  // Returns the copy, `shift` bytes into its memory.
  void* ToDevice(const Matrix& x, const std::vector<float>& values,
                 size_t shift = 0) {
    const size_t bytes = values.size() * x.Element();
    staging.emplace_back(new char[bytes]);
    char* host = staging.back().get();
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t half = ToBf16(values[i]);
      if (x.type == CUDA_R_16BF) {
        memcpy(host + 2 * i, &half, 2);
      } else {
        memcpy(host + 4 * i, &values[i], 4);
      }
    }
    char* memory = static_cast<char*>(Allocate(bytes + shift)) + shift;
    Try(cudaMemcpyAsync(memory, host, bytes, cudaMemcpyHostToDevice, stream));
    return memory;
  }

  void Fill() {
    a_values = Values(a);
    b_values = Values(b);
    c_values = Values(c);
    a_data = ToDevice(a, a_values);
    b_data = ToDevice(b, b_values);
    if (beta != 0) c_data = ToDevice(c, c_values);
    if (c_data == nullptr) {
      c_data = Allocate(static_cast<size_t>(c.Size()) * c.Element());
    }
    d_data = Allocate(static_cast<size_t>(d.Size()) * d.Element());
    Try(cudaStreamSynchronize(stream));
  }

  void Choose(int number = 0) {
    a_layout = Layout(a);
    b_layout = Layout(b);
    c_layout = Layout(c);
    d_layout = Layout(d);
    cublasLtMatmulHeuristicResult_t results[8];
    int count = 0;
    Try(cublasLtMatmulAlgoGetHeuristic(handle, desc, a_layout, b_layout,
                                       c_layout, d_layout, preference,
                                       number + 1, results, &count));
    if (refused) return;
    algorithm = results[number].algo;
    needed = results[number].workspaceSize;
  }
  void Multiply() { MultiplyOn(stream); }
  void MultiplyOn(cudaStream_t on) {
    if (refused) return;
    Try(cublasLtMatmul(handle, desc, &alpha, a_data, a_layout, b_data, b_layout,
                       &beta, c_data, c_layout, d_data, d_layout, &algorithm,
                       workspace, workspace_size, on));
  }
  Outcome Run() {
    Fill();
    Choose();
    Multiply();
    return Check();
  }

  // Returns the elements of D that the layout has; gaps are ignored.
  std::vector<float> Result() {
    const size_t size = static_cast<size_t>(d.Size());
    std::vector<float> result(size);
    const std::unique_ptr<char[]> host(new char[size * d.Element()]);
    Try(cudaMemcpyAsync(host.get(), d_data, size * d.Element(),
                        cudaMemcpyDeviceToHost, stream));
    Try(cudaStreamSynchronize(stream));
    if (refused) return {};
    for (int64_t l = 0; l < d.batch; ++l) {
      for (int64_t i = 0; i < d.rows; ++i) {
        for (int64_t j = 0; j < d.cols; ++j) {
          const size_t at = static_cast<size_t>(d.At(l, i, j));
          RequireInitialized(&host[at * d.Element()], d.Element());
          uint16_t half;
          memcpy(&half, &host[at * d.Element()], 2);
          if (d.type == CUDA_R_16BF) {
            result[at] = FromBf16(half);
          } else {
            memcpy(&result[at], &host[at * 4], 4);
          }
        }
      }
    }
    return result;
  }

  Outcome Check() {
    const std::vector<float> result = Result();
    if (refused) return Outcome::kRefused;
    const int64_t k = transpose[0] ? a.rows : a.cols;
    // Each term has 2 k + 4 roundings: its product, at most k additions within
    // a part and k of parts, alpha, and the sum with C.
    const double u = 0x1p-24;
    const double relative = static_cast<double>(2 * k + 4) * u;
    const double gamma = integers ? 0 : relative / (1 - relative);
    for (int64_t l = 0; l < d.batch; ++l) {
      for (int64_t i = 0; i < d.rows; ++i) {
        for (int64_t j = 0; j < d.cols; ++j) {
          double sum = 0, size = 0;
          for (int64_t t = 0; t < k; ++t) {
            const double x = a_values[static_cast<size_t>(
                transpose[0] ? a.At(l, t, i) : a.At(l, i, t))];
            const double y = b_values[static_cast<size_t>(
                transpose[1] ? b.At(l, j, t) : b.At(l, t, j))];
            sum += alpha * x * y;
            size += std::fabs(alpha * x * y);
          }
          if (beta != 0) {
            const double z = c_values[static_cast<size_t>(c.At(l, i, j))];
            sum += beta * z;
            size += std::fabs(beta * z);
          }
          double bound = gamma * size;
          if (d.type == CUDA_R_16BF && !integers) {
            bound += (std::fabs(sum) + bound) * 0x1p-8;  // rounded once more
          }
          const double got = result[static_cast<size_t>(d.At(l, i, j))];
          if (std::fabs(got - sum) <= bound) continue;
          fprintf(stderr, "d[%ld, %ld, %ld] is %.9g, not %.9g +- %.2g\n",
                  static_cast<long>(l), static_cast<long>(i),
                  static_cast<long>(j), got, sum, bound);
          return Outcome::kWrong;
        }
      }
    }
    return Outcome::kClean;
  }

  Matrix a, b, c, d;
  bool transpose[2] = {false, false};
  float alpha = 1, beta = 0;
  bool integers = false;
  std::vector<float> a_values, b_values, c_values;
  void *a_data = nullptr, *b_data = nullptr, *c_data = nullptr,
       *d_data = nullptr, *workspace = nullptr;
  size_t workspace_size = kWorkspace;
  size_t needed = 0;
  cudaStream_t stream, other;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatrixLayout_t a_layout = nullptr, b_layout = nullptr,
                         c_layout = nullptr, d_layout = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
  std::vector<cublasLtMatrixLayout_t> layouts;
  std::vector<void*> allocations;
  std::vector<std::unique_ptr<char[]>> staging;
  uint64_t state = 1;
  bool refused = false;
};

// ---- Right products

// Sizes, types, orders, transposes, gaps, batches, beta; integers are exact.
Outcome EveryForm() {
  constexpr std::pair<cudaDataType, cudaDataType> kTypes[] = {
      {CUDA_R_32F, CUDA_R_32F},
      {CUDA_R_16BF, CUDA_R_32F},
      {CUDA_R_16BF, CUDA_R_16BF},
  };
  for (const auto& [input, output] : kTypes) {
    for (int form = 0; form < 64; ++form) {
      const bool large = (form & 32) != 0;
      Program p(large ? 17 : 3, large ? 9 : 1, large ? 70 : 5, input, output);
      if ((form & 1) != 0) p.Transpose(CUBLASLT_MATMUL_DESC_TRANSA);
      if ((form & 2) != 0) p.Transpose(CUBLASLT_MATMUL_DESC_TRANSB);
      if ((form & 4) != 0) p.a.order = CUBLASLT_ORDER_ROW;
      if ((form & 8) != 0) p.b.order = CUBLASLT_ORDER_ROW;
      if ((form & 16) != 0) p.c.order = p.d.order = CUBLASLT_ORDER_ROW;
      if (form % 3 == 0) {
        p.a.ld = p.a.Line() + 3;
        p.d.ld = p.d.Line() + 1;
      }
      if (form % 3 == 1) {
        p.a.batch = p.b.batch = p.c.batch = p.d.batch = 3;
        p.b.broadcast = form % 2 == 0;
        // Side by side.
        p.d.ld = 3 * p.d.Line();
        p.d.stride = p.d.Line();
      }
      if (form % 5 == 0) p.beta = 2;
      if (form % 5 == 1) p.alpha = 0.5f;
      p.integers = form % 7 == 0;
      const Outcome outcome = p.Run();
      if (outcome == Outcome::kClean) continue;
      fprintf(stderr, "form %d\n", form);
      return outcome;
    }
  }
  return Outcome::kClean;
}

Outcome InPlace() {
  Program p(20, 10, 30);
  p.beta = 1;
  p.Fill();
  p.d_data = p.c_data;
  p.Choose();
  p.Multiply();
  return p.Check();
}

// With beta 0 the old content, NaN, is not read: Fill leaves C without values.
Outcome FreshCIsNotRead() { return Program(20, 10, 30).Run(); }

// Two bytes of alignment are enough if the heuristic was told so.
Outcome LittleAlignment() {
  Program p(20, 10, 30, CUDA_R_16BF);
  p.Fill();
  p.a_data = p.ToDevice(p.a, p.a_values, 2);
  p.Try(cudaStreamSynchronize(p.stream));
  p.Prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, uint32_t{2});
  p.Choose();
  p.Multiply();
  return p.Check();
}

// Parts of the rows of one array: only their ranges overlap.
Outcome PartsOfOneArray() {
  Program p(4, 4, 4);
  for (Matrix* x : {&p.a, &p.b, &p.c, &p.d}) x->ld = 12;
  p.Fill();
  const std::vector<float> array(48, 1.0f);
  char* memory = static_cast<char*>(p.ToDevice({.rows = 12, .cols = 4}, array));
  p.Try(cudaStreamSynchronize(p.stream));
  p.a_values = p.b_values = array;
  p.a_data = memory;
  p.b_data = memory + 4 * 4;
  p.c_data = p.d_data = memory + 8 * 4;
  for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    p.Prefer(which, uint32_t{16});
  }
  p.Choose();
  p.Multiply();
  return p.Check();
}

// A column of B without values leaves only a column of D without values.
Outcome ColumnWithoutValues() {
  Program p(4, 3, 5);
  p.Fill();
  const size_t column = 5 * sizeof(float);
  char* b = static_cast<char*>(p.Allocate(3 * column));
  p.Try(cudaMemcpyAsync(b, p.b_data, 2 * column, cudaMemcpyDeviceToDevice,
                        p.stream));
  p.b_data = b;
  p.Choose();
  p.Multiply();
  p.d.cols = p.b.cols = 2;
  return p.Check();
}

// Returns compute(), run in a process of its own; 0 if that process dies.
template <typename Compute>
uint64_t InOwnProcess(const Compute& compute) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t value = compute();
    (void)!write(ends[1], &value, sizeof(value));
    _exit(0);
  }
  close(ends[1]);  // while it is open, reading waits for a child that died
  uint64_t value = 0;
  if (read(ends[0], &value, sizeof(value)) != sizeof(value)) value = 0;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return value;
}

// A hash of the product's bits under a seed.
uint64_t HashUnder(uint64_t seed, int algorithm) {
  return InOwnProcess([=]() -> uint64_t {
    SetSumSeed(seed);
    Program p(10, 10, 300, CUDA_R_16BF);
    p.Fill();
    p.Choose(algorithm);
    const auto hash_of_product = [&p] {
      p.Multiply();
      uint64_t hash = 0;
      for (const float x : p.Result()) {
        uint32_t bits;
        memcpy(&bits, &x, sizeof(bits));
        hash = hash * 1099511628211u + bits;
      }
      return hash;
    };
    const uint64_t hash = hash_of_product();
    const Outcome outcome = p.Check();
    return outcome == Outcome::kClean && hash_of_product() == hash ? hash : 0;
  });
}

// Each seed and algorithm gives different bits, all within bounds; the same
// seed and algorithm give the same bits.
Outcome Seeds() {
  if (InOwnProcess([]() -> uint64_t { _exit(1); }) != 0) return Outcome::kWrong;
  uint64_t hashes[6];
  for (int i = 0; i < 6; ++i) {
    hashes[i] = HashUnder(static_cast<uint64_t>(1 + i % 3), i / 3);
    if (hashes[i] == 0) return Outcome::kWrong;
    for (int j = 0; j < i; ++j) {
      if (hashes[j] == hashes[i]) return Outcome::kWrong;
    }
  }
  return HashUnder(2, 0) == hashes[1] ? Outcome::kClean : Outcome::kWrong;
}

Outcome ProductsInTwoStreams() {
  Program p(20, 10, 30);
  p.Fill();
  p.Choose();
  p.Multiply();
  cudaEvent_t event;
  p.Try(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  p.Try(cudaEventRecord(event, p.stream));
  p.Try(cudaStreamWaitEvent(p.other, event));
  p.MultiplyOn(p.other);
  p.Try(cudaEventRecord(event, p.other));
  p.Try(cudaStreamWaitEvent(p.stream, event));
  return p.Check();
}

Outcome EveryCallCanFail() {
  Program p(4, 4, 4);
  p.Fill();
  p.Choose();
  int wrong = 0, count = 0;
  const auto fails = [&](const char* name, const auto& call) {
    FailCall(name, 1, CUBLAS_STATUS_INTERNAL_ERROR);
    if (call() == CUBLAS_STATUS_INTERNAL_ERROR &&
        call() == CUBLAS_STATUS_SUCCESS) {
      return;
    }
    fprintf(stderr, "%s does not fail once\n", name);
    ++wrong;
  };
#define SOFTMOE_FAILS(name, ...) fails(#name, [&] { return name(__VA_ARGS__); })
  const int32_t operation = CUBLAS_OP_N;
  const uint64_t rows = 4, most = p.kWorkspace;
  cublasLtHandle_t handle;
  cublasLtMatrixLayout_t layout;
  cublasLtMatmulDesc_t desc;
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t result;
  SOFTMOE_FAILS(cublasLtCreate, &handle);
  SOFTMOE_FAILS(cublasLtMatrixLayoutCreate, &layout, CUDA_R_32F, 4, 4, 4);
  SOFTMOE_FAILS(cublasLtMatrixLayoutSetAttribute, layout,
                CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof(rows));
  SOFTMOE_FAILS(cublasLtMatmulDescCreate, &desc, CUBLAS_COMPUTE_32F,
                CUDA_R_32F);
  SOFTMOE_FAILS(cublasLtMatmulDescSetAttribute, desc,
                CUBLASLT_MATMUL_DESC_TRANSA, &operation, sizeof(operation));
  SOFTMOE_FAILS(cublasLtMatmulPreferenceCreate, &preference);
  SOFTMOE_FAILS(cublasLtMatmulPreferenceSetAttribute, preference,
                CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most));
  SOFTMOE_FAILS(cublasLtMatmulAlgoGetHeuristic, p.handle, p.desc, p.a_layout,
                p.b_layout, p.c_layout, p.d_layout, p.preference, 1, &result,
                &count);
  SOFTMOE_FAILS(cublasLtMatmul, p.handle, p.desc, &p.alpha, p.a_data,
                p.a_layout, p.b_data, p.b_layout, &p.beta, p.c_data, p.c_layout,
                p.d_data, p.d_layout, &p.algorithm, p.workspace,
                p.workspace_size, p.stream);
  SOFTMOE_FAILS(cublasLtMatmulPreferenceDestroy, preference);
  SOFTMOE_FAILS(cublasLtMatmulDescDestroy, desc);
  SOFTMOE_FAILS(cublasLtMatrixLayoutDestroy, layout);
  SOFTMOE_FAILS(cublasLtDestroy, handle);
#undef SOFTMOE_FAILS
  return wrong == 0 ? p.Check() : Outcome::kWrong;
}

// ---- Wrong ones: each changes one thing

template <auto kChange>
Outcome Changed() {
  Program p(20, 10, 30);
  kChange(p);
  return p.Run();
}
// Changes one thing after filling and choosing an algorithm.
template <auto kChange>
Outcome ChangedLater() {
  Program p(20, 10, 30);
  p.beta = 1;
  p.Fill();
  p.Choose();
  kChange(p);
  p.Multiply();
  return p.Check();
}

void NoRows(Program& p) { p.a.rows = p.c.rows = p.d.rows = 0; }
void NoColumns(Program& p) { p.b.cols = p.c.cols = p.d.cols = 0; }
void NoDepth(Program& p) { p.a.cols = p.b.rows = 0; }
void NoBatch(Program& p) { p.a.batch = p.b.batch = p.c.batch = p.d.batch = 0; }
void SmallLeadingDimension(Program& p) { p.a.ld = 19; }
void RowMajorLeadingDimension(Program& p) {
  p.a.order = CUBLASLT_ORDER_ROW;
  p.a.ld = 20;
}
void OtherDepth(Program& p) { p.b.rows = 29; }
void OtherRowsOfC(Program& p) { p.c.rows = 21; }
void OtherOrderOfC(Program& p) { p.c.order = CUBLASLT_ORDER_ROW; }
void OtherBatch(Program& p) { p.a.batch = 2; }
void OverlappingBatch(Program& p) {
  p.a.batch = p.b.batch = p.c.batch = p.d.batch = 2;
  p.d.stride = 199;
}
void MixedInputs(Program& p) { p.a.type = CUDA_R_16BF; }
void Bf16OfFp32(Program& p) { p.c.type = p.d.type = CUDA_R_16BF; }
void MixedOutputs(Program& p) { p.a.type = p.b.type = p.d.type = CUDA_R_16BF; }
void HalfPrecision(Program& p) { p.a.type = p.b.type = CUDA_R_16F; }
void Tf32(Program& p) {
  p.Try(cublasLtMatmulDescDestroy(p.desc));
  p.Try(cublasLtMatmulDescCreate(&p.desc, CUBLAS_COMPUTE_32F_FAST_TF32,
                                 CUDA_R_32F));
}
void DestroyedHandle(Program& p) { p.Try(cublasLtDestroy(p.handle)); }
void DestroyedDescription(Program& p) {
  p.Try(cublasLtMatmulDescDestroy(p.desc));
}
void DestroyedPreference(Program& p) {
  p.Try(cublasLtMatmulPreferenceDestroy(p.preference));
}
void AttributeOfAnotherSize(Program& p) {
  p.Prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint32_t{1024});
}

void DestroyedLayout(Program& p) {
  p.Try(cublasLtMatrixLayoutDestroy(p.b_layout));
}
void SmallWorkspace(Program& p) { p.workspace_size = p.needed - 1; }
void NoWorkspace(Program& p) { p.workspace = nullptr; }
void SkewWorkspace(Program& p) {
  p.workspace = static_cast<char*>(p.workspace) + 128;
  p.workspace_size -= 128;
}
void WorkspaceInD(Program& p) {
  p.workspace = p.d_data;
  p.workspace_size = p.needed;
}
void NoAlgorithm(Program& p) { p.algorithm = {}; }
template <int kColumns, int kTerms>
void AlgorithmOf(Program& p) {
  Program q(20, kColumns, kTerms);
  q.Choose();
  p.algorithm = q.algorithm;
}
void SkewA(Program& p) {
  p.a_data = p.ToDevice(p.a, p.a_values, 128);
  p.Try(cudaStreamSynchronize(p.stream));
}
void SmallA(Program& p) { p.a_data = p.Allocate(20 * 30 * 4 - 4); }
void SmallD(Program& p) { p.d_data = p.Allocate(20 * 10 * 4 - 4); }
void FreedB(Program& p) { p.Try(cudaFree(p.b_data)); }
void HostA(Program& p) { p.a_data = p.a_values.data(); }
void HostD(Program& p) { p.d_data = p.c_values.data(); }
void NullC(Program& p) { p.c_data = nullptr; }
void DIsA(Program& p) { p.d_data = p.a_data; }
void ShiftedInPlace(Program& p) {
  p.d_data = p.Allocate(2 * 20 * 10 * 4);
  p.c_data = static_cast<char*>(p.d_data) + 256;
}
void AlphaIsZero(Program& p) { p.alpha = 0; }
void NullStream(Program& p) { p.stream = nullptr; }

// Another stream copies it to the host, without an event.
Outcome MissingEvent() {
  Program p(20, 10, 30);
  p.Fill();
  p.Choose();
  p.MultiplyOn(p.other);
  const Outcome outcome = p.Check();
  p.Try(cudaStreamSynchronize(p.other));
  return outcome;
}
// B is written while the product reads it, with the values that it already has.
Outcome InputIsWrittenMeanwhile() {
  Program p(20, 10, 30);
  p.Fill();
  p.Choose();
  p.Try(cudaMemcpyAsync(p.b_data, p.b_values.data(), 30 * 10 * 4,
                        cudaMemcpyHostToDevice, p.other));
  p.Multiply();
  const Outcome outcome = p.Check();
  p.Try(cudaStreamSynchronize(p.other));
  return outcome;
}
// One workspace for two streams.
Outcome SharedWorkspace() {
  Program p(20, 10, 30);
  p.Fill();
  p.Choose();
  void* d = p.Allocate(20 * 10 * 4);
  std::swap(d, p.d_data);
  p.MultiplyOn(p.other);
  std::swap(d, p.d_data);
  p.Multiply();
  const Outcome outcome = p.Check();
  p.Try(cudaStreamSynchronize(p.other));
  return outcome;
}
// Memory is filled before the product, whose code is loaded only then.
Outcome MemoryFilledBeforeAProduct() {
  Program p(20, 10, 30);
  p.Fill();
  p.Choose();
  SetDeviceLimits({.memory = LiveBytes(), .first_use = 1});
  p.Multiply();
  return p.Check();
}
// An element of A was never written.
Outcome InputWithoutValue() {
  Program p(20, 10, 30);
  p.Fill();
  void* a = p.Allocate(20 * 30 * 4);
  p.Try(cudaMemcpyAsync(a, p.a_data, 20 * 30 * 4 - 4, cudaMemcpyDeviceToDevice,
                        p.stream));
  p.a_data = a;
  p.Choose();
  p.Multiply();
  return p.Check();
}
Outcome FreshCIsRead() {
  Program p(20, 10, 30);
  p.beta = 1;
  p.Fill();
  p.c_data = p.Allocate(20 * 10 * 4);
  p.Choose();
  p.Multiply();
  return p.Check();
}

// The default: a heuristic may give an algorithm that adds up in bf16.
Outcome SumsInTheTypeOfD() {
  Program p(20, 10, 70, CUDA_R_16BF, CUDA_R_16BF);
  p.Prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           uint32_t{CUBLASLT_REDUCTION_SCHEME_MASK});
  return p.Run();
}

Outcome FreedWhileQueued() {
  Program p(20, 10, 30);
  p.Fill();
  p.Choose();
  p.Multiply();
  p.Try(cudaFree(p.workspace));
  return p.Check();
}

constexpr Must kClean = Must::kStayClean, kWrong = Must::kBeWrong,
               kRefuse = Must::kRefuse, kReport = Must::kReport,
               kAny = Must::kAnything;

// clang-format off
#define SOFTMOE_REFUSED {kRefuse, kRefuse, kRefuse, kRefuse}
constexpr PlantedBug kPlantedBugs[] = {
    //                                    plain    ASan+UBSan TSan   MSan
    {"every form (correct)",             {kClean,  kClean,  kClean,  kClean},  EveryForm},
    {"in place (correct)",               {kClean,  kClean,  kClean,  kClean},  InPlace},
    {"fresh C is not read (correct)",    {kClean,  kClean,  kClean,  kClean},  FreshCIsNotRead},
    {"little alignment (correct)",       {kClean,  kClean,  kClean,  kClean},  LittleAlignment},
    {"parts of one array (correct)",     {kClean,  kClean,  kClean,  kClean},  PartsOfOneArray},
    {"column without values (correct)",  {kClean,  kClean,  kClean,  kClean},  ColumnWithoutValues},
    {"algorithm of more columns (correct)", {kClean, kClean, kClean, kClean}, ChangedLater<AlgorithmOf<16, 30>>},
    {"seeds (correct)",                  {kClean,  kClean,  kClean,  kClean},  Seeds},
    {"two streams (correct)",            {kClean,  kClean,  kClean,  kClean},  ProductsInTwoStreams},
    {"every call can fail (correct)",    {kClean,  kClean,  kClean,  kClean},  EveryCallCanFail},

    {"no rows",                          SOFTMOE_REFUSED, Changed<NoRows>, "A has 0 rows"},
    {"no columns",                       SOFTMOE_REFUSED, Changed<NoColumns>, "0 columns"},
    {"no depth",                         SOFTMOE_REFUSED, Changed<NoDepth>, "0 columns"},
    {"no batch",                         SOFTMOE_REFUSED, Changed<NoBatch>, "a batch of 0"},
    {"small leading dimension",          SOFTMOE_REFUSED, Changed<SmallLeadingDimension>, "A has a leading dimension of 19 for columns of 20"},
    {"leading dimension of rows",        SOFTMOE_REFUSED, Changed<RowMajorLeadingDimension>, "A has a leading dimension of 20 for rows of 30"},
    {"other depth",                      SOFTMOE_REFUSED, Changed<OtherDepth>, "op(B) 29 x 10"},
    {"other rows of C",                  SOFTMOE_REFUSED, Changed<OtherRowsOfC>, "C 21 x 10"},
    {"other order of C",                 SOFTMOE_REFUSED, Changed<OtherOrderOfC>, "different orders"},
    {"other batch",                      SOFTMOE_REFUSED, Changed<OtherBatch>, "batches of A, B, C, D: 2, 1, 1, 1"},
    {"overlapping batch",                SOFTMOE_REFUSED, Changed<OverlappingBatch>, "the matrices of D overlap"},
    {"mixed inputs",                     SOFTMOE_REFUSED, Changed<MixedInputs>, "bf16, fp32, fp32, fp32"},
    {"bf16 of fp32",                     SOFTMOE_REFUSED, Changed<Bf16OfFp32>, "fp32, fp32, bf16, bf16"},
    {"mixed outputs",                    SOFTMOE_REFUSED, Changed<MixedOutputs>, "bf16, bf16, fp32, bf16"},
    {"half precision",                   SOFTMOE_REFUSED, Changed<HalfPrecision>, "elements of type 2"},
    {"TF32",                             SOFTMOE_REFUSED, Changed<Tf32>, "compute type 77"},
    {"destroyed handle",                 SOFTMOE_REFUSED, Changed<DestroyedHandle>, "CUBLAS_STATUS_NOT_INITIALIZED"},
    {"destroyed description",            SOFTMOE_REFUSED, Changed<DestroyedDescription>, "the description was never created"},
    {"destroyed preference",             SOFTMOE_REFUSED, Changed<DestroyedPreference>, "without a preference"},
    {"attribute of another size",        SOFTMOE_REFUSED, Changed<AttributeOfAnotherSize>, "has another size"},

    {"destroyed layout",                 SOFTMOE_REFUSED, ChangedLater<DestroyedLayout>, "the layout of B was never created"},
    {"small workspace",                  SOFTMOE_REFUSED, ChangedLater<SmallWorkspace>, "a workspace of 799 bytes: the algorithm needs 800"},
    {"no workspace",                     SOFTMOE_REFUSED, ChangedLater<NoWorkspace>, "the workspace: (nil)"},
    {"skew workspace",                   SOFTMOE_REFUSED, ChangedLater<SkewWorkspace>, "not a multiple of 256"},
    {"workspace in D",                   SOFTMOE_REFUSED, ChangedLater<WorkspaceInD>, "the workspace overlaps D"},
    {"no algorithm",                     SOFTMOE_REFUSED, ChangedLater<NoAlgorithm>, "must be one that the heuristic gave for this problem"},
    {"algorithm of another",             SOFTMOE_REFUSED, ChangedLater<AlgorithmOf<10, 31>>, "must be one that the heuristic gave for this problem"},
    {"algorithm of fewer columns",       SOFTMOE_REFUSED, ChangedLater<AlgorithmOf<9, 30>>, "or for one with more columns"},
    {"skew A",                           SOFTMOE_REFUSED, ChangedLater<SkewA>, "not a multiple of 256"},
    {"small A",                          SOFTMOE_REFUSED, ChangedLater<SmallA>, "A: 2400 bytes, the last of them 4 bytes past the end"},
    {"small D",                          SOFTMOE_REFUSED, ChangedLater<SmallD>, "D: 800 bytes, the last of them 4 bytes past the end"},
    {"freed B",                          SOFTMOE_REFUSED, ChangedLater<FreedB>, "freed)"},
    {"host A",                           SOFTMOE_REFUSED, ChangedLater<HostA>, "is not an address on the device"},
    {"host D",                           SOFTMOE_REFUSED, ChangedLater<HostD>, "is not an address on the device"},
    {"null C",                           SOFTMOE_REFUSED, ChangedLater<NullC>, "C: (nil) is not an address on the device"},
    {"D is A",                           SOFTMOE_REFUSED, ChangedLater<DIsA>, "D overlaps A"},
    {"shifted in place",                 SOFTMOE_REFUSED, ChangedLater<ShiftedInPlace>, "D overlaps C"},
    {"alpha is 0",                       SOFTMOE_REFUSED, ChangedLater<AlphaIsZero>, "alpha is 0"},
    {"null stream",                      SOFTMOE_REFUSED, ChangedLater<NullStream>, "null stream"},
    {"freed while queued",               SOFTMOE_REFUSED, FreedWhileQueued, "which cublasLtMatmul that is still queued uses"},

    {"missing event",                    {kWrong,  kWrong,  kReport, kReport}, MissingEvent, "data race"},
    {"input is written meanwhile",       {kAny,    kAny,    kReport, kAny},    InputIsWrittenMeanwhile, "data race"},
    {"memory filled before a product",   SOFTMOE_REFUSED, MemoryFilledBeforeAProduct, "an algorithm that is loaded at its first use takes 1 bytes of memory: 0 are free"},
    {"shared workspace",                 {kAny,    kAny,    kReport, kAny},    SharedWorkspace, "data race"},
    {"input without value",              {kWrong,  kWrong,  kWrong,  kReport}, InputWithoutValue},
    {"sums in the type of D",            {kWrong,  kWrong,  kWrong,  kWrong},  SumsInTheTypeOfD},
    {"fresh C is read",                  {kWrong,  kWrong,  kWrong,  kReport}, FreshCIsRead},
};
#undef SOFTMOE_REFUSED
// clang-format on

}  // namespace

std::span<const PlantedBug> PlantedBugs() { return kPlantedBugs; }
const char* PlantedBugsSource() { return "planted_product_bugs.cu:"; }

}  // namespace softmoe::simt

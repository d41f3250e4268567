// SPDX-License-Identifier: Apache-2.0
//
// The functions of include/cublasLt.h: what they refuse, and what they queue.
#include "kernels/simt/device/include/cublasLt.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels/simt/device/device.h"
#include "kernels/simt/device/guarded_memory.h"
#include "kernels/simt/device/host_call.h"
#include "kernels/simt/device/product.h"
#include "kernels/simt/device/raw_bytes.h"
#include "kernels/simt/device/taken_memory.h"
#include "kernels/simt/device/work_queue.h"
#include "kernels/simt/shim/sanitizer_hooks.h"

// Each object holds the number of its kind, so that any other object, or a
// destroyed one, is refused.
struct cublasLtContext {
  static constexpr uint64_t kKind = 0x6c746374;
  uint64_t kind = kKind;
};
struct cublasLtMatrixLayoutOpaque_t {
  static constexpr uint64_t kKind = 0x6c746c61;
  uint64_t kind = kKind;
  uint32_t type;
  int32_t order = CUBLASLT_ORDER_COL;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct cublasLtMatmulDescOpaque_t {
  static constexpr uint64_t kKind = 0x6c746465;
  uint64_t kind = kKind;
  int32_t compute_type, scale_type;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
};
struct cublasLtMatmulPreferenceOpaque_t {
  static constexpr uint64_t kKind = 0x6c747072;
  uint64_t kind = kKind;
  uint64_t workspace = 0;
  uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C, D
};

namespace softmoe::simt {
namespace {

uint64_t sum_seed = 1;
bool sum_seed_is_used = false;

using Library = LibraryRefusals<cublasStatus_t, CUBLAS_STATUS_EXECUTION_FAILED>;

#define SOFTMOE_RETURN_IF_NOT_SUCCESS(...)       \
  if (const cublasStatus_t status = __VA_ARGS__; \
      status != CUBLAS_STATUS_SUCCESS)           \
  return status

template <typename Object>
bool IsOne(const Object* object) {
  return object != nullptr && object->kind == Object::kKind;
}

// ---- Objects

template <typename Object>
cublasStatus_t Create(const char* call, Object** object, const Object& value) {
  SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin(call));
  *object = new Object(value);
  MarkInitialized(object);
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Object>
cublasStatus_t Destroy(const char* call, Object* object) {
  SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin(call));
  if (!IsOne(object)) {
    return SOFTMOE_REFUSE(
        CUBLAS_STATUS_INVALID_VALUE,
        "%s of an object that was never created or is already destroyed", call);
  }
  // Kept, to be recognised. To ASan, objects that nobody destroys are leaks.
  object->kind = 0;
  static std::vector<Object*>& destroyed = *new std::vector<Object*>;
  destroyed.push_back(object);
  return CUBLAS_STATUS_SUCCESS;
}

// Sets one of an object's members.
template <typename Object>
class Attribute {
 public:
  Attribute(const char* call, Object* object, int attribute, const void* value,
            size_t size)
      : call_(call),
        object_(object),
        attribute_(attribute),
        value_(value),
        size_(size) {}

  template <typename T>
  void Is(int attribute, T Object::*member) {
    if (!IsOne(object_) || attribute != attribute_) return;
    known_ = true;
    if (value_ == nullptr || size_ != sizeof(T)) return;
    RequireInitialized(value_, size_);
    __builtin_memcpy(&(object_->*member), value_, sizeof(T));
    done_ = true;
  }

  cublasStatus_t End() {
    SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin(call_));
    if (done_) return CUBLAS_STATUS_SUCCESS;
    const char* why =
        !IsOne(object_)
            ? "is of an object that was never created or is already destroyed"
        : !known_           ? "is not simulated"
        : value_ == nullptr ? "is null"
                            : "has another size";
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "%s: attribute %d (%zu bytes) %s", call_, attribute_,
                          size_, why);
  }

 private:
  const char* call_;
  Object* object_;
  int attribute_;
  const void* value_;
  size_t size_;
  bool known_ = false;
  bool done_ = false;
};

// ---- The problem

struct LtOperand {
  char name;
  MatrixShape shape;
  // Elements from the first to the last: of one matrix, and of the batch.
  int64_t span, extent;
};

cublasStatus_t DescribeOperand(char name,
                               const cublasLtMatrixLayoutOpaque_t* layout,
                               LtOperand* operand) {
  if (!IsOne(layout)) {
    return SOFTMOE_REFUSE(
        CUBLAS_STATUS_INVALID_VALUE,
        "the layout of %c was never created or is already destroyed", name);
  }
  if (layout->type != CUDA_R_32F && layout->type != CUDA_R_16BF) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_NOT_SUPPORTED,
                          "%c has elements of type %u: only CUDA_R_32F and "
                          "CUDA_R_16BF are simulated",
                          name, layout->type);
  }
  constexpr uint64_t kMost = 0x7fffffff;
  if (layout->rows < 1 || layout->cols < 1 || layout->rows > kMost ||
      layout->cols > kMost) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "%c has %llu rows and %llu columns", name,
                          static_cast<unsigned long long>(layout->rows),
                          static_cast<unsigned long long>(layout->cols));
  }
  MatrixShape& shape = operand->shape;
  shape = {layout->type == CUDA_R_16BF,
           layout->order == CUBLASLT_ORDER_ROW,
           static_cast<int64_t>(layout->rows),
           static_cast<int64_t>(layout->cols),
           layout->ld,
           layout->batch,
           layout->stride};
  if (layout->order != CUBLASLT_ORDER_COL &&
      layout->order != CUBLASLT_ORDER_ROW) {
    return SOFTMOE_REFUSE(
        CUBLAS_STATUS_NOT_SUPPORTED,
        "%c has order %d: only rows and columns are simulated", name,
        layout->order);
  }
  if (shape.ld < shape.line_size()) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "%c has a leading dimension of %lld for %s of %lld",
                          name, static_cast<long long>(shape.ld),
                          shape.row_major ? "rows" : "columns",
                          static_cast<long long>(shape.line_size()));
  }
  if (shape.batch < 1 || shape.stride < 0) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "%c has a batch of %d, with a stride of %lld", name,
                          shape.batch, static_cast<long long>(shape.stride));
  }
  operand->name = name;
  operand->span = (shape.lines() - 1) * shape.ld + shape.line_size();
  operand->extent = (shape.batch - 1) * shape.stride + operand->span;
  return CUBLAS_STATUS_SUCCESS;
}

struct Problem {
  LtOperand operands[4];  // A, B, C, D
  bool transpose_a, transpose_b;

  const MatrixShape& shape(int i) const { return operands[i].shape; }
};

bool Same(const MatrixShape& x, const MatrixShape& y) {
  return x.bf16 == y.bf16 && x.row_major == y.row_major && x.rows == y.rows &&
         x.cols == y.cols && x.ld == y.ld && x.batch == y.batch &&
         x.stride == y.stride;
}

// Refuses operands whose sizes, or batch sizes, do not fit each other.
cublasStatus_t CheckSizes(const Problem& problem) {
  const MatrixShape &sa = problem.shape(0), &sb = problem.shape(1),
                    &sc = problem.shape(2), &sd = problem.shape(3);
  const int64_t m = problem.transpose_a ? sa.cols : sa.rows;
  const int64_t k = problem.transpose_a ? sa.rows : sa.cols;
  const int64_t kb = problem.transpose_b ? sb.cols : sb.rows;
  const int64_t n = problem.transpose_b ? sb.rows : sb.cols;
  if (kb != k || sd.rows != m || sd.cols != n || sc.rows != m || sc.cols != n) {
    return SOFTMOE_REFUSE(
        CUBLAS_STATUS_INVALID_VALUE,
        "op(A) is %lld x %lld, op(B) %lld x %lld, C %lld x %lld, D %lld x %lld",
        static_cast<long long>(m), static_cast<long long>(k),
        static_cast<long long>(kb), static_cast<long long>(n),
        static_cast<long long>(sc.rows), static_cast<long long>(sc.cols),
        static_cast<long long>(sd.rows), static_cast<long long>(sd.cols));
  }
  if (sb.batch != sa.batch || sc.batch != sa.batch || sd.batch != sa.batch) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "batches of A, B, C, D: %d, %d, %d, %d", sa.batch,
                          sb.batch, sc.batch, sd.batch);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t DescribeProblem(cublasLtHandle_t handle,
                               cublasLtMatmulDesc_t desc,
                               cublasLtMatrixLayout_t a,
                               cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t c,
                               cublasLtMatrixLayout_t d, Problem* problem) {
  if (!IsOne(handle)) {
    return SOFTMOE_REFUSE(
        CUBLAS_STATUS_NOT_INITIALIZED,
        "the handle was never created or is already destroyed");
  }
  if (!IsOne(desc)) {
    return SOFTMOE_REFUSE(
        CUBLAS_STATUS_INVALID_VALUE,
        "the description was never created or is already destroyed");
  }
  if (desc->compute_type != CUBLAS_COMPUTE_32F ||
      desc->scale_type != CUDA_R_32F) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_NOT_SUPPORTED,
                          "compute type %d with scale type %d: only "
                          "CUBLAS_COMPUTE_32F with CUDA_R_32F is simulated",
                          desc->compute_type, desc->scale_type);
  }
  const auto transposes = [](int32_t operation) {
    return operation == CUBLAS_OP_T;
  };
  for (const int32_t operation : {desc->transpose_a, desc->transpose_b}) {
    if (operation == CUBLAS_OP_N || operation == CUBLAS_OP_T) continue;
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE, "operation %d",
                          operation);
  }
  problem->transpose_a = transposes(desc->transpose_a);
  problem->transpose_b = transposes(desc->transpose_b);
  const cublasLtMatrixLayout_t layouts[] = {a, b, c, d};
  for (int i = 0; i < 4; ++i) {
    SOFTMOE_RETURN_IF_NOT_SUCCESS(
        DescribeOperand("ABCD"[i], layouts[i], &problem -> operands[i]));
  }
  const MatrixShape &sa = problem->shape(0), &sb = problem->shape(1),
                    &sc = problem->shape(2), &sd = problem->shape(3);
  // By the table of supported types, both inputs have one type, and an output
  // of bf16 takes inputs of bf16.
  if (sa.bf16 != sb.bf16 || sc.bf16 != sd.bf16 || (sd.bf16 && !sa.bf16)) {
    const auto name = [](const MatrixShape& s) {
      return s.bf16 ? "bf16" : "fp32";
    };
    return SOFTMOE_REFUSE(CUBLAS_STATUS_NOT_SUPPORTED,
                          "types of A, B, C, D: %s, %s, %s, %s", name(sa),
                          name(sb), name(sc), name(sd));
  }
  SOFTMOE_RETURN_IF_NOT_SUCCESS(CheckSizes(*problem));
  if (sc.row_major != sd.row_major) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_NOT_SUPPORTED,
                          "C and D have different orders");
  }
  // Matrices of a batch lie one after another, or side by side in each line.
  const bool apart = sd.stride >= problem->operands[3].span ||
                     (sd.stride >= sd.line_size() &&
                      (sd.batch - 1) * sd.stride + sd.line_size() <= sd.ld);
  if (sd.batch > 1 && !apart) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "the matrices of D overlap: their stride is %lld",
                          static_cast<long long>(sd.stride));
  }
  return CUBLAS_STATUS_SUCCESS;
}

// The number of columns of D, and of terms of its sums.
int64_t ColumnsOf(const Problem& problem) { return problem.shape(3).cols; }
int64_t TermsOf(const Problem& problem) {
  const MatrixShape& a = problem.shape(0);
  return problem.transpose_a ? a.rows : a.cols;
}

// Hashes the problem, with all sizes or with the rows of D alone.
uint64_t NumberOf(const Problem& problem, bool with_sizes) {
  uint64_t words[4 * 7 + 2];
  size_t size = 0;
  const auto add = [&](int64_t word) {
    words[size++] = static_cast<uint64_t>(word);
  };
  for (int i = 0; i < 4; ++i) {
    const MatrixShape& s = problem.shape(i);
    add(s.bf16);
    add(s.row_major);
    if (with_sizes) {
      add(s.rows);
      add(s.cols);
    }
    add(s.ld);
    add(s.batch);
    add(s.stride);
  }
  if (!with_sizes) add(problem.shape(3).rows);
  add(problem.transpose_a);
  add(problem.transpose_b);
  return HashRaw(words, size * sizeof(words[0]));
}

// A hash that problems share if they differ in columns and terms at most.
uint64_t Family(const Problem& problem) {
  return NumberOf(problem, /*with_sizes=*/false);
}

// A hash of the problem, whatever the seed and the operands' addresses.
uint64_t Identity(const Problem& problem) {
  return NumberOf(problem, /*with_sizes=*/true);
}

// ---- Algorithms

constexpr uint64_t kAlgorithm = 0x6c74616c;
constexpr int kMostAlgorithms = 8;

// How many algorithms a heuristic knows, at least 1: as on a device, some
// problems have few.
int NumAlgorithms(const Problem& problem) {
  return 1 + static_cast<int>(Identity(problem) % kMostAlgorithms);
}

// The content of a cublasLtMatmulAlgo_t.
struct Algorithm {
  uint64_t kind;
  uint64_t problem, family;  // hashes of the heuristic's problem
  uint64_t workspace;        // bytes that it needs
  uint32_t columns, terms;   // the most that it takes
  uint32_t number;
  uint32_t sums_in_type_of_d;  // whether partial sums may be: 0 or 1
  uint32_t alignment[4];

  // A problem with fewer columns or terms needs no more of anything, but, as on
  // a device, some algorithms refuse some such problems.
  bool Suits(const Problem& asked) const {
    const uint64_t asked_problem = Identity(asked);
    if (problem == asked_problem) return true;
    return family == Family(asked) && ColumnsOf(asked) <= int64_t{columns} &&
           TermsOf(asked) <= int64_t{terms} &&
           (problem ^ asked_problem) % 4 != 0;
  }
};
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));

// Even-numbered algorithms keep partial sums of D in a workspace, if allowed.
uint64_t WorkspaceOf(const Problem& problem, int number, uint64_t most) {
  const MatrixShape& d = problem.shape(3);
  const uint64_t bytes = static_cast<uint64_t>(d.rows) *
                         static_cast<uint64_t>(d.cols) * sizeof(float);
  return number % 2 == 0 && bytes <= most ? bytes : 0;
}

// ---- Memory

// Calls body(begin, bytes) for each run of consecutive elements.
template <typename Body>
void ForEachLine(const MatrixShape& shape, const char* data, const Body& body) {
  const size_t size = static_cast<size_t>(shape.line_size()) * shape.element();
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t i = 0; i < shape.lines(); ++i) {
      const size_t at = static_cast<size_t>(b * shape.stride + i * shape.ld) *
                        shape.element();
      body(const_cast<char*>(data) + at, size);
    }
  }
}

// Whether x and y have an element in common. (Their ranges may overlap although
// they have none: parts of the rows of one array.)
bool Overlap(const MatrixShape& x, const char* x_data, const MatrixShape& y,
             const char* y_data, const Range& range_of_x) {
  // taken[i]: whether the i-th pair of bytes of x's range belongs to x.
  constexpr size_t kUnit = 2;
  const size_t units = range_of_x.size / kUnit;
  bool* taken = new bool[units]();
  ForEachLine(x, x_data, [&](const char* at, size_t size) {
    const size_t first = static_cast<size_t>(at - range_of_x.begin) / kUnit;
    for (size_t i = 0; i < size / kUnit; ++i) taken[first + i] = true;
  });
  bool overlap = false;
  ForEachLine(y, y_data, [&](const char* at, size_t size) {
    for (size_t i = 0; i < size; i += kUnit) {
      const ptrdiff_t unit =
          (at + i - range_of_x.begin) / static_cast<ptrdiff_t>(kUnit);
      overlap |= at + i >= range_of_x.begin &&
                 unit < static_cast<ptrdiff_t>(units) && taken[unit];
    }
  });
  delete[] taken;
  return overlap;
}

// ---- What is queued

class ProductWork : public Work {
 public:
  ProductWork(const Product& product, char* workspace, size_t workspace_size)
      : Work("cublasLtMatmul"),
        product_(product),
        workspace_(workspace),
        workspace_size_(workspace_size) {}

  const char* Run() override {
    const auto read = [](char* at, size_t size) { NoteRead(at, size); };
    ForEachLine(product_.a, product_.a_data, read);
    ForEachLine(product_.b, product_.b_data, read);
    if (product_.beta != 0) ForEachLine(product_.c, product_.c_data, read);
    ForEachLine(product_.d, product_.d_data,
                [](char* at, size_t size) { NoteWrite(at, size); });
    ComputeProduct(product_);
    // The workspace keeps nothing.
    NoteWrite(workspace_, workspace_size_);
    FillRaw(workspace_, 0xffff, workspace_size_);
    MarkUninitialized(workspace_, workspace_size_);
    return nullptr;
  }

 private:
  const Product product_;
  char* workspace_;
  size_t workspace_size_;
};

cublasStatus_t CheckMemory(const char* name, const void* at, size_t size,
                           uint64_t alignment) {
  if (!DeviceMemory().Holds(at)) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "%s: %p is not an address on the device", name, at);
  }
  char where[300];
  const char* last = static_cast<const char*>(at) + size - 1;
  const Allocation* allocation = DeviceMemory().FindLive(at, size);
  if (allocation == nullptr) {
    DeviceMemory().Describe(last, where, sizeof(where));
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "%s: %zu bytes, the last of them %s", name, size,
                          where);
  }
  if (allocation->device != CurrentDevice()) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "%s: memory of device %d, on device %d", name,
                          allocation->device, CurrentDevice());
  }
  if (reinterpret_cast<uintptr_t>(at) % alignment != 0) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "%s: %p is not a multiple of %llu, the alignment "
                          "that the heuristic was given",
                          name, at, static_cast<unsigned long long>(alignment));
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Reads alpha and beta now, since the pointers are the host's.
cublasStatus_t ReadScalars(const void* alpha, const void* beta,
                           Product* product) {
  if (alpha == nullptr || beta == nullptr || DeviceMemory().Holds(alpha) ||
      DeviceMemory().Holds(beta)) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "alpha and beta must be in host memory");
  }
  RequireInitialized(alpha, sizeof(float));
  RequireInitialized(beta, sizeof(float));
  __builtin_memcpy(&product->alpha, alpha, sizeof(float));
  __builtin_memcpy(&product->beta, beta, sizeof(float));
  if (product->alpha == 0) {
    return SOFTMOE_REFUSE(
        CUBLAS_STATUS_NOT_SUPPORTED,
        "alpha is 0: cuBLASLt does not specify whether A and B are read");
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Sets the ranges of A, B, C and D. Refuses operands that the algorithm cannot
// use, and a D whose writing would change what is yet to be read.
cublasStatus_t CheckOperands(const Problem& problem, const Algorithm& algorithm,
                             const char* const (&data)[4], Range (&ranges)[4]) {
  for (int i = 0; i < 4; ++i) {
    const LtOperand& operand = problem.operands[i];
    ranges[i] = {data[i],
                 static_cast<size_t>(operand.extent) * operand.shape.element()};
    const char name[2] = {operand.name, '\0'};
    SOFTMOE_RETURN_IF_NOT_SUCCESS(
        CheckMemory(name, data[i], ranges[i].size, algorithm.alignment[i]));
  }
  for (int i = 0; i < 3; ++i) {
    if (!ranges[i].Overlaps(ranges[3])) continue;
    // In place, element by element, is allowed.
    const bool in_place = i == 2 && data[2] == data[3] &&
                          Same(problem.shape(2), problem.shape(3));
    if (in_place) continue;
    if (!Overlap(problem.shape(i), data[i], problem.shape(3), data[3],
                 ranges[i])) {
      continue;
    }
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE, "D overlaps %c",
                          problem.operands[i].name);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CheckWorkspace(const Problem& problem,
                              const Algorithm& algorithm,
                              const Range (&ranges)[4], const void* workspace,
                              size_t workspace_size) {
  if (workspace_size < algorithm.workspace) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "a workspace of %zu bytes: the algorithm needs %llu",
                          workspace_size,
                          static_cast<unsigned long long>(algorithm.workspace));
  }
  if (workspace_size > 0) {
    SOFTMOE_RETURN_IF_NOT_SUCCESS(
        CheckMemory("the workspace", workspace, workspace_size, 256));
  }
  const Range scratch = {static_cast<const char*>(workspace),
                         algorithm.workspace};
  for (int i = 0; i < 4; ++i) {
    if (!ranges[i].Overlaps(scratch)) continue;
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "the workspace overlaps %c",
                          problem.operands[i].name);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t LoadAlgorithm(const Problem& problem,
                             const Algorithm& algorithm) {
  // Problems that differ in their sizes alone share their algorithms' code.
  const uint64_t code[] = {kAlgorithm,
                           algorithm.number,
                           problem.shape(0).bf16,
                           problem.shape(3).bf16,
                           problem.transpose_a,
                           problem.transpose_b};
  if (const char* why = LoadCode(HashRaw(code, sizeof(code)))) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_ALLOC_FAILED, "an algorithm %s", why);
  }
  return CUBLAS_STATUS_SUCCESS;
}

// Sets all of `product` but its scalars.
void ProductOf(const Problem& problem, const Algorithm& algorithm,
               const char* const (&data)[4], char* d, Product* product) {
  product->a = problem.shape(0);
  product->b = problem.shape(1);
  product->c = problem.shape(2);
  product->d = problem.shape(3);
  product->sums_in_type_of_d = algorithm.sums_in_type_of_d != 0;
  product->transpose_a = problem.transpose_a;
  product->transpose_b = problem.transpose_b;
  product->a_data = data[0];
  product->b_data = data[1];
  product->c_data = data[2];
  product->d_data = d;
  const uint64_t order[] = {sum_seed, algorithm.problem, algorithm.number};
  sum_seed_is_used = true;
  product->order = HashRaw(order, sizeof(order)) >> 1;
  product->on_tensor_cores = product->a.bf16 && product->order % 3 == 0;
}

}  // namespace

void SetSumSeed(uint64_t seed) {
  if (sum_seed_is_used && seed != sum_seed) {
    fprintf(stderr, "SetSumSeed was called after the first product\n");
    abort();
  }
  sum_seed = seed;
}

}  // namespace softmoe::simt

// NOLINTBEGIN: the library's names

using namespace softmoe::simt;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const HostCall host_call;
  return Create("cublasLtCreate", handle, {});
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  const HostCall host_call;
  return Destroy("cublasLtDestroy", handle);
}
size_t cublasLtGetVersion() {
  const HostCall host_call;
  return CountCall("cublasLtGetVersion") == 0 ? ChosenDeviceLimits().cublas : 0;
}

const char* cublasLtGetStatusName(cublasStatus_t status) {
#define SOFTMOE_NAME(name) \
  case name:               \
    return #name
  switch (status) {
    SOFTMOE_NAME(CUBLAS_STATUS_SUCCESS);
    SOFTMOE_NAME(CUBLAS_STATUS_NOT_INITIALIZED);
    SOFTMOE_NAME(CUBLAS_STATUS_ALLOC_FAILED);
    SOFTMOE_NAME(CUBLAS_STATUS_INVALID_VALUE);
    SOFTMOE_NAME(CUBLAS_STATUS_ARCH_MISMATCH);
    SOFTMOE_NAME(CUBLAS_STATUS_EXECUTION_FAILED);
    SOFTMOE_NAME(CUBLAS_STATUS_INTERNAL_ERROR);
    SOFTMOE_NAME(CUBLAS_STATUS_NOT_SUPPORTED);
  }
#undef SOFTMOE_NAME
  return "a status that the simulator does not know";
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  const HostCall host_call;
  return Library::Get().Text(status, cublasLtGetStatusName(status));
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld) {
  const HostCall host_call;
  cublasLtMatrixLayoutOpaque_t value;
  value.type = type;
  value.rows = rows;
  value.cols = cols;
  value.ld = ld;
  return Create("cublasLtMatrixLayoutCreate", layout, value);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  const HostCall host_call;
  return Destroy("cublasLtMatrixLayoutDestroy", layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(
    cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute,
    const void* value, size_t size) {
  const HostCall host_call;
  using Layout = cublasLtMatrixLayoutOpaque_t;
  Attribute<Layout> set("cublasLtMatrixLayoutSetAttribute", layout, attribute,
                        value, size);
  set.Is(CUBLASLT_MATRIX_LAYOUT_TYPE, &Layout::type);
  set.Is(CUBLASLT_MATRIX_LAYOUT_ORDER, &Layout::order);
  set.Is(CUBLASLT_MATRIX_LAYOUT_ROWS, &Layout::rows);
  set.Is(CUBLASLT_MATRIX_LAYOUT_COLS, &Layout::cols);
  set.Is(CUBLASLT_MATRIX_LAYOUT_LD, &Layout::ld);
  set.Is(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &Layout::batch);
  set.Is(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &Layout::stride);
  return set.End();
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc,
                                        cublasComputeType_t compute_type,
                                        cudaDataType scale_type) {
  const HostCall host_call;
  cublasLtMatmulDescOpaque_t value;
  value.compute_type = compute_type;
  value.scale_type = scale_type;
  return Create("cublasLtMatmulDescCreate", desc, value);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  const HostCall host_call;
  return Destroy("cublasLtMatmulDescDestroy", desc);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(
    cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
    const void* value, size_t size) {
  const HostCall host_call;
  using Desc = cublasLtMatmulDescOpaque_t;
  Attribute<Desc> set("cublasLtMatmulDescSetAttribute", desc, attribute, value,
                      size);
  set.Is(CUBLASLT_MATMUL_DESC_TRANSA, &Desc::transpose_a);
  set.Is(CUBLASLT_MATMUL_DESC_TRANSB, &Desc::transpose_b);
  return set.End();
}

cublasStatus_t cublasLtMatmulPreferenceCreate(
    cublasLtMatmulPreference_t* preference) {
  const HostCall host_call;
  return Create("cublasLtMatmulPreferenceCreate", preference, {});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(
    cublasLtMatmulPreference_t preference) {
  const HostCall host_call;
  return Destroy("cublasLtMatmulPreferenceDestroy", preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t preference,
    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
    size_t size) {
  const HostCall host_call;
  constexpr const char* kCall = "cublasLtMatmulPreferenceSetAttribute";
  using Preference = cublasLtMatmulPreferenceOpaque_t;
  if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
      attribute <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES) {
    SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin(kCall));
    uint32_t bytes = 0;
    if (value != nullptr && size == sizeof(bytes)) {
      RequireInitialized(value, size);
      __builtin_memcpy(&bytes, value, sizeof(bytes));
    }
    if (!IsOne(preference) || bytes == 0 || (bytes & (bytes - 1)) != 0) {
      return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                            "%s: an alignment of %u, in %zu bytes", kCall,
                            bytes, size);
    }
    preference
        ->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] =
        bytes;
    return CUBLAS_STATUS_SUCCESS;
  }
  Attribute<Preference> set(kCall, preference, attribute, value, size);
  set.Is(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &Preference::workspace);
  set.Is(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         &Preference::reduction_schemes);
  return set.End();
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int requested,
    cublasLtMatmulHeuristicResult_t results[], int* returned) {
  const HostCall host_call;
  SOFTMOE_RETURN_IF_NOT_SUCCESS(
      Library::Begin("cublasLtMatmulAlgoGetHeuristic"));
  Problem problem;
  SOFTMOE_RETURN_IF_NOT_SUCCESS(
      DescribeProblem(handle, desc, a, b, c, d, &problem));
  if (!IsOne(preference) || requested < 1 || results == nullptr ||
      returned == nullptr) {
    return SOFTMOE_REFUSE(
        CUBLAS_STATUS_INVALID_VALUE,
        "a heuristic without a preference or without room for results");
  }
  const uint32_t sums_in_type_of_d =
      (preference->reduction_schemes &
       (CUBLASLT_REDUCTION_SCHEME_INPLACE |
        CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)) != 0;
  const int known = NumAlgorithms(problem);
  const int count = requested < known ? requested : known;
  for (int i = 0; i < count; ++i) {
    Algorithm algorithm = {
        .kind = kAlgorithm,
        .problem = Identity(problem),
        .family = Family(problem),
        .workspace = WorkspaceOf(problem, i, preference->workspace),
        .columns = static_cast<uint32_t>(ColumnsOf(problem)),
        .terms = static_cast<uint32_t>(TermsOf(problem)),
        .number = static_cast<uint32_t>(i),
        .sums_in_type_of_d = sums_in_type_of_d,
        .alignment = {}};
    for (int operand = 0; operand < 4; ++operand) {
      algorithm.alignment[operand] = preference->alignment[operand];
    }
    results[i] = {};
    __builtin_memcpy(&results[i].algo, &algorithm, sizeof(algorithm));
    results[i].workspaceSize = algorithm.workspace;
    results[i].state = CUBLAS_STATUS_SUCCESS;
    results[i].wavesCount = 1;
    MarkInitialized(&results[i]);
  }
  *returned = count;
  MarkInitialized(returned);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle,
                              cublasLtMatmulDesc_t desc, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algo, void* workspace,
                              size_t workspace_size, cudaStream_t stream) {
  const HostCall host_call;
  SOFTMOE_RETURN_IF_NOT_SUCCESS(Library::Begin("cublasLtMatmul"));
  if (!TheWorkQueue().Knows(stream)) {
    return SOFTMOE_REFUSE(CUBLAS_STATUS_INVALID_VALUE,
                          "cublasLtMatmul on the null stream, or on one that "
                          "was never created or is already destroyed");
  }
  if (DeviceOf(stream) != CurrentDevice()) {
    return SOFTMOE_REFUSE(
        CUBLAS_STATUS_INVALID_VALUE,
        "cublasLtMatmul on a stream of device %d, by a thread "
        "that has chosen device %d",
        DeviceOf(stream), CurrentDevice());
  }
  Problem problem;
  SOFTMOE_RETURN_IF_NOT_SUCCESS(DescribeProblem(
      handle, desc, a_layout, b_layout, c_layout, d_layout, &problem));

  Product product;
  SOFTMOE_RETURN_IF_NOT_SUCCESS(ReadScalars(alpha, beta, &product));

  Algorithm algorithm = {};
  if (algo != nullptr) {
    __builtin_memcpy(&algorithm, algo, sizeof(algorithm));
  }
  if (algorithm.kind != kAlgorithm || !algorithm.Suits(problem)) {
    return SOFTMOE_REFUSE(
        CUBLAS_STATUS_INVALID_VALUE,
        "the algorithm must be one that the heuristic gave for this problem, "
        "or for one with more columns or terms if it accepts fewer");
  }

  const char* data[4] = {
      static_cast<const char*>(a), static_cast<const char*>(b),
      static_cast<const char*>(c), static_cast<const char*>(d)};
  Range ranges[4];
  SOFTMOE_RETURN_IF_NOT_SUCCESS(
      CheckOperands(problem, algorithm, data, ranges));
  SOFTMOE_RETURN_IF_NOT_SUCCESS(
      CheckWorkspace(problem, algorithm, ranges, workspace, workspace_size));
  SOFTMOE_RETURN_IF_NOT_SUCCESS(LoadAlgorithm(problem, algorithm));

  ProductOf(problem, algorithm, data, static_cast<char*>(d), &product);
  ProductWork* work = new ProductWork(product, static_cast<char*>(workspace),
                                      algorithm.workspace);
  for (const void* at : {a, b, c, static_cast<const void*>(d),
                         static_cast<const void*>(workspace)}) {
    work->AddUse(DeviceMemory().Find(at));
  }
  TheWorkQueue().Add(stream, work);
  return CUBLAS_STATUS_SUCCESS;
}

// NOLINTEND

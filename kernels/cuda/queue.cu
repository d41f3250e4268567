// SPDX-License-Identifier: Apache-2.0
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/queue.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

// Throws as CheckCuda does.
void CheckCublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string why = cublasLtGetStatusString(status);
  const std::string message = std::string(what) + ": " + why;
  switch (status) {
    case CUBLAS_STATUS_EXECUTION_FAILED:
      throw NumericsError("on the device: " + why + " (before or at: " + what +
                          ")");
    case CUBLAS_STATUS_INVALID_VALUE:
    case CUBLAS_STATUS_NOT_SUPPORTED:
      throw InternalError(message);
    default:
      throw EnvironmentError(message + "; check the device with nvidia-smi");
  }
}

// The largest power of two, up to 256, that divides the address.
uint32_t AlignmentOf(const void* pointer) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  return address == 0 ? 256
                      : static_cast<uint32_t>(
                            std::min<uintptr_t>(address & -address, 256));
}

// Everything that a product's algorithm depends on.
using Problem = std::array<int64_t, 18>;

// The product whose algorithm one whose rows vary takes, of as many or more.
ProductArgs ProductOfBucket(ProductArgs args) {
  int64_t& rows = args.product.transpose_a ? args.product.k : args.product.m;
  rows = RowBucket(rows);
  return args;
}

Problem ProblemOf(const ProductArgs& args) {
  const auto& p = args.product;
  return {static_cast<int64_t>(args.operands),
          static_cast<int64_t>(args.result),
          p.m,
          p.n,
          p.k,
          p.lda,
          p.ldb,
          p.ldc,
          p.transpose_a,
          p.transpose_b,
          p.accumulate,
          args.count,
          args.stride_a,
          args.stride_b,
          args.stride_c,
          AlignmentOf(p.a),
          AlignmentOf(p.b),
          AlignmentOf(p.c)};
}

// Describes one problem to the library, which stores matrices by columns: our
// [rows, columns] matrix is its [columns, rows] matrix, so it is asked for
// c^T = op(b)^T op(a)^T.
class Plan {
 public:
  // With number `choice` of the algorithms that the heuristic gives.
  Plan(cublasLtHandle_t handle, const ProductArgs& args, int64_t workspace,
       int choice)
      : Plan(args) {
    ChooseAlgorithm(handle, args, workspace, choice);
  }
  // With the algorithm of the same product of as many or more rows.
  Plan(const ProductArgs& args, const Plan& of_more_rows) : Plan(args) {
    choice_ = of_more_rows.choice_;
  }
  ~Plan() {
    for (const cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
      if (layout != nullptr) (void)cublasLtMatrixLayoutDestroy(layout);
    }
    if (operation_ != nullptr) (void)cublasLtMatmulDescDestroy(operation_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  void Run(cublasLtHandle_t handle, const GemmArgsOf<void, void>& p,
           void* workspace, cudaStream_t stream) const {
    CheckCublas(Try(handle, p, workspace, stream), "a product");
  }
  // Returns false, with nothing done, if the library refuses the algorithm.
  bool RunIfSuited(cublasLtHandle_t handle, const GemmArgsOf<void, void>& p,
                   void* workspace, cudaStream_t stream) const {
    const cublasStatus_t status = Try(handle, p, workspace, stream);
    if (status == CUBLAS_STATUS_INVALID_VALUE ||
        status == CUBLAS_STATUS_NOT_SUPPORTED) {
      return false;
    }
    CheckCublas(status, "a product");
    return true;
  }

 private:
  Plan() = default;
  cublasStatus_t Try(cublasLtHandle_t handle, const GemmArgsOf<void, void>& p,
                     void* workspace, cudaStream_t stream) const {
    const float one = 1, beta = p.accumulate ? 1.0f : 0.0f;
    return cublasLtMatmul(handle, operation_, &one, p.b, b_, p.a, a_, &beta,
                          p.c, c_, p.c, c_, &choice_.algo, workspace,
                          choice_.workspaceSize, stream);
  }
  explicit Plan(const ProductArgs& args) : Plan() {
    const auto& p = args.product;
    CheckCublas(
        cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "a product's description");
    Transpose(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b);
    Transpose(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a);
    Layout(args.operands, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k,
           p.lda, args.count, args.stride_a, &a_);
    Layout(args.operands, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n,
           p.ldb, args.count, args.stride_b, &b_);
    Layout(args.result, p.m, p.n, p.ldc, args.count, args.stride_c, &c_);
  }

  void Transpose(cublasLtMatmulDescAttributes_t operand, bool transpose) {
    const int32_t value = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
    CheckCublas(cublasLtMatmulDescSetAttribute(operation_, operand, &value,
                                               sizeof(value)),
                "a product's description");
  }

  static void Layout(Storage storage, int64_t rows, int64_t columns,
                     int64_t stride, int64_t count, int64_t distance,
                     cublasLtMatrixLayout_t* layout) {
    const cudaDataType type =
        storage == Storage::kBf16 ? CUDA_R_16BF : CUDA_R_32F;
    CheckCublas(
        cublasLtMatrixLayoutCreate(layout, type, static_cast<uint64_t>(columns),
                                   static_cast<uint64_t>(rows), stride),
        "a product's operand");
    if (count == 1) return;
    const int32_t batch = static_cast<int32_t>(count);
    CheckCublas(
        cublasLtMatrixLayoutSetAttribute(
            *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)),
        "a product's operand");
    CheckCublas(cublasLtMatrixLayoutSetAttribute(
                    *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                    &distance, sizeof(distance)),
                "a product's operand");
  }

  // Takes number `choice` of those that the heuristic gives, the best first.
  void ChooseAlgorithm(cublasLtHandle_t handle, const ProductArgs& args,
                       int64_t workspace, int choice) {
    const auto& p = args.product;
    cublasLtMatmulPreference_t created = nullptr;
    CheckCublas(cublasLtMatmulPreferenceCreate(&created), "a heuristic");
    struct Destroy {
      void operator()(cublasLtMatmulPreference_t preference) const {
        (void)cublasLtMatmulPreferenceDestroy(preference);
      }
    };
    const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Destroy> preference(
        created);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute,
                            auto value) {
      CheckCublas(cublasLtMatmulPreferenceSetAttribute(
                      preference.get(), attribute, &value, sizeof(value)),
                  "a heuristic");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
           static_cast<uint64_t>(workspace));
    if (args.result == Storage::kBf16) {
      // Sums that are split over k are added in fp32, not in the result's type.
      prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
             static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    }
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, AlignmentOf(p.b));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, AlignmentOf(p.a));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, AlignmentOf(p.c));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, AlignmentOf(p.c));
    int found = 0;
    cublasLtMatmulHeuristicResult_t results[kProductChoices] = {};
    CheckCublas(cublasLtMatmulAlgoGetHeuristic(handle, operation_, b_, a_, c_,
                                               c_, preference.get(), choice + 1,
                                               results, &found),
                "a heuristic");
    if (choice > 0 && found <= choice) {
      throw EnvironmentError(
          "cuBLASLt's heuristic gives " + std::to_string(found) +
          " algorithms for this product, and number " + std::to_string(choice) +
          ", from 0, was asked for");
    }
    choice_ = results[choice];
    CheckCublas(found > choice ? choice_.state : CUBLAS_STATUS_NOT_SUPPORTED,
                "a heuristic");
  }

  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_ = {};
};

// A stream, its workspace, and the event that orders it.
struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void* workspace = nullptr;
};

class DeviceQueue : public Queue {
 public:
  DeviceQueue(cudaStream_t stream, int64_t workspace, int choice)
      : DeviceQueue() {
    workspace_ = workspace;
    choice_ = choice;
    CheckCublas(cublasLtCreate(&handle_), "cuBLASLt");
    lanes_[0].stream = stream;
    for (int side = 1; side <= kSides; ++side) {
      CheckCuda(cudaStreamCreateWithFlags(&lanes_[side].stream,
                                          cudaStreamNonBlocking),
                "a stream");
    }
    const std::string each =
        "a product's workspace of " + std::to_string(workspace) + " bytes";
    for (Lane& lane : lanes_) {
      CheckCuda(cudaEventCreateWithFlags(&lane.event, cudaEventDisableTiming),
                "an event");
      CheckCuda(cudaMalloc(&lane.workspace, static_cast<size_t>(workspace)),
                each.c_str());
    }
  }
  ~DeviceQueue() override {
    for (const Lane& lane : lanes_) {
      if (lane.stream != nullptr) (void)cudaStreamSynchronize(lane.stream);
    }
    for (const Lane& lane : lanes_) {
      if (lane.workspace != nullptr) (void)cudaFree(lane.workspace);
      if (lane.event != nullptr) (void)cudaEventDestroy(lane.event);
    }
    for (int side = 1; side <= kSides; ++side) {
      if (lanes_[side].stream != nullptr) {
        (void)cudaStreamDestroy(lanes_[side].stream);
      }
    }
    plans_.clear();
    if (handle_ != nullptr) (void)cublasLtDestroy(handle_);
  }

  CUstream_st* stream() override { return lanes_[0].stream; }
  void Multiply(const ProductArgs& args) override { Run(lanes_[0], args); }

  void Fork() override {
    CheckCuda(cudaEventRecord(lanes_[0].event, lanes_[0].stream), "a fork");
    for (int side = 1; side <= kSides; ++side) {
      CheckCuda(cudaStreamWaitEvent(lanes_[side].stream, lanes_[0].event, 0),
                "a fork");
    }
  }
  void MultiplyBeside(int side, const ProductArgs& args) override {
    Run(lanes_[1 + side], args);
  }
  void Join() override {
    for (int side = 1; side <= kSides; ++side) {
      CheckCuda(cudaEventRecord(lanes_[side].event, lanes_[side].stream),
                "a join");
      CheckCuda(cudaStreamWaitEvent(lanes_[0].stream, lanes_[side].event, 0),
                "a join");
    }
  }

 private:
  DeviceQueue() = default;

  // More than a model has: whoever asks for more has other problems each time.
  static constexpr size_t kMaxPlans = 4096;

  void Run(const Lane& lane, const ProductArgs& args) {
    const auto& p = args.product;
    if (p.m == 0 || p.n == 0 || args.count == 0) return;
    if (p.k == 0) return Clear(lane, args);
    if (args.rows_vary) {
      const Plan of_bucket(args, PlanOf(ProductOfBucket(args)));
      if (of_bucket.RunIfSuited(handle_, p, lane.workspace, lane.stream)) {
        return;
      }
    }
    PlanOf(args).Run(handle_, p, lane.workspace, lane.stream);
  }

  // The library refuses empty sums.
  void Clear(const Lane& lane, const ProductArgs& args) {
    const auto& p = args.product;
    if (p.accumulate) return;
    const int64_t element =
        args.result == Storage::kBf16 ? sizeof(Bf16) : sizeof(float);
    const int64_t runs = p.ldc == p.n ? 1 : p.m;
    const size_t run = static_cast<size_t>(p.m / runs * p.n * element);
    char* const c = static_cast<char*>(p.c);
    for (int64_t i = 0; i < args.count; ++i) {
      for (int64_t r = 0; r < runs; ++r) {
        const int64_t at = (i * args.stride_c + r * p.ldc) * element;
        CheckCuda(cudaMemsetAsync(c + at, 0, run, lane.stream), "a product");
      }
    }
  }

  const Plan& PlanOf(const ProductArgs& args) {
    const Problem problem = ProblemOf(args);
    auto at = std::lower_bound(
        plans_.begin(), plans_.end(), problem,
        [](const Entry& entry, const Problem& p) { return entry.first < p; });
    if (at != plans_.end() && at->first == problem) return *at->second;
    if (plans_.size() == kMaxPlans) {
      plans_.clear();
      at = plans_.end();
    }
    return *plans_
                .emplace(
                    at, problem,
                    std::make_unique<Plan>(handle_, args, workspace_, choice_))
                ->second;
  }

  using Entry = std::pair<Problem, std::unique_ptr<Plan>>;

  int64_t workspace_ = 0;
  int choice_ = 0;
  cublasLtHandle_t handle_ = nullptr;
  Lane lanes_[1 + kSides];
  std::vector<Entry> plans_;  // ascending problems
};

}  // namespace

std::unique_ptr<Queue> MakeQueue(cudaStream_t stream, int64_t workspace) {
  return std::make_unique<DeviceQueue>(stream, workspace, 0);
}
std::unique_ptr<Queue> MakeQueueOfChoice(cudaStream_t stream, int choice,
                                         int64_t workspace) {
  if (choice < 0 || choice >= kProductChoices) {
    throw InternalError("algorithm number " + std::to_string(choice) +
                        " of a heuristic");
  }
  return std::make_unique<DeviceQueue>(stream, workspace, choice);
}

void Gemm(const GemmArgs& args, Queue& queue) {
  queue.Multiply(ProductOf(args));
}
void Gemm(const GemmArgsOf<Bf16, Bf16>& args, Queue& queue) {
  queue.Multiply(ProductOf(args));
}
void Gemm(const GemmArgsOf<Bf16, float>& args, Queue& queue) {
  queue.Multiply(ProductOf(args));
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

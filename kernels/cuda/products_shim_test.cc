// SPDX-License-Identifier: Apache-2.0
//
// Products, experts, attention and head on the simulated device: empty sums,
// more problems than a queue keeps algorithms for, experts without rows,
// partial blocks of queries, partial chunks of tokens, batches, buckets of
// rows. Their results are tested by verify, op=gemm, op=experts, op=attention
// and op=lm_head.
#include "kernels/cuda/products.h"
#include "kernels/simt/device/shim_test_support.h"
#include "kernels/testing/random_routing.h"

namespace softmoe::kernels {
namespace {

// launch(run, queue), as for CheckSchedules.
template <typename Launch>
void CheckOnQueue(const char* what, const Launch& launch) {
  CheckSchedules(what, [&](DeviceRun& run) {
    const auto queue = isa_shim::MakeQueue(run.stream(), 1 << 16);
    launch(run, *queue);
  });
}

template <typename Operand, typename Result>
void CheckGemm(int64_t m, int64_t n, int64_t k, bool transpose_a,
               bool transpose_b, bool accumulate) {
  CheckOnQueue("gemm", [&](DeviceRun& run, Queue& queue) {
    isa_shim::Gemm(
        run.Complete(GemmArgsOf<Operand, Result>{.m = m,
                                                 .n = n,
                                                 .k = k,
                                                 .lda = transpose_a ? m : k,
                                                 .ldb = transpose_b ? k : n,
                                                 .ldc = n,
                                                 .transpose_a = transpose_a,
                                                 .transpose_b = transpose_b,
                                                 .accumulate = accumulate},
                     {.added_to = {accumulate ? "c" : ""}}),
        queue);
  });
}

template <typename T>
void CheckExperts(int64_t num_tokens, int64_t num_experts, int64_t d,
                  int64_t f) {
  const RandomRouting routing(num_tokens, num_experts, num_experts - 1,
                              /*num_idle=*/1);
  CheckOnQueue("experts", [&](DeviceRun& run, Queue& queue) {
    const auto forward = run.Complete(
        ExpertForwardArgsOf<T>{.plan = routing.Plan(),
                               .d_model = d,
                               .d_ffn = f,
                               .host_offsets = routing.expert_offsets.data()},
        {.added_to = {"out"}, .scratch = {"row_output", "activation"}});
    isa_shim::ExpertForward(forward, queue);
    const auto backward = run.Complete(
        ExpertBackwardArgsOf<T>{.plan = forward.plan,
                                .d_model = d,
                                .d_ffn = f,
                                .hidden = forward.hidden,
                                .gate_up_weight = forward.gate_up_weight,
                                .down_weight = forward.down_weight,
                                .gate_up = forward.gate_up,
                                .d_row_hidden = forward.row_output,
                                .activation = forward.activation,
                                .host_offsets = forward.host_offsets},
        {.scratch = {"d_gate_up"}});
    isa_shim::ExpertBackward(backward, queue);
  });
}

template <typename T>
void CheckAttention(int64_t num_sequences, int64_t length, int64_t heads,
                    int64_t dim, int64_t query_block) {
  CheckOnQueue("attention", [&](DeviceRun& run, Queue& queue) {
    const auto forward =
        run.Complete(AttentionForwardArgsOf<T>{.num_sequences = num_sequences,
                                               .sequence_length = length,
                                               .num_heads = heads,
                                               .head_dim = dim,
                                               .query_block = query_block});
    isa_shim::AttentionForward(forward, queue);
    const auto backward = run.Complete(
        AttentionBackwardArgsOf<T>{.num_sequences = num_sequences,
                                   .sequence_length = length,
                                   .num_heads = heads,
                                   .head_dim = dim,
                                   .qkv = forward.qkv,
                                   .out = forward.out,
                                   .log_sum_exp = forward.log_sum_exp,
                                   .query_block = query_block,
                                   .scratch = forward.scratch});
    isa_shim::AttentionBackward(backward, queue);
  });
}

template <typename T>
void CheckHead(int64_t num_tokens, int64_t vocab_size, int64_t chunk,
               bool gradients) {
  const auto targets = RandomIndices(num_tokens, vocab_size, 3);
  CheckOnQueue("head", [&](DeviceRun& run, Queue& queue) {
    const HeadCrossEntropyArgsOf<T> given = {.num_tokens = num_tokens,
                                             .d_model = 9,
                                             .vocab_size = vocab_size,
                                             .targets = targets.data(),
                                             .grad_scale = 0.25f,
                                             .chunk_tokens = chunk};
    const Names scratch = {"logits", "d_logits"};
    const Names not_wanted = {"d_hidden", "d_head_weight"};
    isa_shim::HeadCrossEntropy(
        run.Complete(given, {.scratch = scratch,
                             .absent = gradients ? Names() : not_wanted}),
        queue);
  });
}

void CheckGemms() {
  const auto check = [](int64_t m, int64_t n, int64_t k, bool transpose_a,
                        bool transpose_b, bool accumulate) {
    CheckGemm<float, float>(m, n, k, transpose_a, transpose_b, accumulate);
    CheckGemm<Bf16, float>(m, n, k, transpose_a, transpose_b, accumulate);
    CheckGemm<Bf16, Bf16>(m, n, k, transpose_a, transpose_b, accumulate);
  };
  for (const bool accumulate : {false, true}) {
    check(7, 5, 9, false, false, accumulate);
    check(7, 5, 9, true, false, accumulate);
    check(16, 1, 33, false, true, accumulate);
    check(3, 4, 0, true, true, accumulate);
    check(0, 4, 3, false, false, accumulate);
    check(3, 0, 4, false, false, accumulate);
  }
}

template <typename T>
void CheckOperations() {
  CheckExperts<T>(0, 2, 3, 4);
  CheckExperts<T>(1, 2, 3, 4);
  CheckExperts<T>(9, 6, 8, 5);
  CheckAttention<T>(0, 4, 1, 4, 4);
  CheckAttention<T>(2, 1, 1, 4, 8);
  CheckAttention<T>(3, 11, 2, 8, 4);
  CheckAttention<T>(1, 12, 1, 4, 12);
  for (const bool gradients : {false, true}) {
    CheckHead<T>(0, 17, 4, gradients);
    CheckHead<T>(4, 17, 4, gradients);
    CheckHead<T>(9, 40, 4, gradients);
  }
}

// Rows that vary ask for an algorithm once for each bucket of their numbers,
// and once more for those that it refuses.
void CheckBuckets() {
  constexpr const char* kHeuristic = "cublasLtMatmulAlgoGetHeuristic";
  for (const bool transpose_a : {false, true}) {
    constexpr const char* kProduct = "cublasLtMatmul";
    int64_t asked = 0, refused = 0;
    CheckSchedules("rows that vary", [&](DeviceRun& run) {
      const auto queue = isa_shim::MakeQueue(run.stream(), 1 << 16);
      const int64_t before = simt::CallsOf(kHeuristic);
      const int64_t products_before = simt::CallsOf(kProduct);
      for (const int64_t rows : {33, 37, 34, 36, 35}) {
        ProductArgs products =
            ProductOf(run.Complete(GemmArgs{.m = transpose_a ? 3 : rows,
                                            .n = 5,
                                            .k = transpose_a ? rows : 3,
                                            .lda = 3,
                                            .ldb = 5,
                                            .ldc = 5,
                                            .transpose_a = transpose_a}));
        products.rows_vary = true;
        queue->Multiply(products);
      }
      asked = simt::CallsOf(kHeuristic) - before;
      refused = simt::CallsOf(kProduct) - products_before - 5;
    });
    if (asked != 2 + refused || refused > 3) {  // 2: for 36 and for 40
      Fail("5 numbers of rows in 2 buckets ask for %ld algorithms, %ld refused",
           static_cast<long>(asked), static_cast<long>(refused));
    }
  }
}

// Empty sums are zeros, in each of several results and nowhere beside them.
void CheckEmptySums() {
  constexpr int64_t kRows = 3, kColumns = 4, kRow = 6, kCount = 3, kStride = 20;
  CheckSchedules("empty sums", [&](DeviceRun& run) {
    const auto queue = isa_shim::MakeQueue(run.stream(), 1 << 16);
    const std::vector<float> before(kCount * kStride, 7.0f);
    float* const c = run.InOut(before);
    ProductArgs products = ProductOf(GemmArgs{.a = nullptr,
                                              .b = nullptr,
                                              .c = c,
                                              .m = kRows,
                                              .n = kColumns,
                                              .ldb = kColumns,
                                              .ldc = kRow});
    products.count = kCount;
    products.stride_c = kStride;
    queue->Multiply(products);
    products.product.k = 1;
    products.count = 0;
    queue->Multiply(products);  // nothing
    Check(cudaStreamSynchronize(run.stream()));
    const std::vector<float> after = run.Read(c, kCount * kStride);
    for (int64_t i = 0; i < kCount * kStride; ++i) {
      const int64_t row = i % kStride / kRow, column = i % kStride % kRow;
      const bool in_result = row < kRows && column < kColumns;
      if (after[i] != (in_result ? 0.0f : 7.0f)) {
        Fail("element %ld of the results is %g", static_cast<long>(i),
             static_cast<double>(after[i]));
      }
    }
  });
}

// More problems than a queue keeps algorithms for, and the first of them again.
void CheckManyProblems() {
  constexpr int64_t kProblems = 4100;
  CheckSchedules("many problems", [&](DeviceRun& run) {
    const auto queue = isa_shim::MakeQueue(run.stream(), 1 << 16);
    const float* const a = run.In(std::vector<float>(kProblems, 2.0f));
    const float* const b = run.In(std::vector<float>{3.0f});
    float* const c = run.InOut(std::vector<float>(kProblems, 0.0f));
    for (int64_t problem = 0; problem <= kProblems; ++problem) {
      queue->Multiply(ProductOf(GemmArgs{.a = a,
                                         .b = b,
                                         .c = c,
                                         .m = 1 + problem % kProblems,
                                         .n = 1,
                                         .k = 1,
                                         .lda = 1,
                                         .ldb = 1,
                                         .ldc = 1,
                                         .accumulate = true}));
    }
    Check(cudaStreamSynchronize(run.stream()));
    const std::vector<float> sums = run.Read(c, kProblems);
    // Element i is in all problems of more rows, the first also once more.
    for (int64_t i = 0; i < kProblems; ++i) {
      const auto products = static_cast<float>(kProblems - i + (i == 0));
      if (sums[i] != 6 * products) {
        Fail("element %ld is %g", static_cast<long>(i),
             static_cast<double>(sums[i]));
      }
    }
  });
}

// Blocks of queries and of keys, tiles, and rows beyond the end in each.
void CheckFlashAttention() {
  const auto check = [](int64_t num_sequences, int64_t length, int64_t heads,
                        int64_t dim) {
    CheckAttention<Bf16>(num_sequences, length, heads, dim, /*query_block=*/0);
  };
  check(0, 4, 1, 64);
  check(2, 1, 1, 64);
  check(1, 128, 1, 64);
  check(1, 150, 2, 64);
  check(1, 70, 2, 128);
}

// Each queue gave back the streams beside its own, and all events.
void CheckNothingIsLeft() {
  using simt::CallsOf;
  if (CallsOf("cudaStreamCreateWithFlags") != CallsOf("cudaStreamDestroy") ||
      CallsOf("cudaEventCreateWithFlags") != CallsOf("cudaEventDestroy")) {
    Fail("streams or events are left");
  }
}

}  // namespace
}  // namespace softmoe::kernels

int main() {
  softmoe::kernels::CheckGemms();
  softmoe::kernels::CheckBuckets();
  softmoe::kernels::CheckEmptySums();
  softmoe::kernels::CheckManyProblems();
  softmoe::kernels::CheckOperations<float>();
  softmoe::kernels::CheckOperations<softmoe::kernels::Bf16>();
  softmoe::kernels::CheckFlashAttention();
  softmoe::kernels::CheckNothingIsLeft();
  return softmoe::kernels::Summary();
}

// SPDX-License-Identifier: Apache-2.0
//
// Block of queries after block, head after head, the sequences in one batch of
// products; the weights of such a block are in scratch. Products know no mask:
// of the last query_block keys' work half is thrown away.
#include "kernels/attention_rows_body.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// Queries [begin, end) of one head, in all sequences, and the keys that one of
// them sees: [0, end). Rows of scratch are one query's.
struct QueryBlock {
  int64_t begin, end;
  int64_t num_sequences, length, num_heads, head_dim, head;

  __host__ __device__ int64_t queries() const { return end - begin; }
  __host__ __device__ int64_t keys() const { return end; }
  __host__ __device__ int64_t width() const { return num_heads * head_dim; }
  __host__ __device__ int64_t num_rows() const {
    return num_sequences * queries();
  }
  // Of a row, in [num_sequences * length, width] and [sequences, heads,
  // length].
  __device__ int64_t Token(int64_t row) const {
    return row / queries() * length + begin + row % queries();
  }
  __device__ int64_t LogSumExp(int64_t row) const {
    return (row / queries() * num_heads + head) * length + begin +
           row % queries();
  }
  // Of a row: the keys up to the query itself.
  __device__ int64_t Visible(int64_t row) const {
    return begin + row % queries() + 1;
  }
  __device__ float Scale() const {
    return 1.0f / sqrtf(static_cast<float>(head_dim));
  }
};

__global__ void __launch_bounds__(kThreads)
    CausalSoftmaxKernel(QueryBlock block, float* scores, float* log_sum_exp) {
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= block.num_rows()) return;  // a whole warp, here and below
  CausalSoftmaxRow(CudaWarp(), block.Visible(row), block.keys(), block.Scale(),
                   scores + row * block.keys(),
                   log_sum_exp + block.LogSumExp(row));
}

__global__ void __launch_bounds__(kThreads)
    CausalSoftmaxBackwardKernel(QueryBlock block, const float* log_sum_exp,
                                const float* out, const float* d_out,
                                float* scores, float* d_weights) {
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= block.num_rows()) return;
  const int64_t at =
      block.Token(row) * block.width() + block.head * block.head_dim;
  CausalSoftmaxBackwardRow(
      CudaWarp(), block.Visible(row), block.keys(), block.head_dim,
      block.Scale(), log_sum_exp[block.LogSumExp(row)], out + at, d_out + at,
      scores + row * block.keys(), d_weights + row * block.keys());
}

// A matrix with one row per token of a sequence, for one head: the queries',
// say, within qkv.
template <typename T>
struct HeadRows {
  T* data;         // of token 0 of sequence 0
  int64_t stride;  // from token to token
};

// Weights are [queries, keys] for each sequence, one after the other.
class BlockProducts {
 public:
  BlockProducts(const QueryBlock& block, Queue& queue)
      : block_(block), queue_(queue) {}

  // weights = queries keys^T
  void Compare(HeadRows<const float> queries, HeadRows<const float> keys,
               float* weights) {
    Multiply({.a = queries.data + block_.begin * queries.stride,
              .b = keys.data,
              .c = weights,
              .m = block_.queries(),
              .n = block_.keys(),
              .k = block_.head_dim,
              .lda = queries.stride,
              .ldb = keys.stride,
              .ldc = block_.keys(),
              .transpose_b = true},
             block_.length * queries.stride, block_.length * keys.stride,
             block_.queries() * block_.keys());
  }
  // out = weights values: rows of the queries
  void Mix(const float* weights, HeadRows<const float> values,
           HeadRows<float> out) {
    Multiply({.a = weights,
              .b = values.data,
              .c = out.data + block_.begin * out.stride,
              .m = block_.queries(),
              .n = block_.head_dim,
              .k = block_.keys(),
              .lda = block_.keys(),
              .ldb = values.stride,
              .ldc = out.stride},
             block_.queries() * block_.keys(), block_.length * values.stride,
             block_.length * out.stride);
  }
  // out (+)= weights^T rows: rows of the keys
  void MixBack(const float* weights, HeadRows<const float> rows,
               bool accumulate, HeadRows<float> out) {
    Multiply({.a = weights,
              .b = rows.data + block_.begin * rows.stride,
              .c = out.data,
              .m = block_.keys(),
              .n = block_.head_dim,
              .k = block_.queries(),
              .lda = block_.keys(),
              .ldb = rows.stride,
              .ldc = out.stride,
              .transpose_a = true,
              .accumulate = accumulate},
             block_.queries() * block_.keys(), block_.length * rows.stride,
             block_.length * out.stride);
  }

 private:
  void Multiply(const GemmArgs& product, int64_t stride_a, int64_t stride_b,
                int64_t stride_c) {
    queue_.Multiply({.product = product,
                     .count = block_.num_sequences,
                     .stride_a = stride_a,
                     .stride_b = stride_b,
                     .stride_c = stride_c});
  }

  const QueryBlock& block_;
  Queue& queue_;
};

// Calls body(block) for each block of queries of each head; the last queries
// first, whose keys are all.
template <typename Args, typename Body>
void ForEachBlock(const Args& args, const Body& body) {
  if (args.query_block <= 0) throw InternalError("weights of no query");
  if (args.num_sequences == 0) return;
  for (int64_t head = 0; head < args.num_heads; ++head) {
    for (int64_t end = args.sequence_length; end > 0;) {
      const int64_t begin = (end - 1) / args.query_block * args.query_block;
      body(QueryBlock{begin, end, args.num_sequences, args.sequence_length,
                      args.num_heads, args.head_dim, head});
      end = begin;
    }
  }
}

}  // namespace

void AttentionForward(const AttentionForwardArgs& args, Queue& queue) {
  ForEachBlock(args, [&](const QueryBlock& block) {
    const int64_t width = block.width(), column = block.head * block.head_dim;
    const float* q = args.qkv + column;
    BlockProducts products(block, queue);
    products.Compare({q, 3 * width}, {q + width, 3 * width}, args.scratch);
    Launch("AttentionForward", CausalSoftmaxKernel,
           Blocks(block.num_rows(), kWarps), kThreads, 0, queue.stream(), block,
           args.scratch, args.log_sum_exp);
    products.Mix(args.scratch, {q + 2 * width, 3 * width},
                 {args.out + column, width});
  });
}

void AttentionBackward(const AttentionBackwardArgs& args, Queue& queue) {
  ForEachBlock(args, [&](const QueryBlock& block) {
    const int64_t width = block.width(), column = block.head * block.head_dim;
    const float* q = args.qkv + column;
    const HeadRows<const float> d_out{args.d_out + column, width};
    float* d_q = args.d_qkv + column;
    float* weights = args.scratch;
    float* d_scores = weights + block.num_rows() * block.keys();
    // Later blocks have begun the sums over the queries that see a key.
    const bool begun = block.end < args.sequence_length;
    BlockProducts products(block, queue);
    products.Compare({q, 3 * width}, {q + width, 3 * width}, weights);
    products.Compare(d_out, {q + 2 * width, 3 * width}, d_scores);
    Launch("AttentionBackward", CausalSoftmaxBackwardKernel,
           Blocks(block.num_rows(), kWarps), kThreads, 0, queue.stream(), block,
           args.log_sum_exp, args.out, args.d_out, weights, d_scores);
    products.Mix(d_scores, {q + width, 3 * width}, {d_q, 3 * width});
    products.MixBack(d_scores, {q, 3 * width}, begun, {d_q + width, 3 * width});
    products.MixBack(weights, d_out, begun, {d_q + 2 * width, 3 * width});
  });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

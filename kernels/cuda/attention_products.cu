// SPDX-License-Identifier: Apache-2.0
//
// Goes through the heads and, in each, through blocks of queries, with all
// sequences in one batch of products; a block's weights are in scratch.
// Products know no mask: half the work on the last query_block keys is lost.
//
// With activations of bf16, scores are fp32, and products take the weights
// beside them, rounded once. d_k and d_v are added up over the blocks of
// queries in fp32, and stored when a head is done. (Where flash_attention.h has
// the head_dim, it is called instead.)
#include <type_traits>

#include "kernels/attention_rows_body.h"
#include "kernels/cuda/flash_attention.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/products.h"
#include "kernels/cuda/row_width.h"
#include "kernels/permute_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// Queries [begin, end) of one head, in all sequences, and the keys that one of
// them sees: [0, end). A row of scratch belongs to one query.
struct QueryBlock {
  int64_t begin, end;
  int64_t num_sequences, length, num_heads, head_dim, head;

  __host__ __device__ int64_t queries() const { return end - begin; }
  __host__ __device__ int64_t keys() const { return end; }
  __host__ __device__ int64_t width() const { return num_heads * head_dim; }
  __host__ __device__ int64_t num_rows() const {
    return num_sequences * queries();
  }
  // The index of a row's query: in tokens, and in log_sum_exp [sequences,
  // heads, length].
  __device__ int64_t Token(int64_t row) const {
    return row / queries() * length + begin + row % queries();
  }
  __device__ int64_t LogSumExp(int64_t row) const {
    return (row / queries() * num_heads + head) * length + begin +
           row % queries();
  }
  // The keys that a row sees, up to the query itself.
  __device__ int64_t Visible(int64_t row) const {
    return begin + row % queries() + 1;
  }
  __device__ float Scale() const {
    return 1.0f / sqrtf(static_cast<float>(head_dim));
  }
};

// A block's arrays in scratch: row i of scores and d_weights begins at
// i * block.keys(), that of weights and d_scores at i * stride. With
// activations of fp32 they share memory.
template <typename Activation>
struct BlockScratch {
  float *scores, *d_weights;
  Activation *weights, *d_scores;
  int64_t stride;
  float* sums;  // bf16: [num_sequences * length, 2 * head_dim]  d_k, d_v
};

template <typename Activation>
BlockScratch<Activation> Divide(const QueryBlock& block, int64_t query_block,
                                float* scratch) {
  if constexpr (std::is_same_v<Activation, float>) {
    float* const second = scratch + block.num_rows() * block.keys();
    return {scratch, second, scratch, second, block.keys(), nullptr};
  } else {
    // Laid out as AttentionScratchForBf16 counts; bf16 rows begin on 16 bytes.
    const auto whole = [](int64_t keys) { return (keys + 7) / 8 * 8; };
    const int64_t rows = block.num_sequences * query_block;
    Bf16* const weights = reinterpret_cast<Bf16*>(scratch);
    Bf16* const d_scores = weights + rows * whole(block.length);
    float* const scores =
        reinterpret_cast<float*>(d_scores + rows * whole(block.length));
    float* const d_weights = scores + rows * block.length;
    return {scores,   d_weights,           weights,
            d_scores, whole(block.keys()), d_weights + rows * block.length};
  }
}

template <typename Activation>
__global__ void __launch_bounds__(kThreads)
    CausalSoftmaxKernel(QueryBlock block, BlockScratch<Activation> scratch,
                        float* log_sum_exp) {
  const int64_t row = WarpRow<kThreads>();
  if (row >= block.num_rows()) return;  // whole warps leave, here and below
  CausalSoftmaxRow(CudaWarp(), block.Visible(row), block.keys(), block.Scale(),
                   scratch.scores + row * block.keys(),
                   scratch.weights + row * scratch.stride,
                   log_sum_exp + block.LogSumExp(row));
}

template <typename Activation>
__global__ void __launch_bounds__(kThreads)
    CausalSoftmaxBackwardKernel(QueryBlock block, const float* log_sum_exp,
                                const Activation* out, const Activation* d_out,
                                BlockScratch<Activation> scratch) {
  const int64_t row = WarpRow<kThreads>();
  if (row >= block.num_rows()) return;
  const int64_t at =
      block.Token(row) * block.width() + block.head * block.head_dim;
  CausalSoftmaxBackwardRow(CudaWarp(), block.Visible(row), block.keys(),
                           block.head_dim, block.Scale(),
                           log_sum_exp[block.LogSumExp(row)], out + at,
                           d_out + at, scratch.scores + row * block.keys(),
                           scratch.d_weights + row * block.keys(),
                           scratch.weights + row * scratch.stride,
                           scratch.d_scores + row * scratch.stride);
}

// Stores d_k and d_v of a head from their sums.
__global__ void __launch_bounds__(kThreads)
    StoreSumsKernel(QueryBlock block, const float* sums, Bf16* d_qkv) {
  const int64_t token = WarpRow<kThreads>();
  if (token >= block.num_sequences * block.length) return;
  const float* from = sums + token * 2 * block.head_dim;
  Bf16* d_q = d_qkv + token * 3 * block.width() + block.head * block.head_dim;
  CopyRow(CudaWarp(), block.head_dim, from, d_q + block.width());
  CopyRow(CudaWarp(), block.head_dim, from + block.head_dim,
          d_q + 2 * block.width());
}

// A matrix of one head with one row per token of a sequence, such as its
// queries within qkv.
template <typename T>
struct HeadRows {
  T* data;         // at token 0 of sequence 0
  int64_t stride;  // from token to token
};

template <typename Activation>
class BlockProducts {
 public:
  // Weights are [queries, keys] for each sequence, one after the other, with
  // this stride from row to row.
  BlockProducts(const QueryBlock& block, int64_t stride, Queue& queue)
      : block_(block), stride_(stride), queue_(queue) {}

  // scores = queries keys^T
  void Compare(HeadRows<const Activation> queries,
               HeadRows<const Activation> keys, float* scores) {
    Multiply(GemmArgsOf<Activation, float>{.a = queries.data +
                                                block_.begin * queries.stride,
                                           .b = keys.data,
                                           .c = scores,
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
  void Mix(const Activation* weights, HeadRows<const Activation> values,
           HeadRows<Activation> out) {
    Multiply(GemmArgsOf<Activation, Activation>{.a = weights,
                                                .b = values.data,
                                                .c = out.data +
                                                     block_.begin * out.stride,
                                                .m = block_.queries(),
                                                .n = block_.head_dim,
                                                .k = block_.keys(),
                                                .lda = stride_,
                                                .ldb = values.stride,
                                                .ldc = out.stride},
             block_.queries() * stride_, block_.length * values.stride,
             block_.length * out.stride);
  }
  // out (+)= weights^T rows: rows of the keys
  void MixBack(const Activation* weights, HeadRows<const Activation> rows,
               bool accumulate, HeadRows<float> out) {
    Multiply(GemmArgsOf<Activation, float>{.a = weights,
                                           .b = rows.data +
                                                block_.begin * rows.stride,
                                           .c = out.data,
                                           .m = block_.keys(),
                                           .n = block_.head_dim,
                                           .k = block_.queries(),
                                           .lda = stride_,
                                           .ldb = rows.stride,
                                           .ldc = out.stride,
                                           .transpose_a = true,
                                           .accumulate = accumulate},
             block_.queries() * stride_, block_.length * rows.stride,
             block_.length * out.stride);
  }

 private:
  template <typename Result>
  void Multiply(const GemmArgsOf<Activation, Result>& product, int64_t stride_a,
                int64_t stride_b, int64_t stride_c) {
    ProductArgs products = ProductOf(product);
    products.count = block_.num_sequences;
    products.stride_a = stride_a;
    products.stride_b = stride_b;
    products.stride_c = stride_c;
    queue_.Multiply(products);
  }

  const QueryBlock& block_;
  const int64_t stride_;
  Queue& queue_;
};

// Calls body(block) for each block of queries of each head; the last queries
// come first, since they see all keys.
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

template <typename Activation>
void Enqueue(const AttentionForwardArgsOf<Activation>& args, Queue& queue) {
  if constexpr (std::is_same_v<Activation, Bf16>) {
    if (HasFlashAttention(args.head_dim)) {
      return FlashAttentionForward(args, queue);
    }
  }
  ForEachBlock(args, [&](const QueryBlock& block) {
    const int64_t width = block.width(), column = block.head * block.head_dim;
    const Activation* q = args.qkv + column;
    const BlockScratch<Activation> scratch =
        Divide<Activation>(block, args.query_block, args.scratch);
    BlockProducts<Activation> products(block, scratch.stride, queue);
    products.Compare({q, 3 * width}, {q + width, 3 * width}, scratch.scores);
    Launch("AttentionForward", CausalSoftmaxKernel<Activation>,
           Blocks(block.num_rows(), kWarps), kThreads, 0, queue.stream(), block,
           scratch, args.log_sum_exp);
    products.Mix(scratch.weights, {q + 2 * width, 3 * width},
                 {args.out + column, width});
  });
}

template <typename Activation>
void Enqueue(const AttentionBackwardArgsOf<Activation>& args, Queue& queue) {
  if constexpr (std::is_same_v<Activation, Bf16>) {
    if (HasFlashAttention(args.head_dim)) {
      return FlashAttentionBackward(args, queue);
    }
  }
  ForEachBlock(args, [&](const QueryBlock& block) {
    const int64_t width = block.width(), column = block.head * block.head_dim;
    const Activation* q = args.qkv + column;
    const HeadRows<const Activation> d_out{args.d_out + column, width};
    Activation* d_q = args.d_qkv + column;
    const BlockScratch<Activation> scratch =
        Divide<Activation>(block, args.query_block, args.scratch);
    // Blocks of later queries have begun these sums.
    const bool begun = block.end < args.sequence_length;
    HeadRows<float> d_k, d_v;
    if constexpr (std::is_same_v<Activation, float>) {
      d_k = {d_q + width, 3 * width};
      d_v = {d_q + 2 * width, 3 * width};
    } else {
      d_k = {scratch.sums, 2 * block.head_dim};
      d_v = {scratch.sums + block.head_dim, 2 * block.head_dim};
    }
    BlockProducts<Activation> products(block, scratch.stride, queue);
    products.Compare({q, 3 * width}, {q + width, 3 * width}, scratch.scores);
    products.Compare(d_out, {q + 2 * width, 3 * width}, scratch.d_weights);
    Launch("AttentionBackward", CausalSoftmaxBackwardKernel<Activation>,
           Blocks(block.num_rows(), kWarps), kThreads, 0, queue.stream(), block,
           args.log_sum_exp, args.out, args.d_out, scratch);
    products.Mix(scratch.d_scores, {q + width, 3 * width}, {d_q, 3 * width});
    products.MixBack(scratch.d_scores, {q, 3 * width}, begun, d_k);
    products.MixBack(scratch.weights, d_out, begun, d_v);
    if constexpr (!std::is_same_v<Activation, float>) {
      if (block.begin > 0) return;
      Launch("AttentionBackward", StoreSumsKernel,
             Blocks(block.num_sequences * block.length, kWarps), kThreads, 0,
             queue.stream(), block, scratch.sums, args.d_qkv);
    }
  });
}

}  // namespace

SOFTMOE_DEFINE_CUDA_OPERATION_OF(AttentionForward);
SOFTMOE_DEFINE_CUDA_OPERATION_OF(AttentionBackward);

}  // namespace softmoe::kernels::SOFTMOE_ISA

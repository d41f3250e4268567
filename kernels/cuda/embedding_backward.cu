// SPDX-License-Identifier: Apache-2.0
//
// Sorts the tokens by id, eight bits of it at a time, the lowest first
// (counting_sort.h: tokens are items, values of the eight bits are bins); then
// a block per id that occurs adds its tokens in their order: the bits of the
// CPU. The sort moves about 30 bytes a token and pass, the sum 4 d_model for
// each token and row of the table.
#include "kernels/cuda/counting_sort.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/layer_kernels.h"
#include "kernels/cuda/row_width.h"
#include "kernels/permute_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int kThreads = kSortThreads;
constexpr int kBits = 8;
constexpr int64_t kBins = 1 << kBits;
static_assert(kBins == kSortThreads, "a thread per bin");

// The arrays in EmbeddingBackwardArgs::scratch.
struct Scratch {
  int32_t* tokens[2];  // [num_tokens]  in order; of one pass and of the next
  int32_t* offsets;    // [kBins + 1]
  int32_t* counts;     // [blocks, kBins]

  template <typename Activation>
  explicit Scratch(const EmbeddingBackwardArgsOf<Activation>& a)
      : tokens{a.scratch, a.scratch + a.num_tokens},
        offsets(tokens[1] + a.num_tokens),
        counts(offsets + kBins + 1) {}
};

// One pass of the sort.
struct SortPass {
  int64_t num_tokens;
  int shift;  // bits to shift an id right by
  const int32_t* ids;
  const int32_t* from;  // [num_tokens] tokens in order; null: ascending
  int32_t* to;          // [num_tokens]
  int32_t* counts;
  const int32_t* offsets;
};

__device__ int32_t TokenAt(const SortPass& pass, int64_t place) {
  return pass.from == nullptr ? static_cast<int32_t>(place) : pass.from[place];
}

// Calls body(token) for the tokens of this block whose bin is this thread's.
template <typename Body>
__device__ void ForEachTokenOfBin(const SortPass& pass, const Body& body) {
  const int64_t begin = int64_t{blockIdx.x} * kEmbeddingTokenBlock;
  const int64_t end = begin + kEmbeddingTokenBlock;
  ForEachItemOfBin(
      begin, end < pass.num_tokens ? end : pass.num_tokens, kBins,
      [&](int64_t place) {
        return pass.ids[TokenAt(pass, place)] >> pass.shift &
               static_cast<int32_t>(kBins - 1);
      },
      [&](int64_t place) { body(TokenAt(pass, place)); });
}

__global__ void __launch_bounds__(kThreads) CountTokensKernel(SortPass pass) {
  int32_t count = 0;
  ForEachTokenOfBin(pass, [&](int32_t) { ++count; });
  pass.counts[blockIdx.x * kBins + threadIdx.x] = count;
}

__global__ void __launch_bounds__(kThreads) PlaceTokensKernel(SortPass pass) {
  int32_t place =
      pass.offsets[threadIdx.x] + pass.counts[blockIdx.x * kBins + threadIdx.x];
  ForEachTokenOfBin(pass, [&](int32_t token) { pass.to[place++] = token; });
}

// One block per place in the order; the first place of an id sums its tokens.
template <typename Activation, int kWidth>
__global__ void __launch_bounds__(kThreads)
    SumTokensKernel(EmbeddingBackwardArgsOf<Activation> a,
                    const int32_t* tokens) {
  const int64_t first = blockIdx.x;
  const int64_t id = a.ids[tokens[first]];
  if (first > 0 && a.ids[tokens[first - 1]] == id) return;
  int64_t end = first + 1, beyond = a.num_tokens;  // bisected
  while (end < beyond) {
    const int64_t middle = (end + beyond) / 2;
    if (a.ids[tokens[middle]] == id) {
      end = middle + 1;
    } else {
      beyond = middle;
    }
  }
  UnpermuteToken(CudaBlock<kThreads, kWidth>(), a.d_model, end - first, a.d_out,
                 tokens + first, /*accumulate=*/false,
                 a.d_table + id * a.d_model);
}

template <typename Activation>
void Enqueue(const EmbeddingBackwardArgsOf<Activation>& args,
             cudaStream_t stream) {
  constexpr const char* kWhat = "EmbeddingBackward";
  const Scratch scratch(args);
  const int64_t blocks = Blocks(args.num_tokens, kEmbeddingTokenBlock);
  const int64_t largest_id = args.vocab_size - 1;
  const int32_t* order = nullptr;
  for (int number = 0; number == 0 || largest_id >> (number * kBits) > 0;
       ++number) {
    const SortPass pass = {.num_tokens = args.num_tokens,
                           .shift = number * kBits,
                           .ids = args.ids,
                           .from = order,
                           .to = scratch.tokens[number % 2],
                           .counts = scratch.counts,
                           .offsets = scratch.offsets};
    Launch(kWhat, CountTokensKernel, blocks, kThreads, 0, stream, pass);
    ScanCounts(kWhat, {blocks, kBins, scratch.counts, scratch.offsets}, stream);
    Launch(kWhat, PlaceTokensKernel, blocks, kThreads, 0, stream, pass);
    order = pass.to;
  }
  CheckCuda(
      cudaMemsetAsync(args.d_table, 0,
                      args.vocab_size * args.d_model * sizeof(float), stream),
      kWhat);
  AtWidth(TakesWide({args.d_model}, {args.d_out, args.d_table}),
          [&](auto width) {
            Launch(kWhat, SumTokensKernel<Activation, decltype(width)::value>,
                   args.num_tokens, kThreads, 0, stream, args, order);
          });
}

}  // namespace

SOFTMOE_DEFINE_CUDA_KERNEL_OF(EmbeddingBackward);

}  // namespace softmoe::kernels::SOFTMOE_ISA

// SPDX-License-Identifier: Apache-2.0
//
// Sorts the tokens by id, eight bits of it at a time, the lowest first
// (counting_sort.h: tokens are items, values of the eight bits are bins); then
// a block per id that occurs adds its tokens in their order: the bits of the
// CPU. Of an id with more than kEmbeddingPiece tokens, a block adds a piece of
// them, and another the pieces, in their order: no sum waits for more than a
// few hundred additions. The sort moves about 30 bytes a token and pass, the
// sum 4 d_model for each token and row of the table.
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
static_assert(kEmbeddingPiece <= kThreads);

// Threads of a block that sums a piece. Most blocks only find that no piece
// begins at their place, and a multiprocessor holds more of smaller ones; no
// thread's columns depend on another's.
constexpr int kSumThreads = 128;

// The arrays in EmbeddingBackwardArgs::scratch.
struct Scratch {
  float* pieces;       // [EmbeddingPieces, d_model]
  int32_t* tokens[2];  // [num_tokens]  in order; of one pass and of the next
  int32_t* offsets;    // [kBins + 1]
  int32_t* counts;     // [blocks, kBins]

  template <typename Activation>
  explicit Scratch(const EmbeddingBackwardArgsOf<Activation>& a)
      : pieces(reinterpret_cast<float*>(a.scratch)),
        tokens{a.scratch + EmbeddingPieces(a.num_tokens) * a.d_model,
               a.scratch + EmbeddingPieces(a.num_tokens) * a.d_model +
                   a.num_tokens},
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

// Where the sum of a piece goes that begins at a place and is not its id's only
// one. In kEmbeddingPiece places, one first piece and one other begin at most.
__device__ __forceinline__ int64_t PieceRow(int64_t place, bool first) {
  return 2 * (place / kEmbeddingPiece) + (first ? 0 : 1);
}

// The first of the places [begin, end) at which holds(place), which then holds
// up to the end; end if there is none.
template <typename Holds>
__device__ __forceinline__ int64_t FirstPlace(int64_t begin, int64_t end,
                                              const Holds& holds) {
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (holds(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

// One block per place in the order; those at which a piece begins sum it.
template <typename Activation, int kWidth>
__global__ void __launch_bounds__(kSumThreads)
    SumTokensKernel(EmbeddingBackwardArgsOf<Activation> a,
                    const int32_t* tokens, float* pieces) {
  const auto id_at = [&](int64_t place) { return a.ids[tokens[place]]; };
  const int64_t place = blockIdx.x;
  const int32_t id = id_at(place);
  // Where the id's tokens begin: here, unless the token before is one of them.
  // Then only a later piece can begin here, with a whole piece before it: few
  // blocks search for the beginning.
  int64_t first = place;
  if (place > 0 && id_at(place - 1) == id) {
    const int64_t before = place - kEmbeddingPiece;
    if (before < 0 || id_at(before) != id) return;
    first = FirstPlace(0, before, [&](int64_t at) { return id_at(at) >= id; });
    if ((place - first) % kEmbeddingPiece != 0) return;
  }
  const int64_t beyond = place + kEmbeddingPiece;
  const int64_t end =
      FirstPlace(place + 1, beyond < a.num_tokens ? beyond : a.num_tokens,
                 [&](int64_t at) { return id_at(at) != id; });
  const bool is_only =
      place == first &&
      !(end == beyond && end < a.num_tokens && id_at(end) == id);
  UnpermuteToken(CudaBlock<kSumThreads, kWidth>(), a.d_model, end - place,
                 a.d_out, tokens + place, /*accumulate=*/false,
                 is_only
                     ? a.d_table + id * a.d_model
                     : pieces + PieceRow(place, place == first) * a.d_model);
}

// One block per kEmbeddingPiece places, for the id with several pieces that
// begins there, if one does.
template <int kWidth>
__global__ void __launch_bounds__(kThreads, kMinBlocks)
    SumPiecesKernel(int64_t num_tokens, int64_t d_model, const int32_t* ids,
                    const int32_t* tokens, const float* pieces,
                    float* d_table) {
  SOFTMOE_SHARED(int64_t, found, [1]);
  const auto id_at = [&](int64_t place) { return ids[tokens[place]]; };
  if (threadIdx.x == 0) found[0] = -1;
  __syncthreads();
  const int64_t place = int64_t{blockIdx.x} * kEmbeddingPiece + threadIdx.x;
  if (threadIdx.x < kEmbeddingPiece && place + kEmbeddingPiece < num_tokens &&
      id_at(place + kEmbeddingPiece) == id_at(place) &&
      (place == 0 || id_at(place - 1) != id_at(place))) {
    found[0] = place;
  }
  __syncthreads();
  const int64_t first = found[0];
  if (first < 0) return;
  const int32_t id = id_at(first);
  const CudaBlock<kThreads, kWidth> group;
  using Real = typename CudaBlock<kThreads, kWidth>::Real;
  group.ForEachColumn(d_model, [&](Columns at) {
    Real sum = group.Load(pieces + PieceRow(first, true) * d_model, at);
    for (int64_t i = first + kEmbeddingPiece; i < num_tokens && id_at(i) == id;
         i += kEmbeddingPiece) {
      sum = sum + group.Load(pieces + PieceRow(i, false) * d_model, at);
    }
    group.Store(d_table + id * d_model, at, sum);
  });
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
  const bool wide =
      TakesWide({args.d_model}, {args.d_out, args.d_table, scratch.pieces});
  AtWidth(wide, [&](auto width) {
    constexpr int kWidth = decltype(width)::value;
    Launch(kWhat, SumTokensKernel<Activation, kWidth>, args.num_tokens,
           kSumThreads, 0, stream, args, order, scratch.pieces);
    Launch(kWhat, SumPiecesKernel<kWidth>,
           Blocks(args.num_tokens, kEmbeddingPiece), kThreads, 0, stream,
           args.num_tokens, args.d_model, args.ids, order, scratch.pieces,
           args.d_table);
  });
}

}  // namespace

SOFTMOE_DEFINE_CUDA_KERNEL_OF(EmbeddingBackward);

}  // namespace softmoe::kernels::SOFTMOE_ISA

// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding.h"

#include "kernels/permute_body.h"

namespace softmoe::kernels::SOFTMOE_ISA {
namespace {

constexpr int64_t kTokenBlock = 64;

// Tasks of the backward pass. Task i takes the table rows i, i + kTasks, ...:
// a tokenizer numbers frequent tokens together, so runs of rows would not
// balance.
constexpr int64_t kTasks = 64;

}  // namespace

void EmbeddingForward(const EmbeddingForwardArgs& args, ThreadPool& pool) {
  pool.ParallelForBlocks(args.num_tokens, kTokenBlock,
                         [&](int64_t begin, int64_t end) {
                           for (int64_t token = begin; token < end; ++token) {
                             const int64_t at = args.ids[token] * args.d_model;
                             CopyRow(SimdLane(), args.d_model, args.table + at,
                                     args.out + token * args.d_model);
                           }
                         });
}

void EmbeddingBackward(const EmbeddingBackwardArgs& args, ThreadPool& pool) {
  // The tokens of each id, in ascending order: a counting sort.
  int32_t* offsets = args.scratch;                       // [vocab_size + 1]
  int32_t* tokens = args.scratch + args.vocab_size + 1;  // [num_tokens]
  for (int64_t id = 0; id <= args.vocab_size; ++id) offsets[id] = 0;
  for (int64_t t = 0; t < args.num_tokens; ++t) ++offsets[args.ids[t] + 1];
  for (int64_t id = 0; id < args.vocab_size; ++id) {
    offsets[id + 1] += offsets[id];
  }
  for (int64_t t = 0; t < args.num_tokens; ++t) {
    tokens[offsets[args.ids[t]]++] = static_cast<int32_t>(t);
  }
  // Now offsets[id] is the end of id, and the beginning of id + 1.
  pool.ParallelFor(kTasks, [&](int64_t task) {
    SimdLane group;
    for (int64_t id = task; id < args.vocab_size; id += kTasks) {
      const int64_t begin = id == 0 ? 0 : offsets[id - 1];
      const int64_t end = offsets[id];
      group.ForEachColumn(args.d_model, [&](Columns at) {
        Floats sum(0.0f);
        for (int64_t i = begin; i < end; ++i) {
          sum += group.Load(args.d_out + tokens[i] * args.d_model, at);
        }
        group.Store(args.d_table + id * args.d_model, at, sum);
      });
    }
  });
}

}  // namespace softmoe::kernels::SOFTMOE_ISA

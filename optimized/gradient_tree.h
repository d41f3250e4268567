// SPDX-License-Identifier: Apache-2.0
//
// gradient_tree.h - the sum of the gradients of a step's balance groups, in
// one fixed order (DESIGN.md, ruling 6).
//
// Floating-point addition is not associative, so the order is part of a
// result's definition:
//   sum[lo, hi) = leaf(lo)                            if hi - lo = 1
//               = sum[lo, mid) + sum[mid, hi)         mid = lo + (hi - lo) / 2
// If 2^j ranks hold equal, contiguous parts of the groups, each part is a
// subtree, and the tree over the ranks' sums is the top of the same tree: any
// 2^j ranks, and any size of micro-batch, give the same bits.
#ifndef SOFTMOE_OPTIMIZED_GRADIENT_TREE_H_
#define SOFTMOE_OPTIMIZED_GRADIENT_TREE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "optimized/backend.h"
#include "optimized/buffer.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

class GradientTree {
 public:
  // Keeps a reference to `queue`. Holds ceil(log2(max_groups)) buffers of
  // `max_size` floats: one group costs none.
  GradientTree(int64_t max_size, int64_t max_groups, Queue& queue);

  // Overwrites all of `gradient` with the gradient of one group.
  using Leaf = std::function<void(int64_t group, std::span<float> gradient)>;

  // Overwrites `sum`, at most `max_size`, with the sum over groups
  // [begin, end). Calls `leaf` once for each of them, in ascending order.
  void Sum(int64_t begin, int64_t end, const Leaf& leaf, std::span<float> sum);

 private:
  void SumInto(int64_t begin, int64_t end, size_t depth, const Leaf& leaf,
               std::span<float> sum);

  int64_t max_size_;
  Queue& queue_;
  std::vector<Buffer<float>> buffers_;  // one per depth, for the right halves
};

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_GRADIENT_TREE_H_

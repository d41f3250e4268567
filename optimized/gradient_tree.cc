// SPDX-License-Identifier: Apache-2.0
#include "optimized/gradient_tree.h"

#include "core/errors.h"
#include "core/profile.h"
#include "kernels/adamw.h"
#include "optimized/memory_plan.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

GradientTree::GradientTree(int64_t max_size, int64_t max_groups, Queue& queue)
    : max_size_(max_size), queue_(queue) {
  const int64_t count = TreeBuffers(max_groups);
  for (int64_t i = 0; i < count; ++i) buffers_.emplace_back(max_size);
}

void GradientTree::Sum(int64_t begin, int64_t end, const Leaf& leaf,
                       std::span<float> sum) {
  SOFTMOE_CHECK(static_cast<int64_t>(sum.size()) <= max_size_)
      << sum.size() << " of at most " << max_size_ << " gradients";
  SOFTMOE_CHECK(begin < end && end - begin <= int64_t{1} << buffers_.size())
      << "groups [" << begin << ", " << end << ") in a tree of depth "
      << buffers_.size();
  SumInto(begin, end, 0, leaf, sum);
}

void GradientTree::SumInto(int64_t begin, int64_t end, size_t depth,
                           const Leaf& leaf, std::span<float> sum) {
  if (end - begin == 1) {
    leaf(begin, sum);
    return;
  }
  const int64_t middle = begin + (end - begin) / 2;
  SumInto(begin, middle, depth + 1, leaf, sum);
  const std::span<float> right = buffers_[depth].span().first(sum.size());
  SumInto(middle, end, depth + 1, leaf, right);
  const auto size = static_cast<int64_t>(sum.size());
  BeginOperation("sum over groups",
                 {.bytes = 12.0 * static_cast<double>(size)});
  ops::Add(kernels::AddArgs{.size = size, .x = right.data(), .y = sum.data()},
           queue_);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

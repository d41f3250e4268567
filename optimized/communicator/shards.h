// SPDX-License-Identifier: Apache-2.0
//
// shards.h - how an array is shared out among ranks.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_SHARDS_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_SHARDS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace softmoe::optimized {

// Consecutive elements of an array.
struct Shard {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const Shard&, const Shard&) = default;
};

// One shard for each rank, in rank order.
using Shards = std::vector<Shard>;

// The elements that are in both; an empty shard if there are none.
Shard Overlap(const Shard& a, const Shard& b);

// Shares out `size` elements so that every shard begins at a multiple of
// `block` and the numbers of blocks differ by at most one. With fewer blocks
// than ranks, some shards are empty.
//
//   size, block, ranks  >= 0, >= 1, >= 1
Shards ShareOut(int64_t size, int64_t block, int ranks);

// `shards`, each moved `by` elements on.
Shards Shifted(Shards shards, int64_t by);

// Elements of the largest shard.
int64_t LargestShard(const Shards& shards);

// The elements of `data` that are in `part`.
template <typename T>
std::span<T> PartOf(std::span<T> data, const Shard& part) {
  return data.subspan(static_cast<size_t>(part.begin),
                      static_cast<size_t>(part.size()));
}

template <typename T>
std::vector<std::span<T>> PartsOf(std::span<T> data, const Shards& shards) {
  std::vector<std::span<T>> parts;
  for (const Shard& shard : shards) parts.push_back(PartOf(data, shard));
  return parts;
}

// `rows` shards of `size` elements each, one after the other.
Shards Rows(int64_t size, int rows);

// Converts shards of an array of T from elements to bytes.
template <typename T>
Shards InBytes(Shards shards) {
  for (Shard& shard : shards) {
    shard.begin *= static_cast<int64_t>(sizeof(T));
    shard.end *= static_cast<int64_t>(sizeof(T));
  }
  return shards;
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_SHARDS_H_

// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/shards.h"

#include <algorithm>

#include "core/errors.h"

namespace softmoe::optimized {

Shard Overlap(const Shard& a, const Shard& b) {
  const int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

Shards ShareOut(int64_t size, int64_t block, int ranks) {
  SOFTMOE_CHECK(size >= 0 && block > 0 && ranks > 0)
      << size << " elements in blocks of " << block << " for " << ranks
      << " ranks";
  const int64_t blocks = (size + block - 1) / block;
  // The last block may be shorter than the others.
  const auto begin = [&](int64_t rank) {
    return std::min(size, blocks * rank / ranks * block);
  };
  Shards shards;
  for (int rank = 0; rank < ranks; ++rank) {
    shards.push_back({begin(rank), begin(rank + 1)});
  }
  return shards;
}

Shards Rows(int64_t size, int rows) {
  Shards shards;
  for (int row = 0; row < rows; ++row) {
    shards.push_back({row * size, (row + 1) * size});
  }
  return shards;
}

Shards Shifted(Shards shards, int64_t by) {
  for (Shard& shard : shards) {
    shard.begin += by;
    shard.end += by;
  }
  return shards;
}

int64_t LargestShard(const Shards& shards) {
  int64_t largest = 0;
  for (const Shard& shard : shards) largest = std::max(largest, shard.size());
  return largest;
}

}  // namespace softmoe::optimized

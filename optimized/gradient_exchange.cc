// SPDX-License-Identifier: Apache-2.0
#include "optimized/gradient_exchange.h"

#include "kernels/adamw.h"

namespace softmoe::optimized {

GradientExchange::GradientExchange(int64_t size, Communicator& communicator,
                                   ThreadPool& pool)
    : communicator_(communicator),
      pool_(pool),
      shards_(ShareOut(size, kernels::kSumOfSquaresBlock, communicator.size())),
      received_(communicator.size() * own_shard().size()),
      tree_(own_shard().size(), communicator.size(), pool) {}

void GradientExchange::Sum(std::span<const float> partial,
                           std::span<float> sum) {
  communicator_.ExchangeShards<float>(shards_, partial, received_.span());
  const int64_t row = own_shard().size();
  const auto leaf = [&](int64_t rank, std::span<float> gradient) {
    CopyArray(pool_, row, received_.data() + rank * row, gradient.data());
  };
  tree_.Sum(0, communicator_.size(), leaf, sum);
}

}  // namespace softmoe::optimized

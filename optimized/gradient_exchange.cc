// SPDX-License-Identifier: Apache-2.0
#include "optimized/gradient_exchange.h"

#include "kernels/adamw.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

GradientExchange::GradientExchange(int64_t size, Communicator& communicator,
                                   Queue& queue)
    : communicator_(communicator),
      queue_(queue),
      shards_(ShareOut(size, kernels::kSumOfSquaresBlock, communicator.size())),
      tree_(own_shard().size(), communicator.size(), queue) {}

void GradientExchange::Sum(std::span<const float> partial,
                           std::span<float> sum) {
  sent_.Start(queue_, partial.data(), static_cast<int64_t>(partial.size()));
  Finish(queue_);  // for what was received last, too
  const int64_t row = own_shard().size();
  const auto size = static_cast<size_t>(communicator_.size() * row);
  communicator_.ExchangeShards<float>(shards_, sent_.view(),
                                      {received_.OfSize(size), size});
  const auto leaf = [&](int64_t rank, std::span<float> gradient) {
    SendArray<float>(queue_,
                     {received_.data() + rank * row, static_cast<size_t>(row)},
                     gradient.data());
  };
  tree_.Sum(0, communicator_.size(), leaf, sum);
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

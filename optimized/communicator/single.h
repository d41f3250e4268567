// SPDX-License-Identifier: Apache-2.0
//
// single.h - the communicator of a rank that is alone.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_SINGLE_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_SINGLE_H_

#include <span>
#include <vector>

#include "optimized/communicator/communicator.h"

namespace softmoe::optimized {

class SingleCommunicator : public Communicator {
 public:
  SingleCommunicator() : Communicator(0, 1) {}

 private:
  std::vector<Call> ShareCalls(const Call& mine) override { return {mine}; }
  bool AnotherHasFailed() override { return false; }
  void Move(std::span<const Outgoing> /*sends*/,
            std::span<const Incoming> /*receives*/) override {}
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_SINGLE_H_

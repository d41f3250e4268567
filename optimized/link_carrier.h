// SPDX-License-Identifier: Apache-2.0
//
// link_carrier.h - the carrier from device to device, over NCCL.
#ifndef SOFTMOE_OPTIMIZED_LINK_CARRIER_H_
#define SOFTMOE_OPTIMIZED_LINK_CARRIER_H_

#include <cstdint>
#include <memory>

#include "optimized/backend.h"
#include "optimized/carrier.h"
#include "optimized/communicator/communicator.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

// See MakeCarrier. Carries beside the queue. The host waits in Finish, and
// until NCCL has accepted what is asked of it.
std::unique_ptr<Carrier> MakeLinkCarrier(int64_t largest_shard,
                                         Communicator& communicator,
                                         Queue& queue);

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_LINK_CARRIER_H_

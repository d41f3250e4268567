// SPDX-License-Identifier: Apache-2.0
//
// There is no link between CPUs, and nobody asks for one (ChooseCarrier in
// trainer/run/rank_devices.h).
#include "core/errors.h"
#include "optimized/carrier.h"

namespace softmoe::optimized {
inline namespace SOFTMOE_BACKEND {

std::unique_ptr<Carrier> MakeLinkCarrier(int64_t /*largest_shard*/,
                                         Communicator& /*communicator*/,
                                         Queue& /*queue*/) {
  throw InternalError("ranks on the CPU have no link between devices");
}

}  // namespace SOFTMOE_BACKEND
}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
//
// carrier_kind.h - what carries arrays as large as the parameters from rank to
// rank (carrier.h). It changes no bit.
#ifndef SOFTMOE_OPTIMIZED_CARRIER_KIND_H_
#define SOFTMOE_OPTIMIZED_CARRIER_KIND_H_

namespace softmoe::optimized {

enum class CarrierKind {
  kHost,  // the communicator, through memory of the host
  kNccl,  // from device to device, where each rank has one of its own
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_CARRIER_KIND_H_

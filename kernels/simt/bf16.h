// SPDX-License-Identifier: Apache-2.0
//
// bf16.h - the upper half of a float: a type of memory, not of arithmetic.
#ifndef SOFTMOE_KERNELS_SIMT_BF16_H_
#define SOFTMOE_KERNELS_SIMT_BF16_H_

#include <cstdint>

namespace softmoe::kernels {

struct Bf16 {
  uint16_t bits;
};

}  // namespace softmoe::kernels

#endif  // SOFTMOE_KERNELS_SIMT_BF16_H_

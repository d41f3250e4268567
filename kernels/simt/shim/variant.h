// SPDX-License-Identifier: Apache-2.0
//
// variant.h - which of the four variants of a shim_test this program is
// (bazel/shim.bzl).
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_VARIANT_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_VARIANT_H_

namespace softmoe::simt {

enum Variant { kPlain, kAsanUbsan, kTsan, kMsan, kNumVariants };

inline constexpr Variant kVariant = SOFTMOE_SHIM_VARIANT;

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_VARIANT_H_

// SPDX-License-Identifier: Apache-2.0
//
// variant.h - what a shim_test program knows about itself: which of the four
// variants it is (bazel/shim.bzl), and how it ends if an exception escapes.
#ifndef SOFTMOE_KERNELS_SIMT_SHIM_VARIANT_H_
#define SOFTMOE_KERNELS_SIMT_SHIM_VARIANT_H_

#include <cstdio>
#include <exception>

namespace softmoe::simt {

enum Variant { kPlain, kAsanUbsan, kTsan, kMsan, kNumVariants };

inline constexpr Variant kVariant = SOFTMOE_SHIM_VARIANT;

// What main() returns: the result of `run`, or 1 after printing the exception
// that escaped from it.
inline int ExitStatus(int (*run)()) {
  try {
    return run();
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}

}  // namespace softmoe::simt

#endif  // SOFTMOE_KERNELS_SIMT_SHIM_VARIANT_H_

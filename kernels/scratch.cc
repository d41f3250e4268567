// SPDX-License-Identifier: Apache-2.0
#include "kernels/scratch.h"

#include <new>
#include <string>

#include "core/errors.h"

namespace softmoe::kernels {
namespace {

constexpr std::align_val_t kAlignment{64};

struct Buffer {
  float* data = nullptr;
  int64_t size = 0;

  ~Buffer() { ::operator delete(data, kAlignment); }

  float* AtLeast(int64_t floats) {
    if (floats <= size) return data;
    // The first time, no more than was asked for, so that the guarded heap of
    // tests catches accesses beyond it; later half as much again, so that
    // slowly growing requests settle.
    const int64_t wanted =
        data == nullptr ? floats : AlignedFloats(floats + floats / 2);
    ::operator delete(data, kAlignment);
    data = nullptr;
    size = 0;
    data = static_cast<float*>(
        ::operator new(wanted * sizeof(float), kAlignment, std::nothrow));
    if (data == nullptr) {
      throw EnvironmentError(
          "out of memory: a kernel needs " +
          std::to_string(wanted * sizeof(float) / (1 << 20)) +
          " MiB of working memory; use a smaller model or fewer sequences per "
          "balance group");
    }
    size = wanted;
    return data;
  }
};

}  // namespace

float* ThreadScratch(ScratchSlot slot, int64_t floats) {
  thread_local Buffer buffers[2];
  return buffers[static_cast<int>(slot)].AtLeast(floats);
}

}  // namespace softmoe::kernels

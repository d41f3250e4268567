// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/implementations/mirrored_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/errors.h"

namespace softmoe::verify {
namespace {

// The size of the canaries on both sides of an array: the alignment of
// cudaMalloc.
constexpr size_t kGuard = 256;
constexpr unsigned char kCanary = 0xad;

// The arrays of one call.
class Mirror {
 public:
  explicit Mirror(const DeviceMemory& memory) : memory_(memory) {}
  ~Mirror() {
    for (const Array& array : arrays_) memory_.free(array.device);
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  // Replaces a host pointer to `size` elements by one to its copy on the
  // device; null stays null. The kernel must not write to what is const.
  template <typename T>
  void Copy(const char* name, T*& pointer, int64_t size) {
    if (pointer == nullptr) return;
    constexpr bool kWritten = !std::is_const_v<T>;
    const size_t bytes = static_cast<size_t>(size) * sizeof(T);
    Array array{.name = name, .bytes = bytes};
    array.content.assign(bytes + 2 * kGuard, kCanary);
    if (bytes > 0) std::memcpy(&array.content[kGuard], pointer, bytes);
    if constexpr (kWritten) array.host = pointer;
    array.device =
        static_cast<unsigned char*>(memory_.allocate(array.content.size()));
    arrays_.push_back(array);
    memory_.copy(array.device, array.content.data(), array.content.size());
    pointer = reinterpret_cast<T*>(array.device + kGuard);
  }

  // To be called after the kernel: copies outputs to the host.
  void TakeBack() {
    for (const Array& array : arrays_) {
      std::vector<unsigned char> now(array.content.size());
      memory_.copy(now.data(), array.device, now.size());
      const auto changed = [&](size_t begin, size_t end) {
        return !std::equal(now.begin() + begin, now.begin() + end,
                           array.content.begin() + begin);
      };
      const size_t end = kGuard + array.bytes;
      if (changed(0, kGuard) || changed(end, now.size())) {
        throw NumericsError(fmt::format(
            "{}: written {} on the device", array.name,
            changed(0, kGuard) ? "before the beginning" : "past the end"));
      }
      if (array.host == nullptr) {
        if (!changed(kGuard, end)) continue;
        throw NumericsError(
            fmt::format("{}: an input, written to on the device", array.name));
      }
      if (array.bytes > 0) {
        std::memcpy(array.host, &now[kGuard], array.bytes);
      }
    }
  }

 private:
  struct Array {
    const char* name;
    size_t bytes;                             // without the canaries
    std::vector<unsigned char> content = {};  // as it was sent
    void* host = nullptr;                     // outputs
    unsigned char* device = nullptr;
  };

  const DeviceMemory& memory_;
  std::vector<Array> arrays_;
};

void CopyArrays(Mirror& mirror, kernels::RouterForwardArgs& a) {
  const int64_t n = a.shape.num_tokens, e = a.shape.num_experts;
  const int64_t slots = n * a.shape.max_active;
  mirror.Copy("scores", a.scores, n * e);
  mirror.Copy("soft_weights", a.soft_weights, n * e);
  mirror.Copy("root", a.root, 2 * n);
  mirror.Copy("num_active", a.num_active, n);
  mirror.Copy("selected", a.selected, slots);
  mirror.Copy("gates", a.gates, slots);
  mirror.Copy("probability_sums", a.probability_sums, e);
  mirror.Copy("balance_counts", a.balance_counts, e);
  mirror.Copy("active_counts", a.active_counts, e);
  mirror.Copy("z_sum", a.z_sum, 1);
  mirror.Copy("bad_score", a.bad_score, 1);
  mirror.Copy("scratch", a.scratch, kernels::RouterScratch(n, e));
}

void CopyArrays(Mirror& mirror, kernels::RouterBackwardArgs& a) {
  const int64_t n = a.shape.num_tokens, e = a.shape.num_experts;
  const int64_t slots = n * a.shape.max_active;
  mirror.Copy("scores", a.scores, n * e);
  mirror.Copy("soft_weights", a.soft_weights, n * e);
  mirror.Copy("root", a.root, 2 * n);
  mirror.Copy("selected", a.selected, slots);
  mirror.Copy("d_gates", a.d_gates, slots);
  mirror.Copy("d_probability", a.d_probability, e);
  mirror.Copy("d_scores", a.d_scores, n * e);
  mirror.Copy("d_mean_active", a.d_mean_active, 1);
  mirror.Copy("scratch", a.scratch, kernels::RouterScratch(n, e));
}

void CopyArrays(Mirror& mirror, kernels::RmsNormForwardArgs& a) {
  mirror.Copy("x", a.x, a.num_tokens * a.d_model);
  mirror.Copy("weight", a.weight, a.d_model);
  mirror.Copy("y", a.y, a.num_tokens * a.d_model);
  mirror.Copy("rstd", a.rstd, a.num_tokens);
}

void CopyArrays(Mirror& mirror, kernels::RmsNormBackwardArgs& a) {
  mirror.Copy("x", a.x, a.num_tokens * a.d_model);
  mirror.Copy("weight", a.weight, a.d_model);
  mirror.Copy("rstd", a.rstd, a.num_tokens);
  mirror.Copy("d_y", a.d_y, a.num_tokens * a.d_model);
  mirror.Copy("d_x", a.d_x, a.num_tokens * a.d_model);
  mirror.Copy("d_weight", a.d_weight, a.d_model);
  mirror.Copy("scratch", a.scratch,
              kernels::RmsNormScratch(a.num_tokens, a.d_model));
}

void CopyArrays(Mirror& mirror, kernels::AdamWArgs& a) {
  mirror.Copy("gradient", a.gradient, a.size);
  mirror.Copy("parameter", a.parameter, a.size);
  mirror.Copy("first_moment", a.first_moment, a.size);
  mirror.Copy("second_moment", a.second_moment, a.size);
}

void CopyArrays(Mirror& mirror, kernels::SumOfSquaresArgs& a) {
  mirror.Copy("x", a.x, a.size);
  mirror.Copy("result", a.result, 1);
  mirror.Copy("scratch", a.scratch, kernels::SumOfSquaresScratch(a.size));
}

void CopyArrays(Mirror& mirror, kernels::EmbeddingForwardArgs& a) {
  // As many rows as the ids say that there are.
  int32_t num_rows = 0;
  for (int64_t t = 0; t < a.num_tokens; ++t) {
    num_rows = std::max(num_rows, a.ids[t] + 1);
  }
  mirror.Copy("ids", a.ids, a.num_tokens);
  mirror.Copy("table", a.table, num_rows * a.d_model);
  mirror.Copy("out", a.out, a.num_tokens * a.d_model);
}

void CopyArrays(Mirror& mirror, kernels::EmbeddingBackwardArgs& a) {
  mirror.Copy("ids", a.ids, a.num_tokens);
  mirror.Copy("d_out", a.d_out, a.num_tokens * a.d_model);
  mirror.Copy("d_table", a.d_table, a.vocab_size * a.d_model);
  mirror.Copy("scratch", a.scratch,
              kernels::EmbeddingDeviceScratch(a.num_tokens));
}

template <typename Args>
std::function<void(const Args&)> Mirrored(
    std::function<void(const Args&)> device, const DeviceMemory& memory) {
  return [device, memory](const Args& args) {
    Mirror mirror(memory);
    Args copies = args;
    CopyArrays(mirror, copies);
    device(copies);
    mirror.TakeBack();
  };
}

}  // namespace

RowKernels MirroredKernels(const RowKernels& device,
                           const DeviceMemory& memory) {
  return {
      .router_forward = Mirrored(device.router_forward, memory),
      .router_backward = Mirrored(device.router_backward, memory),
      .rmsnorm_forward = Mirrored(device.rmsnorm_forward, memory),
      .rmsnorm_backward = Mirrored(device.rmsnorm_backward, memory),
      .adamw = Mirrored(device.adamw, memory),
      .sum_of_squares = Mirrored(device.sum_of_squares, memory),
      .embedding_forward = Mirrored(device.embedding_forward, memory),
      .embedding_backward = Mirrored(device.embedding_backward, memory),
  };
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
#include "property_tests/gpu/bit_difference.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>

namespace softmoe::gpu {

std::string BitDifference(const std::string& what, std::span<const float> got,
                          std::span<const float> expected) {
  if (got.size() != expected.size()) {
    return fmt::format("{}: {} numbers instead of {}; ", what, got.size(),
                       expected.size());
  }
  int64_t count = 0, first = -1;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<uint32_t>(got[i]) ==
        std::bit_cast<uint32_t>(expected[i])) {
      continue;
    }
    if (count++ == 0) first = static_cast<int64_t>(i);
  }
  if (count == 0) return "";
  return fmt::format(
      "{}: {} of {} differ in bits, first [{}]: {} instead of {}; ", what,
      count, got.size(), first, got[first], expected[first]);
}

}  // namespace softmoe::gpu

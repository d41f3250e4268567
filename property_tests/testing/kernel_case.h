// SPDX-License-Identifier: Apache-2.0
//
// kernel_case.h - for tests that compare a kernel with another computation:
// runs it at each ISA level with 1, 2 and 4 threads, and demands equal bits.
#ifndef SOFTMOE_PROPERTY_TESTS_TESTING_KERNEL_CASE_H_
#define SOFTMOE_PROPERTY_TESTS_TESTING_KERNEL_CASE_H_

#include <rapidcheck.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/parallel_for.h"
#include "core/testing/random_test_util.h"
#include "kernels/isa.h"

namespace softmoe::property_tests {

using Floats = std::vector<float>;

template <typename T>
bool SameBits(const std::vector<std::vector<T>>& a,
              const std::vector<std::vector<T>>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    if (!a[i].empty() &&
        std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(T)) != 0) {
      return false;
    }
  }
  return true;
}

// Calls body(pool), which returns all its outputs as std::vector<Floats> (or
// vectors of other numbers), for every ISA level and 1, 2 and 4 threads. Fails
// the property unless the bits agree within each level. Returns one result per
// level.
template <typename Body>
auto RunAtEveryLevel(const Body& body) {
  std::vector<std::invoke_result_t<const Body&, ThreadPool&>> results;
  for (const kernels::Isa isa : {kernels::Isa::kV3, kernels::Isa::kV4}) {
    if (!kernels::IsaAvailable(isa)) continue;
    kernels::SelectIsa(kernels::IsaName(isa));
    for (const int threads : {1, 2, 4}) {
      ThreadPool pool(threads);
      auto outputs = body(pool);
      if (threads == 1) {
        results.push_back(std::move(outputs));
      } else {
        RC_ASSERT(SameBits(outputs, results.back()));
      }
    }
  }
  kernels::SelectIsa("");
  return results;
}

}  // namespace softmoe::property_tests

#endif  // SOFTMOE_PROPERTY_TESTS_TESTING_KERNEL_CASE_H_

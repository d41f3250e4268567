// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/for_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace softmoe::mutation {

void ForAll(size_t count, int jobs, const std::function<bool()>& stop,
            const std::function<void(size_t)>& body) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (size_t i = next++; i < count && !stop(); i = next++) {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < std::max(1, jobs); ++t) threads.emplace_back(work);
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace softmoe::mutation

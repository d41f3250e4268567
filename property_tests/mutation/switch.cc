// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/switch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace softmoe::mutant {
namespace {

using Counter = std::atomic<uint64_t>;

// The counter in the driver's file, or without such a file one of this process:
// nothing is counted when somebody switches a fault on by hand.
Counter* MapCounter() {
  static Counter own;
  const char* path = std::getenv("SOFTMOE_MUTANT_HITS");
  if (path == nullptr) return &own;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return &own;
  void* memory = ::mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE,
                        MAP_SHARED, file, 0);
  ::close(file);
  return memory == MAP_FAILED ? &own : static_cast<Counter*>(memory);
}

}  // namespace

bool IsOn(const char* id) {
  static const char* const chosen = std::getenv("SOFTMOE_MUTANT");
  return chosen != nullptr && std::strcmp(chosen, id) == 0;
}

void CountHit() {
  static Counter* const counter = MapCounter();
  counter->fetch_add(1, std::memory_order_relaxed);
}

}  // namespace softmoe::mutant

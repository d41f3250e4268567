// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/switch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace softmoe::mutant {
namespace {

using Counter = std::atomic<uint64_t>;

// The counter in the driver's file, or, without such a file, one of this
// process: when a person switches a fault on by hand, nothing is counted.
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

// A file's table of ids, each on its own line after "- ". It is in shared
// memory, so that a process with limited files, as in some tests, can still
// tick one.
struct Table {
  char* begin = nullptr;
  size_t size = 0;
};

Table MapTable() {
  const char* path = std::getenv("SOFTMOE_MUTANT_REACHED");
  const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
  struct stat status = {};
  if (file < 0 || ::fstat(file, &status) != 0 || status.st_size == 0) return {};
  const auto size = static_cast<size_t>(status.st_size);
  void* memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) return {};
  return {static_cast<char*>(memory), size};
}

void Tick(const char* id) {
  static const Table table = MapTable();
  const size_t length = std::strlen(id);
  for (char* line = table.begin; line != nullptr;) {
    const size_t left = table.begin + table.size - line;
    if (left > length + 2 && std::memcmp(line + 2, id, length) == 0 &&
        line[length + 2] == '\n') {
      *line = '+';
      return;
    }
    char* end = static_cast<char*>(std::memchr(line, '\n', left));
    line = end == nullptr || end + 1 == table.begin + table.size ? nullptr
                                                                 : end + 1;
  }
}

}  // namespace

bool IsOn(const char* id) {
  Tick(id);
  static const char* const chosen = std::getenv("SOFTMOE_MUTANT");
  return chosen != nullptr && std::strcmp(chosen, id) == 0;
}

void CountHit() {
  static Counter* const counter = MapCounter();
  counter->fetch_add(1, std::memory_order_relaxed);
}

}  // namespace softmoe::mutant

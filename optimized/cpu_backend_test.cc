// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "optimized/backend.h"

namespace softmoe::optimized {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// Whether the kernel was asked for huge pages where `address` is: "hg" among
// the flags that /proc/self/smaps gives of its mapping.
bool AskedForHugePages(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream smaps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    if (std::istringstream range(line);
        range >> std::hex >> begin >> dash >> end && dash == '-') {
      here = begin <= wanted && wanted < end;
    } else if (here && line.starts_with("VmFlags:")) {
      return (line + " ").find(" hg ") != std::string::npos;
    }
  }
  return false;
}

// Whether the kernel grants huge pages when the test maps memory itself.
bool KernelHasHugePages() {
  void* const memory = mmap(nullptr, kHugePage, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const bool asked = madvise(memory, kHugePage, MADV_HUGEPAGE) == 0 &&
                     AskedForHugePages(memory);
  munmap(memory, kHugePage);
  return asked;
}

TEST(AllocateArray, AsksForHugePagesForArraysThatFillOne) {
  if (!KernelHasHugePages()) GTEST_SKIP() << "no huge pages on this machine";
  void* const small = AllocateArray(kHugePage - 64);
  EXPECT_FALSE(AskedForHugePages(small));
  FreeArray(small);
  for (const size_t bytes : {kHugePage, 3 * kHugePage - 64}) {
    auto* const array = static_cast<char*>(AllocateArray(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(array) % kHugePage, 0) << bytes;
    EXPECT_TRUE(AskedForHugePages(array)) << bytes;
    EXPECT_TRUE(AskedForHugePages(array + bytes - 1)) << bytes;
    FreeArray(array);
  }
}

}  // namespace
}  // namespace softmoe::optimized

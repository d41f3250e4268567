// SPDX-License-Identifier: Apache-2.0
#include "trainer/results/metrics_hdf5.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace softmoe::trainer {
namespace {

[[noreturn]] void Refuse(const Hdf5Reader& file, const std::string& what) {
  throw DataError(
      fmt::format("{}: {}; delete the file and run the row again, which "
                  "continues from a checkpoint if there is one beside it",
                  file.path().string(), what));
}

}  // namespace

void RefuseNumber(const Hdf5Reader& file, const std::string& what,
                  double value) {
  Refuse(file, fmt::format("{} {}, expected a finite number", what, value));
}

void CheckSizes(const Hdf5Reader& file, const std::string& path,
                const std::vector<int64_t>& sizes,
                const std::vector<int64_t>& expected) {
  if (sizes == expected) return;
  Refuse(file,
         fmt::format("dataset {} is {}, expected {}", path, sizes, expected));
}

}  // namespace softmoe::trainer

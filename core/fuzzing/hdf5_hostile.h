// SPDX-License-Identifier: Apache-2.0
//
// hdf5_hostile.h - valid HDF5 with contents that no program of ours writes,
// for the fuzzers of our readers.
//
// A good file is changed with libhdf5 itself and sealed again, so every
// checksum holds and readers see the changes: other types, shapes and storage;
// NaN and extreme numbers; missing, added and renamed objects; dimensions far
// beyond the bytes present; links of every kind, even in circles.
#ifndef SOFTMOE_CORE_FUZZING_HDF5_HOSTILE_H_
#define SOFTMOE_CORE_FUZZING_HDF5_HOSTILE_H_

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fuzzing/fuzz_support.h"
#include "core/hdf5/hdf5_envelope.h"

namespace softmoe::fuzz {

class HostileHdf5 {
 public:
  // `good` is a file that its readers accept; its kind stays what it is.
  explicit HostileHdf5(const std::filesystem::path& good);

  // Writes to `path` the file with the changes that `choices` decides on, none
  // if `choices` has run out. libhdf5 1.10.8 may crash on them, or keep half of
  // a file open, so a child process makes them. Returns false if that fails.
  bool Write(const std::filesystem::path& path, Choices choices) const;

 private:
  std::string bytes_;
  Hdf5Kind kind_;                     // of `good`
  std::vector<std::string> objects_;  // paths of groups and datasets
  std::vector<std::pair<std::string, std::string>> attributes_;
};

// Gives `read` the good file with the changes that `input` decides on; true if
// `read` accepts it. If `read` refuses an empty input, that is a finding.
bool FuzzHostileFile(
    const HostileHdf5& good, std::string_view input,
    const std::function<void(const std::filesystem::path&)>& read);

// Returns inputs to begin with: every kind of change, in several places, and
// others after that.
std::vector<std::string> HostileSeeds();

}  // namespace softmoe::fuzz

#endif  // SOFTMOE_CORE_FUZZING_HDF5_HOSTILE_H_

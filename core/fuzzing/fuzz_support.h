// SPDX-License-Identifier: Apache-2.0
//
// fuzz_support.h - what a fuzzer (//bazel:fuzz.bzl) defines, and what all
// fuzzers need: bytes as decisions, files that readers can open, and the one
// permitted way of refusing an input.
#ifndef SOFTMOE_CORE_FUZZING_FUZZ_SUPPORT_H_
#define SOFTMOE_CORE_FUZZING_FUZZ_SUPPORT_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace softmoe::fuzz {

// Defined by each fuzzer. FuzzOne runs the code under test on any bytes: a
// crash, an exception that escapes, a leak and a failed Require are findings.
void FuzzOne(std::string_view input);
// Inputs to begin with. SOFTMOE_FUZZ_SEEDS=FOLDER makes the program write them
// to that folder and exit.
std::vector<std::string> Seeds();

// Reports this input as a finding unless `condition` holds.
void Require(bool condition, const std::string& what);

// Returns true if `body` returns; false if it refuses its input as readers
// must: with a ConfigError or DataError that has a message. Others escape.
bool Accepts(const std::function<void()>& body);

// Leaves the crash of a forked child, from this call on, to the code under test
// to judge; it is not a finding by itself.
void LetChildrenCrash();

// An input as a sequence of decisions, followed by zeros.
class Choices {
 public:
  explicit Choices(std::string_view input) : rest_(input) {}

  bool done() const { return rest_.empty(); }
  uint8_t Byte();
  // Returns a number in [0, count); `count` must be in [1, 2^16].
  size_t Below(size_t count);
  bool OneIn(size_t count) { return Below(count) == count - 1; }
  uint64_t Word();  // eight bytes
  // Takes a length in [0, limit], then that many bytes (fewer at the end).
  std::string Text(size_t limit);
  std::string_view Rest() const { return rest_; }

  template <typename List>
  const auto& Pick(const List& list) {
    return list[Below(std::size(list))];
  }

  // Returns an end of a range, one of its neighbors, or any number.
  int64_t Integer();
  // Returns NaN, an infinity, a zero, a subnormal, the largest number, or any.
  double Real();

 private:
  std::string_view rest_;
};

// Returns a folder of this process alone, in memory if the system provides one.
const std::filesystem::path& ScratchFolder();

// Replaces the file, without the syncs of AtomicFile.
void WriteScratch(const std::filesystem::path& path, std::string_view bytes);

}  // namespace softmoe::fuzz

#endif  // SOFTMOE_CORE_FUZZING_FUZZ_SUPPORT_H_

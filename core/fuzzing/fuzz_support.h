// SPDX-License-Identifier: Apache-2.0
//
// fuzz_support.h - what a fuzzer (//bazel:fuzz.bzl) defines, and what all of
// them need: bytes as decisions, files that readers can open, and the one
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

// Unless `condition` holds, this input is a finding.
void Require(bool condition, const std::string& what);

// True if `body` returns; false if it refuses its input as readers should:
// with a ConfigError or DataError that says something. Others escape.
bool Accepts(const std::function<void()>& body);

// From now on a crash of a forked child is not a finding by itself: the code
// under test judges it.
void LetChildrenCrash();

// An input as a sequence of decisions; zeros when it has run out.
class Choices {
 public:
  explicit Choices(std::string_view input) : rest_(input) {}

  bool done() const { return rest_.empty(); }
  uint8_t Byte();
  // A number in [0, count); count in [1, 2^16].
  size_t Below(size_t count);
  bool OneIn(size_t count) { return Below(count) == count - 1; }
  uint64_t Word();  // eight bytes
  // A length in [0, limit], then that many bytes (fewer at the end).
  std::string Text(size_t limit);
  std::string_view Rest() const { return rest_; }

  template <typename List>
  const auto& Pick(const List& list) {
    return list[Below(std::size(list))];
  }

  // The ends of ranges and their neighbours, or any number.
  int64_t Integer();
  // NaN, infinities, zeros, subnormals, the largest number, or any other.
  double Real();

 private:
  std::string_view rest_;
};

// A folder of this process's own, in memory where the system provides one.
const std::filesystem::path& ScratchFolder();

// Replaces the file, without the syncs of AtomicFile.
void WriteScratch(const std::filesystem::path& path, std::string_view bytes);

}  // namespace softmoe::fuzz

#endif  // SOFTMOE_CORE_FUZZING_FUZZ_SUPPORT_H_

// SPDX-License-Identifier: Apache-2.0
//
// grid_test_util.h - shared by the tests of //:grid: a grid of three small rows
// on its own text, and the program as a user calls it.
#ifndef SOFTMOE_EXPERIMENTS_TESTING_GRID_TEST_UTIL_H_
#define SOFTMOE_EXPERIMENTS_TESTING_GRID_TEST_UTIL_H_

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/process/process.h"
#include "experiments/grids/grid_file.h"

namespace softmoe::experiments {

using Strings = std::vector<std::string>;

// The TOML of grid "micro": rows sparse-2, star-1.5 and learned-1.5 with
// `steps` steps of milliseconds each, on path:text.txt; then `more_rows`.
std::string MicroGrid(int64_t steps, const std::string& more_rows = "");

// The micro grid under the name of mini, with three of its rows and two of its
// seeds: 6 of 76 planned runs.
std::string MicroMini();

// The micro grid under the name of mini, with the rows that the experiment
// `regime` builds on.
std::string MicroRegime();

// The TOML of one more row, "diverges": an enormous learning rate overflows
// fp32 within a few steps.
inline constexpr char kDivergingRow[] = R"([[rows]]
id = "diverges"
label = "Sparse MoE"
[rows.config.router]
kind = "sparse"
mean_active_experts = 1
[rows.config.training]
learning_rate = 1e30
clip_norm = 0
warmup_fraction = 0
)";

// A fresh folder with text.txt and a grid file, in which //:grid runs with its
// own cache.
class GridProgram : public testing::Test {
 protected:
  void SetUp() override;

  // Runs //:grid with these arguments, each a single shell word.
  ProgramResult Grid(const Strings& arguments) const;
  // Runs `prologue; exec //:grid ...` in a shell.
  ProgramResult GridAfter(const std::string& prologue,
                          const Strings& arguments) const;
  static std::string Program();

  // Copies a finished MicroGrid(60) to `out`, with its cache; one uninterrupted
  // process trains it for all tests of a program. Must precede any command of
  // the test that prepares tokens, since tokens name the place of their text.
  testing::AssertionResult TakeTrained(
      const std::string& out = "runs/micro") const;

  void WriteGrid(const std::string& toml) const;  // the grid file
  // Writes a grid named mini, a name that no file but the shipped one may have;
  // Grid() takes this file for the shipped one.
  void WriteMini(const std::string& toml) const;
  // The grid in that file, and the folder of its n-th run in `out`.
  experiments::Grid Micro(const Strings& overrides = {}) const;
  std::filesystem::path RunFolder(size_t n,
                                  const std::string& out = "runs/micro") const;
  std::string Bytes(const std::string& path) const;  // of a file in folder_

  std::filesystem::path folder_;
};

// A process whose progress lines go into a pipe of one page. Once this reader
// stops reading, the process can print only a few more lines before it blocks,
// so on any machine a signal reaches it where the test wants.
class HeldProgram {
 public:
  HeldProgram(const std::string& program, const Strings& arguments,
              const std::filesystem::path& folder);
  ~HeldProgram();
  HeldProgram(const HeldProgram&) = delete;
  HeldProgram& operator=(const HeldProgram&) = delete;

  // Reads up to and including `text`, `count` times; false if the output ends
  // first.
  bool ReadUntil(const std::string& text, int count = 1);
  // Reads `count` lines in all, each from whichever process prints first, or
  // until both have ended. For processes that wait for each other: reading only
  // one could wait for a line that it prints after the other goes on.
  static void ReadLinesOfEither(HeldProgram* a, HeldProgram* b, int count);
  void Signal(int number) const;
  // Waits for the process itself, not its children; the process must not need a
  // reader to end.
  void WaitForEnd() const;
  // Reads the output to its end, including that of the process's children.
  ProgramResult Finish();

 private:
  // False at the end of the output.
  bool ReadLetter();

  pid_t process_ = -1;
  int out_ = -1;
  ProgramResult result_;
};

// Polls until `condition` holds; false if it does not within `seconds`.
bool WaitFor(double seconds, const std::function<bool()>& condition);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_TESTING_GRID_TEST_UTIL_H_

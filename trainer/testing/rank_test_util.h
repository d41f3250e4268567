// SPDX-License-Identifier: Apache-2.0
//
// rank_test_util.h - //:train on ranks that are processes, which tests watch,
// disturb and compare with one process.
#ifndef SOFTMOE_TRAINER_TESTING_RANK_TEST_UTIL_H_
#define SOFTMOE_TRAINER_TESTING_RANK_TEST_UTIL_H_

#include <gtest/gtest.h>
#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/process/process.h"

namespace softmoe::trainer {

using Strings = std::vector<std::string>;

Strings Joined(Strings words, const Strings& more);

// A program that a test has started, and what it has printed so far.
class RunningProgram {
 public:
  explicit RunningProgram(const ProcessOptions& options);
  // Kills the ranks that the program has named (see StartRanksIn), and waits.
  ~RunningProgram();

  // Waits until it has printed `text`. Returns false if it ends before that.
  bool Await(const std::string& text);
  // Waits for the program to end, and returns its exit status.
  int AwaitEnd();
  std::string output() const;
  // Waits until the program has named a rank. Returns the number of that
  // process, or -1 if the program ends before.
  pid_t ProcessOf(int rank);

 private:
  Process process_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string output_;
  bool ended_ = false;
  std::jthread reader_;
};

// Changes the command of one of the ranks that a test starts.
using Change = std::function<void(int rank, Strings& command)>;

// Starts mpirun in `folder`, with ranks that first print who they are: "process
// RANK NUMBER.".
std::unique_ptr<RunningProgram> StartRanksIn(
    const std::filesystem::path& folder, int size, const Strings& command,
    const Change& change = [](int, Strings&) {});

class RankTest : public testing::Test {
 protected:
  // Makes a folder with tokens and with configurations of 20 steps of four
  // balance groups: a tiny one, and one of the smoke grid's sizes.
  void SetUp() override;

  // Returns the command of a rank or process, which trains in the folder `run`.
  Strings Train(const std::string& run, const Strings& more = {}) const;
  // Trains to the end in one process.
  ProgramResult RunAlone(const std::string& run,
                         const Strings& more = {}) const;
  // Trains under mpirun, to the end of all ranks.
  ProgramResult RunMpi(int ranks, const std::string& run,
                       const Strings& more = {}) const;
  // Calls StartRanksIn with this test's folder.
  std::unique_ptr<RunningProgram> StartRanks(
      int size, const Strings& command,
      const Change& change = [](int, Strings&) {}) const;

  static constexpr char kTiny[] = "tiny.toml", kSmoke[] = "smoke.toml";

  std::filesystem::path folder_, tokens_;
  // The program that Train runs, in its runfiles, and its configuration.
  std::string program_ = "trainer/run/train", config_ = kTiny;
};

}  // namespace softmoe::trainer

#endif  // SOFTMOE_TRAINER_TESTING_RANK_TEST_UTIL_H_

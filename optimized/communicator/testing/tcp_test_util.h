// SPDX-License-Identifier: Apache-2.0
//
// tcp_test_util.h - ranks over TCP that are threads of a test.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_TCP_TEST_UTIL_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_TCP_TEST_UTIL_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "optimized/communicator/meeting.h"
#include "optimized/communicator/watch.h"

namespace softmoe::optimized {

inline constexpr char kTestSecret[] = "the secret of a test";

// What ended a rank: its exit code, and what it said.
using Ending = std::pair<ExitCode, std::string>;

// Calls work(rank) for ranks 0 to size - 1, each in a thread, and returns what
// those that threw an Error threw.
std::map<int, Ending> InThreads(int size, const std::function<void(int)>& work);

// The meetings of `size` ranks of this process.
std::vector<Meeting> MeetInThreads(int size);

// What watches end their processes with, where these are threads of a test.
class Endings {
 public:
  Endings();

  // For the watch of `rank`.
  WatchOptions Options(int rank, double silence_limit) const;
  // Waits until `count` ranks have ended.
  std::map<int, Ending> Await(size_t count) const;
  size_t count() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_TCP_TEST_UTIL_H_

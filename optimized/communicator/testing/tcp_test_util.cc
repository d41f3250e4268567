// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/testing/tcp_test_util.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "optimized/communicator/greeting.h"
#include "optimized/communicator/socket.h"

namespace softmoe::optimized {

std::map<int, Ending> InThreads(int size,
                                const std::function<void(int)>& work) {
  std::map<int, Ending> endings;
  std::mutex mutex;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(rank);
      } catch (const Error& error) {
        const std::lock_guard<std::mutex> lock(mutex);
        endings[rank] = {error.code(), error.what()};
      }
    });
  }
  threads.clear();
  return endings;
}

std::vector<Meeting> MeetInThreads(int size) {
  constexpr double kLimit = 60;  // s; takes less
  Reception reception(Listener("127.0.0.1", 0), kTestSecret);
  std::vector<Meeting> meetings(static_cast<size_t>(size));
  const auto errors = InThreads(size, [&](int rank) {
    meetings[static_cast<size_t>(rank)] =
        rank == 0
            ? HostMeeting(reception, size, kLimit)
            : JoinMeeting({"127.0.0.1"}, reception.port(),
                          OwnClaim(rank, size, 0, 0), kTestSecret, kLimit);
  });
  SOFTMOE_CHECK(errors.empty()) << errors.begin()->second.second;
  return meetings;
}

struct Endings::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int, Ending> endings;
};

Endings::Endings() : state_(std::make_shared<State>()) {}

WatchOptions Endings::Options(int rank, double silence_limit) const {
  return {
      .silence_limit = silence_limit,
      .end = [rank, state = state_](ExitCode code, const std::string& text) {
        const std::lock_guard<std::mutex> lock(state->mutex);
        state->endings[rank] = {code, text};
        state->changed.notify_all();
      }};
}

std::map<int, Ending> Endings::Await(size_t count) const {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->endings.size() >= count; });
  return state_->endings;
}

size_t Endings::count() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->endings.size();
}

}  // namespace softmoe::optimized

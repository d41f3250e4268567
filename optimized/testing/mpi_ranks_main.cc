// SPDX-License-Identifier: Apache-2.0
//
// mpi_ranks operations | mistakes | failure | train | silence | patience - one
// rank of a test that mpirun starts; mpi_ranks_test.cc says what is expected of
// it.
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "core/errors.h"
#include "optimized/communicator/mpi.h"
#include "optimized/communicator/testing/communicator_checks.h"
#include "optimized/testing/ranked_training.h"

namespace softmoe::optimized {
namespace {

// Flushes each line at once, so that lines of ranks do not mix.
void Say(const Communicator& rank, const std::string& text) {
  std::printf("rank %d of %d: %s\n", rank.rank(), rank.size(), text.c_str());
  std::fflush(stdout);
}

using Seconds = std::chrono::duration<double>;
// How long a step waits for a rank; after how long a waiting rank says so.
constexpr Seconds kLimit(1), kWords(0.5);
constexpr Seconds kVeryLong(600);

ExitCode CheckMistakes(MpiSession& session) {
  ExitCode code = ExitCode::kDone;
  for (const Mistake& mistake : Mistakes(session.World()->size())) {
    const std::unique_ptr<Communicator> world = session.World();
    const std::string wrong = CheckMistake(*world, mistake);
    if (wrong.empty()) continue;
    Say(*world, wrong);
    code = ExitCode::kFailed;
  }
  if (code == ExitCode::kDone) Say(*session.World(), "all named");
  return code;
}

ExitCode RunRank(const std::string& what, MpiSession& session) {
  if (what == "mistakes") return CheckMistakes(session);
  const std::unique_ptr<Communicator> world = session.World();
  world->Run([&] {
    if (what == "operations") {
      for (uint32_t seed = 0; seed < 20; ++seed) CheckOperations(*world, seed);
      // A text that takes two messages.
      world->Agree({{{"long text", std::string(1000, 'x')}}});
      Say(*world, "all right");
    } else if (what == "failure") {
      if (world->rank() == 1) throw DataError("token 7 is damaged");
      world->Barrier();
    } else if (what == "silence") {
      world->Begin({.name = "step 7", .limited = true});
      world->Barrier();
      if (world->rank() == 1) std::this_thread::sleep_for(kVeryLong);
      world->Barrier();
    } else if (what == "patience") {
      if (world->rank() == 0) std::this_thread::sleep_for(kLimit + kWords);
      world->Barrier();
      Say(*world, "all here");
    } else if (what == "train") {
      const Config config = LargerConfig(4);
      Say(*world, Digest(TrainRank(config, 1, *world)));
    } else {
      throw ConfigError("'" + what + "' is no test");
    }
  });
  return ExitCode::kDone;
}

}  // namespace
}  // namespace softmoe::optimized

int main(int argc, char** argv) {
  using softmoe::optimized::MpiSession;
  // Outlives RunMain, which prints why this rank failed.
  std::unique_ptr<MpiSession> session;
  const int code = softmoe::RunMain("mpi_ranks", [&] {
    session = std::make_unique<MpiSession>(softmoe::optimized::WaitOptions{
        .silence_limit = softmoe::optimized::kLimit.count(),
        .words_every = softmoe::optimized::kWords.count(),
        .say = [](const std::string& words) { std::puts(words.c_str()); }});
    return softmoe::optimized::RunRank(argc > 1 ? argv[1] : "", *session);
  });
  if (session != nullptr) session->Leave(code);
  return code;
}

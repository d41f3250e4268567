// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_main.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "optimized/communicator/launched_rank.h"
#include "optimized/communicator/mpi.h"
#include "optimized/communicator/single.h"
#include "optimized/communicator/tcp.h"
#include "optimized/communicator/watch.h"
#include "optimized/communicator/watch_over.h"

namespace softmoe::trainer {
namespace {

// Not exit(): another thread may be waiting in MPI or for a socket, and can
// neither be asked to return nor outlive what exit() destroys. Files are
// complete or absent, whenever a process ends (core/files/atomic_file.h).
[[noreturn]] void EndAtOnce(const std::string& name, ExitCode code,
                            const std::string& text) {
  const std::string line = fmt::format(
      "{}: error: {}; see what it says and how its machine is, then start all "
      "ranks again: the last checkpoint is intact\n",
      name, text);
  // In one piece, past a buffer that another thread may have locked.
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(static_cast<int>(code));
}

// This process among the ranks of its run.
class RankProcess {
 public:
  RankProcess(const std::string& program, const RankMainOptions& options)
      : options_(options), name_(program) {}

  // Whom messages come from. It changes once the rank is known.
  const std::string& name() const { return name_; }

  ExitCode Run(const std::function<ExitCode(const Ranks&)>& body) {
    Join();
    ranks_ = World();
    ExitCode code = ExitCode::kDone;
    ranks_->Run([&] {
      if (ranks_->size() > 1) {
        ranks_->Agree({{{"silence limit",
                         fmt::format("{:g} s", options_.silence_limit)}}});
      }
      // Without a limit, machines need to reach each other by MPI alone.
      if (mpi_ != nullptr && ranks_->size() > 1 && options_.silence_limit > 0) {
        watch_ =
            optimized::WatchOver(*ranks_, options_.join_limit, WatchOptions());
      }
      code = body({*ranks_, [this] { return World(); }});
    });
    return code;
  }

  // After what this rank had to say has been printed: MPI's end waits for all.
  void Leave(int code) {
    ranks_.reset();
    mpi_.reset();
    if (tcp_ != nullptr) {
      tcp_->watch().Leave(static_cast<ExitCode>(code));
    } else if (watch_ != nullptr) {
      watch_->Leave(static_cast<ExitCode>(code));
    }
  }

 private:
  // Finds the others.
  void Join() {
    switch (options_.kind) {
      case RankKind::kNone:
        break;
      case RankKind::kMpi:
        mpi_ = std::make_unique<optimized::MpiSession>();
        SetRank(mpi_->World()->rank());
        break;
      case RankKind::kEnvironment: {
        const optimized::LaunchedRank launched =
            optimized::RankFromEnvironment();
        SetRank(launched.rank);
        tcp_ = std::make_unique<optimized::TcpSession>(
            launched, optimized::SecretFromEnvironment(),
            optimized::TcpOptions{
                .join_limit = options_.join_limit,
                .watch = WatchOptions(),
                .on_listening = [&](int port) {
                  if (options_.quiet || launched.size == 1) return;
                  std::printf("rank 0 of %d waits for the others at port %d\n",
                              launched.size, port);
                  std::fflush(stdout);
                }});
        break;
      }
    }
  }

  // A communicator of all ranks.
  std::unique_ptr<optimized::Communicator> World() {
    if (mpi_ != nullptr) return mpi_->World();
    if (tcp_ != nullptr) return tcp_->World();
    return std::make_unique<optimized::SingleCommunicator>();
  }

  void SetRank(int rank) {
    if (rank != 0) name_ = fmt::format("rank {}: {}", rank, name_);
  }

  optimized::WatchOptions WatchOptions() const {
    return {.silence_limit = options_.silence_limit,
            .end = [name = name_](ExitCode code, const std::string& text) {
              EndAtOnce(name, code, text);
            }};
  }

  const RankMainOptions options_;
  std::string name_;
  std::unique_ptr<optimized::Watch> watch_;  // of MPI's ranks
  std::unique_ptr<optimized::TcpSession> tcp_;
  std::unique_ptr<optimized::MpiSession> mpi_;
  std::unique_ptr<optimized::Communicator> ranks_;
};

}  // namespace

int RunRankMain(const std::string& program, const RankMainOptions& options,
                const std::function<ExitCode(const Ranks&)>& body) {
  RankProcess process(program, options);
  // RunMain reads the name when it has something to print.
  const int code = RunMain(process.name(), [&] { return process.Run(body); });
  process.Leave(code);
  return code;
}

}  // namespace softmoe::trainer

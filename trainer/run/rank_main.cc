// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_main.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "optimized/communicator/communicator.h"
#include "optimized/communicator/mpi.h"

namespace softmoe::trainer {
namespace {

// This process among the ranks of its run.
class RankProcess {
 public:
  RankProcess(const std::string& program, const RankMainOptions& options)
      : options_(options), name_(program) {}

  // Whom messages come from. It changes once the rank is known.
  const std::string& name() const { return name_; }

  ExitCode Run(const std::function<ExitCode(const Ranks&)>& body) {
    if (options_.mpi) {
      mpi_ = std::make_unique<optimized::MpiSession>(optimized::WaitOptions{
          .silence_limit = options_.silence_limit,
          .say = [this](const std::string& words) { Say(words); }});
    }
    ranks_ = World();
    if (ranks_->rank() != 0) {
      name_ = fmt::format("rank {}: {}", ranks_->rank(), name_);
    }
    ExitCode code = ExitCode::kDone;
    ranks_->Run([&] { code = body({*ranks_, [this] { return World(); }}); });
    return code;
  }

  // After what this rank had to say has been printed: MPI's end waits for all.
  void Leave(int code) {
    ranks_.reset();
    if (mpi_ != nullptr) mpi_->Leave(code);
  }

 private:
  // A communicator of all ranks.
  std::unique_ptr<optimized::Communicator> World() {
    if (mpi_ != nullptr) return mpi_->World();
    return std::make_unique<optimized::SingleCommunicator>();
  }

  void Say(const std::string& words) const {
    if (options_.quiet) return;
    std::printf("%s: %s\n", name_.c_str(), words.c_str());
    std::fflush(stdout);
  }

  const RankMainOptions options_;
  std::string name_;
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

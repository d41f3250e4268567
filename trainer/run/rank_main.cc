// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/rank_main.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "core/errors.h"
#include "core/stoppable_output.h"
#include "core/text/ascii.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/mpi.h"
#include "optimized/communicator/shards.h"

namespace softmoe::trainer {
namespace {

// This process as one of the ranks of its run.
class RankProcess {
 public:
  RankProcess(const std::string& program, const RankOptions& options)
      : options_(options), name_(program) {}

  // The name that messages begin with. It changes once the rank is known.
  const std::string& name() const { return name_; }

  ExitCode Run(const std::function<ExitCode(const Ranks&)>& body) {
    if (options_.mpi()) {
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

  // Call it once this rank's messages are printed: MPI's end waits for all.
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
    PrintUnlessStopped(stderr, name_ + ": " + words + "\n");
  }

  const RankOptions options_;
  std::string name_;
  std::unique_ptr<optimized::MpiSession> mpi_;
  std::unique_ptr<optimized::Communicator> ranks_;
};

}  // namespace

int RankOptions::in_process() const {
  if (mpi()) return 1;
  if (const auto number = ParseNumber<int>(ranks)) return *number;
  throw ConfigError("--ranks " + ranks + ": give a number of ranks, or mpi");
}

void AddExchangeOption(CLI::App& app, RankOptions* options) {
  std::map<std::string, ExchangeChoice> choices;
  for (const ExchangeChoice choice :
       {ExchangeChoice::kAuto, ExchangeChoice::kHost, ExchangeChoice::kNccl}) {
    choices[NameOf(choice)] = choice;
  }
  app.add_option("--exchange", options->exchange,
                 "what carries gradients and parameters between ranks: nccl, "
                 "from device to device, for ranks with a device each; host, "
                 "through memory of the host; auto: nccl where it can, else "
                 "host; never changes the result [auto]")
      ->transform(CLI::Transformer(choices).description(""))
      // Comes first: the numbers of the choices are nobody's business.
      ->transform(CLI::IsMember(choices).description(""))
      ->type_name("TEXT:{auto,host,nccl}");
}

void AddRankOptions(CLI::App& app, RankOptions* options) {
  CLI::Option* const ranks = app.add_option(
      "--ranks", options->ranks,
      "N: ranks that share the batch and the threads of this process; mpi: the "
      "processes of an mpirun or srun --mpi=pmix, with --threads each; never "
      "changes the result, unless a line says so [1]");
  AddExchangeOption(app, options);
  // A day at most.
  app.add_option(
         "--silence-limit", options->silence_limit,
         "seconds that processes wait within a step for one that is silent, or "
         "cannot print its line, before all exit with code 5; 0: forever [600]")
      ->check(CLI::Range(0.0, 86400.0))
      // Range lets nan pass, and waiting would then have no end.
      ->check([](const std::string& text) {
        return std::isnan(std::strtod(text.c_str(), nullptr))
                   ? "Value " + text + " not in range 0 to 86400"
                   : std::string();
      })
      ->needs(ranks);
}

int RunRankMain(const std::string& program, const RankOptions& options,
                const std::function<ExitCode(const Ranks&)>& body) {
  RankProcess process(program, options);
  // RunMain takes a reference to the name, and reads it only when it prints.
  const int code = RunMain(process.name(), [&] { return process.Run(body); });
  process.Leave(code);
  return code;
}

int FirstRankWhere(bool mine, optimized::Communicator& communicator) {
  const int ranks = communicator.size();
  std::vector<uint8_t> all(static_cast<size_t>(ranks));
  all[static_cast<size_t>(communicator.rank())] = mine;
  communicator.Gather<uint8_t>(optimized::ShareOut(ranks, 1, ranks), all);
  const auto first = std::ranges::find(all, 1);
  return first == all.end() ? -1 : static_cast<int>(first - all.begin());
}

int RankAskedToStop(const StopSignal& stop,
                    optimized::Communicator& communicator) {
  // A signal may come between the polls of two ranks.
  return FirstRankWhere(stop.requested(), communicator);
}

void ThrowStopped(const StopSignal& stop, int asked_rank,
                  const std::string& done) {
  stop.ThrowIfRequested(done);
  throw StoppedError(fmt::format("rank {}: {}", asked_rank, done));
}

}  // namespace softmoe::trainer

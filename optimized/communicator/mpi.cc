// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/mpi.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/errors.h"

namespace softmoe::optimized {
namespace {

bool IsSet(const char* variable) { return std::getenv(variable) != nullptr; }

// Throws unless Open MPI's mpirun, or another launcher that speaks PMIx,
// started this process; otherwise every process would be a rank alone.
void RequireLauncher() {
  if (IsSet("OMPI_COMM_WORLD_RANK") || IsSet("PMIX_RANK")) return;
  const char* who = "no launcher known to Open MPI started this process";
  if (IsSet("PMI_RANK")) {
    who = "the mpirun of another MPI started this process (PMI_RANK is set)";
  } else if (IsSet("SLURM_PROCID")) {
    who = "srun started this process, but without PMIx";
  }
  throw EnvironmentError(
      std::string("ranks over MPI: ") + who +
      "; start the ranks with Open MPI's mpirun -n N (on Debian: apt-get "
      "install openmpi-bin), or with srun --mpi=pmix");
}

// The rank that a launcher's variables give this process. A shell started by
// mpirun passes these variables on to what it then starts without mpirun.
struct LaunchedRank {
  std::string variable, rank;
  std::string size;  // from Open MPI's mpirun; "" if it is not set
};

// To be called before MPI starts, which sets PMIX_RANK if no launcher has.
LaunchedRank RankOfLauncher() {
  LaunchedRank said;
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (!IsSet(variable)) continue;
    said = {.variable = variable, .rank = std::getenv(variable), .size = ""};
    break;
  }
  const char* const size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (size != nullptr) said.size = size;
  return said;
}

// Throws unless MPI gives this process the launcher's rank and size.
void RequireSameRank(const LaunchedRank& said, int rank, int size) {
  std::string other;
  if (said.rank != std::to_string(rank)) {
    other = said.variable + "=" + said.rank;
  } else if (!said.size.empty() && said.size != std::to_string(size)) {
    other = "OMPI_COMM_WORLD_SIZE=" + said.size;
  } else {
    return;
  }
  throw EnvironmentError(
      "ranks over MPI: " + other + " is in the environment, and this is rank " +
      std::to_string(rank) + " of " + std::to_string(size) +
      ": left over from another mpirun; unset it, and start the ranks with " +
      "mpirun -n N");
}

// The pause between two looks at pending messages. Not a yield, which on a busy
// machine makes a rank wait as long as those that compute.
constexpr std::chrono::microseconds kPause(50);

}  // namespace

void MpiSession::Check(int code, const char* name) {
  if (code == kMpiSuccess) return;
  broken_ = true;
  char text[kMpiMaxErrorString + 1] = {};
  int length = 0;
  mpi_.Error_string(code, text, &length);
  throw EnvironmentError(std::string("MPI_") + name + ": " + text +
                         "; see the output of mpirun and of the other ranks");
}

MpiSession::MpiSession(WaitOptions waits)
    : waits_(std::move(waits)), mpi_(LoadMpi()) {
  RequireLauncher();
  const LaunchedRank said = RankOfLauncher();
  int provided = 0;
  Check(mpi_.Init_thread(nullptr, nullptr, kMpiThreadFunneled, &provided),
        "Init_thread");
  if (provided < kMpiThreadFunneled) {
    mpi_.Finalize();
    throw EnvironmentError("Open MPI " + mpi_.version +
                           " was built without threads; install one that has "
                           "them (Debian's does)");
  }
  Check(mpi_.Comm_set_errhandler(mpi_.world, mpi_.errors_return),
        "Comm_set_errhandler");
  const auto [rank, size] = Place();
  try {
    RequireSameRank(said, rank, size);
  } catch (const EnvironmentError&) {
    mpi_.Finalize();
    throw;
  }
}

void MpiSession::Leave(int code) {
  if (broken_) mpi_.Abort(mpi_.world, code);
  mpi_.Finalize();
}

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(int rank, int size, MpiSession& session)
      : Communicator(rank, size, session.waits_),
        session_(session),
        mpi_(session.mpi_) {}

 private:
  // Message tags: calls and arrays in order; empty messages that report a
  // failed call to ranks that do not share calls yet.
  static constexpr int kInOrder = 0, kFailures = 1;

  // A message on its way to or from a rank.
  struct Message {
    MpiLibrary::Handle request = nullptr;
    size_t rank = 0;
    bool arrived = false;
  };

  // The first message of a call; the rest of a longer text follows.
  static constexpr size_t kShort = 240;
  struct Head {
    int32_t kind = 0, code = 0;
    int64_t length = 0;
    std::array<char, kShort> text = {};
  };

  std::vector<Call> ShareCalls(const Call& mine) override {
    if (session_.broken_) {
      throw EnvironmentError(
          "the ranks gave up on each other after an earlier error");
    }
    const auto self = static_cast<size_t>(rank());
    const auto ranks = static_cast<size_t>(size());
    std::vector<Message> words;
    for (size_t r = 0; r < ranks; ++r) {
      if (mine.kind != Call::Kind::kFailure || r == self) continue;
      Start(&words, r, "Isend", mpi_.Isend, nullptr, 0, kFailures);
    }
    std::vector<Head> heads(ranks);
    heads[self] = {.kind = static_cast<int32_t>(mine.kind),
                   .code = static_cast<int32_t>(mine.code),
                   .length = static_cast<int64_t>(mine.text.size())};
    mine.text.copy(heads[self].text.data(), kShort);
    Share(std::as_bytes(std::span(&heads[self], 1)), [&](size_t r) {
      return std::as_writable_bytes(std::span(&heads[r], 1));
    });
    std::vector<Call> calls;
    for (const Head& head : heads) {
      std::string text(head.text.data(), kShort);
      text.resize(static_cast<size_t>(head.length));
      calls.push_back({static_cast<Call::Kind>(head.kind),
                       static_cast<ExitCode>(head.code), std::move(text)});
    }
    calls[self] = mine;
    const auto rest = [](auto text) {
      return text.subspan(std::min(kShort, text.size()));
    };
    Share(std::as_bytes(rest(std::span(mine.text))), [&](size_t r) {
      return std::as_writable_bytes(rest(std::span(calls[r].text)));
    });
    // Receives the failure messages; the next communicator would find them.
    for (size_t r = 0; r < ranks; ++r) {
      if (calls[r].kind != Call::Kind::kFailure || r == self) continue;
      Start(&words, r, "Irecv", mpi_.Irecv, nullptr, 0, kFailures);
    }
    WaitForAll(words);
    return calls;
  }

  // Sends `mine` to all others, and receives what each sends into place(rank).
  template <typename Place>
  void Share(Outgoing mine, const Place& place) {
    const auto self = static_cast<size_t>(rank());
    std::vector<Outgoing> sends(static_cast<size_t>(size()), mine);
    std::vector<Incoming> receives(sends.size());
    for (size_t r = 0; r < receives.size(); ++r) receives[r] = place(r);
    sends[self] = {};
    receives[self] = {};
    Move(sends, receives);
  }

  bool AnotherHasFailed() override {
    int found = 0;
    session_.Check(
        mpi_.Iprobe(kMpiAnySource, kFailures, mpi_.world, &found, nullptr),
        "Iprobe");
    return found != 0;
  }

  void Move(std::span<const Outgoing> sends,
            std::span<const Incoming> receives) override {
    std::vector<Message> messages;
    const auto start = [&](const char* name, auto function, auto bytes,
                           size_t rank) {
      // MPI counts in int; the pieces of a pair of ranks arrive in their order.
      constexpr size_t kPiece = size_t{1} << 30;
      for (size_t begin = 0; begin < bytes.size(); begin += kPiece) {
        const auto piece =
            bytes.subspan(begin, std::min(kPiece, bytes.size() - begin));
        Start(&messages, rank, name, function, piece.data(), piece.size(),
              kInOrder);
      }
    };
    for (size_t r = 0; r < receives.size(); ++r) {
      start("Irecv", mpi_.Irecv, receives[r], r);
    }
    for (size_t r = 0; r < sends.size(); ++r) {
      start("Isend", mpi_.Isend, sends[r], r);
    }
    WaitForAll(messages);
  }

  void GiveUp() override { session_.broken_ = true; }

  template <typename Function, typename Data>
  void Start(std::vector<Message>* messages, size_t rank, const char* name,
             Function function, Data data, size_t size, int tag) {
    Message& message = messages->emplace_back();
    message.rank = rank;
    session_.Check(
        function(data, static_cast<int>(size), mpi_.byte,
                 static_cast<int>(rank), tag, mpi_.world, &message.request),
        name);
  }

  void WaitForAll(std::vector<Message>& messages) {
    StartWaiting();
    for (;; std::this_thread::sleep_for(kPause)) {
      for (Message& message : messages) {
        int arrived = message.arrived ? 1 : 0;
        if (arrived == 0) {
          session_.Check(mpi_.Test(&message.request, &arrived, nullptr),
                         "Test");
        }
        message.arrived = arrived != 0;
      }
      const auto late = std::ranges::find(messages, false, &Message::arrived);
      if (late == messages.end()) return;
      KeepWaiting("rank " + std::to_string(late->rank));
    }
  }

  MpiSession& session_;
  const MpiLibrary& mpi_;
};

std::pair<int, int> MpiSession::Place() {
  int rank = 0, size = 0;
  Check(mpi_.Comm_rank(mpi_.world, &rank), "Comm_rank");
  Check(mpi_.Comm_size(mpi_.world, &size), "Comm_size");
  return {rank, size};
}

std::unique_ptr<Communicator> MpiSession::World() {
  const auto [rank, size] = Place();
  return std::make_unique<MpiCommunicator>(rank, size, *this);
}

}  // namespace softmoe::optimized

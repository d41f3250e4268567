// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/mpi.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/errors.h"

namespace softmoe::optimized {

void MpiSession::Check(int code, const char* name) {
  if (code == kMpiSuccess) return;
  failed_ = true;
  char text[kMpiMaxErrorString + 1] = {};
  int length = 0;
  mpi_.Error_string(code, text, &length);
  throw EnvironmentError(std::string("MPI_") + name + ": " + text +
                         "; see what mpirun and the other ranks say");
}

MpiSession::MpiSession() : mpi_(LoadMpi()) {
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
}

MpiSession::~MpiSession() {
  if (!failed_) mpi_.Finalize();
}

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(int rank, int size, MpiSession& session)
      : Communicator(rank, size), session_(session), mpi_(session.mpi_) {}

 private:
  // Of messages: arrays, and words without any bytes that their sender's call
  // is a failure, for who does not share calls yet.
  static constexpr int kArrays = 0, kFailures = 1;

  // First the sizes of the texts, then the texts.
  std::vector<Call> ShareCalls(const Call& mine) override {
    std::vector<MpiLibrary::Handle> words;
    if (mine.kind == Call::Kind::kFailure) {
      ForOthers([&](int rank) {
        session_.Check(mpi_.Isend(nullptr, 0, mpi_.byte, rank, kFailures,
                                  mpi_.world, &words.emplace_back()),
                       "Isend");
      });
    }
    struct Head {
      int32_t kind, code, length;
    };
    constexpr int kWords = 3;
    const auto ranks = static_cast<size_t>(size());
    const Head head = {static_cast<int32_t>(mine.kind),
                       static_cast<int32_t>(mine.code),
                       static_cast<int32_t>(mine.text.size())};
    std::vector<Head> heads(ranks);
    session_.Check(mpi_.Allgather(&head, kWords, mpi_.int32, heads.data(),
                                  kWords, mpi_.int32, mpi_.world),
                   "Allgather");

    std::vector<int> lengths, offsets;
    int length = 0;
    for (const Head& of_rank : heads) {
      lengths.push_back(of_rank.length);
      offsets.push_back(length);
      length += of_rank.length;
    }
    std::string texts(static_cast<size_t>(length), ' ');
    session_.Check(
        mpi_.Allgatherv(mine.text.data(), head.length, mpi_.byte, texts.data(),
                        lengths.data(), offsets.data(), mpi_.byte, mpi_.world),
        "Allgatherv");

    std::vector<Call> calls;
    for (size_t r = 0; r < ranks; ++r) {
      calls.push_back({static_cast<Call::Kind>(heads[r].kind),
                       static_cast<ExitCode>(heads[r].code),
                       texts.substr(static_cast<size_t>(offsets[r]),
                                    static_cast<size_t>(lengths[r]))});
    }
    // Or the next communicator would find them.
    ForOthers([&](int rank) {
      if (calls[static_cast<size_t>(rank)].kind != Call::Kind::kFailure) return;
      session_.Check(mpi_.Irecv(nullptr, 0, mpi_.byte, rank, kFailures,
                                mpi_.world, &words.emplace_back()),
                     "Irecv");
    });
    WaitForAll(words);
    return calls;
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
    std::vector<MpiLibrary::Handle> requests;
    const auto start = [&](auto function, const char* name, auto bytes,
                           size_t rank) {
      // MPI counts in int; the pieces of a pair of ranks arrive in their order.
      constexpr size_t kPiece = size_t{1} << 30;
      for (size_t begin = 0; begin < bytes.size(); begin += kPiece) {
        const auto piece =
            bytes.subspan(begin, std::min(kPiece, bytes.size() - begin));
        requests.emplace_back();
        session_.Check(function(piece.data(), static_cast<int>(piece.size()),
                                mpi_.byte, static_cast<int>(rank), kArrays,
                                mpi_.world, &requests.back()),
                       name);
      }
    };
    for (size_t r = 0; r < receives.size(); ++r) {
      start(mpi_.Irecv, "Irecv", receives[r], r);
    }
    for (size_t r = 0; r < sends.size(); ++r) {
      start(mpi_.Isend, "Isend", sends[r], r);
    }
    WaitForAll(requests);
  }

  template <typename Body>
  void ForOthers(const Body& body) {
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != this->rank()) body(rank);
    }
  }

  void WaitForAll(std::vector<MpiLibrary::Handle>& requests) {
    session_.Check(mpi_.Waitall(static_cast<int>(requests.size()),
                                requests.data(), nullptr),
                   "Waitall");
  }

  MpiSession& session_;
  const MpiLibrary& mpi_;
};

std::unique_ptr<Communicator> MpiSession::World() {
  int rank = 0, size = 0;
  Check(mpi_.Comm_rank(mpi_.world, &rank), "Comm_rank");
  Check(mpi_.Comm_size(mpi_.world, &size), "Comm_size");
  return std::make_unique<MpiCommunicator>(rank, size, *this);
}

}  // namespace softmoe::optimized

// SPDX-License-Identifier: Apache-2.0
//
// mpi.h - ranks that are processes, started by mpirun or srun, over MPI.
//
// Each rank sends its calls and arrays straight to every other one and never
// blocks in MPI: while waiting it sleeps between two looks, knows for which
// rank it waits, and gives up on one that is silent for too long (WaitOptions).
// If a rank dies, its launcher notices and ends the others.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_H_

#include <memory>
#include <utility>

#include "optimized/communicator/communicator.h"
#include "optimized/communicator/mpi_library.h"

namespace softmoe::optimized {

// MPI from its start to its end, which a process has once. One thread owns the
// session and calls its communicators.
class MpiSession {
 public:
  // Errors   EnvironmentError: as LoadMpi; if no mpirun or srun of that MPI has
  //          started this process, or its environment names another rank; or if
  //          MPI does not start.
  explicit MpiSession(WaitOptions waits);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // Returns a communicator of all ranks. Once it has ended on all of them, even
  // by an error, another one can take its place.
  std::unique_ptr<Communicator> World();

  // To be called when this process is about to end with `code`. Waits until all
  // ranks are here, so that each prints what it has to say first: mpirun ends
  // the others when one has failed. After an error of MPI itself, after an
  // operation that this rank alone has left, or if a rank was silent for too
  // long, waits for nobody and ends all ranks.
  void Leave(int code);

 private:
  friend class MpiCommunicator;

  // Throws EnvironmentError unless `code`, the result of `name`, means success.
  void Check(int code, const char* name);
  std::pair<int, int> Place();  // rank, size

  const WaitOptions waits_;
  MpiLibrary mpi_;
  bool broken_ = false;
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_H_

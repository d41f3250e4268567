// SPDX-License-Identifier: Apache-2.0
//
// mpi.h - ranks that are processes, started by mpirun or srun, over MPI.
//
// Each rank sends its calls and arrays straight to every other one, and never
// blocks in MPI: while it waits it sleeps between two looks, knows for whom it
// waits, and gives up on whoever is silent for too long (WaitOptions). A rank
// that dies is its launcher's to notice, which then ends the others.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_H_

#include <memory>
#include <utility>

#include "optimized/communicator/communicator.h"
#include "optimized/communicator/mpi_library.h"

namespace softmoe::optimized {

// MPI, from its start to its end, which a process has once. One thread has it
// and calls its communicators.
class MpiSession {
 public:
  // Errors   EnvironmentError: as LoadMpi; no mpirun or srun of that MPI has
  //          started this process, or it has another rank than its environment
  //          says; or MPI does not start.
  explicit MpiSession(WaitOptions waits);
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // The communicator of all ranks. Another one can take its place, once it has
  // ended on all ranks, be it by an error.
  std::unique_ptr<Communicator> World();

  // This process is about to end with `code`. Waits until all ranks are here: a
  // rank that has something to print prints it before, since mpirun ends the
  // others when the first has failed. After an error of MPI itself, an
  // operation that this rank alone has left, or a rank that was silent for too
  // long, it waits for nobody, and ends them all.
  void Leave(int code);

 private:
  friend class MpiCommunicator;

  // Throws EnvironmentError unless `code`, what function `name` returned, means
  // success.
  void Check(int code, const char* name);
  std::pair<int, int> Place();  // rank, size

  const WaitOptions waits_;
  MpiLibrary mpi_;
  bool broken_ = false;
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_H_

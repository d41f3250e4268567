// SPDX-License-Identifier: Apache-2.0
//
// mpi.h - ranks that are processes, started by mpirun or srun, over MPI.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_H_

#include <memory>

#include "optimized/communicator/communicator.h"
#include "optimized/communicator/mpi_library.h"

namespace softmoe::optimized {

// MPI, from its start to its end, which a process has once. One thread has it
// and calls its communicators.
class MpiSession {
 public:
  // Errors   EnvironmentError: as LoadMpi, or MPI does not start.
  MpiSession();
  // Waits until all ranks are here: a rank that has something to print prints
  // it before, since mpirun ends the others when the first has failed. After an
  // error of MPI itself it waits for nobody.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  // The communicator of all ranks. Another one can take its place, once it has
  // ended on all ranks, be it by an error.
  std::unique_ptr<Communicator> World();

 private:
  friend class MpiCommunicator;

  // Throws EnvironmentError unless `code`, what function `name` returned, means
  // success.
  void Check(int code, const char* name);

  MpiLibrary mpi_;
  bool failed_ = false;
};

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_H_

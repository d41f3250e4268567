// SPDX-License-Identifier: Apache-2.0
//
// mpi_test_util.h - starting ranks with mpirun in tests.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_MPI_TEST_UTIL_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_MPI_TEST_UTIL_H_

#include <string>
#include <vector>

namespace softmoe::optimized {

// The words of a command before the program's: mpirun (openmpi-bin, which
// bazelw installs) for `ranks` processes on any number of cores, as root too.
inline std::vector<std::string> MpiRun(int ranks) {
  return {"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "mpirun", "-n", std::to_string(ranks), "--oversubscribe",
          // For the waits in MPI itself, at its start and end.
          "--mca", "mpi_yield_when_idle", "1"};
}

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_MPI_TEST_UTIL_H_

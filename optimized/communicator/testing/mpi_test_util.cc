// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/testing/mpi_test_util.h"

namespace softmoe::optimized {

std::vector<std::string> MpiRun(int ranks) {
  return {"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "mpirun", "-n", std::to_string(ranks), "--oversubscribe",
          // Where MPI itself waits, at its start and end.
          "--mca", "mpi_yield_when_idle", "1"};
}

}  // namespace softmoe::optimized

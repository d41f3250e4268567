// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/testing/mpi_test_util.h"

#include "core/errors.h"
#include "core/process/subprocess.h"
#include "optimized/communicator/mpi_library.h"

namespace softmoe::optimized {

std::string ObstacleToMpi() {
  try {
    LoadMpi();
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return HaveProgram("mpirun") ? "" : "no mpirun: apt-get install openmpi-bin";
}

std::vector<std::string> MpiRun(int ranks) {
  return {"env",
          "OMPI_ALLOW_RUN_AS_ROOT=1",
          "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
          "mpirun",
          "-n",
          std::to_string(ranks),
          "--oversubscribe"};
}

}  // namespace softmoe::optimized

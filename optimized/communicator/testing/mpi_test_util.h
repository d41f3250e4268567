// SPDX-License-Identifier: Apache-2.0
//
// mpi_test_util.h - starting ranks with mpirun in tests.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_MPI_TEST_UTIL_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_MPI_TEST_UTIL_H_

#include <string>
#include <vector>

namespace softmoe::optimized {

// mpirun (openmpi-bin, which bazelw installs) for `ranks` processes on any
// number of cores, as root too: the words before the program's.
std::vector<std::string> MpiRun(int ranks);

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_TESTING_MPI_TEST_UTIL_H_

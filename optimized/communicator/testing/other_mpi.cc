// SPDX-License-Identifier: Apache-2.0
//
// libother_mpi.so - of MPI no more than its version: what the environment
// variable OTHER_MPI_VERSION says.
#include <cstdlib>
#include <cstring>

extern "C" int MPI_Get_library_version(char* text, int* length) {
  const char* const version = std::getenv("OTHER_MPI_VERSION");
  std::strcpy(text, version);
  *length = static_cast<int>(std::strlen(version));
  return 0;
}

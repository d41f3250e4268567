// SPDX-License-Identifier: Apache-2.0
//
// libother_mpi.so - of MPI no more than its version: what the environment
// variable OTHER_MPI_VERSION says.
#include <cstdlib>
#include <cstring>
#include <string>

extern "C" int MPI_Get_library_version(char* text, int* length) {
  const char* const set = std::getenv("OTHER_MPI_VERSION");
  const std::string version = set == nullptr ? "" : set;
  std::memcpy(text, version.c_str(), version.size() + 1);
  *length = static_cast<int>(version.size());
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
//
// libother_mpi.so - an MPI with nothing but a version, which it takes from the
// environment variable OTHER_MPI_VERSION.
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

// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/mpi_library.h"

#include <dlfcn.h>

#include "core/errors.h"

namespace softmoe::optimized {
namespace {

[[noreturn]] void ThrowNoMpi(const std::string& what) {
  throw EnvironmentError(what +
                         "; ranks over MPI need Open MPI 4 or 5: on Debian, "
                         "apt-get install openmpi-bin libopenmpi3");
}

template <typename Function>
void Find(void* library, const std::string& name, const char* symbol,
          Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (*function == nullptr) ThrowNoMpi(name + " has no " + symbol);
}

// "4.1.4" for "Open MPI v4.1.4, package: ...", "" for any other text.
std::string OpenMpiVersion(const std::string& text) {
  const std::string begin = "Open MPI v";
  if (!text.starts_with(begin)) return "";
  return text.substr(begin.size(), text.find(',') - begin.size());
}

}  // namespace

MpiLibrary LoadMpi(const std::string& name) {
  // Global, since the library's plug-ins look for its symbols.
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) ThrowNoMpi(dlerror());
  MpiLibrary mpi;
  Find(library, name, "MPI_Get_library_version", &mpi.Get_library_version);
  char text[kMpiMaxVersion] = {};
  int length = 0;
  mpi.Get_library_version(text, &length);
  mpi.version = OpenMpiVersion(text);
  if (!mpi.version.starts_with("4.") && !mpi.version.starts_with("5.")) {
    ThrowNoMpi(name + " is '" + std::string(text).substr(0, 80) + "'");
  }
  Find(library, name, "MPI_Init_thread", &mpi.Init_thread);
  Find(library, name, "MPI_Finalize", &mpi.Finalize);
  Find(library, name, "MPI_Abort", &mpi.Abort);
  Find(library, name, "MPI_Comm_rank", &mpi.Comm_rank);
  Find(library, name, "MPI_Comm_size", &mpi.Comm_size);
  Find(library, name, "MPI_Comm_set_errhandler", &mpi.Comm_set_errhandler);
  Find(library, name, "MPI_Error_string", &mpi.Error_string);
  Find(library, name, "MPI_Isend", &mpi.Isend);
  Find(library, name, "MPI_Irecv", &mpi.Irecv);
  Find(library, name, "MPI_Iprobe", &mpi.Iprobe);
  Find(library, name, "MPI_Test", &mpi.Test);
  Find(library, name, "ompi_mpi_comm_world", &mpi.world);
  Find(library, name, "ompi_mpi_byte", &mpi.byte);
  Find(library, name, "ompi_mpi_errors_return", &mpi.errors_return);
  return mpi;
}

}  // namespace softmoe::optimized

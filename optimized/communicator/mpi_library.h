// SPDX-License-Identifier: Apache-2.0
//
// mpi_library.h - Open MPI, loaded when it is first needed: nothing links it,
// so programs start without it.
//
// The declarations are those of its binary interface libmpi.so.40, which Open
// MPI 4 and 5 share: handles are pointers, and what mpi.h calls MPI_COMM_WORLD
// is the address of a variable. Another MPI has other types, and is refused.
#ifndef SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_LIBRARY_H_
#define SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_LIBRARY_H_

#include <string>

namespace softmoe::optimized {

struct MpiLibrary {
  // MPI_Comm, MPI_Datatype, MPI_Errhandler and MPI_Request.
  using Handle = void*;

  // MPI_Name is Name here.
  int (*Get_library_version)(char* version, int* length);
  int (*Init_thread)(int* argc, char*** argv, int required, int* provided);
  int (*Finalize)();
  int (*Comm_rank)(Handle comm, int* rank);
  int (*Comm_size)(Handle comm, int* size);
  int (*Comm_set_errhandler)(Handle comm, Handle errhandler);
  int (*Error_string)(int error, char* text, int* length);
  int (*Abort)(Handle comm, int code);
  int (*Isend)(const void* data, int count, Handle type, int to, int tag,
               Handle comm, Handle* request);
  int (*Irecv)(void* data, int count, Handle type, int from, int tag,
               Handle comm, Handle* request);
  // status: nullptr is MPI_STATUS_IGNORE.
  int (*Iprobe)(int from, int tag, Handle comm, int* found, void* status);
  int (*Test)(Handle* request, int* done, void* status);

  Handle world;          // MPI_COMM_WORLD
  Handle byte;           // MPI_BYTE
  Handle errors_return;  // MPI_ERRORS_RETURN

  std::string version;  // "4.1.4"
};

inline constexpr int kMpiSuccess = 0;           // MPI_SUCCESS
inline constexpr int kMpiAnySource = -1;        // MPI_ANY_SOURCE
inline constexpr int kMpiThreadFunneled = 1;    // MPI_THREAD_FUNNELED
inline constexpr int kMpiMaxErrorString = 256;  // MPI_MAX_ERROR_STRING
inline constexpr int kMpiMaxVersion = 256;  // MPI_MAX_LIBRARY_VERSION_STRING

// Loads the library `name`, which stays loaded.
// Errors   EnvironmentError, naming the package, if there is none, or if it is
//          not Open MPI 4 or 5.
MpiLibrary LoadMpi(const std::string& name = "libmpi.so.40");

}  // namespace softmoe::optimized

#endif  // SOFTMOE_OPTIMIZED_COMMUNICATOR_MPI_LIBRARY_H_

// SPDX-License-Identifier: Apache-2.0
//
// hdf5_driver.h - libhdf5 on a file descriptor that we opened.
//
// There are two reasons not to let libhdf5 open files by name. First, it must
// parse the very file whose checksum was verified, not one that has taken its
// name since. Second, when a write fails inside H5Fclose (disk full), libhdf5
// keeps the file half closed and may crash at exit. This driver records the
// first error and lets libhdf5 go on; the writer then asks for it and throws.
// So does the reader: a file is not damaged because its disk fails.
#ifndef SOFTMOE_CORE_HDF5_HDF5_DRIVER_H_
#define SOFTMOE_CORE_HDF5_HDF5_DRIVER_H_

#include <hdf5/serial/hdf5.h>

namespace softmoe {

// The open file as libhdf5 sees it. It must outlive the HDF5 file on it.
struct Hdf5DriverFile {
  int descriptor = -1;
  int error = 0;        // errno of the first read or write that failed; 0: none
  bool shrank = false;  // bytes that were there when libhdf5 opened it are gone
};

// Makes this access property list open `file`: H5Fcreate and H5Fopen then
// ignore the name that they are given.
void SetDriver(hid_t access_list, Hdf5DriverFile* file);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_HDF5_HDF5_DRIVER_H_

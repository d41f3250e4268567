// SPDX-License-Identifier: Apache-2.0
#include "core/hdf5/hdf5_driver.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>

#include "core/errors.h"
#include "core/files/file_error.h"

namespace softmoe {
namespace {

// libhdf5 passes this to the callbacks; its own part must come first.
struct OpenFile {
  H5FD_t base;
  Hdf5DriverFile* file;
  bool writing;
  haddr_t end_of_allocation;
  haddr_t end_of_file;
};

OpenFile* Cast(H5FD_t* file) { return reinterpret_cast<OpenFile*>(file); }
const OpenFile* Cast(const H5FD_t* file) {
  return reinterpret_cast<const OpenFile*>(file);
}

void NoteError(OpenFile* open, int error) {
  if (open->file->error == 0) open->file->error = error;
}

H5FD_t* Open(const char*, unsigned flags, hid_t access_list, haddr_t) {
  const void* info = H5Pget_driver_info(access_list);
  if (info == nullptr) return nullptr;
  auto* open = new (std::nothrow) OpenFile();
  if (open == nullptr) return nullptr;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): the pointer itself
  std::memcpy(&open->file, info, sizeof(open->file));
  struct stat status;
  if (fstat(open->file->descriptor, &status) != 0) {
    NoteError(open, errno);
    delete open;
    return nullptr;
  }
  open->writing = (flags & H5F_ACC_RDWR) != 0;
  open->end_of_file = static_cast<haddr_t>(status.st_size);
  return &open->base;
}

herr_t Close(H5FD_t* file) {
  delete Cast(file);  // the descriptor stays open: it is not ours
  return 0;
}

herr_t Query(const H5FD_t*, unsigned long* flags) {
  // These are the flags of libhdf5's own POSIX driver: files come out the same.
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
           H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA |
           H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t GetEndOfAllocation(const H5FD_t* file, H5FD_mem_t) {
  return Cast(file)->end_of_allocation;
}

herr_t SetEndOfAllocation(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  Cast(file)->end_of_allocation = address;
  return 0;
}

haddr_t GetEndOfFile(const H5FD_t* file, H5FD_mem_t) {
  return Cast(file)->end_of_file;
}

herr_t Read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size,
            void* buffer) {
  OpenFile* open = Cast(file);
  auto* bytes = static_cast<char*>(buffer);
  while (size > 0) {
    const ssize_t count =
        pread(open->file->descriptor, bytes, size, static_cast<off_t>(address));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      NoteError(open, errno);
      return -1;
    }
    if (count == 0 && open->writing) {  // allocated, not yet written: zeros
      std::memset(bytes, 0, size);
      return 0;
    }
    if (count == 0) {
      open->file->shrank |= address < open->end_of_file;
      return -1;
    }
    bytes += count;
    size -= static_cast<size_t>(count);
    address += static_cast<haddr_t>(count);
  }
  return 0;
}

herr_t Write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size,
             const void* buffer) {
  OpenFile* open = Cast(file);
  if (open->file->error == 0) {
    const int error = WriteAll(open->file->descriptor,
                               {static_cast<const char*>(buffer), size},
                               static_cast<int64_t>(address));
    if (error != 0) NoteError(open, error);
  }
  open->end_of_file = std::max(open->end_of_file, address + size);
  return 0;  // see the head of hdf5_driver.h
}

// The file ends where the allocation ends, without leftovers.
herr_t Truncate(H5FD_t* file, hid_t, hbool_t) {
  OpenFile* open = Cast(file);
  if (open->end_of_file == open->end_of_allocation) return 0;
  if (open->file->error == 0 &&
      ftruncate(open->file->descriptor,
                static_cast<off_t>(open->end_of_allocation)) != 0) {
    NoteError(open, errno);
  }
  open->end_of_file = open->end_of_allocation;
  return 0;
}

H5FD_class_t MakeClass() {
  H5FD_class_t driver;
  std::memset(&driver, 0, sizeof(driver));
#if H5_VERSION_GE(1, 13, 0)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(700);  // free for local use
#endif
  driver.name = "softmoe";
  driver.maxaddr = (haddr_t{1} << 62) - 1;
  driver.fc_degree = H5F_CLOSE_STRONG;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): it copies the pointer
  driver.fapl_size = sizeof(Hdf5DriverFile*);
  driver.open = &Open;
  driver.close = &Close;
  driver.query = &Query;
  driver.get_eoa = &GetEndOfAllocation;
  driver.set_eoa = &SetEndOfAllocation;
  driver.get_eof = &GetEndOfFile;
  driver.read = &Read;
  driver.write = &Write;
  driver.truncate = &Truncate;
  // Metadata and raw data are allocated from separate lists.
  const H5FD_mem_t free_lists[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(free_lists), std::end(free_lists),
            std::begin(driver.fl_map));
  return driver;
}

}  // namespace

void SetDriver(hid_t access_list, Hdf5DriverFile* file) {
  static const H5FD_class_t driver_class = MakeClass();
  static const hid_t driver = H5FDregister(&driver_class);
  SOFTMOE_CHECK(driver >= 0) << "H5FDregister";
  SOFTMOE_CHECK(H5Pset_driver(access_list, driver, &file) >= 0);
}

}  // namespace softmoe

// SPDX-License-Identifier: Apache-2.0
//
// hdf5_storage.h - how our datasets are stored in their file, so that a forged
// file cannot make a reader open others, load plug-ins, or allocate more than a
// file can have bytes for.
#ifndef SOFTMOE_CORE_HDF5_HDF5_STORAGE_H_
#define SOFTMOE_CORE_HDF5_HDF5_STORAGE_H_

#include <hdf5/serial/hdf5.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace softmoe {

// Larger datasets are parameters and moments, whose bits hardly compress:
// deflating them would cost more time than writing them. So a dataset is never
// larger than both this and its file.
inline constexpr int64_t kDeflateUpToBytes = 16 << 20;

// Whether the dataset consists of bytes in this file, plain or deflated: no
// other files, no plug-ins.
bool IsStoredAsOurs(hid_t dataset);

// The shape of a dataset with elements of `element_bytes`. Sets `problem` if it
// has no shape, or one that a file of `file_bytes` cannot hold.
std::vector<int64_t> StoredShape(hid_t dataset, size_t element_bytes,
                                 int64_t file_bytes, std::string* problem);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_HDF5_HDF5_STORAGE_H_

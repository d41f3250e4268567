// SPDX-License-Identifier: Apache-2.0
//
// hdf5_test_util.h - HDF5 files that no program of ours writes: good files that
// libhdf5 changes and that are sealed again, so that their checksums hold.
#ifndef SOFTMOE_CORE_TESTING_HDF5_TEST_UTIL_H_
#define SOFTMOE_CORE_TESTING_HDF5_TEST_UTIL_H_

#include <hdf5/serial/hdf5.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/hdf5/hdf5_envelope.h"

namespace softmoe {

// All functions throw InternalError if they fail.

// Lets `change` change the content of the file, and writes the new envelope.
void ChangeHdf5(const std::filesystem::path& path, const Hdf5Kind& kind,
                const std::function<void(hid_t file)>& change);

// Deletes a group or dataset, "/a/b", or an attribute, "/a/b@name".
void DeleteHdf5(hid_t file, const std::string& place);

// Put a group, a dataset or an attribute where one may have been. T is what
// Hdf5Writer writes there. A dataset without a shape has rank 1.
void PutGroup(hid_t file, const std::string& path);
template <typename T>
void PutDataset(hid_t file, const std::string& path,
                const std::vector<T>& values, std::vector<hsize_t> shape = {});
template <typename T>
void PutAttribute(hid_t file, const std::string& object,
                  const std::string& name, const T& value);

}  // namespace softmoe

#endif  // SOFTMOE_CORE_TESTING_HDF5_TEST_UTIL_H_

// SPDX-License-Identifier: Apache-2.0
#include "core/testing/hdf5_test_util.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <type_traits>

#include "core/errors.h"
#include "core/hdf5/hdf5_handles.h"

namespace softmoe {
namespace {

void Check(bool ok, const std::string& place) {
  SOFTMOE_CHECK(ok) << place << ": " << LastHdf5Error();
}

void Vacate(hid_t file, const std::string& path) {
  if (H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0) DeleteHdf5(file, path);
}

// Values as HDF5 stores them: little-endian, as in memory.
struct Stored {
  Hdf5Handle type;
  std::string bytes;
};

template <typename T>
Stored StoredAs(const std::vector<T>& values) {
  if constexpr (std::is_same_v<T, std::string>) {
    size_t length = 1;  // HDF5 has no texts of length 0
    for (const T& value : values) length = std::max(length, value.size());
    std::string bytes;
    for (T value : values) {
      value.resize(length);
      bytes += value;
    }
    return {StringType(length), bytes};
  } else {
    return {Hdf5Handle(H5Tcopy(Hdf5Type<T>::File()), &H5Tclose),
            std::string(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(T))};
  }
}

}  // namespace

void ChangeHdf5(const std::filesystem::path& path, const Hdf5Kind& kind,
                const std::function<void(hid_t file)>& change) {
  SilenceHdf5();
  Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), &H5Fclose);
  Check(file.valid(), path);
  change(file.id());
  Check(file.Close(), path);
  const std::unique_ptr<FILE, int (*)(FILE*)> changed(
      std::fopen(path.c_str(), "r+b"), &std::fclose);
  SOFTMOE_CHECK(changed != nullptr) << path.string();
  WriteEnvelope(fileno(changed.get()), path, kind);
}

void DeleteHdf5(hid_t file, const std::string& place) {
  const size_t at = place.find('@');
  const std::string object = at == 0 ? "/" : place.substr(0, at);
  Check(
      (at == std::string::npos
           ? H5Ldelete(file, object.c_str(), H5P_DEFAULT)
           : H5Adelete_by_name(file, object.c_str(),
                               place.substr(at + 1).c_str(), H5P_DEFAULT)) >= 0,
      place);
}

void PutGroup(hid_t file, const std::string& path) {
  Vacate(file, path);
  const Hdf5Handle group(
      H5Gcreate2(file, path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      &H5Gclose);
  Check(group.valid(), path);
}

template <typename T>
void PutDataset(hid_t file, const std::string& path,
                const std::vector<T>& values, std::vector<hsize_t> shape) {
  Vacate(file, path);
  if (shape.empty()) shape = {values.size()};
  const Stored stored = StoredAs(values);
  const Hdf5Handle space(
      H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
      &H5Sclose);
  const Hdf5Handle dataset(
      H5Dcreate2(file, path.c_str(), stored.type.id(), space.id(), H5P_DEFAULT,
                 H5P_DEFAULT, H5P_DEFAULT),
      &H5Dclose);
  Check(dataset.valid() &&
            H5Dwrite(dataset.id(), stored.type.id(), H5S_ALL, H5S_ALL,
                     H5P_DEFAULT, stored.bytes.data()) >= 0,
        path);
}

template <typename T>
void PutAttribute(hid_t file, const std::string& object,
                  const std::string& name, const T& value) {
  const std::string place = object + "@" + name;
  if (H5Aexists_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT) > 0) {
    DeleteHdf5(file, place);
  }
  const Stored stored = StoredAs(std::vector<T>{value});
  const Hdf5Handle space(H5Screate(H5S_SCALAR), &H5Sclose);
  const Hdf5Handle attribute(
      H5Acreate_by_name(file, object.c_str(), name.c_str(), stored.type.id(),
                        space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
      &H5Aclose);
  Check(attribute.valid() && H5Awrite(attribute.id(), stored.type.id(),
                                      stored.bytes.data()) >= 0,
        place);
}

template void PutDataset(hid_t, const std::string&, const std::vector<float>&,
                         std::vector<hsize_t>);
template void PutDataset(hid_t, const std::string&, const std::vector<double>&,
                         std::vector<hsize_t>);
template void PutDataset(hid_t, const std::string&, const std::vector<int64_t>&,
                         std::vector<hsize_t>);
template void PutDataset(hid_t, const std::string&, const std::vector<uint8_t>&,
                         std::vector<hsize_t>);
template void PutDataset(hid_t, const std::string&,
                         const std::vector<std::string>&, std::vector<hsize_t>);
template void PutAttribute(hid_t, const std::string&, const std::string&,
                           const int64_t&);
template void PutAttribute(hid_t, const std::string&, const std::string&,
                           const std::string&);

}  // namespace softmoe

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "core/errors.h"
#include "core/files/file_error.h"
#include "core/files/input_file.h"
#include "core/hdf5/hdf5_driver.h"
#include "core/hdf5/hdf5_envelope.h"
#include "core/hdf5/hdf5_file.h"
#include "core/hdf5/hdf5_handles.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

// Returns the name of a type on disk: "float32", "string", ...
std::string TypeName(hid_t type) {
  if (H5Tget_class(type) == H5T_STRING) return "string";
  if (H5Tequal(type, H5T_IEEE_F32LE) > 0) return Hdf5Type<float>::kName;
  if (H5Tequal(type, H5T_IEEE_F64LE) > 0) return Hdf5Type<double>::kName;
  if (H5Tequal(type, H5T_STD_I32LE) > 0) return Hdf5Type<int32_t>::kName;
  if (H5Tequal(type, H5T_STD_I64LE) > 0) return Hdf5Type<int64_t>::kName;
  if (H5Tequal(type, H5T_STD_U8LE) > 0) return Hdf5Type<uint8_t>::kName;
  return "another type";
}

bool IsOurString(hid_t type) {
  return H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0;
}

// Returns the bytes of an array, or the largest number if they exceed 64 bits.
uint64_t NumBytes(const std::vector<hsize_t>& extents, uint64_t element_bytes) {
  uint64_t bytes = element_bytes;
  for (const hsize_t extent : extents) {
    if (extent == 0) return 0;
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      return std::numeric_limits<uint64_t>::max();
    }
  }
  return bytes;
}

// Whether the dataset consists of bytes in this file, plain or deflated. A
// forged file could make a reader open other files, or plug-ins.
bool IsStoredAsOurs(hid_t dataset) {
  const Hdf5Handle list(H5Dget_create_plist(dataset), &H5Pclose);
  if (!list.valid()) return false;
  const H5D_layout_t layout = H5Pget_layout(list.id());
  if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS &&
      layout != H5D_CHUNKED) {
    return false;
  }
  if (H5Pget_external_count(list.id()) != 0) return false;
  const int filters = H5Pget_nfilters(list.id());
  for (int i = 0; i < filters; ++i) {
    size_t none = 0;
    unsigned flags = 0;
    const H5Z_filter_t filter =
        H5Pget_filter2(list.id(), static_cast<unsigned>(i), &flags, &none,
                       nullptr, 0, nullptr, nullptr);
    if (filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_DEFLATE &&
        filter != H5Z_FILTER_FLETCHER32) {
      return false;
    }
  }
  return filters >= 0;
}

// Returns the shape of a dataset with elements of `element_bytes`. Sets
// `problem` if it has no shape, or one that a file of `file_bytes` cannot hold,
// so that reading would allocate more than the file can have bytes for.
std::vector<int64_t> StoredShape(hid_t dataset, size_t element_bytes,
                                 int64_t file_bytes, std::string* problem) {
  const Hdf5Handle space(H5Dget_space(dataset), &H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (rank < 0 || H5Sget_simple_extent_type(space.id()) == H5S_NULL) {
    *problem = "has no shape";
    return {};
  }
  std::vector<hsize_t> extents(static_cast<size_t>(rank));
  if (rank > 0) {
    H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr);
  }
  // HDF5 permits dimensions without bytes, and chunks larger than the dataset.
  uint64_t bytes = NumBytes(extents, element_bytes);
  const Hdf5Handle list(H5Dget_create_plist(dataset), &H5Pclose);
  if (H5Pget_layout(list.id()) == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(extents.size());
    H5Pget_chunk(list.id(), rank, chunk.data());
    bytes = std::max(bytes, NumBytes(chunk, element_bytes));
  }
  const auto most =
      static_cast<uint64_t>(std::max(file_bytes, kDeflateUpToBytes));
  const auto too_long = [](hsize_t extent) { return extent >> 62 != 0; };
  if (bytes > most || std::any_of(extents.begin(), extents.end(), too_long)) {
    *problem =
        fmt::format("has the shape [{}], more than a file of {} bytes holds",
                    fmt::join(extents, ", "), file_bytes);
    return {};
  }
  return {extents.begin(), extents.end()};
}

}  // namespace

struct Hdf5Reader::Impl {
  Impl(fs::path path_arg, const Hdf5Kind& kind)
      : path(std::move(path_arg)),
        input(path),
        envelope(CheckEnvelope(input.descriptor(), path, kind)),
        content_sha256(Sha256Hex(envelope.content)) {}

  // Throws EnvironmentError if bytes of the file could not be read, whatever
  // libhdf5 makes of that.
  void CheckDisk() const {
    if (driver_file.error != 0) {
      throw FileError("read", path, driver_file.error);
    }
    if (driver_file.shrank) {
      throw EnvironmentError(fmt::format(
          "cannot read '{}': it has become shorter since it was opened; make "
          "sure that nothing else writes to it, and run the same command again",
          path.string()));
    }
  }
  [[noreturn]] void Fail(const std::string& object,
                         const std::string& problem) const {
    CheckDisk();
    throw DataError(
        fmt::format("'{}': '{}' {}; the file was written by another version of "
                    "this program or is not complete: make it anew",
                    path.string(), object, problem));
  }

  // Whether the object exists. Fails if a link on its path leads elsewhere: the
  // envelope does not vouch for what another name or another file holds.
  bool Reaches(const std::string& object) const;
  Hdf5Handle Open(const std::string& object) const;
  Hdf5Handle OpenDataset(const std::string& object) const;
  Hdf5Handle OpenAttribute(const std::string& object,
                           const std::string& name) const;
  // Returns the shape of a dataset with elements of this size. Fails for one
  // that this file cannot hold.
  std::vector<int64_t> Shape(hid_t dataset, size_t element_bytes,
                             const std::string& object) const;
  template <typename T>
  void ReadNumbers(hid_t dataset, const std::string& object, T* values) const;
  template <typename T>
  T ReadScalarAttribute(const std::string& object,
                        const std::string& name) const;
  void CheckType(bool ok, hid_t type, const std::string& object,
                 const char* expected) const {
    if (!ok) {
      Fail(object, fmt::format("has type {}, but {} is needed", TypeName(type),
                               expected));
    }
  }

  fs::path path;
  InputFile input;  // before `file`: closed after it
  Hdf5Envelope envelope;
  std::string content_sha256;
  Hdf5DriverFile driver_file;
  Hdf5Handle file;
  mutable std::set<std::string> reached;  // looking each up twice takes long
};

Hdf5Reader::Hdf5Reader(fs::path path, const Hdf5Kind& kind) {
  SilenceHdf5();
  impl_ = std::make_unique<Impl>(std::move(path), kind);
  impl_->driver_file.descriptor = impl_->input.descriptor();
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose);
  SetDriver(access.id(), &impl_->driver_file);
  impl_->file = Hdf5Handle(
      H5Fopen(impl_->path.c_str(), H5F_ACC_RDONLY, access.id()), &H5Fclose);
  if (!impl_->file.valid()) {
    impl_->Fail("/", "cannot be opened by HDF5 (" + LastHdf5Error() + ")");
  }
}

Hdf5Reader::~Hdf5Reader() = default;

const fs::path& Hdf5Reader::path() const { return impl_->path; }

const std::string& Hdf5Reader::content_sha256() const {
  return impl_->content_sha256;
}

bool Hdf5Reader::Has(const std::string& path) const {
  return impl_->Reaches(path);
}

bool Hdf5Reader::Impl::Reaches(const std::string& object) const {
  if (object == "/" || reached.contains(object)) return true;
  const size_t end = object.rfind('/');
  if (end != 0 && end != std::string::npos && !Reaches(object.substr(0, end))) {
    return false;
  }
  if (H5Lexists(file.id(), object.c_str(), H5P_DEFAULT) <= 0) {
    CheckDisk();
    return false;
  }
  H5L_info_t link;
  if (H5Lget_info(file.id(), object.c_str(), &link, H5P_DEFAULT) < 0 ||
      link.type != H5L_TYPE_HARD) {
    Fail(object, "is a link to another name or file");
  }
  reached.insert(object);
  return true;
}

std::vector<std::string> Hdf5Reader::Children(const std::string& group) const {
  Hdf5Handle object = impl_->Open(group);
  if (H5Iget_type(object.id()) != H5I_GROUP) {
    impl_->Fail(group, "is not a group");
  }
  std::vector<std::string> names;
  hsize_t index = 0;
  const herr_t status = H5Literate(
      object.id(), H5_INDEX_NAME, H5_ITER_INC, &index,
      [](hid_t, const char* name, const H5L_info_t*, void* result) -> herr_t {
        static_cast<std::vector<std::string>*>(result)->emplace_back(name);
        return 0;
      },
      &names);
  if (status < 0) impl_->Fail(group, "cannot be listed: " + LastHdf5Error());
  std::sort(names.begin(), names.end());
  return names;
}

Hdf5Handle Hdf5Reader::Impl::Open(const std::string& object) const {
  if (!Reaches(object)) Fail(object, "is absent");
  Hdf5Handle handle(H5Oopen(file.id(), object.c_str(), H5P_DEFAULT), &H5Oclose);
  if (!handle.valid()) Fail(object, "cannot be opened: " + LastHdf5Error());
  return handle;
}

Hdf5Handle Hdf5Reader::Impl::OpenDataset(const std::string& object) const {
  Hdf5Handle handle = Open(object);
  if (H5Iget_type(handle.id()) != H5I_DATASET) {
    Fail(object, "is a group, but a dataset is needed");
  }
  if (!IsStoredAsOurs(handle.id())) {
    Fail(object, "is not stored as this program stores data");
  }
  return handle;
}

std::vector<int64_t> Hdf5Reader::Impl::Shape(hid_t dataset,
                                             size_t element_bytes,
                                             const std::string& object) const {
  std::string problem;
  std::vector<int64_t> shape =
      StoredShape(dataset, element_bytes, envelope.file_bytes, &problem);
  if (!problem.empty()) Fail(object, problem);
  return shape;
}

template <typename T>
void Hdf5Reader::Impl::ReadNumbers(hid_t dataset, const std::string& object,
                                   T* values) const {
  if (H5Dread(dataset, Hdf5Type<T>::Memory(), H5S_ALL, H5S_ALL, H5P_DEFAULT,
              values) < 0) {
    Fail(object, "cannot be read: " + LastHdf5Error());
  }
}

template <typename T>
Hdf5Array<T> Hdf5Reader::ReadDataset(const std::string& path) const {
  Hdf5Handle dataset = impl_->OpenDataset(path);
  Hdf5Handle type(H5Dget_type(dataset.id()), &H5Tclose);
  impl_->CheckType(H5Tequal(type.id(), Hdf5Type<T>::File()) > 0, type.id(),
                   path, Hdf5Type<T>::kName);
  Hdf5Array<T> array;
  array.shape = impl_->Shape(dataset.id(), sizeof(T), path);
  array.values.resize(static_cast<size_t>(NumElements(array.shape)));
  if (!array.values.empty()) {
    impl_->ReadNumbers(dataset.id(), path, array.values.data());
  }
  return array;
}

template <>
Hdf5Array<std::string> Hdf5Reader::ReadDataset<std::string>(
    const std::string& path) const {
  Hdf5Handle dataset = impl_->OpenDataset(path);
  Hdf5Handle type(H5Dget_type(dataset.id()), &H5Tclose);
  impl_->CheckType(IsOurString(type.id()), type.id(), path, "string");
  const size_t length = H5Tget_size(type.id());
  // libhdf5 makes no such type, but reads it, and divides by its size.
  if (length == 0) impl_->Fail(path, "has texts of a type without bytes");
  Hdf5Array<std::string> array;
  array.shape = impl_->Shape(dataset.id(), length, path);
  const auto count = static_cast<size_t>(NumElements(array.shape));
  std::string packed(length * count, '\0');
  if (count > 0 && H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL,
                           H5P_DEFAULT, packed.data()) < 0) {
    impl_->Fail(path, "cannot be read: " + LastHdf5Error());
  }
  array.values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const char* value = packed.data() + i * length;
    array.values.emplace_back(value, strnlen(value, length));
  }
  return array;
}

void Hdf5Reader::ReadDatasetInto(const std::string& path,
                                 std::span<float> values,
                                 const std::vector<int64_t>& shape) const {
  SOFTMOE_CHECK(NumElements(shape) == std::ssize(values)) << path;
  Hdf5Handle dataset = impl_->OpenDataset(path);
  Hdf5Handle type(H5Dget_type(dataset.id()), &H5Tclose);
  impl_->CheckType(H5Tequal(type.id(), Hdf5Type<float>::File()) > 0, type.id(),
                   path, Hdf5Type<float>::kName);
  const std::vector<int64_t> actual =
      impl_->Shape(dataset.id(), sizeof(float), path);
  if (actual != shape) {
    impl_->Fail(path,
                fmt::format("has shape [{}], but [{}] is needed",
                            fmt::join(actual, ", "), fmt::join(shape, ", ")));
  }
  if (!values.empty()) impl_->ReadNumbers(dataset.id(), path, values.data());
}

template Hdf5Array<float> Hdf5Reader::ReadDataset(const std::string&) const;
template Hdf5Array<double> Hdf5Reader::ReadDataset(const std::string&) const;
template Hdf5Array<int32_t> Hdf5Reader::ReadDataset(const std::string&) const;
template Hdf5Array<int64_t> Hdf5Reader::ReadDataset(const std::string&) const;
template Hdf5Array<uint8_t> Hdf5Reader::ReadDataset(const std::string&) const;

bool Hdf5Reader::HasAttribute(const std::string& object,
                              const std::string& name) const {
  Hdf5Handle owner = impl_->Open(object);
  const bool exists = H5Aexists(owner.id(), name.c_str()) > 0;
  impl_->CheckDisk();
  return exists;
}

std::vector<std::string> Hdf5Reader::Attributes(
    const std::string& object) const {
  Hdf5Handle owner = impl_->Open(object);
  std::vector<std::string> names;
  hsize_t index = 0;
  const herr_t status = H5Aiterate2(
      owner.id(), H5_INDEX_NAME, H5_ITER_INC, &index,
      [](hid_t, const char* name, const H5A_info_t*, void* result) -> herr_t {
        static_cast<std::vector<std::string>*>(result)->emplace_back(name);
        return 0;
      },
      &names);
  if (status < 0) {
    impl_->Fail(object, "has unreadable attributes: " + LastHdf5Error());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Hdf5Handle Hdf5Reader::Impl::OpenAttribute(const std::string& object,
                                           const std::string& name) const {
  Hdf5Handle owner = Open(object);
  Hdf5Handle attribute(H5Aopen(owner.id(), name.c_str(), H5P_DEFAULT),
                       &H5Aclose);
  const std::string place = object + "@" + name;
  if (!attribute.valid()) Fail(place, "is absent");
  Hdf5Handle space(H5Aget_space(attribute.id()), &H5Sclose);
  if (H5Sget_simple_extent_npoints(space.id()) != 1) {
    Fail(place, "is not a single value");
  }
  return attribute;
}

std::string Hdf5Reader::ReadString(const std::string& object,
                                   const std::string& name) const {
  const std::string place = object + "@" + name;
  Hdf5Handle attribute = impl_->OpenAttribute(object, name);
  Hdf5Handle type(H5Aget_type(attribute.id()), &H5Tclose);
  impl_->CheckType(IsOurString(type.id()), type.id(), place, "string");
  const size_t size = H5Tget_size(type.id());
  if (size > static_cast<uint64_t>(impl_->envelope.file_bytes)) {
    impl_->Fail(place, "is longer than its file");
  }
  std::string value(size, '\0');
  if (H5Aread(attribute.id(), type.id(), value.data()) < 0) {
    impl_->Fail(place, "cannot be read: " + LastHdf5Error());
  }
  value.resize(strnlen(value.data(), value.size()));
  return value;
}

template <typename T>
T Hdf5Reader::Impl::ReadScalarAttribute(const std::string& object,
                                        const std::string& name) const {
  const std::string place = object + "@" + name;
  Hdf5Handle attribute = OpenAttribute(object, name);
  Hdf5Handle type(H5Aget_type(attribute.id()), &H5Tclose);
  CheckType(H5Tequal(type.id(), Hdf5Type<T>::File()) > 0, type.id(), place,
            Hdf5Type<T>::kName);
  T value;
  if (H5Aread(attribute.id(), Hdf5Type<T>::Memory(), &value) < 0) {
    Fail(place, "cannot be read: " + LastHdf5Error());
  }
  return value;
}

int64_t Hdf5Reader::ReadInt(const std::string& object,
                            const std::string& name) const {
  return impl_->ReadScalarAttribute<int64_t>(object, name);
}

double Hdf5Reader::ReadDouble(const std::string& object,
                              const std::string& name) const {
  return impl_->ReadScalarAttribute<double>(object, name);
}

}  // namespace softmoe

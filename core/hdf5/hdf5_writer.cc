// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/hdf5/hdf5_driver.h"
#include "core/hdf5/hdf5_envelope.h"
#include "core/hdf5/hdf5_file.h"
#include "core/hdf5/hdf5_handles.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

// Datasets from this size on are chunked, with a checksum per chunk.
constexpr int64_t kChunkedFromBytes = 64 << 10;
// Target size of a chunk, which fits libhdf5's chunk cache of 1 MiB.
constexpr int64_t kChunkBytes = 1 << 20;
constexpr unsigned kDeflateLevel = 4;

// Whole trailing dimensions, as many as fit into kChunkBytes.
std::vector<hsize_t> ChunkShape(const std::vector<int64_t>& shape,
                                size_t element_bytes) {
  int64_t room = std::max<int64_t>(1, kChunkBytes / element_bytes);
  std::vector<hsize_t> chunk(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    const int64_t extent = std::min(shape[d], room);
    chunk[d] = static_cast<hsize_t>(extent);
    room = std::max<int64_t>(1, room / extent);
  }
  return chunk;
}

}  // namespace

struct Hdf5Writer::Impl {
  Impl(fs::path path, Hdf5Kind kind_arg)
      : kind(std::move(kind_arg)), atomic(std::move(path)) {}

  // Throws the disk's error if there was one, else InternalError (our own bug).
  [[noreturn]] void Fail(const std::string& object) {
    if (driver_file.error != 0) {
      throw FileError("write", atomic.path(), driver_file.error);
    }
    throw InternalError(fmt::format("HDF5 cannot write '{}' of '{}': {}",
                                    object, atomic.path().string(),
                                    LastHdf5Error()));
  }
  void Check(bool ok, const std::string& object) {
    if (!ok || driver_file.error != 0) Fail(object);
  }
  void CheckOpen() {
    SOFTMOE_CHECK(file.valid()) << atomic.path() << " is already committed";
  }

  // libhdf5 would give a time stamp to groups that it creates on the way to
  // `path`.
  void CreateParents(const std::string& path);
  void CreateGroup(const std::string& path);
  Hdf5Handle CreateDataset(const std::string& path, hid_t type,
                           const std::vector<int64_t>& shape);
  Hdf5Handle OpenObject(const std::string& path) {
    CheckOpen();
    Hdf5Handle object(H5Oopen(file.id(), path.c_str(), H5P_DEFAULT), &H5Oclose);
    Check(object.valid(), path);
    return object;
  }
  void WriteAttribute(const std::string& object, const std::string& name,
                      hid_t file_type, hid_t memory_type, const void* value);

  Hdf5Kind kind;
  AtomicFile atomic;  // before `file`: closed after it
  Hdf5DriverFile driver_file;
  Hdf5Handle links;  // UTF-8 names
  Hdf5Handle file;
};

Hdf5Writer::Hdf5Writer(fs::path path, Hdf5Kind kind)
    : impl_(std::make_unique<Impl>(std::move(path), std::move(kind))) {
  SilenceHdf5();
  Impl& self = *impl_;
  EncodeEnvelope({self.kind, 0, {}});  // checks the kind before any work
  self.driver_file.descriptor = self.atomic.descriptor();

  Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE), &H5Pclose);
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose);
  self.links = Hdf5Handle(H5Pcreate(H5P_LINK_CREATE), &H5Pclose);
  // One fixed format, whatever libhdf5 is installed; 1.8 and later can read it.
  self.Check(H5Pset_userblock(creation.id(), kEnvelopeBytes) >= 0 &&
                 H5Pset_obj_track_times(creation.id(), false) >= 0 &&
                 H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18,
                                      H5F_LIBVER_V18) >= 0 &&
                 H5Pset_char_encoding(self.links.id(), H5T_CSET_UTF8) >= 0,
             "/");
  SetDriver(access.id(), &self.driver_file);
  self.file = Hdf5Handle(H5Fcreate(self.atomic.temporary_path().c_str(),
                                   H5F_ACC_TRUNC, creation.id(), access.id()),
                         &H5Fclose);
  self.Check(self.file.valid(), "/");
}

Hdf5Writer::~Hdf5Writer() = default;

Hdf5Handle Hdf5Writer::Impl::CreateDataset(const std::string& path, hid_t type,
                                           const std::vector<int64_t>& shape) {
  CheckOpen();
  CreateParents(path);
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  Hdf5Handle space(shape.empty()
                       ? H5Screate(H5S_SCALAR)
                       : H5Screate_simple(static_cast<int>(extents.size()),
                                          extents.data(), nullptr),
                   &H5Sclose);
  Check(space.valid(), path);
  Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), &H5Pclose);
  Check(H5Pset_obj_track_times(creation.id(), false) >= 0, path);
  const size_t element_bytes = H5Tget_size(type);
  const int64_t bytes =
      NumElements(shape) * static_cast<int64_t>(element_bytes);
  if (!shape.empty() && bytes >= kChunkedFromBytes) {
    const std::vector<hsize_t> chunk = ChunkShape(shape, element_bytes);
    Check(H5Pset_chunk(creation.id(), static_cast<int>(chunk.size()),
                       chunk.data()) >= 0,
          path);
    // Floats are parameters and moments, whose bits hardly compress; deflating
    // them would take longer than writing them.
    if (bytes <= kDeflateUpToBytes && H5Tequal(type, H5T_IEEE_F32LE) == 0) {
      Check(H5Pset_shuffle(creation.id()) >= 0 &&
                H5Pset_deflate(creation.id(), kDeflateLevel) >= 0,
            path);
    }
    Check(H5Pset_fletcher32(creation.id()) >= 0, path);
  }
  Hdf5Handle dataset(H5Dcreate2(file.id(), path.c_str(), type, space.id(),
                                links.id(), creation.id(), H5P_DEFAULT),
                     &H5Dclose);
  Check(dataset.valid(), path);
  return dataset;
}

template <typename T>
void Hdf5Writer::WriteDataset(const std::string& path,
                              std::span<const T> values,
                              const std::vector<int64_t>& shape) {
  SOFTMOE_CHECK(NumElements(shape) == std::ssize(values))
      << path << ": " << values.size() << " values for another shape";
  Hdf5Handle dataset = impl_->CreateDataset(path, Hdf5Type<T>::File(), shape);
  impl_->Check(
      values.empty() || H5Dwrite(dataset.id(), Hdf5Type<T>::Memory(), H5S_ALL,
                                 H5S_ALL, H5P_DEFAULT, values.data()) >= 0,
      path);
  // Chunks wait in the dataset's cache until it is closed.
  const bool closed = dataset.Close();
  impl_->Check(closed, path);
}

template <>
void Hdf5Writer::WriteDataset<std::string>(const std::string& path,
                                           std::span<const std::string> values,
                                           const std::vector<int64_t>& shape) {
  SOFTMOE_CHECK(shape.size() == 1 &&
                shape[0] == static_cast<int64_t>(values.size()))
      << path << ": strings have rank 1";
  size_t length = 1;  // HDF5 has no strings of length 0
  for (const std::string& value : values) {
    SOFTMOE_CHECK(value.find('\0') == std::string::npos)
        << path << ": a string contains NUL, which is the padding";
    length = std::max(length, value.size());
  }
  std::string packed(length * values.size(), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    std::copy(values[i].begin(), values[i].end(),
              packed.begin() + static_cast<int64_t>(i * length));
  }
  const Hdf5Handle type = StringType(length);
  Hdf5Handle dataset = impl_->CreateDataset(path, type.id(), shape);
  impl_->Check(
      values.empty() || H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL,
                                 H5P_DEFAULT, packed.data()) >= 0,
      path);
  const bool closed = dataset.Close();
  impl_->Check(closed, path);
}

template void Hdf5Writer::WriteDataset<float>(const std::string&,
                                              std::span<const float>,
                                              const std::vector<int64_t>&);
template void Hdf5Writer::WriteDataset<double>(const std::string&,
                                               std::span<const double>,
                                               const std::vector<int64_t>&);
template void Hdf5Writer::WriteDataset<int32_t>(const std::string&,
                                                std::span<const int32_t>,
                                                const std::vector<int64_t>&);
template void Hdf5Writer::WriteDataset<int64_t>(const std::string&,
                                                std::span<const int64_t>,
                                                const std::vector<int64_t>&);
template void Hdf5Writer::WriteDataset<uint8_t>(const std::string&,
                                                std::span<const uint8_t>,
                                                const std::vector<int64_t>&);

void Hdf5Writer::CreateGroup(const std::string& path) {
  impl_->CheckOpen();
  impl_->CreateParents(path);
  impl_->CreateGroup(path);
}

void Hdf5Writer::Impl::CreateParents(const std::string& path) {
  for (size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1)) {
    const std::string parent = path.substr(0, end);
    if (H5Lexists(file.id(), parent.c_str(), H5P_DEFAULT) <= 0) {
      CreateGroup(parent);
    }
  }
}

void Hdf5Writer::Impl::CreateGroup(const std::string& path) {
  Hdf5Handle creation(H5Pcreate(H5P_GROUP_CREATE), &H5Pclose);
  Check(H5Pset_obj_track_times(creation.id(), false) >= 0, path);
  Hdf5Handle group(H5Gcreate2(file.id(), path.c_str(), links.id(),
                              creation.id(), H5P_DEFAULT),
                   &H5Gclose);
  Check(group.valid(), path);
}

void Hdf5Writer::Impl::WriteAttribute(const std::string& object,
                                      const std::string& name, hid_t file_type,
                                      hid_t memory_type, const void* value) {
  const std::string place = object + "@" + name;
  Hdf5Handle owner = OpenObject(object);
  Hdf5Handle space(H5Screate(H5S_SCALAR), &H5Sclose);
  Hdf5Handle creation(H5Pcreate(H5P_ATTRIBUTE_CREATE), &H5Pclose);
  Check(H5Pset_char_encoding(creation.id(), H5T_CSET_UTF8) >= 0, place);
  Hdf5Handle attribute(H5Acreate2(owner.id(), name.c_str(), file_type,
                                  space.id(), creation.id(), H5P_DEFAULT),
                       &H5Aclose);
  Check(attribute.valid(), place);
  Check(H5Awrite(attribute.id(), memory_type, value) >= 0, place);
}

void Hdf5Writer::WriteAttribute(const std::string& object,
                                const std::string& name,
                                const std::string& value) {
  SOFTMOE_CHECK(value.find('\0') == std::string::npos)
      << object << "@" << name << " contains NUL, which is the padding";
  const Hdf5Handle type = StringType(std::max<size_t>(1, value.size()));
  // An empty string reads its terminating NUL, which is the padding.
  impl_->WriteAttribute(object, name, type.id(), type.id(), value.c_str());
}

void Hdf5Writer::WriteAttribute(const std::string& object,
                                const std::string& name, int64_t value) {
  impl_->WriteAttribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

void Hdf5Writer::WriteAttribute(const std::string& object,
                                const std::string& name, double value) {
  impl_->WriteAttribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE,
                        &value);
}

void Hdf5Writer::Commit() {
  Impl& self = *impl_;
  self.CheckOpen();
  const bool closed = self.file.Close();
  self.Check(closed, "/");
  WriteEnvelope(self.atomic.descriptor(), self.atomic.path(), self.kind);
  self.atomic.Commit();
}

}  // namespace softmoe

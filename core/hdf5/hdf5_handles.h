// SPDX-License-Identifier: Apache-2.0
//
// hdf5_handles.h - what the HDF5 writer and reader share: owned identifiers,
// the types of values on disk, the limit of deflated datasets, and libhdf5's
// own words for an error.
#ifndef SOFTMOE_CORE_HDF5_HDF5_HANDLES_H_
#define SOFTMOE_CORE_HDF5_HDF5_HANDLES_H_

#include <hdf5/serial/hdf5.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace softmoe {

// Owns one HDF5 identifier. A negative one means that the call failed.
class Hdf5Handle {
 public:
  using Closer = herr_t (*)(hid_t);

  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Closer close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() { Close(); }

  bool valid() const { return id_ >= 0; }
  hid_t id() const { return id_; }
  // False if closing failed, e.g. because buffered data were not written.
  bool Close() { return id_ < 0 || close_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_ = -1;
  Closer close_ = nullptr;
};

// The type of T on disk (little-endian, the same on every machine), in memory,
// and in messages.
template <typename T>
struct Hdf5Type;

template <>
struct Hdf5Type<float> {
  static hid_t File() { return H5T_IEEE_F32LE; }
  static hid_t Memory() { return H5T_NATIVE_FLOAT; }
  static constexpr char kName[] = "float32";
};
template <>
struct Hdf5Type<double> {
  static hid_t File() { return H5T_IEEE_F64LE; }
  static hid_t Memory() { return H5T_NATIVE_DOUBLE; }
  static constexpr char kName[] = "float64";
};
template <>
struct Hdf5Type<int32_t> {
  static hid_t File() { return H5T_STD_I32LE; }
  static hid_t Memory() { return H5T_NATIVE_INT32; }
  static constexpr char kName[] = "int32";
};
template <>
struct Hdf5Type<int64_t> {
  static hid_t File() { return H5T_STD_I64LE; }
  static hid_t Memory() { return H5T_NATIVE_INT64; }
  static constexpr char kName[] = "int64";
};
template <>
struct Hdf5Type<uint8_t> {
  static hid_t File() { return H5T_STD_U8LE; }
  static hid_t Memory() { return H5T_NATIVE_UINT8; }
  static constexpr char kName[] = "uint8";
};

// Larger datasets are not deflated. So no dataset is larger than both this
// limit and its file.
inline constexpr int64_t kDeflateUpToBytes = 16 << 20;

// The product of the extents, none of which is negative.
int64_t NumElements(const std::vector<int64_t>& shape);

// Fixed-length UTF-8, padded with NUL.
Hdf5Handle StringType(size_t length);

// Stops libhdf5 from printing its error stack (a setting of the thread).
void SilenceHdf5();

// The innermost entry of libhdf5's error stack, or "".
std::string LastHdf5Error();

}  // namespace softmoe

#endif  // SOFTMOE_CORE_HDF5_HDF5_HANDLES_H_

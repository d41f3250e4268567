// SPDX-License-Identifier: Apache-2.0
#include "core/hdf5/hdf5_storage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "core/hdf5/hdf5_handles.h"

namespace softmoe {
namespace {

// Bytes of an array, or the largest number if they exceed 64 bits.
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

}  // namespace

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

}  // namespace softmoe

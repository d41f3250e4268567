// SPDX-License-Identifier: Apache-2.0
#include "core/fuzzing/hdf5_hostile_values.h"

#include <algorithm>

namespace softmoe::fuzz {
namespace {

// Fills at most this many elements with values; a larger dataset stays
// unwritten, which HDF5 allows: the file is small, the dataset is not.
constexpr hsize_t kMaxFilled = 1 << 16;

Hdf5Handle Owned(hid_t id, Hdf5Handle::Closer close) { return {id, close}; }

}  // namespace

Hdf5Handle MakeType(Choices& choices) {
  const size_t which = choices.Below(22);
  const auto copy = [](hid_t type) { return Owned(H5Tcopy(type), &H5Tclose); };
  switch (which) {
    case 0:
      return copy(H5T_IEEE_F64LE);
    case 1:
      return copy(H5T_IEEE_F32LE);
    case 2:
      return copy(H5T_STD_I64LE);
    case 3:
      return copy(H5T_STD_I32LE);
    case 4:
      return copy(H5T_STD_U8LE);
    case 5:
      return StringType(1 + choices.Below(64));
    case 6:
      return copy(H5T_IEEE_F64BE);
    case 7:
      return copy(H5T_STD_I64BE);
    case 8:
      return copy(H5T_STD_U64LE);
    case 9:
      return copy(H5T_STD_I8LE);
    case 10: {
      Hdf5Handle type = copy(H5T_C_S1);  // pointers instead of characters
      H5Tset_size(type.id(), H5T_VARIABLE);
      return type;
    }
    case 11: {
      Hdf5Handle type = StringType(1 + choices.Below(8));
      H5Tset_strpad(type.id(),
                    choices.OneIn(2) ? H5T_STR_SPACEPAD : H5T_STR_NULLTERM);
      H5Tset_cset(type.id(), H5T_CSET_ASCII);
      return type;
    }
    case 12:
      return StringType(size_t{1} << (8 + choices.Below(23)));
    case 13: {
      Hdf5Handle type = Owned(H5Tcreate(H5T_COMPOUND, 16), &H5Tclose);
      H5Tinsert(type.id(), "a", 0, H5T_IEEE_F64LE);
      H5Tinsert(type.id(), "b", 8, H5T_STD_I64LE);
      return type;
    }
    case 14:
      return Owned(H5Tenum_create(H5T_STD_I64LE), &H5Tclose);
    case 15: {
      const hsize_t extents[] = {1 + choices.Below(4)};
      return Owned(H5Tarray_create2(H5T_IEEE_F64LE, 1, extents), &H5Tclose);
    }
    case 16:
      return Owned(H5Tvlen_create(H5T_IEEE_F64LE), &H5Tclose);
    case 17:
      return Owned(H5Tcreate(H5T_OPAQUE, 1 + choices.Below(64)), &H5Tclose);
    case 18:
      return copy(H5T_STD_REF_OBJ);
    case 19: {
      Hdf5Handle type = copy(H5T_STD_I64LE);  // with fewer significant bits
      H5Tset_precision(type.id(), 1 + choices.Below(64));
      return type;
    }
    case 20:
      return copy(H5T_STD_B64LE);
    default: {
      Hdf5Handle type = copy(H5T_IEEE_F64LE);
      H5Tset_ebias(type.id(), choices.Byte());
      return type;
    }
  }
}

Hdf5Handle MakeSpace(Choices& choices) {
  const size_t which = choices.Below(10);
  if (which == 0) return Owned(H5Screate(H5S_NULL), &H5Sclose);
  if (which == 1) return Owned(H5Screate(H5S_SCALAR), &H5Sclose);
  std::vector<hsize_t> extents(which < 7    ? 1
                               : which == 7 ? 2
                               : which == 8 ? 3
                                            : 1 + choices.Below(H5S_MAX_RANK));
  for (hsize_t& extent : extents) {
    const size_t size = choices.Below(40);
    extent = size < 32 ? size : hsize_t{1} << (choices.Below(64));
  }
  const std::vector<hsize_t> unlimited(extents.size(), H5S_UNLIMITED);
  return Owned(
      H5Screate_simple(static_cast<int>(extents.size()), extents.data(),
                       choices.OneIn(8) ? unlimited.data() : nullptr),
      &H5Sclose);
}

std::vector<char> MakeValues(Choices& choices, hid_t type, size_t size) {
  std::vector<char> bytes(size);
  const size_t element = std::max<size_t>(1, H5Tget_size(type));
  const auto put = [&](size_t at, const void* value, size_t length) {
    std::copy_n(static_cast<const char*>(value), std::min(length, size - at),
                bytes.begin() + static_cast<int64_t>(at));
  };
  // A few decisions, repeated: large datasets need few bytes of input.
  std::vector<std::string> values(1 + choices.Below(4));
  for (std::string& value : values) {
    if (H5Tequal(type, H5T_IEEE_F64LE) > 0) {
      const double number = choices.Real();
      value.assign(reinterpret_cast<const char*>(&number), sizeof(number));
    } else if (H5Tequal(type, H5T_IEEE_F32LE) > 0) {
      const auto number =
          static_cast<float>(std::clamp(choices.Real(), -3.0e38, 3.0e38));
      value.assign(reinterpret_cast<const char*>(&number), sizeof(number));
    } else if (H5Tget_class(type) == H5T_STRING) {
      value = choices.Text(std::min<size_t>(element, 64));
    } else {
      const int64_t number = choices.Integer();
      value.assign(reinterpret_cast<const char*>(&number), sizeof(number));
    }
    value.resize(std::min(value.size(), element));
  }
  for (size_t at = 0, i = 0; at < size; at += element, ++i) {
    const std::string& value = values[std::min(i, values.size() - 1)];
    put(at, value.data(), value.size());
  }
  return bytes;
}

bool HasPointers(hid_t type) {
  return H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tis_variable_str(type) > 0 ||
         H5Tget_class(type) == H5T_REFERENCE;
}

bool IsSmall(hid_t space, hid_t type) {
  const hssize_t points = H5Sget_simple_extent_npoints(space);
  const size_t element = H5Tget_size(type);
  return points >= 0 && static_cast<hsize_t>(points) <= kMaxFilled &&
         element <= kMaxFilled &&
         static_cast<hsize_t>(points) * element <= kMaxFilled;
}

size_t FillableElements(hid_t space, hid_t type) {
  if (!IsSmall(space, type)) return 0;
  return static_cast<size_t>(H5Sget_simple_extent_npoints(space));
}

}  // namespace softmoe::fuzz

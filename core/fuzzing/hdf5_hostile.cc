// SPDX-License-Identifier: Apache-2.0
#include "core/fuzzing/hdf5_hostile.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "core/files/atomic_file.h"
#include "core/hdf5/hdf5_handles.h"
#include "core/process/isolated_call.h"

namespace softmoe::fuzz {
namespace {

namespace fs = std::filesystem;

Hdf5Handle Owned(hid_t id, Hdf5Handle::Closer close) { return {id, close}; }

// The most elements, and bytes, that are filled with values. A larger dataset
// stays unwritten, which HDF5 allows: the file is small, the dataset is not.
constexpr hsize_t kMaxFilled = 1 << 16;

// Makes a type of any class of HDF5 but time, including the types that we use.
Hdf5Handle MakeType(Choices& choices) {
  const size_t which = choices.Below(22);
  const auto copy = [](hid_t type) { return Owned(H5Tcopy(type), &H5Tclose); };
  // Recorded inputs hold these numbers, so they stay.
  const std::map<size_t, hid_t> plain = {
      {0, H5T_IEEE_F64LE},   {1, H5T_IEEE_F32LE}, {2, H5T_STD_I64LE},
      {3, H5T_STD_I32LE},    {4, H5T_STD_U8LE},   {6, H5T_IEEE_F64BE},
      {7, H5T_STD_I64BE},    {8, H5T_STD_U64LE},  {9, H5T_STD_I8LE},
      {18, H5T_STD_REF_OBJ}, {20, H5T_STD_B64LE}};
  const auto found = plain.find(which);
  if (found != plain.end()) return copy(found->second);
  switch (which) {
    case 5:
      return StringType(1 + choices.Below(64));
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
    case 19: {
      Hdf5Handle type = copy(H5T_STD_I64LE);  // with fewer significant bits
      H5Tset_precision(type.id(), 1 + choices.Below(64));
      return type;
    }
    default: {
      Hdf5Handle type = copy(H5T_IEEE_F64LE);
      H5Tset_ebias(type.id(), choices.Byte());
      return type;
    }
  }
}

// Makes a scalar space, a null space, or up to 32 dimensions of up to 2^63.
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

// Makes `size` bytes of values of a type: numbers of its kind, or text.
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

// Types whose values in memory are pointers cannot be filled with bytes.
bool HasPointers(hid_t type) {
  return H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tis_variable_str(type) > 0 ||
         H5Tget_class(type) == H5T_REFERENCE;
}

// Whether a space of this type has at most 64 KiB, and so may be filled.
bool IsSmall(hid_t space, hid_t type) {
  const hssize_t points = H5Sget_simple_extent_npoints(space);
  const size_t element = H5Tget_size(type);
  return points >= 0 && static_cast<hsize_t>(points) <= kMaxFilled &&
         element <= kMaxFilled &&
         static_cast<hsize_t>(points) * element <= kMaxFilled;
}

// Number of elements, or 0 if there are too many to fill.
size_t FillableElements(hid_t space, hid_t type) {
  if (!IsSmall(space, type)) return 0;
  return static_cast<size_t>(H5Sget_simple_extent_npoints(space));
}

Hdf5Handle OpenFile(const fs::path& path, unsigned mode) {
  return Owned(H5Fopen(path.c_str(), mode, H5P_DEFAULT), &H5Fclose);
}

void CreateDataset(hid_t file, const std::string& path, Choices& choices) {
  const Hdf5Handle type = MakeType(choices);
  const Hdf5Handle space = MakeSpace(choices);
  Hdf5Handle creation = Owned(H5Pcreate(H5P_DATASET_CREATE), &H5Pclose);
  const int rank = H5Sget_simple_extent_ndims(space.id());
  switch (choices.Below(8)) {
    case 0:
    case 1: {  // chunks, compressed: many zeros in few bytes
      // 2^20 elements at most: libhdf5 holds a whole chunk in memory.
      const size_t bits = static_cast<size_t>(20 / std::max(rank, 1));
      const std::vector<hsize_t> chunk(static_cast<size_t>(std::max(rank, 0)),
                                       hsize_t{1} << choices.Below(bits + 1));
      if (rank > 0) H5Pset_chunk(creation.id(), rank, chunk.data());
      if (choices.OneIn(2)) H5Pset_deflate(creation.id(), 9);
      if (choices.OneIn(2)) H5Pset_shuffle(creation.id());
      if (choices.OneIn(2)) H5Pset_fletcher32(creation.id());
      if (choices.OneIn(4)) H5Pset_scaleoffset(creation.id(), H5Z_SO_INT, 0);
      if (choices.OneIn(4)) H5Pset_nbit(creation.id());
      break;
    }
    case 2:
      H5Pset_layout(creation.id(), H5D_COMPACT);
      break;
    case 3:  // bytes of another file
      H5Pset_external(creation.id(), "/proc/self/maps", 0, H5F_UNLIMITED);
      break;
    case 4:
      H5Pset_virtual(creation.id(), space.id(), "elsewhere.h5", "/x",
                     space.id());
      break;
    default:
      break;
  }
  H5Ldelete(file, path.c_str(), H5P_DEFAULT);
  const Hdf5Handle dataset =
      Owned(H5Dcreate2(file, path.c_str(), type.id(), space.id(), H5P_DEFAULT,
                       creation.id(), H5P_DEFAULT),
            &H5Dclose);
  const size_t count = FillableElements(space.id(), type.id());
  if (!dataset.valid() || count == 0 || HasPointers(type.id())) return;
  const std::vector<char> values =
      MakeValues(choices, type.id(), count * H5Tget_size(type.id()));
  H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT,
           values.data());
}

void CreateAttribute(hid_t file, const std::string& object,
                     const std::string& name, Choices& choices) {
  const Hdf5Handle owner =
      Owned(H5Oopen(file, object.c_str(), H5P_DEFAULT), &H5Oclose);
  if (!owner.valid()) return;
  const Hdf5Handle type = MakeType(choices);
  const Hdf5Handle space = choices.OneIn(3)
                               ? MakeSpace(choices)
                               : Owned(H5Screate(H5S_SCALAR), &H5Sclose);
  // Unlike a dataset, an attribute is held in memory while it is made.
  if (!IsSmall(space.id(), type.id())) return;
  H5Adelete(owner.id(), name.c_str());
  const Hdf5Handle attribute =
      Owned(H5Acreate2(owner.id(), name.c_str(), type.id(), space.id(),
                       H5P_DEFAULT, H5P_DEFAULT),
            &H5Aclose);
  const size_t count = FillableElements(space.id(), type.id());
  if (!attribute.valid() || count == 0 || HasPointers(type.id())) return;
  const std::vector<char> values =
      MakeValues(choices, type.id(), count * H5Tget_size(type.id()));
  H5Awrite(attribute.id(), type.id(), values.data());
}

// Writes other values of the same type in the same place. They pass a check of
// types alone.
void ChangeValues(hid_t file, const std::string& path, Choices& choices) {
  const Hdf5Handle dataset =
      Owned(H5Dopen2(file, path.c_str(), H5P_DEFAULT), &H5Dclose);
  if (!dataset.valid()) return;
  const Hdf5Handle type = Owned(H5Dget_type(dataset.id()), &H5Tclose);
  const Hdf5Handle space = Owned(H5Dget_space(dataset.id()), &H5Sclose);
  const size_t count = FillableElements(space.id(), type.id());
  if (count == 0 || HasPointers(type.id())) return;
  const size_t element = H5Tget_size(type.id());
  std::vector<char> values(count * element);
  H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT,
          values.data());
  const size_t at = choices.Below(std::min<size_t>(count, 1 << 16)) * element;
  const std::vector<char> changed = MakeValues(choices, type.id(), element);
  std::copy(changed.begin(), changed.end(),
            values.begin() + static_cast<int64_t>(at));
  H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT,
           values.data());
}

void ChangeAttribute(hid_t file, const std::string& object,
                     const std::string& name, Choices& choices) {
  const Hdf5Handle owner =
      Owned(H5Oopen(file, object.c_str(), H5P_DEFAULT), &H5Oclose);
  if (!owner.valid()) return;
  Hdf5Handle attribute =
      Owned(H5Aopen(owner.id(), name.c_str(), H5P_DEFAULT), &H5Aclose);
  if (!attribute.valid()) return;
  Hdf5Handle type = Owned(H5Aget_type(attribute.id()), &H5Tclose);
  const Hdf5Handle space = Owned(H5Aget_space(attribute.id()), &H5Sclose);
  if (HasPointers(type.id())) return;
  const size_t size = H5Tget_size(type.id());
  std::vector<char> value(size);
  if (H5Tget_class(type.id()) != H5T_STRING) {
    value = MakeValues(choices, type.id(), size);
  } else if (H5Aread(attribute.id(), type.id(), value.data()) >= 0) {
    // A piece of the text becomes another text, of any length.
    std::string text(value.begin(), value.end());
    const size_t at = choices.Below(std::min<size_t>(text.size(), 1 << 16));
    text.replace(at, choices.Byte(), choices.Text(255));
    type = StringType(std::max<size_t>(1, text.size()));
    attribute.Close();
    H5Adelete(owner.id(), name.c_str());
    attribute = Owned(H5Acreate2(owner.id(), name.c_str(), type.id(),
                                 space.id(), H5P_DEFAULT, H5P_DEFAULT),
                      &H5Aclose);
    value.assign(text.begin(), text.end());
    value.resize(H5Tget_size(type.id()));
  }
  if (attribute.valid() && FillableElements(space.id(), type.id()) == 1) {
    H5Awrite(attribute.id(), type.id(), value.data());
  }
}

// An old name, an old name with something appended, or a new one.
std::string MakePath(const std::vector<std::string>& objects,
                     Choices& choices) {
  std::string path = choices.Pick(objects);
  if (choices.OneIn(2)) return path;
  if (path != "/") path += "/";
  return path + (choices.OneIn(2) ? "x" : choices.Text(16));
}

constexpr char kChanges = 17;  // below

void Change(hid_t file, const std::vector<std::string>& objects,
            const std::vector<std::pair<std::string, std::string>>& attributes,
            Choices& choices) {
  const size_t what = choices.Below(kChanges);
  const std::string path = choices.Pick(objects);
  switch (what) {
    case 0:
      H5Ldelete(file, path.c_str(), H5P_DEFAULT);
      return;
    case 1:
    case 2:
      return CreateDataset(file, path, choices);
    case 3:
      return CreateDataset(file, MakePath(objects, choices), choices);
    case 4:
    case 5:
    case 6:
      return ChangeValues(file, path, choices);
    case 7:
      return CreateAttribute(file, path, choices.Text(16), choices);
    case 8:
      H5Ldelete(file, path.c_str(), H5P_DEFAULT);
      H5Lcreate_soft(choices.Pick(objects).c_str(), file, path.c_str(),
                     H5P_DEFAULT, H5P_DEFAULT);
      return;
    case 9: {  // into this file by its name, or nowhere
      H5Ldelete(file, path.c_str(), H5P_DEFAULT);
      H5Lcreate_external(choices.OneIn(2) ? "hostile.h5" : "/dev/zero",
                         choices.Pick(objects).c_str(), file, path.c_str(),
                         H5P_DEFAULT, H5P_DEFAULT);
      return;
    }
    case 10: {
      const std::string target = choices.Pick(objects);
      const std::string name = MakePath(objects, choices);
      if (name != target) H5Ldelete(file, name.c_str(), H5P_DEFAULT);
      H5Lcreate_hard(file, target.c_str(), file, name.c_str(), H5P_DEFAULT,
                     H5P_DEFAULT);
      return;
    }
    case 11: {
      const std::string name = MakePath(objects, choices);
      H5Ldelete(file, name.c_str(), H5P_DEFAULT);
      Owned(
          H5Gcreate2(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          &H5Gclose);
      return;
    }
    case 12: {
      const Hdf5Handle type = MakeType(choices);
      H5Ldelete(file, path.c_str(), H5P_DEFAULT);
      H5Tcommit2(file, path.c_str(), type.id(), H5P_DEFAULT, H5P_DEFAULT,
                 H5P_DEFAULT);
      return;
    }
    case 13:
      H5Lmove(file, path.c_str(), file, MakePath(objects, choices).c_str(),
              H5P_DEFAULT, H5P_DEFAULT);
      return;
    default:
      break;
  }
  if (attributes.empty()) return;
  const auto& [object, name] = choices.Pick(attributes);
  if (what == 14) {
    H5Adelete_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT);
  } else if (what == 15) {
    CreateAttribute(file, object, name, choices);
  } else {
    ChangeAttribute(file, object, name, choices);
  }
}

// Reads the kind from the envelope (core/HDF5_ENVELOPE.md).
Hdf5Kind KindOf(const std::string& bytes) {
  Require(bytes.size() > kEnvelopeBytes, "no envelope");
  Hdf5Kind kind;
  kind.name = bytes.c_str() + 16;
  std::memcpy(&kind.version, bytes.data() + 12, sizeof(kind.version));
  return kind;
}

}  // namespace

HostileHdf5::HostileHdf5(const fs::path& good)
    : bytes_(ReadWholeFile(good)), kind_(KindOf(bytes_)) {
  SilenceHdf5();
  const Hdf5Handle file = OpenFile(good, H5F_ACC_RDONLY);
  Require(file.valid(), good.string() + " is not HDF5");
  H5Ovisit2(
      file.id(), H5_INDEX_NAME, H5_ITER_INC,
      [](hid_t, const char* name, const H5O_info_t*, void* self) -> herr_t {
        const std::string path =
            std::string(name) == "." ? "/" : "/" + std::string(name);
        static_cast<HostileHdf5*>(self)->objects_.push_back(path);
        return 0;
      },
      this, H5O_INFO_BASIC);
  for (const std::string& object : objects_) {
    std::pair<std::string, decltype(attributes_)*> context = {object,
                                                              &attributes_};
    const Hdf5Handle owner =
        Owned(H5Oopen(file.id(), object.c_str(), H5P_DEFAULT), &H5Oclose);
    H5Aiterate2(
        owner.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
        [](hid_t, const char* name, const H5A_info_t*, void* data) -> herr_t {
          auto* to = static_cast<decltype(context)*>(data);
          to->second->emplace_back(to->first, name);
          return 0;
        },
        &context);
  }
  Require(objects_.size() > 1, good.string() + " holds nothing");
}

bool HostileHdf5::Write(const fs::path& path, Choices choices) const {
  LetChildrenCrash();
  WriteScratch(path, bytes_);
  const IsolatedResult made = CallIsolated(
      [&]() -> std::string {
        {
          const Hdf5Handle file = OpenFile(path, H5F_ACC_RDWR);
          Require(file.valid(), "cannot open " + path.string());
          for (int i = 0; i < 8 && !choices.done(); ++i) {
            Change(file.id(), objects_, attributes_, choices);
          }
        }
        const std::unique_ptr<FILE, int (*)(FILE*)> changed(
            std::fopen(path.c_str(), "r+b"), &std::fclose);
        Require(changed != nullptr, "cannot open " + path.string());
        WriteEnvelope(fileno(changed.get()), path, kind_);
        return "";
      },
      {.seconds = 5});
  return made.completed;
}

bool FuzzHostileFile(const HostileHdf5& good, std::string_view input,
                     const std::function<void(const fs::path&)>& read) {
  const fs::path path = ScratchFolder() / "hostile.h5";
  if (!good.Write(path, Choices(input))) return false;
  const bool accepted = Accepts([&] { read(path); });
  Require(accepted || !input.empty(), "the good file is refused");
  return accepted;
}

std::vector<std::string> HostileSeeds() {
  std::vector<std::string> seeds = {""};
  for (char what = 0; what < kChanges; ++what) {
    for (char variant = 0; variant < 4; ++variant) {
      std::string seed = {what, static_cast<char>(5 * variant + 1)};
      for (int i = 0; i < 24; ++i) {
        seed += static_cast<char>(i * (2 * variant + 1) + what);
      }
      seeds.push_back(seed);
    }
  }
  return seeds;
}

}  // namespace softmoe::fuzz

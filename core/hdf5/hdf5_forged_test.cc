// SPDX-License-Identifier: Apache-2.0
//
// Files made with libhdf5 and sealed again: their checksums hold, but no
// program of ours writes such contents. Reading them must open no other file
// and allocate nothing.
#include <gtest/gtest.h>

#include <functional>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/hdf5/hdf5_file.h"
#include "core/hdf5/hdf5_handles.h"
#include "core/testing/file_test_util.h"
#include "core/testing/hdf5_test_util.h"
#include "core/testing/message_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;

const Hdf5Kind kForgedKind = {"forged", 1};

// A good file, changed by `change`.
fs::path Forge(const std::string& name,
               const std::function<void(hid_t file)>& change) {
  const fs::path path = FreshFolder(name) / "a.h5";
  Hdf5Writer writer(path, kForgedKind);
  writer.WriteDataset("/group/data", std::vector<double>{1, 2});
  writer.Commit();
  ChangeHdf5(path, kForgedKind, change);
  return path;
}

// Creates /group/x of f64 with these dimensions and properties.
void Create(hid_t file, const std::vector<hsize_t>& extents,
            const std::function<void(hid_t creation)>& set) {
  const Hdf5Handle space(
      extents.empty() ? H5Screate(H5S_NULL)
                      : H5Screate_simple(static_cast<int>(extents.size()),
                                         extents.data(), nullptr),
      &H5Sclose);
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), &H5Pclose);
  set(creation.id());
  const Hdf5Handle dataset(
      H5Dcreate2(file, "/group/x", H5T_IEEE_F64LE, space.id(), H5P_DEFAULT,
                 creation.id(), H5P_DEFAULT),
      &H5Dclose);
  EXPECT_TRUE(dataset.valid());
}

// Returns the message of the error from reading `object` as numbers.
std::string ErrorOf(const fs::path& path, const std::string& object) {
  const Hdf5Reader reader(path, kForgedKind);
  const std::string text =
      MessageOf<DataError>([&] { reader.ReadDataset<double>(object); });
  EXPECT_TRUE(Says(text, path.string()));
  return text;
}

TEST(Hdf5Forged, LinksToOtherNamesAndFilesAreNotFollowed) {
  const fs::path elsewhere = Forge("elsewhere", [](hid_t) {});
  const fs::path path = Forge("links", [&](hid_t file) {
    H5Lcreate_soft("/group/data", file, "/group/soft", H5P_DEFAULT,
                   H5P_DEFAULT);
    H5Lcreate_soft("/group", file, "/soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external(elsewhere.c_str(), "/group", file, "/out", H5P_DEFAULT,
                       H5P_DEFAULT);
    H5Lcreate_external("nowhere.h5", "/", file, "/group/out", H5P_DEFAULT,
                       H5P_DEFAULT);
  });
  for (const char* object :
       {"/group/soft", "/soft/data", "/out/data", "/out", "/group/out"}) {
    EXPECT_TRUE(Says(ErrorOf(path, object), "is a link")) << object;
    EXPECT_THROW(Hdf5Reader(path, kForgedKind).Has(object), DataError)
        << object;
  }
  // Links are listed, so a reader that accounts for every name sees them.
  EXPECT_EQ(Hdf5Reader(path, kForgedKind).Children("/group").size(), 3u);
  EXPECT_EQ(
      Hdf5Reader(path, kForgedKind).ReadDataset<double>("/group/data").values,
      (std::vector<double>{1, 2}));
}

TEST(Hdf5Forged, DimensionsWithoutBytesAllocateNothing) {
  const std::vector<std::vector<hsize_t>> shapes = {
      {hsize_t{1} << 40},
      {hsize_t{1} << 32, hsize_t{1} << 31},
      {hsize_t{1} << 33, hsize_t{1} << 33},
      {2'097'153}};
  for (const auto& shape : shapes) {
    const fs::path path = Forge("huge", [&](hid_t file) {
      Create(file, shape, [&](hid_t creation) {
        const std::vector<hsize_t> chunk(shape.size(), 16);
        H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
        H5Pset_deflate(creation, 9);
      });
    });
    EXPECT_TRUE(Says(ErrorOf(path, "/group/x"), "than a file of"));
  }
  // Up to 16 MiB, we write compressed datasets ourselves.
  const fs::path path = Forge("large", [&](hid_t file) {
    Create(file, {2'097'152}, [](hid_t creation) {
      const hsize_t chunk = 131'072;
      H5Pset_chunk(creation, 1, &chunk);
      H5Pset_deflate(creation, 4);
    });
  });
  EXPECT_EQ(Hdf5Reader(path, kForgedKind)
                .ReadDataset<double>("/group/x")
                .values.size(),
            2'097'152u);
}

TEST(Hdf5Forged, BytesOfOtherFilesAndOtherFiltersAreRefused) {
  const std::function<void(hid_t)> changes[] = {
      [](hid_t creation) {
        H5Pset_external(creation, "/etc/passwd", 0, H5F_UNLIMITED);
      },
      [](hid_t creation) {
        const hsize_t extent = 4;
        const Hdf5Handle space(H5Screate_simple(1, &extent, nullptr),
                               &H5Sclose);
        H5Pset_virtual(creation, space.id(), "other.h5", "/x", space.id());
      },
      [](hid_t creation) {
        const hsize_t chunk = 4;
        H5Pset_chunk(creation, 1, &chunk);
        H5Pset_nbit(creation);
      }};
  for (const auto& change : changes) {
    const fs::path path =
        Forge("stored", [&](hid_t file) { Create(file, {4}, change); });
    EXPECT_TRUE(Says(ErrorOf(path, "/group/x"), "is not stored as"));
  }
}

// libhdf5 makes no such file, so this changes the bytes of one without
// checksums of its own.
TEST(Hdf5Forged, TextsWithoutBytesAreRefused) {
  const fs::path path = FreshFolder("texts") / "a.h5";
  {
    const Hdf5Handle creation(H5Pcreate(H5P_FILE_CREATE), &H5Pclose);
    H5Pset_userblock(creation.id(), kEnvelopeBytes);
    Hdf5Handle file(
        H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.id(), H5P_DEFAULT),
        &H5Fclose);
    ASSERT_TRUE(file.valid());
    PutDataset(file.id(), "/x", std::vector{std::string(77, 'x')});
  }
  std::string bytes = ReadWholeFile(path);
  const std::string type("\x13\x11\0\0\x4d\0\0\0", 8);
  const size_t at = bytes.find(type);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 4] = '\0';
  WriteFileAtomically(path, bytes);
  ChangeHdf5(path, kForgedKind, [](hid_t) {});
  const Hdf5Reader reader(path, kForgedKind);
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { reader.ReadDataset<std::string>("/x"); }),
           path.string(), "'/x' has texts of a type without bytes"));
}

TEST(Hdf5Forged, ADatasetWithoutAShapeIsRefused) {
  const fs::path path =
      Forge("null", [](hid_t file) { Create(file, {}, [](hid_t) {}); });
  EXPECT_TRUE(Says(ErrorOf(path, "/group/x"), "has no shape"));
}

}  // namespace
}  // namespace softmoe

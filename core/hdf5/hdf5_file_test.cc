// SPDX-License-Identifier: Apache-2.0
//
// What is written is read back, and equal writes give equal bytes. Damaged
// and missing files: hdf5_damage_test.cc.
#include "core/hdf5/hdf5_file.h"

#include <gtest/gtest.h>
#include <hdf5/serial/hdf5.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <type_traits>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/testing/bits_test_util.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/random_test_util.h"

namespace softmoe {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

const Hdf5Kind kFileKind = {"test-file", 3};

TEST(Hdf5File, ReadsBackEveryTypeBitForBit) {
  const fs::path path = FreshFolder("types") / "a.h5";
  const std::vector<double> doubles = {
      0.0,
      -0.0,
      0.1,
      std::numeric_limits<double>::denorm_min(),
      std::numeric_limits<double>::infinity(),
      std::nan("")};
  const std::vector<float> floats = {1.5f, -3e-45f};
  const std::vector<int32_t> ints = {INT32_MIN, 0, INT32_MAX};
  const std::vector<int64_t> longs = {INT64_MIN, INT64_MAX};
  const std::vector<uint8_t> bytes = {0, 255};
  const Strings strings = {"", "Łódź", "plain", " spaces "};
  Hdf5Writer writer(path, kFileKind);
  writer.WriteDataset<double>("/numbers/f64", doubles, {2, 3});
  writer.WriteDataset("/numbers/f32", floats);
  writer.WriteDataset("/numbers/deeper/i32", ints);
  writer.WriteDataset("/numbers/i64", longs);
  writer.WriteDataset("/bytes", bytes);
  writer.WriteDataset("/strings", strings);
  writer.Commit();

  const Hdf5Reader reader(path, kFileKind);
  const auto read = reader.ReadDataset<double>("/numbers/f64");
  EXPECT_EQ(read.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(SameBits(read.values, doubles));
  EXPECT_EQ(reader.ReadDataset<float>("/numbers/f32").values, floats);
  EXPECT_EQ(reader.ReadDataset<int32_t>("/numbers/deeper/i32").values, ints);
  EXPECT_EQ(reader.ReadDataset<int64_t>("/numbers/i64").values, longs);
  EXPECT_EQ(reader.ReadDataset<uint8_t>("/bytes").values, bytes);
  EXPECT_EQ(reader.ReadDataset<std::string>("/strings").values, strings);
  EXPECT_EQ(reader.path(), path);
}

TEST(Hdf5File, ReadsBackAttributes) {
  const fs::path path = FreshFolder("attributes") / "a.h5";
  // Longer than the 64 KiB that an object header holds.
  const std::string text(100'000, 'q');
  Hdf5Writer writer(path, kFileKind);
  writer.CreateGroup("/group");
  writer.WriteAttribute("/", "name", "Zoë");
  writer.WriteAttribute("/", "empty", "");
  writer.WriteAttribute("/group", "text", text);
  writer.WriteAttribute("/group", "count", int64_t{-7});
  writer.WriteAttribute("/group", "rate", 0.1);
  writer.Commit();

  const Hdf5Reader reader(path, kFileKind);
  EXPECT_EQ(reader.ReadString("/", "name"), "Zoë");
  EXPECT_EQ(reader.ReadString("/", "empty"), "");
  EXPECT_EQ(reader.ReadString("/group", "text"), text);
  EXPECT_EQ(reader.ReadInt("/group", "count"), -7);
  EXPECT_EQ(reader.ReadDouble("/group", "rate"), 0.1);
  EXPECT_EQ(reader.Attributes("/group"), Strings({"count", "rate", "text"}));
  EXPECT_TRUE(reader.HasAttribute("/", "name"));
  EXPECT_FALSE(reader.HasAttribute("/", "rate"));
}

TEST(Hdf5File, ListsChildrenAndKnowsWhatItHas) {
  const fs::path path = FreshFolder("children") / "a.h5";
  Hdf5Writer writer(path, kFileKind);
  // More children than a group holds compactly.
  Strings names;
  for (char c = 'a'; c <= 'z'; ++c) names.push_back(std::string(3, c));
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    writer.WriteDataset("/rows/" + *name, std::vector<int64_t>{1});
  }
  writer.CreateGroup("/none");
  writer.Commit();

  const Hdf5Reader reader(path, kFileKind);
  EXPECT_EQ(reader.Children("/"), Strings({"none", "rows"}));
  EXPECT_EQ(reader.Children("/rows"), names);
  EXPECT_EQ(reader.Children("/none"), Strings());
  EXPECT_TRUE(reader.Has("/"));
  EXPECT_TRUE(reader.Has("/rows/zzz"));
  EXPECT_FALSE(reader.Has("/rows/zz"));
  EXPECT_FALSE(reader.Has("/absent/child/of/absent"));
}

TEST(Hdf5File, KeepsEmptyAndScalarShapes) {
  const fs::path path = FreshFolder("shapes") / "a.h5";
  Hdf5Writer writer(path, kFileKind);
  writer.WriteDataset<float>("/empty", std::span<const float>(), {0, 5});
  writer.WriteDataset("/no_strings", Strings());
  writer.WriteDataset<double>("/scalar", std::vector<double>{2.5}, {});
  writer.Commit();

  const Hdf5Reader reader(path, kFileKind);
  EXPECT_EQ(reader.ReadDataset<float>("/empty").shape,
            (std::vector<int64_t>{0, 5}));
  EXPECT_TRUE(reader.ReadDataset<std::string>("/no_strings").values.empty());
  const auto scalar = reader.ReadDataset<double>("/scalar");
  EXPECT_TRUE(scalar.shape.empty());
  EXPECT_EQ(scalar.values, std::vector<double>{2.5});
}

TEST(Hdf5File, ReadsIntoNoOtherShape) {
  const fs::path path = FreshFolder("other_shapes") / "a.h5";
  Hdf5Writer writer(path, kFileKind);
  writer.WriteDataset<float>("/d", NormalFloats(6, 5, 0), {2, 3});
  writer.Commit();

  const Hdf5Reader reader(path, kFileKind);
  const std::vector<std::vector<int64_t>> others = {
      {3, 2}, {6}, {2, 3, 1}, {2, 2}};
  for (const std::vector<int64_t>& other : others) {
    int64_t count = 1;
    for (const int64_t extent : other) count *= extent;
    std::vector<float> values(static_cast<size_t>(count), 7.0f);
    EXPECT_TRUE(Says(MessageOf<DataError>(
                         [&] { reader.ReadDatasetInto("/d", values, other); }),
                     "/d", "has shape [2, 3]"))
        << other.size();
    EXPECT_EQ(values, std::vector<float>(values.size(), 7.0f));
  }
}

// Shapes around the limits of hdf5_writer.cc: chunked from 64 KiB, chunks of
// 1 MiB that do not divide the shape, deflated up to 16 MiB if not floats.
template <typename T>
class Hdf5LargeDataset : public testing::Test {};
using FloatAndInt = testing::Types<float, int32_t>;
TYPED_TEST_SUITE(Hdf5LargeDataset, FloatAndInt);

TYPED_TEST(Hdf5LargeDataset, OfAnyShapeIsReadBack) {
  const fs::path path = FreshFolder("large") / "a.h5";
  const std::vector<std::vector<int64_t>> shapes = {
      {16383},      {16384},      {16385},           {3, 300'001},
      {300'001, 3}, {1000, 1000}, {7, 11, 13, 1000}, {1, 4'400'000}};
  const std::vector<float> normal = NormalFloats(4'400'000, 5, 0);
  std::vector<TypeParam> values;
  for (const float x : normal) values.push_back(std::bit_cast<TypeParam>(x));
  auto part = [&](const std::vector<int64_t>& shape) {
    size_t count = 1;
    for (int64_t extent : shape) count *= static_cast<size_t>(extent);
    return std::span<const TypeParam>(values).first(count);
  };
  Hdf5Writer writer(path, kFileKind);
  for (size_t i = 0; i < shapes.size(); ++i) {
    writer.WriteDataset<TypeParam>("/d" + std::to_string(i), part(shapes[i]),
                                   shapes[i]);
  }
  writer.Commit();

  const Hdf5Reader reader(path, kFileKind);
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = "/d" + std::to_string(i);
    const std::span<const TypeParam> expected = part(shapes[i]);
    Hdf5Array<TypeParam> read = reader.ReadDataset<TypeParam>(name);
    EXPECT_EQ(read.shape, shapes[i]);
    EXPECT_TRUE(std::equal(read.values.begin(), read.values.end(),
                           expected.begin(), expected.end()))
        << i;
    if constexpr (std::is_same_v<TypeParam, float>) {
      std::fill(read.values.begin(), read.values.end(), 0.0f);
      reader.ReadDatasetInto(name, read.values, shapes[i]);
      EXPECT_TRUE(std::equal(read.values.begin(), read.values.end(),
                             expected.begin(), expected.end()))
          << i;
    }
  }
}

void WriteSample(const fs::path& path) {
  Hdf5Writer writer(path, kFileKind);
  writer.WriteAttribute("/", "name", "sample");
  const std::vector<float> values = NormalFloats(100'000, 5, 0);
  writer.WriteDataset<float>("/large", values, {100, 1000});
  writer.WriteDataset("/strings", Strings({"a", "bb", ""}));
  writer.CreateGroup("/group");
  writer.WriteAttribute("/group", "pi", 3.25);
  writer.WriteDataset("/made/by/itself", std::vector<double>{1});
  writer.CreateGroup("/made/too/empty");
  writer.Commit();
}

// HDF5 stores modification times in seconds unless it is configured not to, so
// the second write happens in another second; and it runs on a heap full of old
// bytes, so that an uninitialised byte in the file would differ.
TEST(Hdf5File, EqualWritesGiveEqualBytes) {
  const fs::path folder = FreshFolder("reproducible");
  WriteSample(folder / "first.h5");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  {
    std::vector<std::vector<char>> dirt;
    for (size_t size = 16; size < 4'000'000; size = size * 5 / 4 + 16) {
      dirt.emplace_back(size, '\xab');
    }
  }
  WriteSample(folder / "second_with_another_name.h5");
  const std::string first = ReadWholeFile(folder / "first.h5");
  EXPECT_TRUE(first == ReadWholeFile(folder / "second_with_another_name.h5"));
  EXPECT_EQ(Hdf5Reader(folder / "first.h5", kFileKind).content_sha256(),
            Sha256Hex(std::string_view(first).substr(512)));
}

// Any HDF5 program (h5py, h5dump) skips the user block by itself.
TEST(Hdf5File, PlainHdf5OpensTheFile) {
  const fs::path path = FreshFolder("plain") / "a.h5";
  WriteSample(path);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  EXPECT_GT(H5Lexists(file, "/large", H5P_DEFAULT), 0);
  EXPECT_GE(H5Fclose(file), 0);
}

TEST(Hdf5File, AbandonedWriterLeavesTheOldFileAndNothingElse) {
  const fs::path folder = FreshFolder("abandoned");
  WriteSample(folder / "a.h5");
  const std::string before = ReadWholeFile(folder / "a.h5");
  {
    Hdf5Writer writer(folder / "a.h5", kFileKind);
    writer.WriteDataset("/x", std::vector<double>{1, 2, 3});
  }
  EXPECT_EQ(FilesIn(folder), Strings({"a.h5"}));
  EXPECT_TRUE(ReadWholeFile(folder / "a.h5") == before);
}

TEST(Hdf5File, BrokenPromisesOfTheCallerAreInternalErrors) {
  const fs::path folder = FreshFolder("promises");
  EXPECT_THROW(Hdf5Writer(folder / "a.h5", {std::string(32, 'k'), 1}),
               InternalError);
  Hdf5Writer writer(folder / "a.h5", kFileKind);
  const std::vector<double> values = {1, 2, 3};
  EXPECT_THROW(writer.WriteDataset<double>("/x", values, {2}), InternalError);
  writer.WriteDataset("/x", values);
  EXPECT_THROW(writer.WriteDataset("/x", values), InternalError);
  EXPECT_THROW(writer.WriteDataset("/x/below", values), InternalError);
  EXPECT_THROW(writer.WriteAttribute("/absent", "a", 1.0), InternalError);
  writer.WriteAttribute("/x", "a", 1.0);
  EXPECT_THROW(writer.WriteAttribute("/x", "a", 2.0), InternalError);
  EXPECT_THROW(writer.WriteDataset("/s", Strings({std::string("a\0b", 3)})),
               InternalError);
  writer.Commit();
  EXPECT_THROW(writer.CreateGroup("/late"), InternalError);
  EXPECT_THROW(writer.Commit(), InternalError);
  EXPECT_EQ(Hdf5Reader(folder / "a.h5", kFileKind).ReadDouble("/x", "a"), 1.0);
}

}  // namespace
}  // namespace softmoe

// SPDX-License-Identifier: Apache-2.0
//
// Hdf5Reader on valid HDF5 with hostile contents: every object in the file is
// read as every type that it might have.
#include "core/fuzzing/fuzz_support.h"
#include "core/fuzzing/hdf5_hostile.h"
#include "core/hdf5/hdf5_file.h"

namespace softmoe::fuzz {
namespace {

namespace fs = std::filesystem;

const Hdf5Kind kKind = {"fuzz", 1};

// Writes a file with one of everything that the writer makes.
fs::path GoodFile() {
  const fs::path path = ScratchFolder() / "good.h5";
  Hdf5Writer writer(path, kKind);
  writer.WriteAttribute("/", "text", "some text");
  writer.WriteAttribute("/", "empty", "");
  writer.WriteAttribute("/", "whole", int64_t{3});
  writer.WriteDataset<float>("/group/f32", std::vector<float>{1, 2, 3, 4, 5, 6},
                             {2, 3});
  writer.WriteDataset("/group/f64", std::vector<double>{1, 2});
  writer.WriteDataset("/group/i32", std::vector<int32_t>{1, 2});
  writer.WriteDataset("/group/i64", std::vector<int64_t>{1, 2});
  writer.WriteDataset("/group/u8", std::vector<uint8_t>{1, 2});
  writer.WriteDataset("/group/strings",
                      std::vector<std::string>{"one", "three"});
  writer.WriteDataset("/group/chunked", std::vector<double>(8192, 1.5));
  writer.WriteDataset("/group/nothing", std::vector<double>{});
  writer.WriteAttribute("/group/f64", "real", 0.5);
  writer.CreateGroup("/empty");
  writer.Commit();
  return path;
}

template <typename T>
void Read(const Hdf5Reader& reader, const std::string& path) {
  Hdf5Array<T> array;
  if (!Accepts([&] { array = reader.ReadDataset<T>(path); })) return;
  auto product = static_cast<double>(array.values.size() == 0 ? 0 : 1);
  for (const int64_t extent : array.shape) {
    Require(extent >= 0, path + " has a negative size");
    product *= static_cast<double>(extent);
  }
  Require(product == static_cast<double>(array.values.size()),
          path + " has a shape of another size");
}

// Stops at a certain depth, since circles of links have no end.
void ReadAll(const Hdf5Reader& reader, const std::string& path, int depth) {
  Read<float>(reader, path);
  Read<double>(reader, path);
  Read<int32_t>(reader, path);
  Read<int64_t>(reader, path);
  Read<uint8_t>(reader, path);
  Read<std::string>(reader, path);
  std::vector<float> six(6);
  Accepts([&] { reader.ReadDatasetInto(path, six, {2, 3}); });
  Accepts([&] {
    for (const std::string& name : reader.Attributes(path)) {
      reader.HasAttribute(path, name);
      Accepts([&] { reader.ReadString(path, name); });
      Accepts([&] { reader.ReadInt(path, name); });
      Accepts([&] { reader.ReadDouble(path, name); });
    }
  });
  if (depth == 0) return;
  Accepts([&] {
    for (const std::string& name : reader.Children(path)) {
      const std::string child = (path == "/" ? "" : path) + "/" + name;
      Require(reader.Has(child), child + " is listed but not there");
      ReadAll(reader, child, depth - 1);
    }
  });
}

}  // namespace

void FuzzOne(std::string_view input) {
  static const HostileHdf5 hostile(GoodFile());
  FuzzHostileFile(hostile, input, [](const fs::path& path) {
    ReadAll(Hdf5Reader(path, kKind), "/", 3);
  });
}

std::vector<std::string> Seeds() { return HostileSeeds(); }

}  // namespace softmoe::fuzz

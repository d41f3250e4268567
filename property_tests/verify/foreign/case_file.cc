// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/case_file.h"

#include <fmt/core.h>

namespace softmoe::verify {
namespace {

const Hdf5Kind kCaseFileKind = {"verify-cases", 1};
constexpr int64_t kFormatVersion = 1;  // FORMAT.md

void WriteParameters(Hdf5Writer& writer, const std::string& group,
                     const Case& c) {
  const std::string path = group + "/parameters";
  writer.CreateGroup(path);
  for (const auto& [name, window] : c.sizes) {
    writer.WriteAttribute(path, name, window.count);
  }
  for (const auto& [name, value] : c.reals) {
    writer.WriteAttribute(path, name, value);
  }
  for (const auto& [name, choice] : c.choices) {
    writer.WriteAttribute(path, name, choice);
  }
}

}  // namespace

std::string CaseGroup(int64_t index) {
  return fmt::format("/cases/{:06}", index);
}

void WriteTensor(Hdf5Writer& writer, const std::string& path,
                 const Tensor& tensor) {
  switch (tensor.dtype) {
    case Dtype::kF64:
      writer.WriteDataset<double>(path, tensor.values, tensor.shape);
      break;
    case Dtype::kF32:
    case Dtype::kBf16:
      writer.WriteDataset<float>(path, ToFloats(tensor), tensor.shape);
      break;
    case Dtype::kI32:
      writer.WriteDataset<int32_t>(path, ToInts(tensor), tensor.shape);
      break;
  }
  writer.WriteAttribute(path, "dtype", DtypeName(tensor.dtype));
}

Tensor ReadTensor(const Hdf5Reader& reader, const std::string& path) {
  Tensor tensor;
  const auto take = [&](const auto& array) {
    tensor.shape = array.shape;
    tensor.values.assign(array.values.begin(), array.values.end());
  };
  if (!reader.HasAttribute(path, "dtype")) {
    take(reader.ReadDataset<double>(path));
    return tensor;
  }
  tensor.dtype = ParseDtype(reader.ReadString(path, "dtype"));
  if (tensor.dtype == Dtype::kF64) {
    take(reader.ReadDataset<double>(path));
  } else if (tensor.dtype == Dtype::kI32) {
    take(reader.ReadDataset<int32_t>(path));
  } else {
    take(reader.ReadDataset<float>(path));
  }
  return tensor;
}

void WriteRequest(Hdf5Writer& writer, int64_t index, const Request& request) {
  const std::string group = CaseGroup(index);
  writer.CreateGroup(group);
  writer.WriteAttribute(group, "op", request.c.op);
  writer.WriteAttribute(group, "dtype", DtypeName(request.c.dtype));
  writer.WriteAttribute(group, "case", CaseText(request.c));
  WriteParameters(writer, group, request.c);
  writer.CreateGroup(group + "/inputs");
  for (const auto& [name, tensor] : request.inputs) {
    WriteTensor(writer, group + "/inputs/" + name, tensor);
  }
  writer.CreateGroup(group + "/outputs");
  for (const Wanted& wanted : request.outputs) {
    const std::string path = group + "/outputs/" + wanted.name;
    writer.WriteDataset<int64_t>(path, wanted.shape);
    writer.WriteAttribute(path, "dtype", DtypeName(wanted.dtype));
    writer.WriteAttribute(path, "optional", int64_t{wanted.optional});
  }
}

void WriteHead(Hdf5Writer& writer, int64_t num_cases) {
  writer.WriteAttribute("/", "format", "softmoe-verify-cases");
  writer.WriteAttribute("/", "version", kFormatVersion);
  writer.WriteAttribute("/", "num_cases", num_cases);
}

void WriteCaseFile(const std::filesystem::path& path,
                   std::span<const Request> requests) {
  Hdf5Writer writer(path, kCaseFileKind);
  WriteHead(writer, static_cast<int64_t>(requests.size()));
  writer.CreateGroup("/cases");
  for (size_t i = 0; i < requests.size(); ++i) {
    WriteRequest(writer, static_cast<int64_t>(i), requests[i]);
  }
  writer.Commit();
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "property_tests/verify/engine/draw.h"

namespace softmoe::verify {
namespace {

const Hdf5Kind kKind = {"verify-replay", 1};
constexpr int64_t kMaxBundleBytes = 16 << 20;

int64_t Bytes(const TensorMap& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += 8 * tensor.size() + 512;
  return bytes;
}

void WriteTensors(Hdf5Writer& writer, const std::string& group,
                  const TensorMap& tensors) {
  writer.CreateGroup(group);
  for (const auto& [name, tensor] : tensors) {
    const std::string path = group + "/" + name;
    // A scalar is a dataset of one element; the attribute keeps its rank.
    writer.WriteDataset<double>(path, tensor.values);
    std::string shape;
    for (const int64_t size : tensor.shape) {
      shape += (shape.empty() ? "" : " ") + std::to_string(size);
    }
    writer.WriteAttribute(path, "dtype", DtypeName(tensor.dtype));
    writer.WriteAttribute(path, "shape", shape.empty() ? "scalar" : shape);
  }
}

Tensor ReadTensor(const Hdf5Reader& reader, const std::string& path) {
  Tensor tensor;
  tensor.dtype = ParseDtype(reader.ReadString(path, "dtype"));
  const std::string shape = reader.ReadString(path, "shape");
  if (shape != "scalar") {
    size_t at = 0;
    while (at < shape.size()) {
      const size_t end = std::min(shape.find(' ', at), shape.size());
      tensor.shape.push_back(ParseWhole("shape", shape.substr(at, end - at)));
      at = end + 1;
    }
  }
  tensor.values = reader.ReadDataset<double>(path).values;
  int64_t count = 1;
  for (const int64_t size : tensor.shape) {  // without overflow
    count = size < 1 || count > tensor.size() / size ? 0 : count * size;
  }
  if (count != tensor.size()) {
    throw DataError(reader.path().string() + ": " + path + " holds " +
                    std::to_string(tensor.size()) +
                    " values, its shape says otherwise; write the bundle "
                    "again");
  }
  return tensor;
}

TensorMap ReadTensors(const Hdf5Reader& reader, const std::string& group) {
  TensorMap tensors;
  if (!reader.Has(group)) return tensors;
  for (const std::string& name : reader.Children(group)) {
    tensors[name] = ReadTensor(reader, group + "/" + name);
  }
  return tensors;
}

// Everything that the operation will ask for must exist, in the right shape, as
// numbers of its dtype that it accepts.
void CheckInputsOf(const Bundle& bundle, const std::filesystem::path& path) {
  const Operation& op = FindOperation(bundle.c.op);
  const TensorMap& inputs = bundle.evidence.inputs;
  for (const auto& [name, tensor] : op.Inputs(bundle.c)) {
    const auto found = inputs.find(name);
    if (found == inputs.end() || found->second.shape != tensor.shape ||
        found->second.dtype != tensor.dtype) {
      throw DataError(path.string() + ": input '" + name +
                      "' is missing or is not " + DtypeName(tensor.dtype) +
                      ShapeText(tensor.shape) +
                      "; the bundle is of another program");
    }
    for (const double x : found->second.values) {
      if (std::isfinite(x) && RoundTo(tensor.dtype, x) == x) continue;
      throw DataError(path.string() + ": input '" + name + "' holds " +
                      std::to_string(x) + ", which is not a finite " +
                      DtypeName(tensor.dtype) + "; write the bundle again");
    }
  }
  const std::string defect = op.WhyInvalid(bundle.c, inputs);
  if (!defect.empty()) {
    throw DataError(path.string() + ": no data of operation '" + op.name() +
                    "': " + defect + "; write the bundle again");
  }
}

}  // namespace

std::string ReproLine(const CaseResult& result) {
  std::string remark =
      fmt::format("{} {}", StatusName(result.status), result.Place());
  for (const OutputResult& output : result.outputs) {
    const Comparison& found = output.comparison;
    if (output.output != result.output || found.failures == 0) continue;
    remark += fmt::format(
        " got={:.9g} expected={:.9g} bound={:.3g} util={:.3g}", found.worst_got,
        found.worst_expected, found.worst_bound, found.utilisation);
  }
  return ReproLine(result.c, result.command, remark);
}

std::string ReproLine(const Case& c, const std::string& command,
                      const std::string& remark) {
  std::string line = fmt::format("REPRO v{} verify {} {} # {}", kReproVersion,
                                 command, CaseText(c), remark);
  // Keeps the remark on one line, whatever an exception said.
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::string StripRepro(const std::string& text, const std::string& command) {
  // A word that begins with "#", and everything after it, is for people.
  size_t end = text.find('#');
  while (end != std::string::npos && end > 0 &&
         !std::isspace(static_cast<unsigned char>(text[end - 1]))) {
    end = text.find('#', end + 1);
  }
  if (end != std::string::npos &&
      text.find("\nREPRO ", end) != std::string::npos) {
    throw ConfigError("these are two REPRO lines; give one at a time");
  }
  const std::string version = fmt::format("v{}", kReproVersion);
  std::istringstream words(text.substr(0, end));
  std::string word, rest;
  words >> word;
  const bool is_repro = word == "REPRO";
  if (is_repro) {
    words >> word;
    if (word != version) {
      throw ConfigError("this REPRO line is of version '" + word +
                        "', this program reads " + version +
                        "; rerun it with the program that printed it");
    }
    words >> word;
  }
  if (word == "verify") {
    words >> word;
    if (word != command && (word == "run" || word == "grad")) {
      throw ConfigError("this line is for `verify " + word +
                        "`, which checks something else; give it to that "
                        "command");
    }
    if (word == command) word.clear();
  }
  if (!word.empty()) rest = word;
  while (words >> word) rest += (rest.empty() ? "" : " ") + word;
  // Otherwise the line would name many cases, and not the one that failed.
  if (is_repro && rest.find(" case=") == std::string::npos) {
    throw ConfigError(
        "this REPRO line is cut short: it ends before case=; paste all of it");
  }
  return rest;
}

bool WriteBundle(const std::filesystem::path& path, const CaseResult& result,
                 const Evidence& evidence) {
  TensorMap expected, bounds;
  for (const auto& [name, output] : evidence.expected.outputs) {
    expected[name] = output.values;
    Tensor bound(Dtype::kF64, output.values.shape);
    bound.values = output.bounds;
    bounds[name] = bound;
  }
  int64_t room = kMaxBundleBytes - Bytes(evidence.inputs) - 65536;
  if (room < 0) return false;
  Hdf5Writer writer(path, kKind);
  WriteTensors(writer, "/inputs", evidence.inputs);
  for (const auto& [group, tensors] :
       {std::pair<std::string, const TensorMap&>{"/got", evidence.got},
        {"/expected", expected},
        {"/bounds", bounds}}) {
    room -= Bytes(tensors);
    if (room < 0) break;
    WriteTensors(writer, group, tensors);
  }
  writer.WriteAttribute("/", "case", CaseText(result.c));
  writer.WriteAttribute("/", "result", ReproLine(result));
  writer.Commit();
  return true;
}

Bundle ReadBundle(const std::filesystem::path& path) {
  const Hdf5Reader reader(path, kKind);
  Bundle bundle;
  bundle.c = ParseCase(reader.ReadString("/", "case"));
  bundle.result = reader.ReadString("/", "result");
  bundle.evidence.inputs = ReadTensors(reader, "/inputs");
  bundle.evidence.got = ReadTensors(reader, "/got");
  const TensorMap bounds = ReadTensors(reader, "/bounds");
  for (auto& [name, values] : ReadTensors(reader, "/expected")) {
    ExpectedOutput& output = bundle.evidence.expected.outputs[name];
    output.values = values;
    const auto bound = bounds.find(name);
    if (bound == bounds.end()) continue;
    output.bounds = bound->second.values;
    if (bound->second.shape != values.shape) {
      throw DataError(path.string() + ": output '" + name +
                      "' and its bounds have different shapes; write the "
                      "bundle again");
    }
  }
  CheckInputsOf(bundle, path);
  return bundle;
}

}  // namespace softmoe::verify

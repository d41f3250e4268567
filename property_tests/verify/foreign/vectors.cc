// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/foreign/vectors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "core/process/stop_signal.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/foreign/case_file.h"
#include "property_tests/verify/foreign/request.h"

namespace softmoe::verify {
namespace {

constexpr int64_t kVersion = 2;
const Hdf5Kind kVectorsKind = {"verify-vectors", kVersion};

void WriteExpected(Hdf5Writer& writer, const std::string& group,
                   const Expected& expected) {
  writer.WriteAttribute(group, "decisions", expected.decisions);
  writer.CreateGroup(group + "/expected");
  writer.CreateGroup(group + "/bounds");
  for (const auto& [name, output] : expected.outputs) {
    const std::string place = group + "/expected/" + name;
    const std::vector<int64_t>& shape = output.values.shape;
    writer.WriteDataset<double>(place, output.values.values, shape);
    writer.WriteAttribute(place, "derivation", output.derivation);
    writer.WriteDataset<double>(group + "/bounds/" + name, output.bounds,
                                shape);
  }
}

[[noreturn]] void FailOther(const std::filesystem::path& path, size_t index,
                            const std::string& what) {
  throw DataError(
      fmt::format("{}: {}: {}; another version of this program wrote the file: "
                  "export it again, and have the outputs computed again",
                  path.string(), CaseGroup(static_cast<int64_t>(index)), what));
}

// Throws StoppedError if `stop`, unless null, is requested between two cases.
void WriteCases(Hdf5Writer& writer, const std::vector<Case>& cases,
                const StopSignal* stop) {
  WriteHead(writer, static_cast<int64_t>(cases.size()));
  writer.WriteAttribute("/", "vectors_version", kVersion);
  writer.CreateGroup("/cases");
  writer.CreateGroup("/derivations");
  Requests requests;
  std::set<std::string> derivations;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (stop != nullptr) {
      stop->ThrowIfRequested(
          "no vectors were written; run the same command again");
    }
    const Operation& op = FindOperation(cases[i].op);
    const TensorMap inputs = InputsOf(op, cases[i]);
    const int64_t index = static_cast<int64_t>(i);
    WriteRequest(writer, index, requests.Make(op, cases[i], inputs));
    WriteExpected(writer, CaseGroup(index), ExpectOf(op, cases[i], inputs, {}));
    std::vector<Derivation> used = op.derivations();
    if (cases[i].dtype == Dtype::kF64) used.push_back(AtF64Derivation());
    for (const Derivation& derivation : used) {
      if (!derivations.insert(derivation.id).second) continue;
      writer.WriteAttribute("/derivations", derivation.id, derivation.text);
    }
  }
}

// Throws unless every input of the operation exists, in the right shape, and
// holds numbers of its dtype that the operation accepts.
void CheckInputsOf(const std::filesystem::path& path, size_t index,
                   const VectorCase& each) {
  const Operation& op = FindOperation(each.c.op);
  for (const auto& [name, tensor] : op.Inputs(each.c)) {
    const auto found = each.inputs.find(name);
    if (found == each.inputs.end() || found->second.shape != tensor.shape ||
        found->second.dtype != tensor.dtype) {
      FailOther(path, index,
                fmt::format("input '{}' is missing or is not {}{}", name,
                            DtypeName(tensor.dtype), ShapeText(tensor.shape)));
    }
    for (const double x : found->second.values) {
      if (std::isfinite(x) && RoundTo(tensor.dtype, x) == x) continue;
      FailOther(path, index,
                fmt::format("input '{}' holds {}, which is not a finite {}",
                            name, x, DtypeName(tensor.dtype)));
    }
  }
  const std::string defect = op.WhyInvalid(each.c, each.inputs);
  if (!defect.empty()) FailOther(path, index, defect);
}

}  // namespace

void WriteVectors(const std::filesystem::path& path,
                  const std::vector<Case>& cases) {
  const StopSignal stop;  // a killed process would leave a part of the file
  Hdf5Writer writer(path, kVectorsKind);
  WriteCases(writer, cases, &stop);
  writer.Commit();
}

void WriteBundle(const std::filesystem::path& path, const CaseResult& failed,
                 const TensorMap& got) {
  Hdf5Writer writer(path, kVectorsKind);
  WriteCases(writer, {failed.c}, /*stop=*/nullptr);
  const std::string group = CaseGroup(0);
  writer.WriteAttribute(group, "result", ReproLine(failed));
  writer.CreateGroup(group + "/got");
  for (const auto& [name, tensor] : got) {
    writer.WriteDataset<double>(group + "/got/" + name, tensor.values,
                                tensor.shape);
  }
  writer.Commit();
}

std::vector<VectorCase> ReadVectors(const std::filesystem::path& path) {
  const Hdf5Reader reader(path, kVectorsKind);
  std::vector<VectorCase> cases(reader.Children("/cases").size());
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string group = CaseGroup(static_cast<int64_t>(i));
    try {
      cases[i].c = ParseCase(reader.ReadString(group, "case"));
      for (const std::string& name : reader.Children(group + "/inputs")) {
        cases[i].inputs[name] = ReadTensor(reader, group + "/inputs/" + name);
      }
      for (const std::string& name : reader.Children(group + "/expected")) {
        const std::string place = group + "/expected/" + name;
        cases[i].outputs[name] = {ReadTensor(reader, place),
                                  ReadTensor(reader, group + "/bounds/" + name),
                                  reader.ReadString(place, "derivation")};
      }
      if (reader.HasAttribute(group, "result")) {
        cases[i].result = reader.ReadString(group, "result");
        for (const std::string& name : reader.Children(group + "/got")) {
          cases[i].got[name] = ReadTensor(reader, group + "/got/" + name);
        }
      }
    } catch (const ConfigError& error) {  // or of a dtype
      FailOther(path, i, error.what());
    }
    CheckInputsOf(path, i, cases[i]);
  }
  return cases;
}

void CheckExpectations(const std::filesystem::path& path,
                       const std::vector<VectorCase>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const VectorCase& each = cases[i];
    const Operation& op = FindOperation(each.c.op);
    for (const auto& [name, tensor] : InputsOf(op, each.c)) {
      const auto found = each.inputs.find(name);
      if (found == each.inputs.end() || !SameBits(found->second, tensor)) {
        FailOther(path, i,
                  "input " + name + " differs from the input of its case");
      }
    }
    for (const auto& [name, output] :
         ExpectOf(op, each.c, each.inputs, {}).outputs) {
      const auto found = each.outputs.find(name);
      if (found == each.outputs.end() ||
          found->second.values.shape != output.values.shape ||
          found->second.bounds.size() != output.values.size()) {
        FailOther(path, i,
                  "the file has no expected values, or differently shaped "
                  "ones, for " +
                      name);
      }
      if (found->second.derivation != output.derivation) {
        FailOther(
            path, i,
            fmt::format("the bounds of {} are derived by {} here, but by '{}' "
                        "in the file",
                        name, output.derivation, found->second.derivation));
      }
      for (int64_t k = 0; k < output.values.size(); ++k) {
        // The file may come from another machine, whose exp differs in the last
        // bits: either reference in double may be wrong by its own error, about
        // 2^-29 of a bound for float. A NaN fails.
        const double drift =
            std::abs(found->second.values.values[k] - output.values.values[k]);
        const double bound = output.bounds[k];
        const double theirs = found->second.bounds.values[k];
        const bool same_bound =  // both may be infinite
            theirs == bound || std::abs(theirs - bound) <= 0x1p-20 * bound;
        const double slack = std::max(0x1p-20 * bound, 2 * output.OwnError(k));
        if (drift <= slack && same_bound) continue;
        FailOther(path, i,
                  fmt::format("{}{}: {:.17g} +- {:.3g} is expected here, "
                              "{:.17g} +- {:.3g} in the file",
                              name, IndexText(output.values.shape, k),
                              output.values.values[k], bound,
                              found->second.values.values[k],
                              found->second.bounds.values[k]));
      }
    }
  }
}

}  // namespace softmoe::verify

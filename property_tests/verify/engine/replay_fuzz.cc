// SPDX-License-Identifier: Apache-2.0
//
// Replay bundles with hostile contents. In every bundle that is accepted, each
// tensor has the size that its shape says, and the bounds have the shapes of
// the expected values.
#include "core/files/atomic_file.h"
#include "core/fuzzing/fuzz_support.h"
#include "core/fuzzing/hdf5_hostile.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/replay.h"

namespace softmoe::fuzz {
namespace {

namespace fs = std::filesystem;

fs::path GoodFile() {
  verify::CaseResult result;
  result.c = verify::ParseCase("op=lapsum rows=3 num_experts=4");
  verify::Evidence evidence;
  evidence.inputs = InputsOf(verify::FindOperation("lapsum"), result.c);
  verify::ExpectedOutput output;
  output.values = verify::FromVector<double>(verify::Dtype::kF64, {2, 3},
                                             {1, 2, 3, 4, 5, 6});
  output.bounds = std::vector<double>(6, 0.5);
  evidence.expected.outputs["p"] = output;
  evidence.got["p"] = output.values;
  const fs::path path = ScratchFolder() / "good.h5";
  Require(WriteBundle(path, result, evidence), "no bundle");
  return path;
}

void CheckTensors(const verify::TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) {
    for (const int64_t size : tensor.shape) {
      Require(size >= 0, name + " has a negative size");
    }
    Require(verify::NumElements(tensor.shape) == tensor.size(),
            name + " has another size than its shape");
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  static const HostileHdf5 hostile(GoodFile());
  const fs::path path = ScratchFolder() / "hostile.h5";
  if (!hostile.Write(path, Choices(input))) return;
  verify::Bundle bundle;
  if (!Accepts([&] { bundle = verify::ReadBundle(path); })) {
    return Require(!input.empty(), "the good file is refused");
  }
  CheckTensors(bundle.evidence.inputs);
  CheckTensors(bundle.evidence.got);
  for (const auto& [name, output] : bundle.evidence.expected.outputs) {
    CheckTensors({{name, output.values}});
    Require(
        output.bounds.empty() ||
            static_cast<int64_t>(output.bounds.size()) == output.values.size(),
        name + " has another number of bounds than of values");
  }
}

std::vector<std::string> Seeds() { return HostileSeeds(); }

}  // namespace softmoe::fuzz

// SPDX-License-Identifier: Apache-2.0
//
// Conformance vectors, in a bundle, with hostile contents. A file is accepted
// only if it expects what this program expects.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/fuzzing/fuzz_support.h"
#include "core/fuzzing/hdf5_hostile.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/foreign/vectors.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  static const HostileHdf5 hostile([] {
    const auto good = ScratchFolder() / "good.h5";
    verify::CaseResult failed;
    failed.c = verify::ParseCase("op=lapsum rows=2 num_experts=3");
    verify::WriteBundle(good, failed,
                        {{"p", verify::Tensor(verify::Dtype::kF64, {2, 3})}});
    return good;
  }());
  std::vector<verify::VectorCase> cases;
  const auto read = [&](const std::filesystem::path& path) {
    cases = verify::ReadVectors(path);
    for (const verify::VectorCase& each : cases) {
      for (const auto& [name, tensor] : each.got) {
        Require(verify::NumElements(tensor.shape) == tensor.size(),
                name + " has another size than its shape");
      }
    }
    verify::CheckExpectations(path, cases);
  };
  if (!FuzzHostileFile(hostile, input, read)) return;
  for (const verify::VectorCase& each : cases) {
    for (const auto& [name, output] : each.outputs) {
      Require(output.bounds.size() == output.values.size(),
              name + " has another number of bounds than of values");
    }
  }
}

std::vector<std::string> Seeds() { return HostileSeeds(); }

}  // namespace softmoe::fuzz

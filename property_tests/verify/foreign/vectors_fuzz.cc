// SPDX-License-Identifier: Apache-2.0
//
// Conformance vectors with hostile contents. A file is accepted only if it
// expects what this program expects.
#include "core/fuzzing/fuzz_support.h"
#include "core/fuzzing/hdf5_hostile.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/foreign/vectors.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  static const HostileHdf5 hostile([] {
    const auto good = ScratchFolder() / "good.h5";
    verify::WriteVectors(
        good, {verify::ParseCase("op=lapsum rows=2 num_experts=3", "theirs"),
               verify::ParseCase("op=rmsnorm rows=1", "theirs")});
    return good;
  }());
  const auto path = ScratchFolder() / "hostile.h5";
  if (!hostile.Write(path, Choices(input))) return;
  const bool accepted = Accepts([&] {
    const std::vector<verify::VectorCase> cases = verify::ReadVectors(path);
    verify::CheckExpectations(path, cases);
    for (const verify::VectorCase& each : cases) {
      for (const auto& [name, output] : each.outputs) {
        Require(output.bounds.size() == output.values.size(),
                name + " has another number of bounds than of values");
      }
    }
  });
  Require(accepted || !input.empty(), "the good file is refused");
}

std::vector<std::string> Seeds() { return HostileSeeds(); }

}  // namespace softmoe::fuzz

// SPDX-License-Identifier: Apache-2.0
//
// ReadDocument on valid HDF5 with hostile contents. An accepted document has no
// problem, and is unchanged when it is written and read again.
#include "core/fuzzing/fuzz_support.h"
#include "core/fuzzing/hdf5_hostile.h"
#include "golden/document/document.h"
#include "golden/testing/document_test_util.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  static const HostileHdf5 hostile([] {
    const auto good = ScratchFolder() / "good.h5";
    golden::WriteDocument(golden::ExampleDocument(), good);
    return good;
  }());
  golden::Document document;
  if (!FuzzHostileFile(hostile, input, [&](const auto& path) {
        document = golden::ReadDocument(path);
      })) {
    return;
  }
  Require(golden::FirstProblem(document).empty(),
          "accepted: " + golden::FirstProblem(document));
  const auto again = ScratchFolder() / "again.h5";
  golden::WriteDocument(document, again);
  Require(golden::ReadDocument(again) == document, "reads back otherwise");
}

std::vector<std::string> Seeds() { return HostileSeeds(); }

}  // namespace softmoe::fuzz

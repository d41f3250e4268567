// SPDX-License-Identifier: Apache-2.0
//
// README.md says about each operation what the records in golden/gpu_runs say.
#include <gtest/gtest.h>

#include <string>

#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/program_test_util.h"

namespace softmoe::gpu {
namespace {

TEST(Readme, HasTheTableOfTheRecords) {
  const auto copy = FreshFolder("readme") / "README.md";
  const std::string now =
      ReadWholeFile(RunfilePath("property_tests/gpu/README.md"));
  WriteFileAtomically(copy, now);
  const ProgramResult result = RunTestProgram(
      "golden/golden", "gpu-table --into README.md 2>&1", copy.parent_path());
  EXPECT_TRUE(EndedWith(result, 0));
  EXPECT_EQ(ReadWholeFile(copy), now)
      << "run ./bazelw run //:golden -- gpu-table --into "
         "property_tests/gpu/README.md";
}

}  // namespace
}  // namespace softmoe::gpu

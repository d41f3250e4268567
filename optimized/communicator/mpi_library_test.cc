// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/mpi_library.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "core/errors.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"

namespace softmoe::optimized {
namespace {

std::string MessageFor(const std::string& library) {
  return MessageOf<EnvironmentError>([&] { LoadMpi(library); });
}

TEST(MpiLibrary, AMissingOneIsAnErrorWithThePackage) {
  const std::string message = MessageFor("libnowhere.so.40");
  EXPECT_TRUE(Says(message, "libnowhere.so.40",
                   "apt-get install openmpi-bin libopenmpi3"));
}

TEST(MpiLibrary, AnythingElseIsRefused) {
  const std::string message = MessageFor("libm.so.6");
  EXPECT_TRUE(Says(message, "libm.so.6 has no MPI_Get_library_version"));
}

// testing/other_mpi.cc reports the version that it is told.
TEST(MpiLibrary, AnotherVersionIsRefusedByItsText) {
  const std::string other =
      RunfilePath("optimized/communicator/testing/libother_mpi.so").string();
  const auto refusal = [&](const std::string& version) {
    setenv("OTHER_MPI_VERSION", version.c_str(), 1);
    return MessageFor(other);
  };
  EXPECT_EQ(refusal("Open MPI v3.1.3, package: Debian"),
            other +
                " is 'Open MPI v3.1.3, package: Debian'; ranks over MPI "
                "need Open MPI 4 or 5: on Debian, apt-get install "
                "openmpi-bin libopenmpi3");
  EXPECT_TRUE(Says(refusal("MPICH Version: 4.0"), " is 'MPICH Version: 4.0';"));
  // "MVAPICH2 v" is as long as "Open MPI v".
  EXPECT_TRUE(
      Says(refusal("MVAPICH2 v4.0, 2025"), " is 'MVAPICH2 v4.0, 2025';"));
  // Only the first 80 characters of a long text are shown.
  const std::string eighty = std::string(79, 'x') + "y";
  EXPECT_TRUE(Says(refusal(eighty + "z"), " is '" + eighty + "';"));
  EXPECT_TRUE(Says(refusal("Open MPI v4.1.4, package: Debian"),
                   "libother_mpi.so has no MPI_Init_thread"));
}

TEST(MpiLibrary, OfThisMachineHasAllThatIsCalled) {
  const std::string message = MessageFor("libmpi.so.40");
  if (message.find("cannot open shared object") != std::string::npos) {
    GTEST_SKIP() << message;
  }
  ASSERT_EQ(message, kNoError);
  const std::string version = LoadMpi().version;
  EXPECT_NE(version, "");
  EXPECT_EQ(version.find(','), std::string::npos) << version;
}

}  // namespace
}  // namespace softmoe::optimized

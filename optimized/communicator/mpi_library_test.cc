// SPDX-License-Identifier: Apache-2.0
#include "optimized/communicator/mpi_library.h"

#include <gtest/gtest.h>

#include "core/errors.h"

namespace softmoe::optimized {
namespace {

std::string MessageFor(const std::string& library) {
  try {
    LoadMpi(library);
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return "none";
}

TEST(MpiLibrary, AMissingOneIsAnErrorWithThePackage) {
  const std::string message = MessageFor("libnowhere.so.40");
  EXPECT_NE(message.find("libnowhere.so.40"), std::string::npos) << message;
  EXPECT_NE(message.find("apt-get install openmpi-bin libopenmpi3"),
            std::string::npos)
      << message;
}

TEST(MpiLibrary, AnythingElseIsRefused) {
  const std::string message = MessageFor("libm.so.6");
  EXPECT_NE(message.find("libm.so.6 has no MPI_Get_library_version"),
            std::string::npos)
      << message;
}

TEST(MpiLibrary, OfThisMachineHasAllThatIsCalled) {
  const std::string message = MessageFor("libmpi.so.40");
  if (message.find("cannot open shared object") != std::string::npos) {
    GTEST_SKIP() << message;
  }
  ASSERT_EQ(message, "none");
  EXPECT_NE(LoadMpi().version, "");
}

}  // namespace
}  // namespace softmoe::optimized

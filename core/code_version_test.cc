// SPDX-License-Identifier: Apache-2.0
#include "core/code_version.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

namespace softmoe {
namespace {

// This test links the stamp; in a release without git it is "unknown".
TEST(CodeVersion, IsACommitOrUnknown) {
  std::string version = CodeVersion();
  if (version == "unknown") return;
  if (version.ends_with("+changes")) version.resize(version.size() - 8);
  EXPECT_EQ(version.size(), 12u) << version;
  EXPECT_TRUE(std::all_of(version.begin(), version.end(), [](char c) {
    return std::isxdigit(static_cast<unsigned char>(c)) != 0;
  })) << version;
}

}  // namespace
}  // namespace softmoe

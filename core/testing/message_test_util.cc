// SPDX-License-Identifier: Apache-2.0
#include "core/testing/message_test_util.h"

namespace softmoe {

::testing::AssertionResult Says(std::string_view text,
                                const std::vector<std::string>& parts) {
  std::string missing;
  for (const std::string& part : parts) {
    if (text.find(part) != text.npos) continue;
    missing.append("expected: ").append(part).append("\n");
  }
  if (missing.empty()) return ::testing::AssertionSuccess() << text;
  return ::testing::AssertionFailure() << missing << "got: " << text;
}

}  // namespace softmoe

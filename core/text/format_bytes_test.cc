// SPDX-License-Identifier: Apache-2.0
#include "core/text/format_bytes.h"

#include <gtest/gtest.h>

namespace softmoe {
namespace {

TEST(FormatBytes, PicksTheUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(FormatBytes(int64_t{13} << 30), "13.0 GiB");
}

}  // namespace
}  // namespace softmoe

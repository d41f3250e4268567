// SPDX-License-Identifier: Apache-2.0
//
// Tests addresses; planted_device_bugs.cu tests that the rest is off limits.
#include "kernels/simt/device/guarded_memory.h"

#include <gtest/gtest.h>

namespace softmoe::simt {
namespace {

TEST(GuardedMemory, UsesNoAddressTwice) {
  GuardedMemory memory("memory", true);
  char* first = memory.Allocate(1000);
  memory.Free(memory.Find(first));
  EXPECT_NE(memory.Allocate(1000), first);
}

TEST(GuardedMemory, ForgetsWhatWasFreedOnceNothingLives) {
  GuardedMemory memory("memory", true);
  char* first = memory.Allocate(1000);
  char* second = memory.Allocate(10);
  memory.Free(memory.Find(first));
  memory.ForgetFreed();
  EXPECT_FALSE(memory.Find(first)->live);
  EXPECT_NE(memory.Allocate(1000), first);
  EXPECT_TRUE(memory.Find(second)->live);
}

TEST(GuardedMemory, BeginsAnewWithWholeMemory) {
  GuardedMemory memory("memory", true);
  char* first = memory.Allocate(1000);
  memory.Free(memory.Find(first));
  memory.ForgetFreed();
  char* again = memory.Allocate(1000);
  EXPECT_EQ(again, first);
  EXPECT_EQ(memory.num_live(), 1);
  memory.Open();
  memory.OpenNumber(1);
  for (int i = 0; i < 1000; ++i) again[i] = 1;
  char text[300];
  EXPECT_TRUE(memory.FencesHold(text, sizeof(text)));
  memory.Close();
}

}  // namespace
}  // namespace softmoe::simt

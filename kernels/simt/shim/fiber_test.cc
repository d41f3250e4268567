// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/shim/fiber.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace softmoe::simt {
namespace {

// Fibers that write their numbers in turn, with local variables that must
// survive each switch.
constexpr int kFibers = 5;
constexpr int kTurns = 4;

Fiber* caller = nullptr;
std::vector<std::unique_ptr<Fiber>> fibers;
int running = 0;
std::vector<int> trace;

void TakeTurns() {
  const int me = running;
  volatile double sum = me;  // on this fiber's stack
  for (int turn = 0; turn < kTurns; ++turn) {
    trace.push_back(me);
    sum = sum + turn;
    running = (me + 1) % kFibers;
    fibers[running]->SwitchFrom(*fibers[me], Fiber::Leaving::kForAWhile);
  }
  EXPECT_EQ(sum, me + kTurns * (kTurns - 1) / 2);
  trace.push_back(-me);
  if (me + 1 < kFibers) {
    running = me + 1;
    fibers[running]->SwitchFrom(*fibers[me], Fiber::Leaving::kForGood);
  }
  caller->SwitchFrom(*fibers[me], Fiber::Leaving::kForGood);
}

TEST(Fiber, KeepsItsStackFromSwitchToSwitchAndStartsAgain) {
  for (int i = 0; i < kFibers; ++i)
    fibers.push_back(std::make_unique<Fiber>(i));
  trace.reserve(kFibers * (kTurns + 1));  // no fiber allocates
  for (int round = 0; round < 2; ++round) {
    Fiber here{Fiber::Caller()};
    caller = &here;
    trace.clear();
    running = 0;
    for (auto& fiber : fibers) fiber->Restart(&TakeTurns);
    fibers[0]->SwitchFrom(here, Fiber::Leaving::kForAWhile);
    std::vector<int> expected;
    for (int turn = 0; turn < kTurns; ++turn) {
      for (int i = 0; i < kFibers; ++i) expected.push_back(i);
    }
    for (int i = 0; i < kFibers; ++i) expected.push_back(-i);
    EXPECT_EQ(trace, expected);
  }
}

}  // namespace
}  // namespace softmoe::simt

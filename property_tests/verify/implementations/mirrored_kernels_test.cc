// SPDX-License-Identifier: Apache-2.0
//
// Tests copying to a device and back without a device: its memory is a heap of
// our own, and its kernels are those of the CPU. Copying changes no bits, and a
// write outside an array is noticed. (impl=shim tests the simulated device.)
#include "property_tests/verify/implementations/mirrored_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/testing/message_test_util.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/implementations/implementations.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

int living = 0;  // allocations

const DeviceMemory kHeap = {[](size_t bytes) {
                              ++living;
                              return std::malloc(bytes);
                            },
                            [](void* memory) {
                              --living;
                              std::free(memory);
                            },
                            [](void* to, const void* from, size_t bytes) {
                              std::memcpy(to, from, bytes);
                            }};

// The CPU kernels give the same bits directly on host memory and mirrored.
TEST(MirroredKernels, GiveTheBitsOfTheKernels) {
  ThreadPool pool(1);
  const RowKernels on_cpu = CpuKernels(pool);
  for (const auto& [op, run] : AdapterTable().rows) {
    for (uint32_t number = 0; number < 10; ++number) {
      const Case c = DrawCase(FindOperation(op), {{"dtype", "f32"}}, 3, number);
      const TensorMap inputs = InputsOf(FindOperation(op), c);
      const TensorMap direct = run(c, inputs, on_cpu);
      const TensorMap mirrored = run(c, inputs, MirroredKernels(on_cpu, kHeap));
      ASSERT_EQ(direct.size(), mirrored.size());
      for (const auto& [name, tensor] : direct) {
        const std::vector<double>& values = mirrored.at(name).values;
        ASSERT_EQ(tensor.values.size(), values.size()) << CaseText(c);
        EXPECT_EQ(0, std::memcmp(tensor.values.data(), values.data(),
                                 values.size() * sizeof(double)))
            << name << " of " << CaseText(c);
      }
      EXPECT_EQ(living, 0);
    }
  }
}

// The complaint about an update of 5 elements by a kernel that does `wrong`.
std::string Complaint(
    const std::function<void(const kernels::AdamWArgs&)>& wrong) {
  RowKernels device;
  device.adamw = wrong;
  std::vector<float> gradient(5, 1), parameter(5), first(5), second(5);
  kernels::AdamWArgs args = {};
  args.size = 5;
  args.gradient = gradient.data();
  args.parameter = parameter.data();
  args.first_moment = first.data();
  args.second_moment = second.data();
  try {
    MirroredKernels(device, kHeap).adamw(args);
  } catch (const NumericsError& error) {
    EXPECT_EQ(living, 0);
    return error.what();
  }
  // What was written to outputs has come back.
  return parameter[4] == 2 ? "" : "nothing came back";
}

TEST(MirroredKernels, NoticeWhatIsWrittenWhereItMustNotBe) {
  const auto expect = [](const std::string& complaint, const char* part) {
    EXPECT_TRUE(Says(complaint, part));
  };
  EXPECT_EQ(Complaint([](const auto& a) { a.parameter[4] = 2; }), "");
  expect(Complaint([](const auto& a) { a.parameter[5] = 2; }),
         "parameter: written past the end");
  expect(Complaint([](const auto& a) { a.first_moment[-1] = 2; }),
         "first_moment: written before the beginning");
  expect(
      Complaint([](const auto& a) { const_cast<float*>(a.gradient)[0] = 2; }),
      "gradient: an input, written to");
}

}  // namespace
}  // namespace softmoe::verify

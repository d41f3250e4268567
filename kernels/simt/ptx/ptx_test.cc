// SPDX-License-Identifier: Apache-2.0
//
// The interpreter of PTX: what single instructions compute where the PTX ISA
// has a rule of its own; what a grid is refused; what cannot be read.
// property_tests/verify tests that whole kernels give the bits of their source.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/errors.h"
#include "kernels/simt/ptx/grid.h"
#include "kernels/simt/ptx/instruction_set.h"
#include "kernels/simt/ptx/program.h"

namespace softmoe::ptx {
namespace {

uint64_t Bits(float x) { return std::bit_cast<uint32_t>(x); }
uint64_t Bits(double x) { return std::bit_cast<uint64_t>(x); }
constexpr uint64_t kNan32 = 0x7fffffff;  // as computed; 0x7fc00000 as given

// ---- Instructions of one thread

// The first operand after `form` has run with `inputs` as the others.
uint64_t ResultOf(const std::string& form,
                  const std::vector<uint64_t>& inputs) {
  const Form* found = FindForm(form);
  if (found == nullptr) throw InternalError("no form " + form);
  std::vector<uint64_t> registers(kFirstFreeRegister + 1);
  registers[kZero] = 0;
  std::vector<Operand> operands = {{kFirstFreeRegister, 0}};
  for (const uint64_t input : inputs) operands.push_back({kZero, input});
  EXPECT_EQ(found->operands, static_cast<int>(operands.size())) << form;
  Thread thread;
  thread.registers = registers.data();
  found->run(thread, operands.data());
  return registers[kFirstFreeRegister];
}

TEST(Instructions, ComputeWhatThePtxIsaSays) {
  const uint64_t nan = Bits(NAN), infinity = Bits(INFINITY);
  struct Example {
    std::string form;
    std::vector<uint64_t> inputs;
    uint64_t result;
  };
  for (const Example& example : std::vector<Example>{
           // Integers wrap, and their division truncates.
           {"add.s32", {0x7fffffff, 1}, 0x80000000},
           {"sub.s64", {0, 1}, ~uint64_t{0}},
           {"mul.lo.s32", {0x10000, 0x10001}, 0x10000},
           {"mul.wide.s32", {0xffffffff, 3}, static_cast<uint64_t>(-3)},
           {"mul.wide.u32", {0xffffffff, 3}, 0x2fffffffd},
           {"mad.lo.s32", {0x80000000, 2, 5}, 5},
           {"div.s32",
            {static_cast<uint32_t>(-7), 2},
            static_cast<uint64_t>(-3)},
           {"rem.s64",
            {static_cast<uint64_t>(-7), 2},
            static_cast<uint64_t>(-1)},
           {"div.u32", {0xfffffff9, 2}, 0x7ffffffc},
           {"min.s32", {0xffffffff, 1}, ~uint64_t{0}},
           {"max.u32", {0xffffffff, 1}, 0xffffffff},
           // Shifts by more than the width.
           {"shl.b32", {1, 31}, 0x80000000},
           {"shl.b32", {1, 32}, 0},
           {"shl.b64", {1, 64}, 0},
           {"shr.u32", {0x80000000, 31}, 1},
           {"shr.u32", {0x80000000, 32}, 0},
           {"shr.s32", {0x80000000, 4}, 0xfffffffff8000000},
           {"shr.s32", {0x80000000, 99}, ~uint64_t{0}},
           {"shr.s64", {1, 99}, 0},
           {"bfi.b32", {0xff, 0, 4, 5}, 0x1f0},
           {"bfi.b32", {0, 0xffffffff, 28, 8}, 0x0fffffff},
           {"bfi.b64", {1, 0, 63, 1}, uint64_t{1} << 63},
           {"bfind.shiftamt.u32", {0}, 0xffffffff},
           {"bfind.shiftamt.u32", {0x00010000}, 15},
           {"brev.b32", {0x1}, 0x80000000},
           {"popc.b32", {0xf0f1}, 9},
           {"not.b32", {0xff}, 0xffffff00},
           // Bytes 0 to 3 are a's; a choice from 8 on is its sign.
           {"prmt.b32", {0x33221100, 0x77665544, 0x5410}, 0x55441100},
           {"prmt.b32", {0x33221180, 0x77665544, 0x98e8}, 0x00ff00ff},
           // A NaN that is computed is this one; others stay as they are.
           {"add.rn.f32", {nan, Bits(1.0f)}, kNan32},
           {"mul.rn.f32", {infinity, 0}, kNan32},
           {"mov.f32", {nan}, nan},
           {"neg.f32", {Bits(0.0f)}, 0x80000000},
           {"abs.f32", {Bits(-0.0f)}, 0},
           // Rounded once: the product by itself would be 0x1.002p0.
           {"fma.rn.f32",
            {Bits(0x1.001p0f), Bits(0x1.001p0f), Bits(-0x1.002p0f)},
            Bits(0x1p-24f)},
           {"div.rn.f32", {Bits(1.0f), Bits(3.0f)}, Bits(0x1.555556p-2f)},
           {"sqrt.rn.f64", {Bits(2.0)}, Bits(0x1.6a09e667f3bcdp0)},
           {"mul.rn.f32", {Bits(0x1p-100f), Bits(0x1p-45f)}, Bits(0x1p-145f)},
           // The larger number; +0 is larger than -0, NaN does not count.
           {"max.f32", {nan, Bits(-1.0f)}, Bits(-1.0f)},
           {"max.f32", {Bits(-1.0f), nan}, Bits(-1.0f)},
           {"max.f32", {nan, nan}, kNan32},
           {"max.f32", {Bits(-0.0f), 0}, 0},
           {"max.f32", {0, Bits(-0.0f)}, 0},
           // Comparisons with NaN: false, but for the u forms.
           {"setp.ne.f32", {nan, nan}, 0},
           {"setp.neu.f32", {nan, nan}, 1},
           {"setp.equ.f32", {nan, 0}, 1},
           {"setp.lt.f32", {nan, 0}, 0},
           {"setp.ltu.f32", {0, nan}, 1},
           {"setp.leu.f64", {Bits(2.0), Bits(1.0)}, 0},
           {"setp.geu.f32", {nan, 0}, 1},
           {"setp.nan.f32", {0, nan}, 1},
           {"setp.num.f32", {0, nan}, 0},
           {"setp.lt.s32", {0xffffffff, 0}, 1},
           {"setp.lt.u32", {0xffffffff, 0}, 0},
           {"setp.eq.s16", {0x12345678, 0x5678}, 1},
           // Conversions.
           {"cvt.s64.s32", {0x80000000}, 0xffffffff80000000},
           {"cvt.u64.u32", {0x80000000}, 0x80000000},
           {"cvt.rn.f32.s32", {0xffffffff}, Bits(-1.0f)},
           {"cvt.rn.f32.f64", {Bits(1 + 0x1p-24)}, Bits(1.0f)},
           {"cvt.rn.f32.f64", {Bits(1 + 0x3p-24)}, Bits(0x1.000004p0f)},
           {"cvt.rzi.s64.f64", {Bits(-2.9)}, static_cast<uint64_t>(-2)},
           {"cvt.rzi.s64.f64", {Bits(1e30)}, 0x7fffffffffffffff},
           {"cvt.rzi.s64.f64", {Bits(double{NAN})}, 0x8000000000000000},
           {"cvt.rni.f64.f64", {Bits(2.5)}, Bits(2.0)},
           {"cvt.rn.bf16x2.f32", {Bits(1.0f), Bits(-2.0f)}, 0x3f80c000},
           // Ties to even; what is too large; NaN.
           {"cvt.rn.bf16x2.f32", {0x3f808000, 0x3f818000}, 0x3f803f82},
           {"cvt.rn.bf16x2.f32", {0x7f7fffff, nan}, 0x7f807fff},
           {"ex2.approx.ftz.f32", {Bits(-3.0f)}, Bits(0.125f)},
           {"ex2.approx.ftz.f32", {Bits(0x1p-140f)}, Bits(1.0f)},
           {"ex2.approx.ftz.f32", {Bits(-127.0f)}, 0},
           {"ex2.approx.ftz.f32", {Bits(128.0f)}, infinity},
           {"rcp.approx.ftz.f64", {Bits(3.0)}, 0x3fd5555500000000},
           {"rcp.approx.ftz.f64", {Bits(0x1p-1074)}, Bits(double{INFINITY})},
           {"rcp.approx.ftz.f64", {Bits(double{-INFINITY})}, Bits(-0.0)},
           {"rcp.approx.ftz.f64", {0x7ff0000000000001}, 0x7ff8000000000000},
           // Predicates and selection.
           {"and.pred", {1, 0}, 0},
           {"xor.pred", {1, 1}, 0},
           {"not.pred", {0}, 1},
           {"selp.b32", {7, 8, 1}, 7},
           {"selp.b32", {7, 8, 0}, 8},
       }) {
    std::string inputs;
    for (const uint64_t x : example.inputs) inputs += fmt::format(" {:x}", x);
    EXPECT_EQ(ResultOf(example.form, example.inputs), example.result)
        << example.form << inputs;
  }
}

TEST(Instructions, RefuseWhatHasNoResult) {
  EXPECT_THROW(ResultOf("div.s32", {1, 0}), Fault);
  EXPECT_THROW(ResultOf("rem.u32", {1, 0}), Fault);
  EXPECT_THROW(ResultOf("div.s32", {0x80000000, 0xffffffff}), Fault);
}

// ---- Tensor cores

// 32 threads with 16 registers each, and a shared memory of words.
class Warp : public Memory {
 public:
  Warp() {
    for (int l = 0; l < 32; ++l) {
      threads_[l].registers = registers_[l];
      threads_[l].memory = this;
      lanes_.threads[l] = &threads_[l];
    }
  }
  // Register i is operand i.
  void Run(const std::string& name) {
    const Form* form = FindForm(name);
    ASSERT_NE(form, nullptr) << name;
    std::vector<Operand> operands;
    for (int i = 0; i < form->operands; ++i) {
      operands.push_back({kFirstFreeRegister + i, 0});
    }
    form->run_warp(lanes_, operands.data());
  }
  uint64_t& at(int lane, int i) {
    return registers_[lane][kFirstFreeRegister + i];
  }
  // Half 0 is the lower one.
  void SetHalf(int lane, int i, int half, float value) {
    const uint64_t bits = Bits(value) >> 16;
    at(lane, i) |= bits << 16 * half;
  }
  char* At(const Thread&, Access, Space space, uint64_t address,
           size_t size) override {
    EXPECT_EQ(space, Space::kShared);
    EXPECT_LE(address + size, sizeof(halves));
    return reinterpret_cast<char*>(halves) + address;
  }

  uint16_t halves[256];

 private:
  uint64_t registers_[32][kFirstFreeRegister + 16] = {};
  Thread threads_[32];
  Lanes lanes_;
};

// The places of elements in fragments, from the figures of the PTX ISA for
// mma.m16n8k16 (the interpreter has the formulas beside them).
TEST(TensorCores, MultiplyMatrices) {
  const auto a = [](int row, int k) { return static_cast<float>(row - 2 * k); };
  const auto b = [](int k, int column) {
    return static_cast<float>(3 * k - 5 * column + 1);
  };
  const auto c = [](int row, int column) {
    return static_cast<float>(100 * row + column);
  };
  Warp warp;
  for (int k = 0; k < 16; ++k) {
    for (int row = 0; row < 16; ++row) {
      warp.SetHalf(row % 8 * 4 + k % 8 / 2, 4 + row / 8 + k / 8 * 2, k % 2,
                   a(row, k));
    }
    for (int column = 0; column < 8; ++column) {
      warp.SetHalf(column * 4 + k % 8 / 2, 8 + k / 8, k % 2, b(k, column));
    }
  }
  const auto place = [&](int row, int column, int of) -> uint64_t& {
    return warp.at(row % 8 * 4 + column / 2, of + row / 8 * 2 + column % 2);
  };
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      place(row, column, 10) = Bits(c(row, column));
    }
  }
  warp.Run("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = c(row, column);
      for (int k = 0; k < 16; ++k) sum += a(row, k) * b(k, column);
      EXPECT_EQ(place(row, column, 0), Bits(sum)) << row << " " << column;
    }
  }
}

TEST(TensorCores, LoadMatrices) {
  for (const std::string transposed : {"", ".trans"}) {
    Warp warp;
    for (int i = 0; i < 256; ++i) warp.halves[i] = static_cast<uint16_t>(i);
    // Rows of 16 bytes, of all matrices, from the last to the first.
    for (int lane = 0; lane < 32; ++lane) {
      warp.at(lane, 4) = uint64_t{16} * static_cast<unsigned>(31 - lane);
    }
    warp.Run("ldmatrix.sync.aligned.m8n8.x4" + transposed + ".shared.b16");
    for (int lane = 0; lane < 32; ++lane) {
      for (int matrix = 0; matrix < 4; ++matrix) {
        const auto element = [&](int row, int column) {
          return uint64_t{8} * static_cast<unsigned>(31 - 8 * matrix - row) +
                 static_cast<unsigned>(column);
        };
        const int g = lane / 4, t = lane % 4;
        const uint64_t pair =
            transposed.empty()
                ? element(g, 2 * t) | element(g, 2 * t + 1) << 16
                : element(2 * t, g) | element(2 * t + 1, g) << 16;
        EXPECT_EQ(warp.at(lane, matrix), pair) << lane << " " << matrix;
      }
    }
  }
}

// ---- Grids

// A kernel of 64 threads with an array of 64 words of global memory, its
// address in %rd0, one of 16 words of shared memory, and its thread's number in
// %r0.
std::string Program(const std::string& body) {
  return R"(.version 9.0
.target sm_80
.address_size 64
.entry K(
	.param .u64 K_param_0
)
.maxntid 64, 1, 1
{
	.reg .pred 	%p<4>;
	.reg .b32 	%r<16>;
	.reg .b64 	%rd<8>;
	.shared .align 16 .b8 words[64];
	.shared .align 4 .b8 narrow[64];
	ld.param.u64 	%rd0, [K_param_0];
	mov.u32 	%r0, %tid.x;
	mul.wide.u32 	%rd1, %r0, 4;
	add.s64 	%rd1, %rd0, %rd1;
	mov.u32 	%r1, words;
	shl.b32 	%r2, %r0, 2;
	and.b32 	%r2, %r2, 63;
	add.s32 	%r2, %r1, %r2;
)" + body +
         "\n\tret;\n}\n";
}

class Grid : public testing::TestWithParam<simt::Schedule> {
 protected:
  // What is wrong with `body`, or "".
  std::string WrongWith(const std::string& body, unsigned threads = 64,
                        size_t dynamic_shared = 0) {
    std::vector<Kernel> kernels = ReadProgram("a.ptx", Program(body));
    EXPECT_EQ(kernels.size(), 1u);
    Launch launch;
    launch.blocks = {1, 1, 1};
    launch.threads = {threads, 1, 1};
    launch.dynamic_shared = dynamic_shared;
    const auto begin = reinterpret_cast<uint64_t>(memory_.data());
    launch.parameters.resize(8);
    memcpy(launch.parameters.data(), &begin, 8);
    launch.find = [&](uint64_t) {
      return Extent{begin, memory_.size() * sizeof(uint32_t)};
    };
    launch.schedule = GetParam();
    try {
      RunGrid(launch, &kernels[0]);
      return "";
    } catch (const Fault& fault) {
      return fault.what();
    }
  }

  std::vector<uint32_t> memory_ = std::vector<uint32_t>(64);
};
INSTANTIATE_TEST_SUITE_P(EverySchedule, Grid,
                         testing::Values(simt::Schedule::kAscending,
                                         simt::Schedule::kDescending,
                                         simt::Schedule::kRandom));

// Lane l takes the value of lane 31 - l, and leaves it to others.
TEST_P(Grid, ExchangesValuesInWarpsAndBlocks) {
  ASSERT_EQ(WrongWith(R"(
	shfl.sync.bfly.b32 	%r3|%p0, %r0, 31, 31, -1;
	setp.lt.u32 	%p1, %r0, 16;
	@%p1 st.shared.u32 	[%r2], %r3;
	bar.sync 	0;
	ld.shared.u32 	%r4, [%r2];
	st.global.u32 	[%rd1], %r4;)"),
            "");
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(memory_[t], 31 - t % 16) << t;
}

// Segments of eight lanes: beyond its own segment a lane gets its own value,
// and is told so; an earlier segment it may read.
TEST_P(Grid, ShufflesWithinSegments) {
  ASSERT_EQ(WrongWith(R"(
	shfl.sync.bfly.b32 	%r3|%p0, %r0, 9, 6175, -1;
	selp.b32 	%r4, 100, 0, %p0;
	add.s32 	%r3, %r3, %r4;
	shfl.sync.idx.b32 	%r5|%p1, %r0, 11, 6175, -1;
	shl.b32 	%r5, %r5, 8;
	add.s32 	%r3, %r3, %r5;
	st.global.u32 	[%rd1], %r3;)"),
            "");
  for (uint32_t t = 0; t < 64; ++t) {
    const bool inside = (t ^ 9) % 32 <= (t | 7) % 32;
    const uint32_t other = inside ? (t ^ 9) + 100 : t;
    EXPECT_EQ(memory_[t], other + ((t & ~7u) + 3) * 256) << t;
  }
}

TEST_P(Grid, VotesAndBranches) {
  ASSERT_EQ(WrongWith(R"(
	and.b32 	%r3, %r0, 1;
	setp.eq.s32 	%p0, %r3, 1;
	vote.sync.ballot.b32 	%r4, %p0, -1;
	@!%p0 bra 	$L__BB0_2;
	add.s32 	%r4, %r4, 1;
$L__BB0_2:
	st.global.u32 	[%rd1], %r4;)"),
            "");
  EXPECT_EQ(memory_[0], 0xaaaaaaaa);
  EXPECT_EQ(memory_[33], 0xaaaaaaab);
}

TEST_P(Grid, AddsUpInSharedMemory) {
  ASSERT_EQ(WrongWith(R"(
	setp.eq.s32 	%p0, %r0, 0;
	@%p0 st.shared.u32 	[%r1], 0;
	bar.sync 	0;
	atom.shared.add.u32 	%r3, [%r1], 2;
	bar.sync 	0;
	ld.shared.u32 	%r4, [%r1];
	shl.b32 	%r4, %r4, 8;
	add.s32 	%r4, %r4, %r3;
	st.global.u32 	[%rd1], %r4;)"),
            "");
  std::ranges::sort(memory_);  // each has seen a different sum
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(memory_[t], 128 * 256 + 2 * t);
}

// Lane 0 of each warp writes the warp's own word, to which all then add.
TEST_P(Grid, AddsUpFromWhatALaneWrote) {
  const auto add = [&](const std::string& barrier) {
    return WrongWith(R"(
	and.b32 	%r5, %r0, 31;
	setp.eq.s32 	%p0, %r5, 0;
	shr.u32 	%r3, %r0, 5;
	shl.b32 	%r3, %r3, 2;
	add.s32 	%r3, %r1, %r3;
	@%p0 st.shared.u32 	[%r3], 5;)" +
                     barrier + R"(
	atom.shared.add.u32 	%r4, [%r3], 2;
	bar.warp.sync 	-1;
	ld.shared.u32 	%r4, [%r3];
	st.global.u32 	[%rd1], %r4;)");
  };
  ASSERT_EQ(add("\n	bar.warp.sync 	-1;"), "");
  EXPECT_EQ(memory_, std::vector<uint32_t>(64, 5 + 2 * 32));
  EXPECT_NE(add("").find("wrote without a barrier in between"),
            std::string::npos);
}

// Each of 32 threads has its own half of a word, and may read it.
TEST_P(Grid, TellsHalvesOfAWordApart) {
  const auto read = [&](const std::string& load) {
    return WrongWith(R"(
	.reg .b16 	%rs<2>;
	st.shared.u32 	[%r2], 0;
	bar.sync 	0;
	and.b32 	%r3, %r0, 31;
	shl.b32 	%r3, %r3, 1;
	add.s32 	%r3, %r1, %r3;
	xor.b32 	%r4, %r3, 2;
	and.b32 	%r5, %r3, -4;
	mov.u16 	%rs0, 7;
	setp.gt.u32 	%p0, %r0, 31;
	@%p0 bra 	$L__BB0_2;
	st.shared.u16 	[%r3], %rs0;
	shfl.sync.bfly.b32 	%r6|%p1, %r0, 1, 31, -1;
	)" + load + "\n$L__BB0_2:");
  };
  EXPECT_EQ(read("ld.shared.u16 	%rs1, [%r3];"), "");
  for (const std::string of_others :
       {"ld.shared.u16 	%rs1, [%r4];", "ld.shared.u32 	%r7, [%r5];"}) {
    EXPECT_NE(read(of_others).find("wrote without a barrier in between"),
              std::string::npos)
        << of_others;
  }
}

// Each warp adds up in its own word.
TEST_P(Grid, AddsUpInAWarp) {
  const auto add = [&](const std::string& barrier) {
    return WrongWith(R"(
	shr.u32 	%r3, %r0, 5;
	shl.b32 	%r3, %r3, 2;
	add.s32 	%r3, %r1, %r3;
	atom.shared.add.u32 	%r4, [%r3], 1;)" +
                     barrier + R"(
	ld.shared.u32 	%r4, [%r3];
	st.global.u32 	[%rd1], %r4;)");
  };
  ASSERT_EQ(add("\n	bar.warp.sync 	-1;"), "");
  EXPECT_EQ(memory_, std::vector<uint32_t>(64, 31));  // starting from all ones
  EXPECT_NE(add("").find("and others wrote without a barrier in between"),
            std::string::npos);
}

TEST_P(Grid, WrapsAddressesOfSharedMemory) {
  EXPECT_EQ(WrongWith("add.s32 	%r3, %r1, -64;\n"
                      "	st.shared.u32 	[%r3+64], %r0;"),
            "");
}

// Memory that nobody has written is all ones, and so is a copy's target.
TEST_P(Grid, CopiesLandWhenTheyAreWaitedFor) {
  for (uint32_t i = 0; i < 64; ++i) memory_[i] = i;
  const auto copy = [&](const std::string& wait) {
    return WrongWith(R"(
	setp.ne.s32 	%p0, %r0, 0;
	@%p0 bra 	$L__BB0_2;
	add.s32 	%r3, %r1, 16;
	cp.async.cg.shared.global 	[%r1], [%rd0+16], 16, 16;
	cp.async.commit_group;
	cp.async.cg.shared.global 	[%r3], [%rd0], 16, 0;
	cp.async.commit_group;)" +
                     wait + R"(
	ld.shared.u32 	%r4, [%r1+4];
	ld.shared.u32 	%r5, [%r3];
	ld.shared.u32 	%r6, [%r1+60];
	cp.async.wait_group 	0;
	st.global.u32 	[%rd0], %r4;
	st.global.u32 	[%rd0+4], %r5;
	st.global.u32 	[%rd0+8], %r6;
$L__BB0_2:)");
  };
  ASSERT_EQ(copy("\n\tcp.async.wait_group 	1;"), "");
  EXPECT_EQ(memory_[0], 5u);
  EXPECT_EQ(memory_[1], 0xffffffffu);
  EXPECT_EQ(memory_[2], 0xffffffffu);
  ASSERT_EQ(copy(""), "");
  EXPECT_EQ(memory_[0], 0xffffffffu);
  ASSERT_EQ(copy("\n\tcp.async.wait_group 	0;"), "");
  EXPECT_EQ(memory_[1], 0u);
}

// Threads that race show who went last.
TEST_P(Grid, RunsThreadsInTheOrderOfItsSchedule) {
  ASSERT_EQ(WrongWith("st.global.u32 	[%rd0], %r0;"), "");
  if (GetParam() == simt::Schedule::kRandom) {
    EXPECT_NE(memory_[0], 63u);
    EXPECT_NE(memory_[0], 0u);
  } else {
    EXPECT_EQ(memory_[0], GetParam() == simt::Schedule::kAscending ? 63u : 0u);
  }
}

TEST_P(Grid, RefusesErrors) {
  struct Example {
    std::string body, message;
  };
  for (const Example& example : std::vector<Example>{
           {"ld.global.u32 	%r3, [%rd0+256];",
            "not in one allocation of global"},
           {"st.global.v4.u32 	[%rd0+248], {%r0, %r0, %r0, %r0};",
            "not a multiple of 16"},
           {"ld.global.u32 	%r3, [%rd1+2];", "not a multiple of 4"},
           {"ld.shared.u32 	%r3, [%r1+64];",
            "not in one variable in shared"},
           {"mov.u64 	%rd2, 0;\n	ld.global.u32 	%r3, [%rd2+-4];",
            "not in one allocation of global"},
           {"ld.param.u32 	%r3, [K_param_0+-4];", "not in one parameter"},
           {"ld.shared.v4.u32 	{%r3, %r4, %r5, %r6}, [narrow];",
            "not a multiple of 16"},
           {"st.shared.u32 	[%r2], %r0;\n"
            "	shfl.sync.bfly.b32 	%r3|%p0, %r2, 1, 31, -1;\n"
            "	ld.shared.u32 	%r4, [%r3];",
            "without a barrier in between"},
           {".reg .b16 	%rs<2>;\n	st.shared.u32 	[%r2], %r0;\n"
            "	shfl.sync.bfly.b32 	%r3|%p0, %r2, 1, 31, -1;\n"
            "	ld.shared.u16 	%rs1, [%r3+2];",
            "without a barrier in between"},
           {"setp.eq.s32 	%p0, %r0, 0;\n"
            "	@%p0 st.shared.u32 	[%r1], 5;\n"
            "	atom.shared.add.u32 	%r3, [%r1], 2;",
            "wrote without a barrier in between"},
           {"setp.eq.s32 	%p0, %r0, 0;\n"
            "	@%p0 st.shared.u32 	[%r1], 5;\n"
            "	bar.warp.sync 	-1;\n"
            "	atom.shared.add.u32 	%r3, [%r1], 2;",
            "wrote without a barrier in between"},
           {"atom.shared.add.u32 	%r3, [%r1], 1;\n"
            "	bar.warp.sync 	-1;\n	ld.shared.u32 	%r4, [%r1];",
            "and others wrote without a barrier in between"},
           {"and.b32 	%r3, %r0, 31;\n	setp.lt.u32 	%p0, %r3, 16;\n"
            "	selp.b32 	%r4, 65535, -65536, %p0;\n"
            "	bar.warp.sync 	%r4;",
            "synchronizes only some lanes of its warp"},
           {"mov.u64 	%rd2, words;\n	cvta.shared.u64 	%rd2, %rd2;\n"
            "	st.shared.u32 	[%rd2], %r0;",
            "not in one variable in shared"},
           {"setp.ne.s32 	%p0, %r0, 0;\n	@%p0 ret;\n"
            "	cp.async.cg.shared.global 	[%r1], [%rd0], 16, 16;\n"
            "	cp.async.commit_group;\n	st.global.u32 	[%rd0], 77;\n"
            "	cp.async.wait_group 	0;",
            "written to before the copy landed"},
           {"bar.sync 	1;", "a barrier other than number 0"},
           {"$L__BB0_3:\n	bra 	$L__BB0_3;", "seems to run forever"},
           {"ld.param.u64 	%rd2, [K_param_0+8];", "not in one parameter"},
           {"div.u32 	%r3, %r0, 0;", "division by zero"},
           {"setp.eq.s32 	%p0, %r0, 63;\n	@%p0 ret;\n	bar.sync "
            "	0;",
            "ends before a barrier"},
           {"setp.lt.u32 	%p0, %r0, 32;\n	@%p0 bra 	$L__BB0_2;\n"
            "	bar.sync 	0;\n	ret;\n$L__BB0_2:\n	bar.sync "
            "	0;",
            "is not at thread 0's barrier"},
           {"vote.sync.ballot.b32 	%r3, 1, 1;", "is not in its own mask"},
           {"setp.eq.s32 	%p0, %r0, 5;\n	@%p0 ret;\n"
            "	bar.warp.sync 	-1;",
            "waits for lane 5, which has ended"},
           {"setp.eq.s32 	%p0, %r0, 5;\n	selp.b32 	%r3, 32, -1, "
            "%p0;\n"
            "	bar.warp.sync 	%r3;",
            "has a different mask from lane"},
           {"setp.lt.u32 	%p0, %r0, 16;\n	@%p0 bra 	$L__BB0_2;\n"
            "	bar.warp.sync 	-1;\n$L__BB0_2:\n	bar.warp.sync 	-1;",
            "waits for lanes that never arrive"},
           {"and.b32 	%r3, %r0, 31;\n	setp.ge.u32 	%p0, %r3, 16;\n"
            "	@%p0 ret;\n"
            "	shfl.sync.idx.b32 	%r4|%p1, %r0, 20, 31, 65535;",
            "takes the value of lane 20"},
           {"cp.async.cg.shared.global 	[%r1], [%rd0], 16, 16;",
            "ends before its copies land"},
           {"cp.async.cg.shared.global 	[%r1], [%rd0], 16, 4;",
            "must be of 16 bytes or of 0"},
       }) {
    const std::string message = WrongWith(example.body);
    EXPECT_NE(message.find(example.message), std::string::npos)
        << example.body << "\n"
        << message;
    EXPECT_NE(message.find("a.ptx:"), std::string::npos) << message;
    EXPECT_NE(message.find("thread ("), std::string::npos) << message;
    EXPECT_EQ(message.find("thread ("), message.rfind("thread (")) << message;
  }
  EXPECT_NE(WrongWith("", 96).find(".maxntid is 64"), std::string::npos);
  constexpr size_t kDynamic = 48 * 1024 - 128;  // beside the two variables
  EXPECT_EQ(WrongWith("", 64, kDynamic), "");
  EXPECT_NE(WrongWith("", 64, kDynamic + 1).find("at most 49152"),
            std::string::npos);
}

// ---- Reading

std::string ReadError(const std::string& text) {
  try {
    ReadProgram("a.ptx", text);
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

TEST(ReadProgram, RefusesWhatItDoesNotKnowAndSaysWhere) {
  EXPECT_EQ(ReadError(Program("")), "");
  const std::vector<std::pair<std::string, std::string>> examples = {
      {"red.global.add.f32 	[%rd0], %r0;",
       "a.ptx:22: the interpreter has no instruction red.global.add.f32"},
      {"add.s32 	%r1, %r2;", "2 operands of add.s32, which takes 3"},
      {"add.s32 	%r1, %r2, %r99;", "nothing is called %r99"},
      {"@%p9 bra 	$L__BB0_1;", "no register %p9"},
      {"bra 	$L__BB0_1;", "no label $L__BB0_1"},
      {".local .b8 	depot[8];", "unknown directive .local"},
      {".reg .b32 	%r1;\n	.reg .b32 	%r1;", "%r1 is declared twice"},
      {".reg .b128 	%q<3>;", "unknown type .b128"},
      {"mov.b64 	{%r1, %r2, %r3}, %rd0;", "mov.b64 {3},"},
      {"$L__BB0_1:\n	{ $L__BB0_1: }", "is used as a label twice"},
      {"ld.global.u32 	%r3, [%rd0+%rd1];", "a sum of two registers"},
      {"ld.global.u32 	%r3, %rd0;", "brackets"},
      {"add.s32 	5, %r1, %r2;",
       "the result of add.s32 is not a register"},
      {"mov.u32 	words, %r1;",
       "the result of mov.u32 is not a register"},
      {"mov.f32 	%r1, -0f3F800000;", "unknown number"},
      {"mov.u32 	%r1, 010;", "nothing is called 010"},
      {".shared .b8 x[0xffffffffffffffff];", "more than 1048576"},
      {".shared .align 3 .b8 x[4];", "unknown alignment"},
      {".reg .b32 	%q<4000000000>;", "more than 1048576"},
      {"add.s32 	%r1, %r2, %r3", "where ',' should be"},
  };
  for (const auto& [body, message] : examples) {
    EXPECT_NE(ReadError(Program(body)).find(message), std::string::npos)
        << body << "\n"
        << ReadError(Program(body));
  }
  for (const std::string text :
       {".func f() {}", ".entry K(", ".version", ".entry K() { }",
        ".address_size 32", ".version 6.4",
        ".shared .b8 x[4]; .shared .b8 x[8];"}) {
    EXPECT_NE(ReadError(text), "") << text;
  }
  // Cut off anywhere, it gives an error or fewer kernels, but nothing else.
  const std::string whole = Program("bar.sync 	0;");
  for (size_t size = 0; size + 1 < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    try {
      EXPECT_EQ(ReadProgram("a.ptx", cut).size(), 0u) << size;
    } catch (const DataError&) {
    }
  }
}

// Of the module's variables it gets no others, as on a real device.
TEST(ReadProgram, GivesAKernelTheSharedVariablesThatItNames) {
  const auto kernel = [](const std::string& name, const std::string& body) {
    return ".entry " + name + "() { .reg .b32 %r<2>; " + body + " ret; }\n";
  };
  const std::vector<Kernel> kernels = ReadProgram(
      "a.ptx",
      ".shared .align 4 .b8 large[40000];\n"
      ".extern .shared .align 16 .b8 rest[];\n" +
          kernel("A", "{ mov.u32 %r0, large; } mov.u32 %r1, large;") +
          kernel("B",
                 ".shared .b8 own[20000]; mov.u32 %r0, own;"
                 ".shared .b8 large[8]; mov.u32 %r1, large;") +
          kernel("C", "mov.u32 %r0, rest; mov.u32 %r1, rest;"));
  ASSERT_EQ(kernels.size(), 3u);
  const auto sizes = [&](size_t i) {
    std::vector<size_t> sizes;
    for (const Variable& variable : kernels[i].shared) {
      sizes.push_back(variable.size);
    }
    return sizes;
  };
  EXPECT_EQ(sizes(0), std::vector<size_t>{40000});
  EXPECT_EQ(sizes(1), (std::vector<size_t>{20000, 8}));
  EXPECT_EQ(sizes(2), std::vector<size_t>{0});
  EXPECT_FALSE(kernels[0].has_dynamic_shared);
  EXPECT_TRUE(kernels[2].has_dynamic_shared);
  const auto& code = kernels[0].code;
  EXPECT_EQ(code[0].operands[1].number, code[1].operands[1].number);
}

TEST(ReadProgram, TellsScopesApart) {
  const std::vector<Kernel> kernels = ReadProgram("a.ptx", Program(R"(
	{ .reg .b32 %r1;
	mov.u32 	%r1, 7; }
	mov.u32 	%r3, %r1;)"));
  const auto& code = kernels.at(0).code;
  const Operand inner = code[code.size() - 3].operands[0];
  const Operand outer = code[code.size() - 2].operands[1];
  EXPECT_NE(inner.slot, outer.slot);
}

}  // namespace
}  // namespace softmoe::ptx

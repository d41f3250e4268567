// SPDX-License-Identifier: Apache-2.0
//
// The output of nvcc for compute_80 computes what the source of the kernels
// says, to the bit, in three orders of threads; and nearly all of it is
// executed here. Where bits differ (products of tensor cores, 2^x), results are
// within the bounds of verify.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "core/errors.h"
#include "kernels/simt/ptx/ptx_device.h"
#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/implementations/implementations.h"

namespace softmoe::verify {
namespace {

// The number of draws for every operation, beside its edges.
constexpr uint32_t kDraws = 40;

using Sizes = std::map<std::string, int64_t>;

// Cases that draws seldom reach: kernels for a few experts per token, and
// rounds of unrolled loops beyond the sizes of edges.
struct Rarity {
  std::string op;
  CasePattern fixed;
  uint32_t draws;
  Sizes sizes = {};  // instead of those drawn, of any range
};

std::vector<Rarity> Rarities() {
  std::vector<Rarity> rarities = {
      {"lm_head", {}, 1, {{"vocab_size", 1101}, {"rows", 3}, {"d_model", 8}}},
      {"lm_head", {}, 1, {{"vocab_size", 8208}, {"rows", 3}, {"d_model", 8}}},
      {"lm_head", {}, 1, {{"vocab_size", 8200}, {"rows", 3}, {"d_model", 8}}},
      {"rmsnorm", {}, 1, {{"d_model", 1101}, {"rows", 3}}},
      {"rmsnorm", {}, 1, {{"d_model", 8208}, {"rows", 3}}},
      {"rmsnorm", {}, 1, {{"d_model", 8}, {"rows", 4500}}},
      {"embedding", {}, 1, {{"d_model", 3}, {"rows", 6000}, {"vocab_size", 2}}},
      {"embedding", {}, 1, {{"d_model", 8}, {"rows", 6000}, {"vocab_size", 2}}},
      {"experts",
       {},
       1,
       {{"d_model", 131}, {"rows", 13}, {"num_experts", 8}, {"max_active", 8}}},
      {"router",
       {{"max_active", "2"}, {"num_experts", "8"}},
       1,
       {{"rows", 6000}}},
      {"attention", {}, 4, {{"head_dim", 64}, {"length", 150}}},
      {"attention", {}, 4, {{"head_dim", 128}, {"length", 70}}},
  };
  // A row keeps its 2 k largest scores in registers, up to four.
  for (const auto& [top, mean_active] :
       {std::pair("2", "1"), std::pair("3", "1.5"), std::pair("4", "2")}) {
    for (const std::string experts : {"7", "40"}) {
      const CasePattern fixed = {{"mean_active", mean_active},
                                 {"num_experts", experts}};
      CasePattern soft = fixed, sparse = fixed, balance = fixed;
      soft.insert({{"max_active", top}, {"kind", "soft"}});
      sparse.insert({{"max_active", top}, {"kind", "sparse"}});
      balance.insert({"count_top", top});
      rarities.push_back({"lapsum", fixed, 10});
      rarities.push_back({"router", soft, 30});
      rarities.push_back({"router", sparse, 10});
      rarities.push_back({"balance_sums", balance, 30});
    }
  }
  return rarities;
}

// Products of tensor cores, and 2^x, have bits of their own.
bool IsApproximate(const Case& c) {
  return c.op == "attention" && c.dtype == Dtype::kBf16 &&
         (c.Size("head_dim") == 64 || c.Size("head_dim") == 128);
}

// Those of them that passed; other data may be too degenerate to tell.
int approximate_passes = 0;

class Comparison {
 public:
  // activations: "" or ":bf16".
  Comparison(const Operation& op, const std::string& activations)
      : op_(op),
        ptx_(MakeImplementation("ptx" + activations)),
        shim_(MakeImplementation("shim" + activations)),
        dtype_(DtypeFor(op, *shim_)) {}

  bool is_supported() const {
    return ptx_->WhyUnsupported(op_, dtype_).empty();
  }

  void RunEdges() {
    for (uint32_t number = 0; number < op_.edges().size(); ++number) {
      Run(DrawEdge(op_, Pattern({}), 3, number));
    }
  }
  void RunDraws(const CasePattern& fixed, uint32_t draws,
                const Sizes& sizes = {}) {
    for (uint32_t number = 0; number < draws; ++number) {
      Case c = DrawCase(op_, Pattern(fixed), 3, number);
      for (const auto& [name, size] : sizes) c.sizes.at(name) = {size, 0};
      Run(c);
    }
  }

 private:
  CasePattern Pattern(CasePattern fixed) const {
    fixed["impl"] = ptx_->name();
    fixed["dtype"] = DtypeName(dtype_);
    return fixed;
  }

  void Run(const Case& c) {
    if (IsApproximate(c)) {
      const CaseResult result = CheckCase(c, *ptx_);
      EXPECT_FALSE(result.failed()) << result.reason << "\n" << CaseText(c);
      approximate_passes += result.status == Status::kPass;
      return;
    }
    const TensorMap inputs = InputsOf(op_, c);
    const TensorMap expected = shim_->Run(op_, c, inputs, 0);
    for (int schedule = 0; schedule < ptx_->schedules(); ++schedule) {
      const TensorMap got = ptx_->Run(op_, c, inputs, schedule);
      ASSERT_EQ(got.size(), expected.size());
      for (const auto& [output, tensor] : got) {
        EXPECT_TRUE(SameBits(tensor, expected.at(output)))
            << output << ", schedule " << schedule << ": " << CaseText(c);
      }
    }
  }

  const Operation& op_;
  std::unique_ptr<Implementation> ptx_, shim_;
  Dtype dtype_;
};

// Kernels that no operation of verify launches.
const std::regex& Unlaunched() {
  static const std::regex names(
      // device_facts.cu and device_probes.cu: questions to a device.
      "(Arithmetic|Nothing|Shared)Kernel\\(|"
      // For arrays that do not begin at a multiple of 16 bytes: verify has
      // none; the shim tests of kernels/cuda do.
      "(Add|AdamW|Cast|Squares)Kernel<.*\\b1>");
  return names;
}

// Least shares of instructions executed, in all other kernels and in each. The
// rest, by share: the soft half of RouterForwardKernel<1>, for k_l of at most
// 1/2, which no budget gives; loops that nvcc unrolled by four and that have
// three rounds at most, or would need thousands of columns or blocks; branches
// that skip a loop which every launch enters.
constexpr double kShareExecuted = 0.91, kShareOfEach = 0.6;
constexpr double kShareOfRouter1 = 0.4;

bool IsReached(const ptx::Instruction& instruction) {
  const bool branches = instruction.form.flow == ptx::Flow::kBranch;
  return instruction.executed > 0 || (branches && instruction.passed > 0);
}

TEST(Ptx, GivesTheBitsOfItsSourceAndIsExecuted) {
  if (!WhyNoPtx().empty()) GTEST_SKIP() << WhyNoPtx();
  for (const std::string activations : {"", ":bf16"}) {
    for (const Operation* op : Operations()) {
      Comparison comparison(*op, activations);
      if (!comparison.is_supported()) continue;
      comparison.RunEdges();
      comparison.RunDraws({}, kDraws);
    }
    for (const Rarity& rarity : Rarities()) {
      Comparison comparison(FindOperation(rarity.op), activations);
      if (!comparison.is_supported()) continue;
      comparison.RunDraws(rarity.fixed, rarity.draws, rarity.sizes);
    }
  }

  EXPECT_GE(approximate_passes, 8);

  ptrdiff_t executed = 0, all = 0;
  for (const auto& [name, kernel] : Ptx().kernels()) {
    const ptrdiff_t of_kernel = std::ranges::count_if(kernel.code, IsReached);
    const auto size = static_cast<ptrdiff_t>(kernel.code.size());
    fmt::print("{:5} of {:5} instructions: {}\n", of_kernel, size, name);
    const bool launched = !std::regex_search(name, Unlaunched());
    EXPECT_EQ(of_kernel > 0, launched) << name;
    if (!launched) continue;
    const double least = name.find("RouterForwardKernel<1>") == name.npos
                             ? kShareOfEach
                             : kShareOfRouter1;
    EXPECT_GT(static_cast<double>(of_kernel), least * static_cast<double>(size))
        << name;
    executed += of_kernel;
    all += size;
  }
  fmt::print("{:5} of {:5} instructions: all that are launched\n", executed,
             all);
  EXPECT_GT(executed, kShareExecuted * static_cast<double>(all));
}

}  // namespace
}  // namespace softmoe::verify

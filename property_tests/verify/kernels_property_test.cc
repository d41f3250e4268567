// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of every operation owe beyond their bounds in random cases:
// the bounds at the edges of their blocks, and bits that must be equal. Arrays
// end where memory ends (kernels/testing/guarded_heap.cc), so a kernel that
// reads or writes past its operands ends the program.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "kernels/adamw.h"
#include "kernels/embedding.h"
#include "kernels/router.h"
#include "kernels/testing/guarded_heap.h"
#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

// Only kernels run with guards: RunGuarded.
const bool kUnguarded = (GuardHeap(false), true);

class EveryOperation : public ::testing::TestWithParam<const Operation*> {
 protected:
  const Operation& op_ = *GetParam();
};

INSTANTIATE_TEST_SUITE_P(All, EveryOperation, ::testing::ValuesIn(Operations()),
                         [](const auto& info) { return info.param->name(); });

// The implementation, if this machine has it and it computes `op`.
std::unique_ptr<Implementation> Find(const std::string& name,
                                     const Operation& op) {
  auto implementation = MakeImplementation(name);
  const Dtype dtype = DtypeFor(op, *implementation);
  if (!implementation->WhyUnsupported(op, dtype).empty()) return nullptr;
  return implementation;
}

Case Draw(const Operation& op, const Implementation& implementation) {
  return DrawCase(op,
                  {{"impl", implementation.name()},
                   {"dtype", DtypeName(DtypeFor(op, implementation))}},
                  *rc::gen::arbitrary<uint64_t>(), 0);
}

// Throws NumericsError, which fails a test as it does a property.
void RequireSameBits(const Case& c, const std::string& output, const Tensor& a,
                     const Tensor& b, const std::string& what) {
  if (SameBits(a, b)) return;
  throw NumericsError(output + " " + what + ": " + CaseText(c));
}

// Edges: no rows, and more than a block of the kernels holds.
TEST_P(EveryOperation, IsWithinItsBoundsAtItsEdges) {
  const size_t edges = op_.edges().size();
  ASSERT_GT(edges, 0u);
  std::map<Dtype, std::vector<std::unique_ptr<Implementation>>> offered;
  for (const std::string& name : ImplementationNames()) {
    // ptx_property_test shows that ptx has the bits of shim.
    if (name.starts_with("reference") || name.starts_with("ptx")) continue;
    if (auto implementation = Find(name, op_)) {
      offered[DtypeFor(op_, *implementation)].push_back(
          std::move(implementation));
    }
  }
  for (const auto& group : offered) {
    for (uint32_t number = 0; number < 2 * edges; ++number) {
      // The reference runs once, unless the implementations make choices.
      Case c =
          DrawEdge(op_, {{"dtype", DtypeName(group.first)}}, 20260120, number);
      for (const auto& implementation : group.second) {
        c.impl = implementation->name();
        const CaseResult result = CheckCase(c, *implementation);
        EXPECT_FALSE(result.failed()) << result.reason << "\n"
                                      << ReproLine(result);
      }
    }
  }
}

// On the CPU, with arrays that end where memory ends.
TensorMap RunGuarded(const Operation& op, const Case& c,
                     const TensorMap& inputs, Implementation& cpu) {
  GuardHeap(true);
  TensorMap outputs = cpu.Run(op, c, inputs, 0);
  GuardHeap(false);
  return outputs;
}

// The tensor without the signs of zeros: levels may flush to either zero.
Tensor WithoutSigns(Tensor tensor) {
  for (double& x : tensor.values) {
    if (x == 0) x = 0;
  }
  return tensor;
}

TEST_P(EveryOperation, HasTheSameBitsAtEveryLevel) {
  const auto v3 = Find("cpu:v3", op_), v4 = Find("cpu:v4", op_);
  if (v3 == nullptr || v4 == nullptr) GTEST_SKIP() << "only one level";
  const auto require = [&](const Case& c) {
    const TensorMap inputs = InputsOf(op_, c);
    const TensorMap a = RunGuarded(op_, c, inputs, *v3);
    const TensorMap b = RunGuarded(op_, c, inputs, *v4);
    for (const auto& [output, tensor] : a) {
      RequireSameBits(c, output, WithoutSigns(tensor),
                      WithoutSigns(b.at(output)), "differs by level");
    }
  };
  EXPECT_TRUE(rc::check("random sizes", [&] { require(Draw(op_, *v3)); }));
  for (uint32_t number = 0; number < op_.edges().size(); ++number) {
    require(DrawEdge(op_, {{"impl", "cpu:v3"}}, 1, number));
  }
}

// The tensors in float, which holds all numbers of bf16.
TensorMap AsFloat(TensorMap tensors) {
  for (auto& [name, tensor] : tensors) {
    if (tensor.dtype == Dtype::kBf16) tensor.dtype = Dtype::kF32;
  }
  return tensors;
}

// A kernel with bf16 activations computes what the one with floats does, and
// rounds it once.
TEST_P(EveryOperation, RoundsAtBf16WhatItComputesInFloat) {
  const auto in_bf16 = Find("shim:bf16", op_), in_float = Find("shim", op_);
  if (in_bf16 == nullptr || in_float == nullptr) GTEST_SKIP() << "not in both";
  if (HasSumsOfALibrary(op_.name())) GTEST_SKIP() << "in another order";
  EXPECT_TRUE(rc::check([&] {
    const Case c = Draw(op_, *in_bf16);
    Case of_floats = c;
    of_floats.dtype = Dtype::kF32;
    const TensorMap inputs = InputsOf(op_, c);
    const TensorMap got = in_bf16->Run(op_, c, inputs, 0);
    const TensorMap floats = in_float->Run(op_, of_floats, AsFloat(inputs), 0);
    for (const auto& [output, tensor] : got) {
      Tensor rounded = floats.at(output);
      rounded.dtype = tensor.dtype;
      RoundValues(rounded);
      RequireSameBits(c, output, tensor, rounded, "not rounded once");
    }
  }));
}

// Elements [first, first + count) of the `size` that make up the dimension
// `axis` of a tensor, with `inner` indices each; so in each of `outer`.
struct Part {
  size_t axis;
  int64_t outer, size, inner;
  Window window;
};

// The part of `whole` that a tensor of shape `alone` shows if a size of `size`
// is cut down to `window`; none if the tensor does not have that size.
std::optional<Part> FindPart(const std::vector<int64_t>& whole,
                             const std::vector<int64_t>& alone, int64_t size,
                             const Window& window, bool innermost) {
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    if (whole[axis] == alone[axis]) continue;
    const int64_t others = whole[axis] / size;
    return innermost ? Part{axis, others, size, 1, window}
                     : Part{axis, 1, size, others, window};
  }
  return std::nullopt;
}

// Calls visit(flat index in whole, whether it is within the part), in order.
template <typename Visit>
void ForEachElement(const std::vector<int64_t>& shape, const Part& part,
                    const Visit& visit) {
  const int64_t after =
      NumElements({shape.begin() + part.axis + 1, shape.end()}) * part.inner;
  for (int64_t i = 0; i < NumElements(shape); ++i) {
    const int64_t at = i / after % part.size - part.window.first;
    visit(i, at >= 0 && at < part.window.count);
  }
}

Tensor Cut(const Tensor& whole, const std::vector<int64_t>& shape,
           const Part& part) {
  Tensor cut(whole.dtype, shape);
  int64_t next = 0;
  ForEachElement(whole.shape, part, [&](int64_t i, bool within) {
    if (within) cut.values[next++] = whole.values[i];
  });
  SOFTMOE_CHECK(next == cut.size()) << ShapeText(shape);
  return cut;
}

// Runs a case, and then only a window of one of its sizes, with the same data
// in the window: elements of outputs there must have the same bits, whatever
// the elements of inputs outside are.
class Alone {
 public:
  Alone(const Operation& op, Implementation& implementation, const Case& c,
        const std::string& name, const Window& window, bool innermost)
      : op_(op), implementation_(implementation), c_(c), alone_(c) {
    alone_.sizes[name] = window;
    size_ = c.Size(name);
    innermost_ = innermost;
    order_is_fixed_ = implementation.name().starts_with("cpu") ||
                      !HasSumsOfALibrary(op.name());
    window_ = window;
    inputs_ = InputsOf(op, c);
    for (const auto& [input, tensor] : InputsOf(op, alone_)) {
      const Tensor& whole = inputs_.at(input);
      const auto part = PartOf(whole.shape, tensor.shape);
      cut_[input] = part ? Cut(whole, tensor.shape, *part) : whole;
    }
  }

  // Requires equal bits of the outputs that `concerns` names, with `others` in
  // place of the elements of inputs outside the window; {} leaves them.
  template <typename Concerns>
  void Require(const TensorMap& others, const Concerns& concerns) const {
    TensorMap inputs = inputs_;
    for (auto& [input, tensor] : inputs) {
      const auto part = PartOf(tensor.shape, cut_.at(input).shape);
      if (!part || tensor.dtype == Dtype::kI32 || !others.contains(input)) {
        continue;
      }
      const Tensor& other = others.at(input);
      std::vector<double>& values = tensor.values;
      ForEachElement(tensor.shape, *part, [&](int64_t i, bool within) {
        if (!within) values[i] = other.values[i];
      });
    }
    const TensorMap whole = implementation_.Run(op_, c_, inputs, 0);
    const TensorMap alone = implementation_.Run(op_, alone_, cut_, 0);
    for (const auto& [output, tensor] : alone) {
      const auto part = PartOf(whole.at(output).shape, tensor.shape);
      if (!part || !concerns(output)) continue;
      const Tensor cut = Cut(whole.at(output), tensor.shape, *part);
      if (order_is_fixed_) {
        RequireSameBits(c_, output, cut, tensor, "has other bits than alone");
      } else if (HasNan(cut) != HasNan(tensor)) {
        throw NumericsError(output + " has a NaN of others: " + CaseText(c_));
      }
    }
  }

  // Requires that a NaN within the window shows in every output that it
  // changes.
  void RequireThatNanShows(uint64_t which) const {
    TensorMap inputs = inputs_;
    std::vector<double*> within_window;
    for (auto& [input, tensor] : inputs) {
      const auto part = PartOf(tensor.shape, cut_.at(input).shape);
      if (!part || tensor.dtype == Dtype::kI32) continue;
      std::vector<double>& values = tensor.values;
      ForEachElement(tensor.shape, *part, [&](int64_t i, bool within) {
        if (within) within_window.push_back(&values[i]);
      });
    }
    if (within_window.empty()) return;
    *within_window[which % within_window.size()] = NAN;
    const TensorMap clean = implementation_.Run(op_, c_, inputs_, 0);
    const TensorMap got = implementation_.Run(op_, c_, inputs, 0);
    for (const auto& [output, tensor] : got) {
      if (HasNan(tensor) || SameBits(tensor, clean.at(output))) continue;
      throw NumericsError(output + " hides a NaN: " + CaseText(c_));
    }
  }

  // NaN in every element.
  TensorMap Nans() const {
    TensorMap nans = inputs_;
    for (auto& [input, tensor] : nans) {
      std::ranges::fill(tensor.values,
                        std::numeric_limits<double>::quiet_NaN());
    }
    return nans;
  }
  TensorMap OtherInputs() const { return op_.Inputs(OtherData(c_)); }

 private:
  static bool HasNan(const Tensor& tensor) {
    return std::ranges::any_of(tensor.values,
                               [](double x) { return std::isnan(x); });
  }
  std::optional<Part> PartOf(const std::vector<int64_t>& whole,
                             const std::vector<int64_t>& alone) const {
    return FindPart(whole, alone, size_, window_, innermost_);
  }

  const Operation& op_;
  Implementation& implementation_;
  Case c_, alone_;
  int64_t size_;
  bool innermost_, order_is_fixed_;
  Window window_;
  TensorMap inputs_, cut_;
};

TEST_P(EveryOperation, RowsDoNotSeeEachOther) {
  for (const std::string name : {"cpu:v3", "cpu:v4", "shim", "shim:bf16"}) {
    const auto implementation = Find(name, op_);
    if (implementation == nullptr) continue;
    for (const Parameter& p : op_.parameters()) {
      if (p.apart == Parameter::Apart::kNo) continue;
      EXPECT_TRUE(rc::check(name + " " + p.name, [&] {
        const Case c = Draw(op_, *implementation);
        const int64_t count = c.Size(p.name);
        const Window one = {1, *rc::gen::inRange<int64_t>(0, count)};
        RC_PRE(count > 1);
        const Alone alone(op_, *implementation, c, p.name, one,
                          /*innermost=*/false);
        const auto every = [](const std::string&) { return true; };
        if (p.apart == Parameter::Apart::kIfFinite) {
          alone.Require(alone.OtherInputs(), every);
        } else {
          alone.Require(alone.Nans(), every);
          alone.RequireThatNanShows(*rc::gen::arbitrary<uint64_t>());
        }
      }));
    }
    for (const OutputSpec& spec : op_.outputs()) {
      // If the order of sums depends on the length, only bounds hold.
      const bool fixed =
          !name.starts_with("shim") || !HasSumsOfALibrary(op_.name());
      if (spec.causal.empty() || !fixed) continue;
      EXPECT_TRUE(rc::check(name + " " + spec.causal, [&] {
        const Case c = Draw(op_, *implementation);
        const int64_t count = c.Size(spec.causal);
        RC_PRE(count > 1);
        const Window earlier = {*rc::gen::inRange<int64_t>(1, count), 0};
        const Alone alone(op_, *implementation, c, spec.causal, earlier,
                          /*innermost=*/true);
        alone.Require(alone.OtherInputs(), [&](const std::string& output) {
          return output == spec.name;
        });
      }));
    }
  }
}

// The number of occurrences of the most frequent id.
int64_t MostOfOneId(const TensorMap& inputs) {
  std::map<double, int64_t> counts;
  int64_t most = 0;
  for (const double id : inputs.at("ids").values) {
    most = std::max(most, ++counts[id]);
  }
  return most;
}

// Sums that a step accumulates in float are not rounded to bf16 when stored.
// (Bounds need not show it: earlier roundings weigh more.)
TEST(AtBf16, GradientsOfWeightsAreNotRounded) {
  const auto implementation = MakeImplementation("shim:bf16");
  for (const char* words :
       {"op=experts dtype=bf16 fill=generic rows=20 num_experts=3 max_active=2 "
        "d_model=8 d_ffn=8 scale=1",
        "op=lm_head dtype=bf16 fill=generic rows=20 d_model=8 vocab_size=9 "
        "scale=1 grad_scale=0.3"}) {
    const Case c = ParseCase(words, implementation->name());
    const Operation& op = FindOperation(c.op);
    const TensorMap got = implementation->Run(op, c, InputsOf(op, c), 0);
    for (const OutputSpec& spec : op.outputs()) {
      if (!spec.in_float) continue;
      int64_t rounded = 0, others = 0;
      for (const double x : got.at(spec.name).values) {
        if (x != 0) ++(RoundTo(Dtype::kBf16, x) == x ? rounded : others);
      }
      EXPECT_GT(others, rounded) << c.op << " " << spec.name;
    }
  }
}

// The operations compute every element by the same steps in the same order on
// the CPU and in CUDA, except sums over three or more blocks of tokens, which
// CUDA adds in a tree, sums of squares of several blocks, and gradients of
// words with more tokens than a piece. (A device's own logarithm, sine and
// cosine may change the noise of scores; the simulated one has the CPU's.) For
// AdamW on a device, the host sums for the norm, in its own order.
TEST(SameSource, GivesTheSameBitsOnCpuAndInTheSimulator) {
  const auto cpu = MakeImplementation("cpu:v3");
  const auto shim = MakeImplementation("shim");
  const auto require = [&](const Operation& op, const Case& c) {
    const TensorMap inputs = InputsOf(op, c);
    TensorMap a = cpu->Run(op, c, inputs, 0);
    const TensorMap b = shim->Run(op, c, inputs, 0);
    a.erase("norm");
    SOFTMOE_CHECK(a.size() == b.size()) << CaseText(c);
    const std::set<std::string> sums = {"basis_sums", "z_sum", "d_mean_active"};
    for (const auto& [output, tensor] : a) {
      const bool several =
          sums.contains(output)
              ? c.Size("rows") > 2 * kernels::kRouterTokenBlock
              : output == "sum_of_squares" && c.fill.name != "exact" &&
                    c.Size("size") > kernels::kSumOfSquaresBlock;
      if (several || (output == "d_table" &&
                      MostOfOneId(inputs) > kernels::kEmbeddingPiece)) {
        continue;
      }
      RequireSameBits(c, output, tensor, b.at(output), "differs");
    }
  };
  int operations = 0;
  for (const Operation* op : Operations()) {
    const std::string& name = op->name();
    // For rmsnorm's d_weight, warps of a block sum rows of their own in CUDA.
    if (HasSumsOfALibrary(name) || name == "rmsnorm" ||
        Find("cpu:v3", *op) == nullptr || Find("shim", *op) == nullptr) {
      continue;
    }
    ++operations;
    CasePattern fixed;
    if (name == "adamw") fixed["clip_norm"] = "0";
    EXPECT_TRUE(rc::check(name, [&] {
      require(*op, DrawCase(*op, fixed, *rc::gen::arbitrary<uint64_t>(), 0));
    }));
    for (uint32_t number = 0; number < op->edges().size(); ++number) {
      require(*op, DrawEdge(*op, fixed, 2, number));
    }
  }
  EXPECT_GE(operations, 14);
}

}  // namespace
}  // namespace softmoe::verify

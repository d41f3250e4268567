// SPDX-License-Identifier: Apache-2.0
//
// Softmax, the z-loss and RMSNorm as others write them in float: the softmax
// from its logarithm, the gradient of logsumexp by autograd, Apex's gradient of
// RMSNorm, a reciprocal root within 2 ulp. The bounds admit them, but neither a
// fault nor the forms that the texts of the bounds exclude.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"

namespace softmoe::verify {
namespace {

using FloatRow = Eigen::ArrayXf;
using FloatRows = reference::MatrixOf<float>;

FloatRows FloatRowsOf(const TensorMap& inputs, const std::string& name) {
  return ToMatrix(At(inputs, name)).cast<float>();
}
float FloatOf(const TensorMap& inputs, const std::string& name) {
  return static_cast<float>(ScalarOf(inputs, name));
}
Tensor FloatTensor(const FloatRows& x, std::vector<int64_t> shape) {
  Tensor tensor = ToTensor(x.cast<double>(), std::move(shape));
  tensor.dtype = Dtype::kF32;
  return tensor;
}

// One implementation of one operation in float.
class FloatProgram : public Implementation {
 public:
  std::string name() const override { return "plain"; }
  std::string WhyUnsupported(const Operation&, Dtype) const override {
    return "";
  }
};

CaseResult CheckProgram(FloatProgram&& program, const std::string& words) {
  return CheckCase(ParseCase("seed=1 impl=plain dtype=f32 " + words), program);
}

enum class SoftmaxForm {
  kQuotient,
  kLogarithm,     // exp(log_softmax(r))
  kLogSumExp,     // e^(r - logsumexp), which the bound of a weight excludes
  kUnnormalized,  // wrong
};
struct SoftmaxOfRow {
  float log_sum_exp = 0;
  FloatRow weights;

  SoftmaxOfRow(const FloatRow& scores, SoftmaxForm form) {
    const FloatRow z = scores - scores.maxCoeff(), terms = z.exp();
    const float sum = terms.sum();
    log_sum_exp = scores.maxCoeff() + std::log(sum);
    switch (form) {
      case SoftmaxForm::kQuotient:
        weights = terms / sum;
        break;
      case SoftmaxForm::kLogarithm:
        weights = (z - std::log(sum)).exp();
        break;
      case SoftmaxForm::kLogSumExp:
        weights = (scores - log_sum_exp).exp();
        break;
      case SoftmaxForm::kUnnormalized:
        weights = terms;
        break;
    }
  }
  // The gradient of <v, weights>; of log_softmax, autograd sums s v first.
  FloatRow Gradient(const FloatRow& v, SoftmaxForm form) const {
    const float mean = (weights * v).sum();
    return form == SoftmaxForm::kLogarithm
               ? FloatRow(weights * v - weights * mean)
               : FloatRow(weights * (v - mean));
  }
};

// The `count` largest scores, ties to the lower expert.
std::vector<int64_t> LargestOf(const FloatRow& scores, int64_t count) {
  std::vector<int64_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  order.resize(count);
  return order;
}

class SparseRouterInFloat : public FloatProgram {
 public:
  explicit SparseRouterInFloat(SoftmaxForm form) : form_(form) {}
  TensorMap Run(const Operation&, const Case& c, const TensorMap& inputs,
                int) override {
    const FloatRows scores = FloatRowsOf(inputs, "scores"),
                    d_gates = FloatRowsOf(inputs, "d_gates");
    FloatRows weights = scores, d_scores = scores;
    FloatRows active = FloatRows::Zero(scores.rows(), scores.cols());
    for (int64_t t = 0; t < scores.rows(); ++t) {
      const SoftmaxOfRow softmax(scores.row(t), form_);
      weights.row(t) = softmax.weights;
      for (const int64_t e : LargestOf(scores.row(t), c.Size("max_active"))) {
        active(t, e) = 1;
      }
      d_scores.row(t) =
          softmax.Gradient(d_gates.row(t).cwiseProduct(active.row(t)), form_);
    }
    const std::vector<int64_t> shape = {scores.rows(), scores.cols()};
    Tensor selection = FloatTensor(active, shape);
    selection.dtype = Dtype::kI32;
    return {{"soft_weights", FloatTensor(weights, shape)},
            {"active", selection},
            {"gates", FloatTensor(weights.cwiseProduct(active), shape)},
            {"d_scores", FloatTensor(d_scores, shape)},
            {"d_mean_active", ScalarTensor(0)}};
  }

 private:
  SoftmaxForm form_;
};

enum class SquareGradient { kRecomputed, kWithoutItsTwo };

class BalanceSumsInFloat : public FloatProgram {
 public:
  BalanceSumsInFloat(SoftmaxForm form, SquareGradient gradient)
      : form_(form), gradient_(gradient) {}
  TensorMap Run(const Operation&, const Case& c, const TensorMap& inputs,
                int) override {
    const FloatRows scores = FloatRowsOf(inputs, "scores");
    const FloatRow d_basis = FloatRowsOf(inputs, "d_basis_sums").row(0);
    const float d_z = FloatOf(inputs, "d_z_sum");
    FloatRows d_scores = scores;
    FloatRow sums = FloatRow::Zero(scores.cols());
    Tensor counts(Dtype::kI32, {scores.cols()});
    float z_sum = 0;
    for (int64_t t = 0; t < scores.rows(); ++t) {
      const FloatRow row = scores.row(t);
      const SoftmaxOfRow softmax(row, form_);
      const float lse = softmax.log_sum_exp;
      sums += softmax.weights;
      z_sum += lse * lse;
      for (const int64_t e : LargestOf(row, c.Size("count_top"))) {
        counts.values[e] += 1;
      }
      const float d_lse =
          d_z * (gradient_ == SquareGradient::kRecomputed ? 2 * lse : lse);
      d_scores.row(t) =
          softmax.Gradient(d_basis, form_) + d_lse * (row - lse).exp();
    }
    return {{"basis_sums", FloatTensor(sums.matrix(), {scores.cols()})},
            {"z_sum", ScalarTensor(z_sum)},
            {"counts", counts},
            {"d_scores", FloatTensor(d_scores, {scores.rows(), scores.cols()})},
            {"d_mean_active", ScalarTensor(0)}};
  }

 private:
  SoftmaxForm form_;
  SquareGradient gradient_;
};

// A root and a quotient or, if `ulps` is not 0, a result that far from exact.
float ReciprocalRoot(float x, int ulps) {
  if (ulps == 0) return 1 / std::sqrt(x);
  const double exact = 1 / std::sqrt(static_cast<double>(x));
  float root = static_cast<float>(exact);
  const float beyond = root > exact ? 0.0f : HUGE_VALF;
  for (int i = 0; i < ulps; ++i) root = std::nextafter(root, beyond);
  return root;
}

enum class NormGradient { kOfApex, kWithoutItsProjection };

class RmsNormInFloat : public FloatProgram {
 public:
  RmsNormInFloat(NormGradient gradient, int ulps)
      : gradient_(gradient), ulps_(ulps) {}
  TensorMap Run(const Operation&, const Case&, const TensorMap& inputs,
                int) override {
    const FloatRows x = FloatRowsOf(inputs, "x"),
                    d_y = FloatRowsOf(inputs, "d_y");
    const FloatRow weight = FloatRowsOf(inputs, "weight").row(0);
    FloatRows y = x, d_x = FloatRowsOf(inputs, "d_x_before");
    FloatRows reciprocal(x.rows(), 1);
    FloatRow d_weight = FloatRow::Zero(x.cols());
    const float width = static_cast<float>(x.cols());
    for (int64_t t = 0; t < x.rows(); ++t) {
      const FloatRow row = x.row(t), cotangent = d_y.row(t);
      const float rstd = ReciprocalRoot(
          row.square().sum() / width + FloatOf(inputs, "epsilon"), ulps_);
      const FloatRow normalized = row * rstd;
      reciprocal(t, 0) = rstd;
      y.row(t) = normalized * weight;
      d_weight += cotangent * normalized;
      FloatRow d_row = width * cotangent * weight;
      if (gradient_ == NormGradient::kOfApex) {
        d_row -= normalized * (cotangent * weight * normalized).sum();
      }
      d_x.row(t) += (d_row * (1 / width * rstd)).matrix();
    }
    const std::vector<int64_t> shape = {x.rows(), x.cols()};
    return {{"y", FloatTensor(y, shape)},
            {"d_x", FloatTensor(d_x, shape)},
            {"d_weight", FloatTensor(d_weight.matrix(), {x.cols()})},
            {"rstd", FloatTensor(reciprocal, {x.rows()})}};
  }

 private:
  NormGradient gradient_;
  int ulps_;
};

const char kRouterRows[] =
    "op=router kind=sparse max_active=2 fallback=none mean_active=1 tau=1 "
    "temperature=1 rows=140 ";
const char kBalanceRows[] =
    "op=balance_sums basis=softmax count_top=2 mean_active=1 temperature=1 ";

TEST(PlainRows, MayTakeASoftmaxFromItsLogarithm) {
  for (const SoftmaxForm form :
       {SoftmaxForm::kQuotient, SoftmaxForm::kLogarithm}) {
    for (const std::string words :
         {"fill=generic spread=8 num_experts=3 case=",
          "fill=exact spread=1 num_experts=64 case=",
          "fill=generic spread=64 num_experts=8 case="}) {
      for (const std::string number : {"0", "1", "2", "3"}) {
        CaseResult result = CheckProgram(SparseRouterInFloat(form),
                                         kRouterRows + words + number);
        EXPECT_EQ(result.status, Status::kPass) << ReproLine(result);
        result =
            CheckProgram(BalanceSumsInFloat(form, SquareGradient::kRecomputed),
                         kBalanceRows + ("rows=2 " + words) + number);
        EXPECT_EQ(result.status, Status::kPass) << ReproLine(result);
      }
    }
  }
}

TEST(PlainRows, MayNotTakeItFromALogSumExpOfLargeScores) {
  for (const SoftmaxForm form :
       {SoftmaxForm::kLogSumExp, SoftmaxForm::kUnnormalized}) {
    for (const std::string fill : {"huge", "exact"}) {
      const std::string words = "num_experts=8 spread=1 case=1 fill=" + fill;
      CaseResult result =
          CheckProgram(SparseRouterInFloat(form), kRouterRows + words);
      EXPECT_EQ(result.status, Status::kFail) << ReproLine(result);
      result =
          CheckProgram(BalanceSumsInFloat(form, SquareGradient::kRecomputed),
                       kBalanceRows + ("rows=2 " + words));
      EXPECT_EQ(result.status, Status::kFail) << ReproLine(result);
    }
  }
}

TEST(PlainRows, MayRecomputeTheSoftmaxOfASquaredLogSumExp) {
  for (const std::string words : {"fill=generic spread=8 num_experts=4",
                                  "fill=huge spread=1 num_experts=8",
                                  "fill=exact spread=1 num_experts=64",
                                  "fill=dominant spread=8 num_experts=16"}) {
    for (const SquareGradient gradient :
         {SquareGradient::kRecomputed, SquareGradient::kWithoutItsTwo}) {
      const CaseResult result =
          CheckProgram(BalanceSumsInFloat(SoftmaxForm::kQuotient, gradient),
                       kBalanceRows + ("rows=140 case=1 " + words));
      EXPECT_EQ(result.status, gradient == SquareGradient::kRecomputed
                                   ? Status::kPass
                                   : Status::kFail)
          << ReproLine(result);
    }
  }
}

// Drawn cases in which the roundings of the gradient add up.
TEST(PlainRows, MayScaleTheGradientOfANormAtItsEnd) {
  for (const auto& [ulps, drawn] :
       {std::pair<int, std::string>{0, "epsilon=0.5 case=23"},
        {2, "epsilon=0.99 case=6"}}) {
    for (const NormGradient gradient :
         {NormGradient::kOfApex, NormGradient::kWithoutItsProjection}) {
      const CaseResult result =
          CheckProgram(RmsNormInFloat(gradient, ulps),
                       "op=rmsnorm fill=generic rows=140 d_model=255 "
                       "scale=0.01 " +
                           drawn);
      EXPECT_EQ(result.status, gradient == NormGradient::kOfApex
                                   ? Status::kPass
                                   : Status::kFail)
          << ReproLine(result);
    }
  }
}

// The reciprocal roots of exact data are those of 1.
TEST(PlainRows, AreExactOnExactData) {
  for (const int ulps : {0, 1}) {
    const CaseResult result =
        CheckProgram(RmsNormInFloat(NormGradient::kOfApex, ulps),
                     "op=rmsnorm fill=exact rows=140 d_model=64 scale=1 "
                     "epsilon=1 case=0");
    EXPECT_EQ(result.status, ulps == 0 ? Status::kPass : Status::kFail)
        << ReproLine(result);
  }
}

// If epsilon dominates the argument of the root, hardly anything else rounds.
TEST(PlainRows, MayTakeAReciprocalRootWithinTwoUlp) {
  for (const int ulps : {0, 1, 2, 4}) {
    for (const std::string words :
         {"scale=1e-6 epsilon=0.5", "scale=1e-6 epsilon=1e-5"}) {
      const CaseResult result = CheckProgram(
          RmsNormInFloat(NormGradient::kOfApex, ulps),
          "op=rmsnorm fill=generic rows=9 d_model=33 case=0 " + words);
      EXPECT_EQ(result.status, ulps <= 2 ? Status::kPass : Status::kFail)
          << ReproLine(result);
    }
  }
}

}  // namespace
}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/error_bounds.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/engine/operation.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/parameters.h"
#include "property_tests/verify/operations/row_bounds.h"
#include "reference/lapsum.h"
#include "reference/load_balance.h"
#include "reference/matrix.h"
#include "reference/router.h"
#include "reference/softmax.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
namespace formula = reference::formula;
using reference::BoolMatrix;
using reference::Matrix;
using reference::Vector;

constexpr char kSums[] = "balance-sums-f32/3";

bool SoftBasis(const Case& c) { return c.Choice("basis") == "soft_weights"; }

// The experts that each token counts for, as in MegatronLoadBalance.
BoolMatrix CountedExperts(const Case& c, const Matrix& scores) {
  return reference::RouterForward(
             {.kind = RouterKind::kSparse, .max_active = c.Size("count_top")},
             scores)
      .active;
}

// The terms of a balance group's sums, token by token, and the gradient of
// both sums, with their bounds.
struct BalanceRows {
  Matrix basis, d_scores;  // [rows, num_experts]; softmax or p/k
  reference::MatrixOf<Bounded> basis_bounds, d_scores_bounds;
  Tensor counts;              // [num_experts]
  std::vector<double> doubt;  // how many of them float may lose

  BalanceRows(const Case& c, const TensorMap& inputs)
      : counts(Dtype::kI32, {c.Size("num_experts")}),
        doubt(static_cast<size_t>(c.Size("num_experts"))),
        scores_(ToMatrix(At(inputs, "scores"))),
        d_basis_(ToVector(At(inputs, "d_basis_sums"))),
        d_z_(ScalarOf(inputs, "d_z_sum")),
        mean_active_(ScalarOf(inputs, "mean_active")),
        temperature_(ScalarOf(inputs, "temperature")) {
    basis = d_scores = Matrix(scores_.rows(), scores_.cols());
    basis_bounds = d_scores_bounds =
        reference::MatrixOf<Bounded>(scores_.rows(), scores_.cols());
    const BoolMatrix counted = CountedExperts(c, scores_);
    for (int64_t t = 0; t < scores_.rows(); ++t) {
      const SoftmaxRow softmax = BoundSoftmaxRow(scores_.row(t));
      if (SoftBasis(c)) {
        SetSoftWeights(t);
      } else {
        SetSoftmax(t, softmax);
      }
      AddSquaredLogSumExp(t, softmax);
      for (int64_t e = 0; e < scores_.cols(); ++e) {
        if (!counted(t, e)) continue;
        counts.values[e] += 1;
        doubt[e] += SoftBasis(c) && MayVanish(c.dtype, basis_bounds(t, e));
      }
    }
  }

 private:
  void SetSoftWeights(int64_t t) {
    const Bounded k = mean_active_;
    const LapSumRow row =
        BoundLapSumRow(scores_.row(t), mean_active_, temperature_);
    basis.row(t) = row.solution.weights / mean_active_;
    for (int64_t e = 0; e < scores_.cols(); ++e) {
      basis_bounds(t, e) = row.weights[e] / k;
    }
    std::vector<Bounded> v(d_basis_.begin(), d_basis_.end());
    for (Bounded& x : v) x = x / k;
    SetGradient(
        t, reference::LapSumVjp(row.solution, d_basis_ / mean_active_).d_scores,
        BoundLapSumGradient(row, v, temperature_));
  }

  void SetSoftmax(int64_t t, const SoftmaxRow& softmax) {
    const Vector weights = reference::Softmax(scores_.row(t));
    basis.row(t) = weights;
    std::ranges::copy(softmax.weights, basis_bounds.row(t).begin());
    SetGradient(t, reference::SoftmaxVjp(weights, d_basis_),
                BoundSoftmaxGradient(
                    softmax.weights,
                    std::vector<Bounded>(d_basis_.begin(), d_basis_.end())));
  }

  void SetGradient(int64_t t, const Vector& gradient,
                   const WeightedGradient& bounds) {
    d_scores.row(t) = gradient;
    std::ranges::copy(bounds.gradient, d_scores_bounds.row(t).begin());
  }

  void AddSquaredLogSumExp(int64_t t, const SoftmaxRow& softmax) {
    const Vector row = scores_.row(t);
    d_scores.row(t) += formula::SquaredLogSumExpGradient<double>(
        2 * d_z_, reference::LogSumExp(row), reference::Softmax(row));
    reference::VectorOf<Bounded> recomputed(row.size());
    for (int64_t e = 0; e < row.size(); ++e) {
      recomputed[e] = property_tests::Recomputed(softmax.weights[e], row[e],
                                                 softmax.log_sum_exp);
    }
    const reference::VectorOf<Bounded> gradient =
        formula::SquaredLogSumExpGradient<Bounded>(
            2 * d_z_, softmax.log_sum_exp, recomputed);
    for (int64_t e = 0; e < row.size(); ++e) {
      // The sum may be taken in any order, with the v added before or after.
      FloatSum sum;
      sum.Add(d_scores_bounds(t, e));
      sum.Add(gradient[e]);
      d_scores_bounds(t, e) = sum.Get();
    }
  }

  // At f64, the errors of float tell nothing about underflow.
  static bool MayVanish(Dtype dtype, const Bounded& p) {
    return dtype == Dtype::kF64
               ? p.value <= 64 * DoubleRounding::kUnderflow
               : p.value - p.error <= property_tests::kUnderflow;
  }

  Matrix scores_;
  Vector d_basis_;
  double d_z_, mean_active_, temperature_;
};

// The sums that the load balance loss needs from the routers (SPEC.md 2.5),
// over one balance group, whose basis is p/k or softmax.
// inputs   scores [rows, num_experts]; mean_active, temperature [];
//          d_basis_sums [num_experts], d_z_sum []
// outputs  basis_sums [num_experts], z_sum [] = sum logsumexp^2, counts (i32,
//          [num_experts]), d_scores [rows, num_experts], d_mean_active [] (0:
//          the balance loss takes k as constant)
class BalanceSums : public Operation {
 public:
  BalanceSums() {
    name_ = "balance_sums";
    text_ =
        "sums over tokens of p/k or softmax(scores), and of logsumexp^2; "
        "tokens per expert; d_scores";
    parameters_ = {
        {.name = "rows", .text = "tokens of one balance group", .high = 140},
        {.name = "num_experts", .text = "experts", .low = 2, .high = 128},
        {.name = "count_top",
         .text = "experts counted per token",
         .high = 128,
         .at_most = "num_experts"},
        {.name = "basis",
         .kind = Kind::kChoice,
         .text = "p/k, or softmax(scores) beside the soft or the sparse router",
         .choices = {"softmax", "softmax_sparse", "soft_weights"}},
        MeanActiveParameter("k_l", 1, 128),
        SpreadParameter(),
        TemperatureParameter("T of p, in score units"),
    };
    edges_ = {"rows=0",
              "rows=1089 basis=soft_weights",
              "rows=1089 basis=softmax",
              "rows=1089 basis=softmax_sparse",
              "num_experts=256",
              "num_experts=32 mean_active=31.99998 basis=soft_weights"};
    fills_ = {"generic",        "exact",       "ties",      "near_ties",
              "plateau",        "wide_gap",    "all_equal", "dominant",
              "monotone",       "subnormal",   "huge",      "one_expert_all",
              "expert_0_and_1", "uneven_ranks"};
    dtypes_ = {Dtype::kF32, Dtype::kF64};
    outputs_ = {
        {"basis_sums"}, {"z_sum"}, {"counts"}, {"d_scores"}, {"d_mean_active"}};
    differentiable_ = {"scores"};
    derivations_ = {LapSumWeightsDerivation(),
                    LapSumGradientDerivation(),
                    SoftmaxDerivation(),
                    {kSums, RawLines(R"(
A sum over tokens errs by the sum of its terms' bounds (softmax,
LapSum weights); the sum itself by n u sum |x|, which an accumulator of
float stays below. d_scores: both parts operation by operation; that of
logsumexp^2 may recompute the softmax, e^(r - logsumexp), whichever errs
more. Outside is a logsumexp to base 2, ln2 (max log2(e) + log2 sum), which
rounds the largest score four times more.)")},
                    {"counts/1", RawLines(R"(
Whole numbers. By score there is no doubt (ties: lower expert). By p
(cutoff 0, cap count_top) a token may be missing where float flushes
its p to 0.)")},
                    ExactDerivation()};
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    TensorMap inputs;
    inputs["scores"] =
        filler.Scores("scores", "rows", "num_experts", c.Real("spread"));
    inputs["mean_active"] = filler.Scalar(
        c.fill.name == "wide_gap" ? filler.WholeActive("num_experts")
                                  : c.Real("mean_active"));
    inputs["temperature"] = filler.Scalar(c.Real("temperature"));
    inputs["d_basis_sums"] =
        filler.Cotangent("d_basis_sums", {filler.Axis("num_experts")});
    inputs["d_z_sum"] = filler.Scalar(0.375);
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    return WhyNotSoft(inputs, c.Size("num_experts"));
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const Matrix scores = ToMatrix(At(inputs, "scores"));
    const BalanceRows rows(c, inputs);
    const Tensor sums = ToTensor(formula::ColumnSums<double>(rows.basis));
    const auto sum_bounds = formula::ColumnSums<Bounded>(rows.basis_bounds);
    Expected expected;
    auto& outputs = expected.outputs;
    // Sums of 1, 1/2, 1/4, ... are exact in any order.
    const bool exact = !SoftBasis(c) && c.fill.name == "exact";
    outputs["basis_sums"] =
        exact ? ExactRegime(sums)
              : FromBounds("basis_sums", sums,
                           {sum_bounds.begin(), sum_bounds.end()}, kSums);
    outputs["z_sum"] = FromBounds(
        "z_sum", ScalarTensor(formula::SumOfSquaredLogSumExps<double>(scores)),
        {formula::SumOfSquaredLogSumExps<Bounded>(As<Bounded>(scores))}, kSums);
    outputs["counts"] = Exactly(rows.counts, "counts/1");
    outputs["counts"].bounds = rows.doubt;
    outputs["d_scores"] = FromBounds(
        "d_scores", ToTensor(rows.d_scores, {scores.rows(), scores.cols()}),
        Flat<Bounded>(rows.d_scores_bounds), kSums);
    outputs["d_mean_active"] = Exactly(ScalarTensor(0), kSums);
    return expected;
  }

  // A token may be missing from a count, but a count may not be too large.
  std::optional<Expected> ExpectAfter(const Case& c, const TensorMap& inputs,
                                      const TensorMap& got) const override {
    const auto counts = got.find("counts");
    const Matrix scores = ToMatrix(At(inputs, "scores"));
    if (counts == got.end() || counts->second.size() != scores.cols())
      return {};
    std::vector<double> excess = counts->second.values;
    const BoolMatrix counted = CountedExperts(c, scores);
    for (int64_t e = 0; e < scores.cols(); ++e) {
      excess[e] -= static_cast<double>(counted.col(e).count());
    }
    if (std::ranges::none_of(excess, [](double x) { return x > 0; })) return {};
    Expected expected = Expect(c, inputs);
    for (int64_t e = 0; e < scores.cols(); ++e) {
      if (excess[e] > 0) expected.outputs["counts"].bounds[e] = 0;
    }
    return expected;
  }

  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)choice;
    const Matrix scores = ToMatrix(At(inputs, "scores"));
    const double mean_active = ScalarOf(inputs, "mean_active");
    TensorMap outputs = {
        {"z_sum",
         ScalarTensor(formula::SumOfSquaredLogSumExps<double>(scores))}};
    Matrix basis = formula::SoftmaxRows<double>(scores);
    if (SoftBasis(c)) {
      for (int64_t t = 0; t < scores.rows(); ++t) {
        basis.row(t) = reference::SolveLapSum(scores.row(t), mean_active,
                                              ScalarOf(inputs, "temperature"))
                           .weights;
      }
      outputs["above_root"] = AboveRoot(basis, mean_active);
      basis /= mean_active;
    }
    outputs["basis_sums"] = ToTensor(formula::ColumnSums<double>(basis));
    return outputs;
  }
};

}  // namespace

const Operation& BalanceSumsOperation() {
  static const BalanceSums operation;
  return operation;
}

}  // namespace softmoe::verify

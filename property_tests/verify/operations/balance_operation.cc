// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <optional>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/operation_table.h"
#include "property_tests/verify/operations/parameters.h"
#include "property_tests/verify/operations/row_bounds.h"
#include "reference/load_balance.h"
#include "reference/router.h"
#include "reference/softmax.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
namespace formula = reference::formula;
using reference::Matrix;
using reference::Vector;

constexpr char kSums[] = "balance-sums-f32/2";

bool SoftBasis(const Case& c) { return c.Choice("basis") == "soft_weights"; }

// What the load balance loss needs from the routers (SPEC.md 2.5): the sums
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
    edges_ = {"rows=0", "rows=1089", "num_experts=256"};
    fills_ = {"generic",        "exact",       "ties",      "near_ties",
              "plateau",        "wide_gap",    "all_equal", "dominant",
              "monotone",       "subnormal",   "huge",      "one_expert_all",
              "expert_0_and_1", "uneven_ranks"};
    dtypes_ = {Dtype::kF32, Dtype::kF64};
    outputs_ = {
        {"basis_sums"}, {"z_sum"}, {"counts"}, {"d_scores"}, {"d_mean_active"}};
    differentiable_ = {"scores"};
    derivations_ = {
        LapSumWeightsDerivation(),
        LapSumGradientDerivation(),
        SoftmaxDerivation(),
        {kSums,
         "A sum over tokens errs by the sum of its terms' bounds (softmax,\n"
         "LapSum weights); the sum itself by n u sum |x|, which an "
         "accumulator\n"
         "of float stays below. d_scores: both parts operation by operation."},
        {"counts/1",
         "Whole numbers. By score there is no doubt (ties: lower expert). By "
         "p\n"
         "(cutoff 0, cap count_top) a token may be missing where float "
         "flushes\n"
         "its p to 0."},
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
        filler.Plain("d_basis_sums", {filler.Axis("num_experts")});
    inputs["d_z_sum"] = filler.Scalar(0.375);
    return inputs;
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    return WhyNotSoft(inputs, c.Size("num_experts"));
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const Matrix scores = ToMatrix(At(inputs, "scores"));
    const int64_t rows = scores.rows(), n = scores.cols();
    const Vector d_basis = ToVector(At(inputs, "d_basis_sums"));
    const double d_z = ScalarOf(inputs, "d_z_sum");
    const double temperature = ScalarOf(inputs, "temperature");
    const reference::RouterSettings settings = {
        .kind = RouterKind::kSoftFixed,
        .mean_active = ScalarOf(inputs, "mean_active"),
        .temperature = temperature,
        .cutoff = 0,
        .max_active = c.Size("count_top"),
        .fallback = Fallback::kNone};
    // The basis (softmax, or p/k) and the gradient, with their bounds, row by
    // row.
    const Matrix softmax = formula::SoftmaxRows<double>(scores);
    Matrix basis = softmax, d_scores(rows, n);
    reference::MatrixOf<Bounded> basis_bounds(rows, n);
    std::vector<Bounded> d_bounds;
    Tensor counts(Dtype::kI32, {n});
    std::vector<double> doubt(n);
    // At f64, the errors of float say nothing of what underflows.
    const auto may_vanish = [&](const Bounded& p) {
      return c.dtype == Dtype::kF64
                 ? p.value <= 64 * DoubleRounding::kUnderflow
                 : p.value - p.error <= property_tests::kUnderflow;
    };
    Vector d_weights = d_basis;
    std::vector<Bounded> v(d_basis.begin(), d_basis.end());
    if (SoftBasis(c)) {
      d_weights /= settings.mean_active;
      for (Bounded& x : v) x = x / Bounded(settings.mean_active);
    }
    for (int64_t t = 0; t < rows; ++t) {
      const SoftmaxRow bounds = BoundSoftmaxRow(scores.row(t));
      std::vector<Bounded> row_bounds = bounds.weights;
      WeightedGradient part;
      if (SoftBasis(c)) {
        const LapSumRow row =
            BoundLapSumRow(scores.row(t), settings.mean_active, temperature);
        basis.row(t) = row.solution.weights / settings.mean_active;
        row_bounds = row.weights;
        for (Bounded& p : row_bounds) p = p / Bounded(settings.mean_active);
        part = BoundLapSumGradient(row, v, temperature);
        d_scores.row(t) =
            reference::LapSumVjp(row.solution, d_weights).d_scores;
      } else {
        part = BoundSoftmaxGradient(bounds.weights, v);
        d_scores.row(t) = reference::SoftmaxVjp(softmax.row(t), d_weights);
      }
      d_scores.row(t) += formula::SquaredLogSumExpGradient<double>(
          2 * d_z, reference::LogSumExp(scores.row(t)), softmax.row(t));
      const reference::VectorOf<Bounded> z_gradient =
          formula::SquaredLogSumExpGradient<Bounded>(
              Bounded(2 * d_z), bounds.log_sum_exp,
              Eigen::Map<const reference::VectorOf<Bounded>>(
                  bounds.weights.data(), n));
      for (int64_t e = 0; e < n; ++e) {
        basis_bounds(t, e) = row_bounds[e];
        // The sum may be taken in any order, with the v added before or after.
        FloatSum sum;
        sum.Add(part.gradient[e]);
        sum.Add(z_gradient[e]);
        d_bounds.push_back(sum.Get());
      }
      for (const int64_t e : Counted(c, scores, t)) {
        counts.values[e] += 1;
        doubt[e] += SoftBasis(c) && may_vanish(row_bounds[e]);
      }
    }
    const Vector sums = formula::ColumnSums<double>(basis);
    const reference::VectorOf<Bounded> sum_bounds =
        formula::ColumnSums<Bounded>(basis_bounds);
    Expected expected;
    auto& outputs = expected.outputs;
    // Sums of 1, 1/2, 1/4, ... are exact in any order.
    const bool exact = !SoftBasis(c) && c.fill.name == "exact";
    outputs["basis_sums"] =
        exact ? ExactRegime(ToTensor(sums))
              : FromBounds("basis_sums", ToTensor(sums),
                           {sum_bounds.begin(), sum_bounds.end()}, kSums);
    outputs["z_sum"] = FromBounds(
        "z_sum", ScalarTensor(formula::SumOfSquaredLogSumExps<double>(scores)),
        {formula::SumOfSquaredLogSumExps<Bounded>(As<Bounded>(scores))}, kSums);
    outputs["counts"] = Exactly(counts, "counts/1");
    outputs["counts"].bounds = doubt;
    outputs["d_scores"] =
        FromBounds("d_scores", ToTensor(d_scores, {rows, n}), d_bounds, kSums);
    outputs["d_mean_active"] = Exactly(ScalarTensor(0), kSums);
    return expected;
  }

  // A token may be missing from a count, but none may be there that does not
  // belong.
  std::optional<Expected> ExpectAfter(const Case& c, const TensorMap& inputs,
                                      const TensorMap& got) const override {
    const auto counts = got.find("counts");
    const Matrix scores = ToMatrix(At(inputs, "scores"));
    if (counts == got.end() || counts->second.size() != scores.cols())
      return {};
    std::vector<double> excess = counts->second.values;
    for (int64_t t = 0; t < scores.rows(); ++t) {
      for (const int64_t e : Counted(c, scores, t)) --excess[e];
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

 private:
  // The experts that a token counts for.
  static std::vector<int64_t> Counted(const Case& c, const Matrix& scores,
                                      int64_t row) {
    std::vector<int64_t> order(static_cast<size_t>(scores.cols()));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
      return scores(row, a) > scores(row, b);
    });
    order.resize(static_cast<size_t>(c.Size("count_top")));
    return order;
  }
};

}  // namespace

const Operation& BalanceSumsOperation() {
  static const BalanceSums operation;
  return operation;
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/operation_table.h"
#include "reference/lm_head.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;
using reference::Vector;

// What an implementation may do differently: compute the softmax in blocks of
// 16 logits or more, and recompute it from the logarithm of its sum.
reference::MatrixOf<Bounded> Loosened(
    reference::MatrixOf<Bounded> probabilities,
    const reference::MatrixOf<Bounded>& logits) {
  const double steps = property_tests::StepsOf16(logits.cols());
  for (int64_t t = 0; t < logits.rows(); ++t) {
    const Bounded log_sum_exp = property_tests::LogarithmInSteps(
        reference::formula::LogSumExp<Bounded>(logits.row(t)), steps);
    for (int64_t w = 0; w < logits.cols(); ++w) {
      probabilities(t, w) = property_tests::Recomputed(
          property_tests::InSteps(probabilities(t, w), steps), logits(t, w),
          log_sum_exp);
    }
  }
  return probabilities;
}
reference::VectorOf<Bounded> Loosened(reference::VectorOf<Bounded> losses,
                                      int64_t vocab_size) {
  const double steps = property_tests::StepsOf16(vocab_size);
  for (Bounded& loss : losses) {
    loss = property_tests::LogarithmInSteps(loss, steps);
  }
  return losses;
}
// The naive program follows the formula; AddStored adds what float may do
// besides storing.
template <typename Numbers, typename What>
Numbers Loosened(Numbers numbers, const What&) {
  return numbers;
}

// The terms of a sum are random in the logits only.
template <typename N>
using AfterLogits = typename WorstCaseOf<N>::Type;

template <typename N>
struct LmHeadFormula {
  std::map<std::string, std::vector<N>> outputs;

  LmHeadFormula(const Matrix& hidden, const Matrix& weight,
                const std::vector<int32_t>& targets, double grad_scale) {
    namespace formula = reference::formula;
    using W = AfterLogits<N>;
    const reference::MatrixOf<W> logits =
        As<W>(formula::LmHeadLogits<N>(As<N>(hidden), As<N>(weight)));
    const reference::MatrixOf<W> d_logits = formula::TokenLossesBackward<W>(
        Loosened(formula::SoftmaxRows<W>(logits), logits), targets,
        reference::VectorOf<W>::Constant(logits.rows(), W(grad_scale)));
    const reference::LmHeadGradientsOf<W> gradients =
        formula::LmHeadBackward<W>(d_logits, As<W>(hidden), As<W>(weight));
    outputs["loss"] = Flat<N>(As<N>(
        Loosened(formula::TokenLosses<W>(logits, targets), logits.cols())));
    outputs["d_hidden"] = Flat<N>(As<N>(gradients.d_hidden));
    outputs["d_head_weight"] = Flat<N>(As<N>(gradients.d_head_weight));
  }
};

// Logits and the loss of every token (SPEC.md 3.2).
// inputs   hidden [rows, d_model], head_weight [vocab_size, d_model], targets
//          (i32, [rows]), grad_scale []: the cotangent of every token's loss
// outputs  loss [rows], d_hidden, d_head_weight
class LmHead : public Operation {
 public:
  LmHead() {
    name_ = "lm_head";
    text_ = "loss = logsumexp(h W^T) - (h W^T)[target], per token, in nats";
    parameters_ = {
        {.name = "rows",
         .text = "tokens",
         .high = 50,
         .apart = Parameter::Apart::kAlways},
        {.name = "d_model", .text = "width", .high = 70},
        {.name = "vocab_size", .text = "logits", .high = 140},
        {.name = "scale",
         .kind = Kind::kReal,
         .text = "standard deviation of hidden",
         .low = 1e-3,
         .high = 8,
         .typical = {0.1, 1, 3},
         .simple = 1},
        {.name = "grad_scale",
         .kind = Kind::kReal,
         .text = "cotangent of every token's loss",
         .low = 0x1p-24,
         .high = 4,
         .typical = {0.0625, 0.3},
         .simple = 3},
    };
    edges_ = {"rows=0", "rows=1100 d_model=4 vocab_size=12",
              "vocab_size=700 rows=9",
              "vocab_size=2056 rows=40 d_model=8 scale=1 fill=generic"};
    fills_ = {"generic", "exact", "subnormal", "repeated", "far_below"};
    dtypes_ = {Dtype::kF32, Dtype::kF64, Dtype::kBf16};
    outputs_ = {{.name = "loss", .in_float = true},
                {"d_hidden"},
                {.name = "d_head_weight", .in_float = true}};
    differentiable_ = {"hidden", "head_weight"};
    derivations_ = WithStoredOperands({
        {kDerivation, RawLines(R"(
Logits: dot products, n u sum |ab| in any order. The softmax may be
computed in blocks of 16 logits or more, each of which rescales what
there is by a factor with an error of at most 5 u, and again from the
logarithm of its sum. exp and log within 2 u; gradients operation by
operation. Of the logits: )") +
                          kRandomRoundingsText},
        ExactDerivation(),
        NaiveDerivation(),
    });
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const Window rows = filler.Axis("rows"), width = filler.Axis("d_model");
    if (c.fill.name == "exact" && HasExactData(c)) {
      return ExactInputs(filler);
    }
    Tensor hidden = filler.Data("hidden", {rows, width}, c.Real("scale"));
    Tensor weight =
        filler.Plain("head_weight", {filler.Axis("vocab_size"), width});
    if (c.fill.name == "far_below") LowerLogits(c, filler, hidden, weight);
    return {{"hidden", hidden},
            {"head_weight", weight},
            {"targets", filler.Ids("targets", {rows}, c.Size("vocab_size"))},
            {"grad_scale", filler.InFloat().Scalar(c.Real("grad_scale"))}};
  }

  std::string WhyInvalid(const Case& c,
                         const TensorMap& inputs) const override {
    return WhyNoIds(inputs, "targets", c.Size("vocab_size"));
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const Matrix hidden = ToMatrix(At(inputs, "hidden"));
    const Matrix weight = ToMatrix(At(inputs, "head_weight"));
    const std::vector<int32_t> targets = ToInts(At(inputs, "targets"));
    const double grad_scale = ScalarOf(inputs, "grad_scale");
    const reference::LmHeadGradients gradients = reference::LmHeadBackward(
        hidden, weight, targets, Vector::Constant(hidden.rows(), grad_scale));
    const std::map<std::string, Tensor> values = {
        {"loss", ToTensor(reference::TokenLosses(
                     reference::LmHeadLogits(hidden, weight), targets))},
        {"d_hidden",
         ToTensor(gradients.d_hidden, {hidden.rows(), hidden.cols()})},
        {"d_head_weight",
         ToTensor(gradients.d_head_weight, {weight.rows(), weight.cols()})}};
    return ExpectByFormula<LmHeadFormula, StoredOperands>(
        *this, c, values, kDerivation,
        HasExactData(c) ? Exact::kForAll : Exact::kForNobody, hidden, weight,
        targets, grad_scale);
  }

 private:
  static constexpr char kDerivation[] = "lm-head-f32/4";

  // A logit takes four columns. bf16 has n 2^e for whole n up to 256; logits of
  // exact data must be such numbers, too.
  static bool HasExactData(const Case& c) {
    const int64_t longest = Lattice(c.Size("vocab_size")).width() - 1;
    const bool fits = c.dtype != Dtype::kBf16 || 2 * longest * longest <= 256;
    return fits && c.Size("d_model") >= Lattice::kFactors;
  }
  // Rows of the head are points of a lattice, and a token is one of these: its
  // logit is 0, all others are -1024 or less, and their weights 0 even in
  // double. So the softmax is 1 at one of them, and loss and gradients are
  // differences of whole numbers. The columns after those of the lattice cancel
  // in pairs, the first one with the last; one in the middle is 0 in the head.
  static TensorMap ExactInputs(const Filler& filler) {
    const Window rows = filler.Axis("rows"), width = filler.Axis("d_model");
    const Window vocab = filler.Axis("vocab_size");
    const Lattice lattice(vocab.count, 1024);
    const Tensor points = filler.Ids("points", {rows}, vocab.count);
    const auto partner = [&](int64_t j) {
      return Lattice::kFactors + width.count - 1 - j;
    };
    Tensor hidden = filler.OneOf("hidden", {rows, width}, {1, 2});
    Tensor weight =
        filler.OneOf("head_weight", {vocab, width}, {-2048, -1024, 1024, 2048});
    for (int64_t t = 0; t < rows.count; ++t) {
      double* const row = &hidden.values[t * width.count];
      std::ranges::copy(lattice.Query(static_cast<int64_t>(points.values[t])),
                        row);
      for (int64_t j = Lattice::kFactors; j < partner(j); ++j) {
        row[partner(j)] = row[j];
      }
    }
    for (int64_t w = 0; w < vocab.count; ++w) {
      double* const row = &weight.values[w * width.count];
      std::ranges::copy(lattice.Key(w), row);
      for (int64_t j = Lattice::kFactors; j <= partner(j); ++j) {
        row[partner(j)] = j < partner(j) ? -row[j] : 0;
      }
    }
    return {{"hidden", hidden},
            {"head_weight", weight},
            {"targets", filler.Ids("targets", {rows}, vocab.count)},
            {"grad_scale", filler.InFloat().Scalar(0.25)}};
  }

  // The first column of `hidden` is a constant; that of the head is its
  // negative or less, not equal for all words: logits are lower by at least its
  // square, which is further than the other columns reach.
  static void LowerLogits(const Case& c, const Filler& filler, Tensor& hidden,
                          Tensor& weight) {
    const int64_t width = c.Size("d_model");
    const double depth =
        filler.FarBelow() +
        8 * c.Real("scale") * std::sqrt(static_cast<double>(width));
    const double constant = RoundTo(c.dtype, std::sqrt(depth));
    for (int64_t i = 0; i < hidden.size(); i += width) {
      hidden.values[i] = constant;
    }
    for (int64_t i = 0; i < weight.size(); i += width) {
      double& x = weight.values[i];
      x = RoundTo(c.dtype, -constant - std::abs(x) / constant);
    }
  }

  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)c, (void)choice;
    return {{"loss",
             ToTensor(reference::TokenLosses(
                 reference::LmHeadLogits(ToMatrix(At(inputs, "hidden")),
                                         ToMatrix(At(inputs, "head_weight"))),
                 ToInts(At(inputs, "targets"))))}};
  }
  TensorMap Cotangents(const TensorMap& inputs,
                       const TensorMap& outputs) const override {
    Tensor d_loss(Dtype::kF64, outputs.at("loss").shape);
    for (double& x : d_loss.values) x = ScalarOf(inputs, "grad_scale");
    return {{"loss", d_loss}};
  }
};

}  // namespace

const Operation& LmHeadOperation() {
  static const LmHead operation;
  return operation;
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/expected.h"
#include "property_tests/verify/fill.h"
#include "property_tests/verify/model_operations.h"
#include "reference/lm_head.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;
using reference::Vector;

constexpr char kDerivation[] = "lm-head-f32/1";

struct LmHeadBounds {
  std::vector<Bounded> loss, d_hidden;
  std::vector<BoundedSum> d_weight;

  LmHeadBounds(const Matrix& hidden, const Matrix& weight,
               const std::vector<int32_t>& targets, double grad_scale)
      : d_weight(weight.size()) {
    const int64_t d = hidden.cols(), v = weight.rows();
    for (int64_t t = 0; t < hidden.rows(); ++t) {
      std::vector<Bounded> logits;
      for (int64_t w = 0; w < v; ++w) {
        BoundedSum dot;
        for (int64_t j = 0; j < d; ++j) {
          dot.Add(Bounded(hidden(t, j)) * Bounded(weight(w, j)));
        }
        logits.push_back(dot.Get());
      }
      const property_tests::BoundedSoftmax softmax =
          property_tests::SoftmaxOf(logits, static_cast<double>(v / 16 + 1));
      loss.push_back(softmax.log_sum_exp - logits[targets[t]]);
      std::vector<BoundedSum> sums(d);
      for (int64_t w = 0; w < v; ++w) {
        const Bounded hit(w == targets[t] ? 1.0 : 0.0);
        const Bounded d_logit =
            Bounded(grad_scale) *
            (property_tests::Exp(logits[w] - softmax.log_sum_exp) - hit);
        for (int64_t j = 0; j < d; ++j) {
          sums[j].Add(d_logit * Bounded(weight(w, j)));
          d_weight[w * d + j].Add(d_logit * Bounded(hidden(t, j)));
        }
      }
      for (const BoundedSum& sum : sums) d_hidden.push_back(sum.Get());
    }
  }
};

class LmHead : public Operation {
 public:
  std::string name() const override { return "lm_head"; }
  std::string text() const override {
    return "loss = logsumexp(h W^T) - (h W^T)[target], per token, in nats";
  }
  const std::vector<Parameter>& parameters() const override {
    static const std::vector<Parameter> parameters = {
        {.name = "rows", .text = "tokens", .high = 50},
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
         .low = 0x1p-10,
         .high = 4,
         .typical = {0.0625, 0.3},
         .simple = 3},
    };
    return parameters;
  }
  std::vector<std::string> fills() const override {
    return {"generic", "exact", "subnormal", "repeated"};
  }
  std::vector<OutputSpec> outputs() const override {
    return {{"loss"}, {"d_hidden"}, {"d_head_weight"}};
  }
  std::vector<std::string> differentiable() const override {
    return {"hidden", "head_weight"};
  }
  const std::vector<Derivation>& derivations() const override {
    static const std::vector<Derivation> derivations = {
        {kDerivation,
         "Logits: dot products, n u sum |ab| in any order. The softmax may be\n"
         "computed in blocks of 16 logits or more, each of which rescales "
         "what\n"
         "there is by a factor with an error of at most 5 u. exp and log "
         "within\n"
         "2 u; gradients operation by operation."}};
    return derivations;
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const Window rows = filler.Axis("rows"), width = filler.Axis("d_model");
    return {{"hidden", filler.Data("hidden", {rows, width}, c.Real("scale"))},
            {"head_weight",
             filler.Plain("head_weight", {filler.Axis("vocab_size"), width})},
            {"targets", filler.Ids("targets", {rows}, c.Size("vocab_size"))},
            {"grad_scale", filler.Scalar(c.Real("grad_scale"))}};
  }

  Expected Expect(const Case& c, const TensorMap& inputs,
                  const TensorMap& got) const override {
    (void)c, (void)got;
    const Matrix hidden = ToMatrix(At(inputs, "hidden"));
    const Matrix weight = ToMatrix(At(inputs, "head_weight"));
    const std::vector<int32_t> targets = ToInts(At(inputs, "targets"));
    const double grad_scale = ScalarOf(inputs, "grad_scale");
    const LmHeadBounds bounds(hidden, weight, targets, grad_scale);
    const reference::LmHeadGradients gradients = reference::LmHeadBackward(
        hidden, weight, targets, Vector::Constant(hidden.rows(), grad_scale));
    Expected expected;
    auto& outputs = expected.outputs;
    outputs["loss"] =
        FromBounds("loss",
                   ToTensor(reference::TokenLosses(
                       reference::LmHeadLogits(hidden, weight), targets)),
                   bounds.loss, kDerivation);
    outputs["d_hidden"] =
        FromBounds("d_hidden",
                   ToTensor(gradients.d_hidden, {hidden.rows(), hidden.cols()}),
                   bounds.d_hidden, kDerivation);
    outputs["d_head_weight"] = FromBounds(
        "d_head_weight",
        ToTensor(gradients.d_head_weight, {weight.rows(), weight.cols()}),
        Values(bounds.d_weight), kDerivation);
    return expected;
  }
};

}  // namespace

const Operation& LmHeadOperation() {
  static const LmHead operation;
  return operation;
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "property_tests/verify/expected.h"
#include "property_tests/verify/fill.h"
#include "property_tests/verify/model_operations.h"
#include "reference/attention.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;

constexpr char kDerivation[] = "attention-f32/1";

struct AttentionShape {
  int64_t sequences, length, heads, dim;

  int64_t rows() const { return sequences * length; }
  int64_t width() const { return heads * dim; }
  // Part 0, 1, 2 is q, k, v; token `t` of sequence `s`.
  int64_t At(int64_t s, int64_t h, int part, int64_t t, int64_t j) const {
    return ((s * length + t) * 3 + part) * width() + h * dim + j;
  }
  int64_t Out(int64_t s, int64_t h, int64_t t, int64_t j) const {
    return (s * length + t) * width() + h * dim + j;
  }
};

class AttentionBounds {
 public:
  AttentionBounds(const AttentionShape& shape, const Tensor& qkv,
                  const Tensor& d_out)
      : out(d_out.size()),
        d_qkv(qkv.size()),
        shape_(shape),
        qkv_(qkv.values),
        d_out_(d_out.values) {
    for (int64_t s = 0; s < shape.sequences; ++s) {
      for (int64_t h = 0; h < shape.heads; ++h) AddHead(s, h);
    }
  }

  std::vector<Bounded> out;
  std::vector<BoundedSum> d_qkv;

 private:
  void AddHead(int64_t s, int64_t h) {
    const AttentionShape& c = shape_;
    // The root and the quotient are rounded once each.
    const Bounded scale =
        Bounded(1 / std::sqrt(static_cast<double>(c.dim))).Rounded(2);
    for (int64_t t = 0; t < c.length; ++t) {
      std::vector<Bounded> scores;
      for (int64_t key = 0; key <= t; ++key) {
        BoundedSum dot;
        for (int64_t j = 0; j < c.dim; ++j) {
          dot.Add(Bounded(qkv_[c.At(s, h, 0, t, j)]) *
                  Bounded(qkv_[c.At(s, h, 1, key, j)]));
        }
        scores.push_back(dot.Get() * scale);
      }
      const property_tests::BoundedSoftmax softmax = property_tests::SoftmaxOf(
          scores, static_cast<double>(c.length / 16 + 1));
      const Bounded reciprocal = Bounded(1) / softmax.sum;
      BoundedSum delta;
      for (int64_t j = 0; j < c.dim; ++j) {
        BoundedSum sum;
        for (int64_t key = 0; key <= t; ++key) {
          sum.Add(softmax.exponentials[key] *
                  Bounded(qkv_[c.At(s, h, 2, key, j)]));
        }
        Bounded& element = out[c.Out(s, h, t, j)];
        element = sum.Get() * reciprocal;
        delta.Add(element * Bounded(d_out_[c.Out(s, h, t, j)]));
      }
      AddBackward(s, h, t, scores, softmax.log_sum_exp, delta.Get(), scale);
    }
  }

  // What query t adds to the gradients of q, k and v.
  void AddBackward(int64_t s, int64_t h, int64_t t,
                   const std::vector<Bounded>& scores, Bounded log_sum_exp,
                   Bounded delta, Bounded scale) {
    const AttentionShape& c = shape_;
    for (int64_t key = 0; key <= t; ++key) {
      const Bounded weight = property_tests::Exp(scores[key] - log_sum_exp);
      BoundedSum d_weight;
      for (int64_t j = 0; j < c.dim; ++j) {
        const Bounded d(d_out_[c.Out(s, h, t, j)]);
        d_weight.Add(d * Bounded(qkv_[c.At(s, h, 2, key, j)]));
        d_qkv[c.At(s, h, 2, key, j)].Add(weight * d);
      }
      const Bounded d_score = weight * scale * (d_weight.Get() - delta);
      for (int64_t j = 0; j < c.dim; ++j) {
        const int64_t q = c.At(s, h, 0, t, j), k = c.At(s, h, 1, key, j);
        d_qkv[q].Add(d_score * Bounded(qkv_[k]));
        d_qkv[k].Add(d_score * Bounded(qkv_[q]));
      }
    }
  }

  const AttentionShape& shape_;
  const std::vector<double>& qkv_;
  const std::vector<double>& d_out_;
};

class Attention : public Operation {
 public:
  std::string name() const override { return "attention"; }
  std::string text() const override {
    return "causal softmax(q k^T / sqrt(head_dim)) v of every head";
  }
  const std::vector<Parameter>& parameters() const override {
    static const std::vector<Parameter> parameters = {
        {.name = "sequences", .text = "sequences", .high = 3},
        {.name = "length", .text = "tokens per sequence", .high = 80},
        {.name = "heads", .text = "heads", .high = 3},
        {.name = "head_dim",
         .text = "width of a head",
         .low = 2,
         .high = 40,
         .step = 2},
        {.name = "scale",
         .kind = Kind::kReal,
         .text = "standard deviation of q, k and v",
         .low = 1e-3,
         .high = 8,
         .typical = {0.1, 1, 4},
         .simple = 1},
    };
    return parameters;
  }
  std::vector<std::string> fills() const override {
    return {"generic", "exact", "subnormal"};
  }
  std::vector<OutputSpec> outputs() const override {
    return {{"out"}, {"d_qkv"}};
  }
  std::vector<std::string> differentiable() const override { return {"qkv"}; }
  const std::vector<Derivation>& derivations() const override {
    static const std::vector<Derivation> derivations = {
        {kDerivation,
         "Scores: dot products, n u sum |ab|, times a scale that is rounded\n"
         "twice. The softmax may run over blocks of 16 keys or more, each of\n"
         "which rescales what there is by a factor with an error of at most 5 "
         "u.\n"
         "The gradient recomputes the weights from logsumexp; all operation "
         "by\n"
         "operation, sums over keys and queries in any order."}};
    return derivations;
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const AttentionShape shape = ShapeOf(c);
    const std::vector<Window> tokens = {filler.Axis("sequences"),
                                        filler.Axis("length")};
    TensorMap inputs;
    // Addressed by (sequence, token, part and head, column); stored flat.
    inputs["qkv"] =
        filler.Data("qkv",
                    {tokens[0], tokens[1], Filler::All(3 * c.Size("heads")),
                     filler.Axis("head_dim")},
                    c.Real("scale"));
    inputs["qkv"].shape = {shape.rows(), 3 * shape.width()};
    inputs["d_out"] = filler.Plain(
        "d_out",
        {tokens[0], tokens[1], filler.Axis("heads"), filler.Axis("head_dim")});
    inputs["d_out"].shape = {shape.rows(), shape.width()};
    return inputs;
  }

  Expected Expect(const Case& c, const TensorMap& inputs,
                  const TensorMap& got) const override {
    (void)got;
    const AttentionShape shape = ShapeOf(c);
    const Tensor& qkv = At(inputs, "qkv");
    const Tensor& d_out = At(inputs, "d_out");
    const AttentionBounds bounds(shape, qkv, d_out);
    Expected expected;
    expected.outputs["out"] =
        FromBounds("out",
                   ToTensor(reference::MultiHeadAttention(
                                ToMatrix(qkv), shape.sequences, shape.heads),
                            d_out.shape),
                   bounds.out, kDerivation);
    expected.outputs["d_qkv"] = FromBounds(
        "d_qkv",
        ToTensor(
            reference::MultiHeadAttentionBackward(
                ToMatrix(qkv), shape.sequences, shape.heads, ToMatrix(d_out)),
            qkv.shape),
        Values(bounds.d_qkv), kDerivation);
    return expected;
  }

 private:
  static AttentionShape ShapeOf(const Case& c) {
    return {c.Size("sequences"), c.Size("length"), c.Size("heads"),
            c.Size("head_dim")};
  }
};

}  // namespace

const Operation& AttentionOperation() {
  static const Attention operation;
  return operation;
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "property_tests/verify/expected.h"
#include "property_tests/verify/fill.h"
#include "property_tests/verify/formula.h"
#include "property_tests/verify/model_operations.h"
#include "reference/attention.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;

constexpr char kDerivation[] = "attention-f32/2";

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

// The formula; N is Bounded, or Naive at bf16.
template <typename N>
class AttentionFormula {
 public:
  std::map<std::string, std::vector<N>> outputs;

  AttentionFormula(const AttentionShape& shape, const Tensor& qkv,
                   const Tensor& d_out, kernels::Roundings roundings)
      : roundings_(roundings),
        out_(d_out.size()),
        d_qkv_(qkv.size()),
        shape_(shape),
        qkv_(qkv.values),
        d_out_(d_out.values) {
    for (int64_t s = 0; s < shape.sequences; ++s) {
      for (int64_t h = 0; h < shape.heads; ++h) AddHead(s, h);
    }
    outputs["out"] = out_;
    outputs["d_qkv"] = Values(d_qkv_);
  }

 private:
  using Sum = kernels::Sum<N>;

  void AddHead(int64_t s, int64_t h) {
    const AttentionShape& c = shape_;
    // The root and the quotient are rounded once each.
    const N scale = N(1 / std::sqrt(static_cast<double>(c.dim))).Rounded(2);
    for (int64_t t = 0; t < c.length; ++t) {
      std::vector<N> scores;
      for (int64_t key = 0; key <= t; ++key) {
        Sum dot;
        for (int64_t j = 0; j < c.dim; ++j) {
          dot.AddProduct(qkv_[c.At(s, h, 0, t, j)],
                         qkv_[c.At(s, h, 1, key, j)]);
        }
        scores.push_back(dot.Get(roundings_) * scale);
      }
      const auto softmax = property_tests::SoftmaxOf(
          scores, static_cast<double>(c.length / 16 + 1));
      const N reciprocal = N(1) / softmax.sum;
      Sum delta;
      for (int64_t j = 0; j < c.dim; ++j) {
        Sum sum;
        for (int64_t key = 0; key <= t; ++key) {
          sum.AddProduct(softmax.exponentials[key],
                         qkv_[c.At(s, h, 2, key, j)]);
        }
        N& element = out_[c.Out(s, h, t, j)];
        element = sum.Get() * reciprocal;
        delta.AddProduct(element, d_out_[c.Out(s, h, t, j)]);
      }
      AddBackward(s, h, t, scores, softmax.log_sum_exp, delta.Get(), scale);
    }
  }

  // What query t adds to the gradients of q, k and v.
  void AddBackward(int64_t s, int64_t h, int64_t t,
                   const std::vector<N>& scores, N log_sum_exp, N delta,
                   N scale) {
    const AttentionShape& c = shape_;
    for (int64_t key = 0; key <= t; ++key) {
      const N weight = Exp(scores[key] - log_sum_exp);
      Sum d_weight;
      for (int64_t j = 0; j < c.dim; ++j) {
        const N d(d_out_[c.Out(s, h, t, j)]);
        d_weight.AddProduct(d, qkv_[c.At(s, h, 2, key, j)]);
        d_qkv_[c.At(s, h, 2, key, j)].AddProduct(weight, d);
      }
      const N d_score = weight * scale * (d_weight.Get() - delta);
      for (int64_t j = 0; j < c.dim; ++j) {
        const int64_t q = c.At(s, h, 0, t, j), k = c.At(s, h, 1, key, j);
        d_qkv_[q].AddProduct(d_score, qkv_[k]);
        d_qkv_[k].AddProduct(d_score, qkv_[q]);
      }
    }
  }

  kernels::Roundings roundings_;
  std::vector<N> out_;
  std::vector<Sum> d_qkv_;
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
  std::vector<Dtype> dtypes() const override {
    return {Dtype::kF32, Dtype::kBf16};
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
         "operation, sums over keys and queries in any order. Of the "
         "scores:\n" +
             std::string(kRandomRoundingsText)},
        ExactDerivation(),
        NaiveDerivation()};
    return derivations;
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const AttentionShape shape = ShapeOf(c);
    const std::vector<Window> tokens = {filler.Axis("sequences"),
                                        filler.Axis("length")};
    TensorMap inputs;
    if (c.fill.name == "exact" && ScaleIsExact(shape)) {
      inputs["qkv"] = ExactData(c, filler);
    } else {
      // Addressed by (sequence, token, part and head, column); stored flat.
      inputs["qkv"] =
          filler.Data("qkv",
                      {tokens[0], tokens[1], Filler::All(3 * c.Size("heads")),
                       filler.Axis("head_dim")},
                      c.Real("scale"));
    }
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
    return ExpectByFormula<AttentionFormula>(
        c,
        {{"out", ToTensor(reference::MultiHeadAttention(
                              ToMatrix(qkv), shape.sequences, shape.heads),
                          d_out.shape)},
         {"d_qkv", ToTensor(reference::MultiHeadAttentionBackward(
                                ToMatrix(qkv), shape.sequences, shape.heads,
                                ToMatrix(d_out)),
                            qkv.shape)}},
        kDerivation, ScaleIsExact(shape), shape, qkv, d_out);
  }

  TensorMap Forward(const Case& c, const TensorMap& inputs,
                    const TensorMap& choice) const override {
    (void)choice;
    const AttentionShape shape = ShapeOf(c);
    return {{"out", ToTensor(reference::MultiHeadAttention(
                                 ToMatrix(At(inputs, "qkv")), shape.sequences,
                                 shape.heads),
                             At(inputs, "d_out").shape)}};
  }

 private:
  // Scores are rounded when they are scaled by 1/sqrt(head_dim), unless that is
  // a power of 2.
  static bool ScaleIsExact(const AttentionShape& shape) {
    return shape.dim == 4 || shape.dim == 16;
  }
  // Keys are 1024 times a whole number that no other key of their sequence and
  // head has, queries 1 or 2, values small whole numbers: the softmax of a
  // query is 1 at one key. Scores are below 1024 * 2 * 16 * 80.
  static Tensor ExactData(const Case& c, const Filler& filler) {
    const Window sequences = filler.Axis("sequences");
    const Window tokens = filler.Axis("length"), dim = filler.Axis("head_dim");
    const int64_t heads = c.Size("heads");
    const std::vector<Window> axes = {sequences, tokens, Filler::All(3 * heads),
                                      dim};
    const Tensor queries = filler.OneOf("q", axes, {1, 2});
    Tensor qkv = filler.OneOf("qkv", axes, {-3, -2, -1, 0, 1, 2, 3});
    for (int64_t s = 0; s < sequences.count; ++s) {
      for (int64_t h = 0; h < heads; ++h) {
        const std::vector<int64_t> ranks =
            filler.Ranks("k", {sequences.first + s, h}, tokens);
        for (int64_t t = 0; t < tokens.count; ++t) {
          const int64_t row = (s * tokens.count + t) * 3 * heads;
          for (int64_t j = 0; j < dim.count; ++j) {
            const int64_t q = (row + h) * dim.count + j;
            qkv.values[q] = queries.values[q];
            qkv.values[q + heads * dim.count] =
                1024 * static_cast<double>(ranks[t]);
          }
        }
      }
    }
    return qkv;
  }
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

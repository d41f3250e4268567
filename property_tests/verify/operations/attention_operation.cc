// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/engine/formula.h"
#include "property_tests/verify/operations/operation_table.h"
#include "reference/attention.h"

namespace softmoe::verify {
namespace {

using Kind = Parameter::Kind;
using reference::Matrix;

struct AttentionShape {
  int64_t sequences, length, heads, dim;

  int64_t rows() const { return sequences * length; }
  int64_t width() const { return heads * dim; }
};

// What an implementation may do differently: compute the softmax in blocks of
// at least 16 keys and divide at the end, and recompute it for the gradient
// from the logarithm of its sum.
//
// At bf16 these errors are added to those of stored numbers (AddStored), so
// that each operation of float counts twice. That covers tensor cores, which
// may truncate when they add (2 u instead of u), an exponential within 2 ulp
// (4 u instead of 2 u) of a score times log2(e), one more factor that is
// rounded, and a logarithm of the sum to base 2.
reference::MatrixOf<Bounded> Loosened(
    reference::MatrixOf<Bounded> weights,
    const reference::MatrixOf<Bounded>& logits, bool backward) {
  const double steps = property_tests::StepsOf16(logits.rows());
  for (int64_t t = 0; t < logits.rows(); ++t) {
    for (int64_t s = 0; s <= t; ++s) {
      weights(t, s) = property_tests::InSteps(weights(t, s), steps).Rounded();
    }
    if (!backward) continue;
    const Bounded log_sum_exp = property_tests::LogarithmInSteps(
        reference::formula::LogSumExp<Bounded>(logits.row(t).head(t + 1)),
        steps);
    for (int64_t s = 0; s <= t; ++s) {
      weights(t, s) =
          property_tests::Recomputed(weights(t, s), logits(t, s), log_sum_exp);
    }
  }
  return weights;
}
// The naive program follows the formula; AddStored adds what float may do
// besides storing.
template <typename N>
reference::MatrixOf<N> Loosened(reference::MatrixOf<N> weights,
                                const reference::MatrixOf<N>&, bool) {
  return weights;
}

// Plain programs also store `x`, besides factors and results of products; ours
// do not.
template <typename N>
N StoredIfPlain(const N& x) {
  if constexpr (std::is_same_v<N, StoredResults>) return AsStored(x);
  return x;
}
// The queries. Plain programs may scale them first; they are then computed, and
// stored. As this error is relative, the factor itself may follow later.
template <typename N>
reference::MatrixOf<N> AsQueries(const Matrix& q) {
  reference::MatrixOf<N> queries = As<N>(q);
  if constexpr (std::is_same_v<N, StoredResults>) {
    for (N& x : queries.reshaped()) x = x.Rounded();
  }
  return queries;
}

// Whether each score of a query is one product, the same for every key: then
// its scores are equal in every program, wherever that rounds and stores.
bool HasEqualScores(const Matrix& q, const Matrix& k) {
  int64_t products = 0;
  for (int64_t j = 0; j < q.cols(); ++j) {
    if ((q.col(j).array() == 0).all()) continue;
    if ((k.col(j).array() != k(0, j)).any()) return false;
    ++products;
  }
  return products <= 1;
}
// The logits as numbers of kind W. In a program that stores bf16, equal scores
// have the errors of float alone: storing moves all of them alike, which
// changes no softmax.
template <typename N, typename W>
reference::MatrixOf<W> Logits(const Matrix& q, const Matrix& k) {
  namespace formula = reference::formula;
  if constexpr (std::is_same_v<N, StoredOperands> ||
                std::is_same_v<N, StoredResults>) {
    if (HasEqualScores(q, k)) {
      return formula::AttentionLogits<Bounded>(As<Bounded>(q), As<Bounded>(k))
          .unaryExpr([](const Bounded& x) { return W(x.value, x.error); });
    }
  }
  return As<W>(formula::AttentionLogits<N>(AsQueries<N>(q), As<N>(k)));
}

// CausalAttentionBackward, except that the sum over keys of a * d_a is taken as
// <d_out, out>, as kernels do, and that the gradient of the scores is scaled
// before it is stored. In float, and in programs of others, either sum may be
// used: the weights' errors cancel in the first where d_a does, those of `out`
// do not.
template <typename N>
reference::CausalAttentionGradientsOf<N> Backward(
    const reference::MatrixOf<N>& weights, const reference::MatrixOf<N>& out,
    const reference::MatrixOf<N>& q, const reference::MatrixOf<N>& k,
    const reference::MatrixOf<N>& v, const reference::MatrixOf<N>& d_out) {
  namespace formula = reference::formula;
  const reference::MatrixOf<N> d_weights =
      formula::Multiply<N>(d_out, v.transpose());
  const N scale = formula::AttentionScale<N>(q.cols());
  reference::MatrixOf<N> d_scores(q.rows(), q.rows());
  for (int64_t t = 0; t < q.rows(); ++t) {
    N delta = formula::Dot<N>(d_out.row(t), out.row(t));
    if constexpr (!std::is_same_v<N, StoredOperands>) {
      const N sum = formula::Dot<N>(weights.row(t), d_weights.row(t));
      delta.error = std::max(delta.error, sum.error);
    }
    for (int64_t s = 0; s < q.rows(); ++s) {
      d_scores(t, s) = StoredIfPlain(scale * StoredIfPlain(weights(t, s)) *
                                     (d_weights(t, s) - delta));
    }
  }
  reference::CausalAttentionGradientsOf<N> gradients;
  gradients.d_q = formula::Multiply<N>(d_scores, k);
  gradients.d_k = formula::Multiply<N>(d_scores.transpose(), q);
  gradients.d_v = formula::Multiply<N>(weights.transpose(), d_out);
  return gradients;
}

template <typename N>
struct AttentionFormula {
  std::map<std::string, std::vector<N>> outputs;

  AttentionFormula(const AttentionShape& shape, const Tensor& qkv,
                   const Tensor& d_out) {
    namespace formula = reference::formula;
    // The terms of a sum are random in the scores only.
    using W = typename WorstCaseOf<N>::Type;
    using Block = reference::MatrixOf<W>;
    const Matrix packed = ToMatrix(qkv), cotangent = ToMatrix(d_out);
    Block out(shape.rows(), shape.width());
    Block d_qkv(shape.rows(), 3 * shape.width());
    const formula::HeadBlock block = {shape.length, shape.width(), shape.dim};
    for (int64_t s = 0; s < shape.sequences; ++s) {
      for (int64_t head = 0; head < shape.heads; ++head) {
        const Matrix q = block(packed, s, 0, head);
        const Matrix k = block(packed, s, 1, head);
        const Block v = As<W>(Matrix(block(packed, s, 2, head)));
        const Block logits = Logits<N, W>(q, k);
        const Block weights = formula::CausalSoftmax<W>(logits);
        const Block head_out = formula::WeightedValues<W>(
            Loosened(weights, logits, /*backward=*/false), v);
        block(out, s, 0, head) = head_out;
        const Block d_head = As<W>(Matrix(block(cotangent, s, 0, head)));
        reference::CausalAttentionGradientsOf<W> gradients;
        if constexpr (std::is_same_v<W, Naive>) {
          gradients = formula::CausalAttentionBackward<W>(weights, As<W>(q),
                                                          As<W>(k), v, d_head);
        } else {
          gradients =
              Backward<W>(Loosened(weights, logits, /*backward=*/true),
                          head_out, AsQueries<W>(q), As<W>(k), v, d_head);
        }
        block(d_qkv, s, 0, head) = gradients.d_q;
        block(d_qkv, s, 1, head) = gradients.d_k;
        block(d_qkv, s, 2, head) = gradients.d_v;
      }
    }
    outputs["out"] = Flat<N>(As<N>(out));
    outputs["d_qkv"] = Flat<N>(As<N>(d_qkv));
  }
};

// Causal attention of rotated queries and keys (SPEC.md 3.2).
// inputs   qkv [sequences*length, 3*heads*head_dim], rotated; d_out
// outputs  out [sequences*length, heads*head_dim], d_qkv
class Attention : public Operation {
 public:
  Attention() {
    name_ = "attention";
    text_ =
        "causal softmax(q k^T / sqrt(head_dim)) v of every head; qkv has all "
        "heads of q, then of k, then of v";
    parameters_ = {
        {.name = "sequences",
         .text = "sequences",
         .high = 3,
         .apart = Parameter::Apart::kAlways},
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
         // Above this, scores that are stored as bf16 leave weights no bound.
         .high = 4,
         .typical = {0.1, 1, 4},
         .simple = 1},
    };
    edges_ = {"length=0", "length=300 sequences=1 heads=1 head_dim=4",
              "length=1000 sequences=1 heads=3 head_dim=4 fill=exact",
              "head_dim=100",
              // Flash attention on a device: several blocks and tiles.
              "length=200 sequences=1 heads=2 head_dim=64",
              "length=1 heads=2 head_dim=64",
              "length=130 sequences=2 heads=1 head_dim=128",
              // Several blocks of the CPU's softmax, where the largest score of
              // some queries is in a later one.
              "length=600 sequences=1 heads=1 head_dim=4 fill=generic scale=1",
              // Flash attention with scores far below 0.
              "length=130 sequences=1 heads=1 head_dim=64 fill=far_below"};
    fills_ = {"generic", "exact", "subnormal", "far_below"};
    dtypes_ = {Dtype::kF32, Dtype::kF64, Dtype::kBf16};
    outputs_ = {{.name = "out", .causal = "length"},
                {.name = "d_qkv", .parts = 3}};
    differentiable_ = {"qkv"};
    derivations_ =
        WithStoredOperands({
            {kDerivation, RawLines(R"(
Scores: dot products, n u sum |ab|, times a scale that is rounded
twice. The softmax may run over blocks of 16 keys or more, each of
which rescales what there is by a factor with an error of at most 5 u.
The gradient recomputes the weights from logsumexp; its sum over keys of
a * d_a may be <d_out, out> of the rounded out, whichever errs more; all
operation by operation, sums over keys and queries in any order. This
bounds gradients of fill exact, too, where 1/sqrt(head_dim) is no power
of 2, except those of our own kernels: others may multiply q by it, which
rounds. Of the scores: )") + kRandomRoundingsText},
            ExactDerivation(),
            NaiveDerivation(),
        });
  }

  TensorMap Inputs(const Case& c) const override {
    const Filler filler(c);
    const AttentionShape shape = ShapeOf(c);
    const std::vector<Window> tokens = {filler.Axis("sequences"),
                                        filler.Axis("length")};
    // Addressed by (sequence, token, part and head, column), and stored flat.
    const std::vector<Window> of_qkv = {tokens[0], tokens[1],
                                        Filler::All(3 * c.Size("heads")),
                                        filler.Axis("head_dim")};
    const std::vector<Window> of_out = {
        tokens[0], tokens[1], filler.Axis("heads"), filler.Axis("head_dim")};
    TensorMap inputs;
    if (c.fill.name == "exact" && HasExactData(c, shape)) {
      inputs["qkv"] = filler.OneOf("qkv", of_qkv, {-2, -1, 0, 1, 2});
      MakeExact(c, filler, inputs["qkv"]);
      inputs["d_out"] = filler.OneOf("d_out", of_out, {-1, 0, 1});
    } else {
      inputs["qkv"] = filler.Data("qkv", of_qkv, c.Real("scale"));
      inputs["d_out"] = filler.Cotangent("d_out", of_out);
      if (c.fill.name == "far_below") LowerScores(c, filler, inputs["qkv"]);
    }
    inputs["qkv"].shape = {shape.rows(), 3 * shape.width()};
    inputs["d_out"].shape = {shape.rows(), shape.width()};
    return inputs;
  }

  Expected Expect(const Case& c, const TensorMap& inputs) const override {
    const AttentionShape shape = ShapeOf(c);
    const Tensor& qkv = At(inputs, "qkv");
    const Tensor& d_out = At(inputs, "d_out");
    const std::map<std::string, Tensor> values = {
        {"out", ToTensor(reference::MultiHeadAttention(
                             ToMatrix(qkv), shape.sequences, shape.heads),
                         d_out.shape)},
        {"d_qkv", ToTensor(reference::MultiHeadAttentionBackward(
                               ToMatrix(qkv), shape.sequences, shape.heads,
                               ToMatrix(d_out)),
                           qkv.shape)}};
    const auto expect = [&](Exact exact) {
      return ExpectByFormula<AttentionFormula, StoredOperands>(
          *this, c, values, kDerivation, exact, shape, qkv, d_out);
    };
    const bool is_exact = c.fill.name == "exact" && HasExactData(c, shape);
    if (is_exact && HasExactScale(shape)) return expect(Exact::kForAll);
    Expected expected = expect(Exact::kForNobody);
    if (is_exact) {
      expected.of_ours = expect(Exact::kForAll).outputs;
      expected.outputs.at("out") = expected.of_ours.at("out");
    }
    return expected;
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
  static constexpr char kDerivation[] = "attention-f32/4";

  // A score takes four columns, which repeat. bf16 has n 2^e for whole n up to
  // 256: so many queries may have one key, and d_out v is at most 2 head_dim.
  static bool HasExactData(const Case& c, const AttentionShape& shape) {
    const bool fits = c.dtype != Dtype::kBf16 ||
                      (shape.length <= 256 && 2 * shape.dim <= 256);
    return fits && shape.dim % Lattice::kFactors == 0;
  }
  // Whether 1/sqrt(head_dim) is a power of 2. Where it is not, a query that is
  // multiplied by it rounds: the largest score is only nearly 0, which changes
  // no softmax, but does change a weight that the gradient recomputes, if one
  // pass scales the queries and the other the scores.
  static bool HasExactScale(const AttentionShape& shape) {
    const auto dim = static_cast<uint64_t>(shape.dim);
    return std::has_single_bit(dim) && std::countr_zero(dim) % 2 == 0;
  }
  // Keys are points of a lattice, and a query is one of those that it sees: its
  // score there is 0, and the others, of -512 sqrt(head_dim) or less, have
  // weights of 0 even in double. So the softmax of a query is 1 at one key,
  // `out` is that key's value, and the gradients of q and k are 0. (Storing a
  // scaled query as bf16 moves no score by a fifth of its distance from the
  // largest.)
  //
  // Every third key is the point of the key before it, and so is the query
  // there: seeing too far halves its weight. All other queries are points that
  // only one key has.
  static void MakeExact(const Case& c, const Filler& filler, Tensor& qkv) {
    const Window sequences = filler.Axis("sequences");
    const Window tokens = filler.Axis("length");
    const int64_t heads = c.Size("heads"), dim = c.Size("head_dim");
    const Lattice lattice(tokens.count, 2048);
    for (int64_t s = 0; s < sequences.count; ++s) {
      for (int64_t h = 0; h < heads; ++h) {
        const std::vector<int64_t> index = {sequences.first + s, h};
        const std::vector<int64_t> points = filler.Ranks("k", index, tokens);
        const std::vector<int64_t> draws = filler.Ranks("q", index, tokens);
        for (int64_t t = 0; t < tokens.count; ++t) {
          const int64_t seen = t % 3 == 1 ? t : draws[t] % (t / 3 + 1) * 3;
          const auto query = lattice.Query(points[seen]);
          const auto key = lattice.Key(points[t % 3 == 2 ? t - 1 : t]);
          const int64_t q = ((s * tokens.count + t) * 3 * heads + h) * dim;
          for (int64_t j = 0; j < dim; ++j) {
            qkv.values[q + j] = query[j % Lattice::kFactors];
            qkv.values[q + heads * dim + j] = key[j % Lattice::kFactors];
          }
        }
      }
    }
  }
  // The first column of every head is a constant in q and its negative in k:
  // all scores are lower by its square / sqrt(head_dim), which is further than
  // the other columns reach. At bf16 these are 0 in q: scores so far below 0
  // that differ at all would differ by 1 or more once they are stored.
  static void LowerScores(const Case& c, const Filler& filler, Tensor& qkv) {
    const AttentionShape shape = ShapeOf(c);
    const double depth = filler.FarBelow() + 8 * std::pow(c.Real("scale"), 2);
    const double constant = RoundTo(
        c.dtype, std::sqrt(depth * std::sqrt(static_cast<double>(shape.dim))));
    for (int64_t row = 0; row < shape.rows(); ++row) {
      for (int64_t head = 0; head < shape.heads; ++head) {
        const int64_t q = (row * 3 * shape.heads + head) * shape.dim;
        qkv.values[q] = constant;
        qkv.values[q + shape.width()] = -constant;
        if (c.dtype != Dtype::kBf16) continue;
        std::fill_n(qkv.values.begin() + q + 1, shape.dim - 1, 0.0);
      }
    }
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

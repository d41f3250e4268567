// SPDX-License-Identifier: Apache-2.0
//
// Attention and the head as others write them at bf16, of matrix products with
// nothing fused, or with a softmax to base 2: they store what our kernels do
// not, and are within the bounds for everybody. With a fault they are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/expected.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/engine/replay.h"
#include "reference/attention.h"

namespace softmoe::verify {
namespace {

using Floats = reference::MatrixOf<float>;

enum class Form {
  kScalesScores,   // scores, stored before and after (Hugging Face)
  kScalesQueries,  // queries, which are then stored (Flax)
  kToBaseTwo,      // nothing is stored but weights and gradients (flash)
  // As kToBaseTwo, but the weights are recomputed from scaled queries.
  kScalesQueriesAgain,
};
enum class Slip {
  kNone,
  kSeesTooFar,  // by one key
  kMissesItself,
  kNoScale,
  kNoDelta,
  kSkipsTheTail,  // those of the vocabulary after the last whole 8
  kSkipsTheLast,  // the last of the vocabulary
  kSkipsColumns,  // those of the width after the last whole 8
  kNoOneHot,
  kNoGradScale,
};

Floats FloatsOf(const Tensor& tensor) { return ToMatrix(tensor).cast<float>(); }

Tensor TensorOf(const Floats& x, Dtype dtype, const Tensor& like) {
  Tensor tensor = ToTensor(x.cast<double>(), like.shape);
  tensor.dtype = dtype;
  return tensor;
}

class PlainProgram : public Implementation {
 public:
  explicit PlainProgram(Form form, Slip slip) : form_(form), slip_(slip) {}
  std::string name() const override { return "plain"; }
  std::string WhyUnsupported(const Operation&, Dtype) const override {
    return "";
  }
  TensorMap Run(const Operation&, const Case& c, const TensorMap& inputs,
                int) override {
    dtype_ = c.dtype;
    return c.op == "lm_head" ? Head(inputs) : Attention(c, inputs);
  }

 private:
  Floats Stored(Floats x) const {
    for (float& each : x.reshaped()) {
      each = static_cast<float>(RoundTo(dtype_, each));
    }
    return x;
  }

  struct OneHead {
    Floats out, d_q, d_k, d_v;
  };

  TensorMap Attention(const Case& c, const TensorMap& inputs) const {
    const Floats packed = FloatsOf(At(inputs, "qkv"));
    const Floats cotangent = FloatsOf(At(inputs, "d_out"));
    Floats out = cotangent, d_qkv = packed;
    const int64_t heads = c.Size("heads"), dim = c.Size("head_dim");
    const reference::formula::HeadBlock block = {c.Size("length"), heads * dim,
                                                 dim};
    const float scale =
        slip_ == Slip::kNoScale ? 1 : 1 / std::sqrt(static_cast<float>(dim));
    for (int64_t s = 0; s < c.Size("sequences"); ++s) {
      for (int64_t h = 0; h < heads; ++h) {
        const auto compute =
            form_ == Form::kToBaseTwo || form_ == Form::kScalesQueriesAgain
                ? &PlainProgram::Fused
                : &PlainProgram::Products;
        const OneHead head = (this->*compute)(
            block(packed, s, 0, h), block(packed, s, 1, h),
            block(packed, s, 2, h), block(cotangent, s, 0, h), scale);
        block(out, s, 0, h) = head.out;
        block(d_qkv, s, 0, h) = head.d_q;
        block(d_qkv, s, 1, h) = head.d_k;
        block(d_qkv, s, 2, h) = head.d_v;
      }
    }
    return {{"out", TensorOf(out, dtype_, At(inputs, "d_out"))},
            {"d_qkv", TensorOf(d_qkv, dtype_, At(inputs, "qkv"))}};
  }

  // The number of keys that query `t` sees.
  int64_t Seen(int64_t t, int64_t length) const {
    if (slip_ == Slip::kSeesTooFar) return std::min(t + 2, length);
    return slip_ == Slip::kMissesItself ? std::max<int64_t>(t, 1) : t + 1;
  }

  // weights * (d_weights - delta)
  Floats ScoresGradient(const Floats& weights, Floats d_weights,
                        const Eigen::VectorXf& delta) const {
    if (slip_ != Slip::kNoDelta) d_weights.colwise() -= delta;
    return Stored(weights.cwiseProduct(d_weights));
  }

  OneHead Products(const Floats& q, const Floats& k, const Floats& v,
                   const Floats& d_out, float scale) const {
    const bool scales_queries = form_ == Form::kScalesQueries;
    const Floats queries = scales_queries ? Stored(q * scale) : q;
    Floats scores = Stored(queries * k.transpose());
    if (!scales_queries) scores = Stored(scores * scale);
    Floats weights = Floats::Zero(q.rows(), q.rows());
    for (int64_t t = 0; t < q.rows(); ++t) {
      const auto seen = scores.row(t).head(Seen(t, q.rows())).array();
      const Eigen::ArrayXf terms = (seen - seen.maxCoeff()).exp();
      weights.row(t).head(terms.size()) = terms / terms.sum();
    }
    weights = Stored(weights);
    const Floats d_weights = Stored(d_out * v.transpose());
    Floats d_scores = ScoresGradient(
        weights, d_weights, weights.cwiseProduct(d_weights).rowwise().sum());
    if (!scales_queries) d_scores = Stored(d_scores * scale);
    Floats d_q = Stored(d_scores * k);
    if (scales_queries) d_q = Stored(d_q * scale);
    return {Stored(weights * v), d_q, Stored(d_scores.transpose() * queries),
            Stored(weights.transpose() * d_out)};
  }

  OneHead Fused(const Floats& q, const Floats& k, const Floats& v,
                const Floats& d_out, float scale) const {
    const float to_base_two = scale * std::numbers::log2e_v<float>;
    const Floats scores = q * k.transpose();
    // Two expressions: in a single one, Eigen would scale the products.
    const Floats queries = q * scale;
    const Floats scaled = queries * k.transpose();
    Floats weights = Floats::Zero(q.rows(), q.rows()), again = weights;
    for (int64_t t = 0; t < q.rows(); ++t) {
      const int64_t seen = Seen(t, q.rows());
      const auto power = [&](int64_t s, float shift) {
        return std::exp2(std::fma(scores(t, s), to_base_two, -shift));
      };
      const auto power_again = [&](int64_t s, float shift) {
        if (form_ == Form::kToBaseTwo) return power(s, shift);
        return std::exp2(
            std::fma(scaled(t, s), std::numbers::log2e_v<float>, -shift));
      };
      const float largest = scores.row(t).head(seen).maxCoeff() * to_base_two;
      for (int64_t s = 0; s < seen; ++s) weights(t, s) = power(s, largest);
      const float sum = weights.row(t).sum();
      weights.row(t) /= sum;
      for (int64_t s = 0; s < seen; ++s) {
        again(t, s) = power_again(s, largest + std::log2(sum));
      }
    }
    const Floats out = Stored(Stored(weights) * v);
    const Floats d_scores = ScoresGradient(
        again, d_out * v.transpose(), out.cwiseProduct(d_out).rowwise().sum());
    return {out, Stored(d_scores * k * scale),
            Stored(d_scores.transpose() * q * scale),
            Stored(Stored(again).transpose() * d_out)};
  }

  TensorMap Head(const TensorMap& inputs) const {
    const Floats hidden = FloatsOf(At(inputs, "hidden"));
    const Floats weight = FloatsOf(At(inputs, "head_weight"));
    const std::vector<int32_t> targets = ToInts(At(inputs, "targets"));
    const float grad_scale =
        slip_ == Slip::kNoGradScale
            ? 1
            : static_cast<float>(ScalarOf(inputs, "grad_scale"));
    const int64_t width =
        slip_ == Slip::kSkipsColumns ? hidden.cols() / 8 * 8 : hidden.cols();
    const Floats logits =
        Stored(hidden.leftCols(width) * weight.leftCols(width).transpose());
    const int64_t vocab = logits.cols();
    const int64_t seen = slip_ == Slip::kSkipsTheTail   ? vocab / 8 * 8
                         : slip_ == Slip::kSkipsTheLast ? vocab - 1
                                                        : vocab;
    Floats d_logits = Floats::Zero(logits.rows(), vocab);
    Floats losses(logits.rows(), 1);
    for (int64_t t = 0; t < logits.rows(); ++t) {
      const float largest = logits.row(t).maxCoeff();
      float sum = 0;
      for (int64_t w = 0; w < seen; ++w)
        sum += std::exp(logits(t, w) - largest);
      const float log_sum = largest + std::log(sum);
      losses(t, 0) = log_sum - logits(t, targets[t]);
      for (int64_t w = 0; w < seen; ++w) {
        const bool target = slip_ != Slip::kNoOneHot && w == targets[t];
        d_logits(t, w) =
            (std::exp(logits(t, w) - log_sum) - target) * grad_scale;
      }
    }
    d_logits = Stored(d_logits);
    return {
        {"loss", TensorOf(losses, Dtype::kF32, At(inputs, "targets"))},
        {"d_hidden",
         TensorOf(Stored(d_logits * weight), dtype_, At(inputs, "hidden"))},
        {"d_head_weight", TensorOf(Stored(d_logits.transpose() * hidden),
                                   Dtype::kF32, At(inputs, "head_weight"))}};
  }

  Form form_;
  Slip slip_;
  Dtype dtype_ = Dtype::kF32;
};

CaseResult CheckPlain(Form form, Slip slip, const std::string& words) {
  PlainProgram program(form, slip);
  return CheckCase(ParseCase(words + " impl=plain"), program);
}

void ExpectPlain(Form form, Slip slip, const std::string& words) {
  const CaseResult result = CheckPlain(form, slip, words);
  EXPECT_EQ(result.status, slip == Slip::kNone ? Status::kPass : Status::kFail)
      << static_cast<int>(slip) << " " << ReproLine(result);
}

TEST(PlainPrograms, MayStoreLogits) {
  const std::string generic =
      "op=lm_head dtype=bf16 fill=generic rows=20 d_model=32 vocab_size=70 "
      "grad_scale=0.3 seed=1 case=0 scale=";
  for (const char* const scale : {"0.1", "1", "3"}) {
    ExpectPlain(Form::kScalesScores, Slip::kNone, generic + scale);
  }
  for (const Slip slip : {Slip::kSkipsTheTail, Slip::kSkipsTheLast,
                          Slip::kNoOneHot, Slip::kNoGradScale}) {
    ExpectPlain(Form::kScalesScores, slip, generic + "1");
  }
}

// Drawn cases in which the roundings of the naive program nearly cancel. Their
// scores are so large that the bounds are wide, so other cases look for faults.
TEST(PlainPrograms, MayStoreScoresAndScaledQueries) {
  for (const Form form : {Form::kScalesScores, Form::kScalesQueries,
                          Form::kToBaseTwo, Form::kScalesQueriesAgain}) {
    for (const std::string drawn :
         {"head_dim=6 heads=3 length=2 sequences=2 scale=4 seed=0x5eed "
          "case=287",
          "head_dim=40 heads=2 length=8 sequences=3 scale=4 seed=0x5eed "
          "case=110"}) {
      const CaseResult result = CheckPlain(
          form, Slip::kNone, "op=attention dtype=bf16 fill=generic " + drawn);
      EXPECT_FALSE(result.failed()) << ReproLine(result);
    }
    for (const Slip slip : {Slip::kNone, Slip::kSeesTooFar, Slip::kMissesItself,
                            Slip::kNoScale, Slip::kNoDelta}) {
      ExpectPlain(form, slip,
                  "op=attention dtype=bf16 fill=generic head_dim=16 heads=2 "
                  "length=30 sequences=1 scale=1 seed=1 case=0");
    }
  }
}

// In float, too, the bounds admit a program that scales scores in one pass and
// queries in the other.
TEST(PlainPrograms, MayScaleQueriesInOnePass) {
  for (const std::string size :
       {"head_dim=2 length=80 scale=4", "head_dim=6 length=60 scale=4",
        "head_dim=40 length=30 scale=1"}) {
    for (const std::string number : {"0", "2", "4"}) {
      ExpectPlain(Form::kScalesQueriesAgain, Slip::kNone,
                  "op=attention dtype=f32 fill=generic heads=2 sequences=1 "
                  "seed=1 case=" +
                      number + " " + size);
    }
  }
}

// The largest score is 0, which no factor rounds: neither 1/sqrt(40) nor one
// that changes base e to 2. If queries are rounded with their factor, it is
// still so far above the others that their weights are 0. (Weights recomputed
// from such queries are only nearly 1 at the key; the bounds cover them.)
TEST(PlainPrograms, AreExactOnExactData) {
  for (const std::string dtype : {"f32", "bf16"}) {
    for (const std::string size :
         {"head_dim=16 length=80", "head_dim=40 length=120",
          "head_dim=8 length=33", "head_dim=12 length=150",
          "head_dim=4 length=200"}) {
      const std::string words =
          "op=attention fill=exact heads=1 sequences=1 "
          "scale=1 seed=1 case=1 dtype=" +
          dtype + " " + size;
      ExpectPlain(Form::kScalesScores, Slip::kNone, words);
      ExpectPlain(Form::kToBaseTwo, Slip::kNone, words);
      ExpectPlain(Form::kToBaseTwo, Slip::kSeesTooFar, words);
      ExpectPlain(Form::kToBaseTwo, Slip::kMissesItself, words);
      ExpectPlain(Form::kScalesQueries, Slip::kNone, words);
      for (const Slip slip :
           {Slip::kNone, Slip::kSeesTooFar, Slip::kMissesItself}) {
        ExpectPlain(Form::kScalesQueriesAgain, slip, words);
      }
    }
    const std::string head =
        "op=lm_head fill=exact seed=1 case=1 dtype=" + dtype;
    ExpectPlain(Form::kScalesScores, Slip::kNone,
                head + " rows=40 d_model=70 vocab_size=140");
    for (const Slip slip : {Slip::kSkipsTheTail, Slip::kSkipsColumns}) {
      ExpectPlain(Form::kScalesScores, slip,
                  head + " rows=40 d_model=70 vocab_size=140");
    }
    // The gradient of the weight is stored as bf16, which rounds it.
    ExpectPlain(Form::kScalesScores, Slip::kNone,
                head + " rows=1000 d_model=4 vocab_size=3");
  }
}

// Other programs scale where they like. If 1/sqrt(head_dim) is no power of 2,
// scaled queries are rounded: this leaves the `out` of others exact, and every
// output of our own kernels.
TEST(PlainPrograms, LeaveOurKernelsExact) {
  const auto exact_outputs = [](const std::string& impl,
                                const std::string& words) {
    const std::unique_ptr<Implementation> program =
        impl == "plain"
            ? std::make_unique<PlainProgram>(Form::kToBaseTwo, Slip::kNone)
            : MakeImplementation(impl);
    const CaseResult result = CheckCase(
        ParseCase("op=attention fill=exact heads=2 length=33 sequences=1 "
                  "scale=1 seed=1 case=0 impl=" +
                  impl + " " + words),
        *program);
    EXPECT_EQ(result.status, Status::kPass) << ReproLine(result);
    std::string outputs;
    for (const OutputResult& output : result.outputs) {
      if (output.derivation.starts_with("exact/")) {
        outputs += output.output + " ";
      }
    }
    return outputs;
  };
  const std::string all = "out d_qkv ";
  for (const std::string size : {"head_dim=8", "head_dim=12", "head_dim=40"}) {
    for (const auto& [impl, dtype] :
         {std::pair("cpu:v3", "f32"), std::pair("cpu:double", "f64"),
          std::pair("shim", "f32"), std::pair("shim:bf16", "bf16")}) {
      EXPECT_EQ(exact_outputs(impl, std::string("dtype=") + dtype + " " + size),
                all);
    }
    for (const std::string dtype : {"f32", "f64", "bf16"}) {
      EXPECT_EQ(exact_outputs("plain", "dtype=" + dtype + " " + size), "out ");
    }
  }
  for (const std::string size : {"head_dim=4", "head_dim=16", "head_dim=64"}) {
    EXPECT_EQ(exact_outputs("plain", "dtype=f32 " + size), all);
  }
}

// If an element has no other bound, a naive program that happens to be right
// does not bound it either.
TEST(PlainPrograms, AreNotHeldToALuckyOne) {
  const Tensor values = FromVector(Dtype::kF64, {2}, std::vector{1.0, -2.0});
  const ExpectedOutput unbounded = {values, {HUGE_VAL, HUGE_VAL}, "", {}, {}};
  for (const double error : {0.0, 0.25}) {
    ExpectedOutput ours = unbounded;
    const ExpectedOutput others =
        FromNaive({"out"}, {Naive(1 + error), Naive(-2.0)}, unbounded, ours);
    for (size_t i = 0; i < 2; ++i) {
      const double bound =
          2 * error + 0x1p-8 * std::abs(values.values[i]) + 0x1p-133;
      EXPECT_EQ(ours.bounds[i], bound);
      EXPECT_EQ(others.bounds[i], error == 0 ? HUGE_VAL : bound);
    }
  }
}

}  // namespace
}  // namespace softmoe::verify

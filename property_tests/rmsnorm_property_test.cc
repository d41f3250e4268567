// SPDX-License-Identifier: Apache-2.0
//
// RMSNorm, embedding: kernels against the reference.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "kernels/cuda/row_kernels.h"
#include "kernels/embedding.h"
#include "kernels/rmsnorm.h"
#include "property_tests/error_bounds.h"
#include "property_tests/kernel_case.h"
#include "property_tests/simulated_case.h"
#include "reference/embedding.h"
#include "reference/rmsnorm.h"

namespace softmoe::property_tests {
namespace {

struct NormCase {
  int64_t num_tokens = *rc::gen::inRange<int64_t>(1, 70);
  int64_t d_model = *rc::gen::inRange<int64_t>(1, 100);
  uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  double size = *rc::gen::element(1e-6, 1e-2, 1.0, 1e4);  // of x
  float epsilon = 1e-5f;
  Floats x = NormalFloats(num_tokens * d_model, seed, 1, size);
  Floats weight = NormalFloats(d_model, seed, 2);
  Floats d_y = NormalFloats(num_tokens * d_model, seed, 3);
  Floats d_x = NormalFloats(num_tokens * d_model, seed, 4);  // added to

  Bounded X(int64_t t, int64_t j) const { return x[t * d_model + j]; }
};

Bounded ReciprocalRmsOf(const NormCase& c, int64_t t) {
  BoundedSum squares;
  for (int64_t j = 0; j < c.d_model; ++j) squares.Add(c.X(t, j) * c.X(t, j));
  const Bounded mean = squares.Get() / Bounded(static_cast<double>(c.d_model));
  return Bounded(1) / Sqrt(mean + Bounded(c.epsilon));
}

RC_GTEST_PROP(RmsNormDifference, ForwardAndBackwardAreWithinTheirBounds, ()) {
  const NormCase c;
  const int64_t n = c.num_tokens, d = c.d_model;
  const auto run = [&](const auto& forward, const auto& backward) {
    Floats y(n * d), rstd(n), d_x = c.d_x, d_weight(d);
    Floats scratch(kernels::RmsNormScratch(n, d));
    forward(kernels::RmsNormForwardArgs{
        n, d, c.epsilon, c.x.data(), c.weight.data(), y.data(), rstd.data()});
    backward(kernels::RmsNormBackwardArgs{n, d, c.x.data(), c.weight.data(),
                                          rstd.data(), c.d_y.data(), d_x.data(),
                                          d_weight.data(), scratch.data()});
    return std::vector<Floats>{y, rstd, d_x, d_weight};
  };
  auto levels = RunAtEveryLevel([&](ThreadPool& pool) {
    return run([&](const auto& args) { kernels::RmsNormForward(args, pool); },
               [&](const auto& args) { kernels::RmsNormBackward(args, pool); });
  });
  levels.push_back(RunInTheSimulator([&] {
    return run(
        [](const auto& args) {
          kernels::isa_shim::RmsNormForward(args, nullptr);
        },
        [](const auto& args) {
          kernels::isa_shim::RmsNormBackward(args, nullptr);
        });
  }));

  std::vector<Bounded> y, rstd, d_x;
  std::vector<BoundedSum> d_weight(d);
  for (int64_t t = 0; t < n; ++t) {
    const Bounded scale = ReciprocalRmsOf(c, t);
    rstd.push_back(scale);
    BoundedSum dot;
    for (int64_t j = 0; j < d; ++j) {
      const Bounded d_y = c.d_y[t * d + j], weight = c.weight[j];
      y.push_back(c.X(t, j) * scale * weight);
      dot.Add(d_y * weight * c.X(t, j));
      d_weight[j].Add(d_y * c.X(t, j) * scale);
    }
    const Bounded projection =
        dot.Get() * scale * scale / Bounded(static_cast<double>(d));
    for (int64_t j = 0; j < d; ++j) {
      const Bounded g = Bounded(c.d_y[t * d + j]) * Bounded(c.weight[j]);
      d_x.push_back(Bounded(c.d_x[t * d + j]) +
                    scale * (g - c.X(t, j) * projection));
    }
  }
  std::vector<Bounded> d_weights;
  for (const BoundedSum& sum : d_weight) d_weights.push_back(sum.Get());

  const reference::Matrix hidden = AsMatrix(c.x, n, d);
  const reference::Vector weight = AsVector(c.weight);
  const reference::RmsNormGradients gradients = reference::RmsNormBackward(
      hidden, weight, c.epsilon, AsMatrix(c.d_y, n, d));
  const reference::Matrix expected_d_x =
      AsMatrix(c.d_x, n, d) + gradients.d_hidden;
  for (const std::vector<Floats>& got : levels) {
    RC_ASSERT(Mismatch("y", got[0],
                       reference::RmsNormForward(hidden, weight, c.epsilon),
                       y) == "");
    RC_ASSERT(Mismatch("rstd", got[1],
                       reference::ReciprocalRms(hidden, c.epsilon),
                       rstd) == "");
    RC_ASSERT(Mismatch("d_x", got[2], expected_d_x, d_x) == "");
    RC_ASSERT(Mismatch("d_weight", got[3], gradients.d_weight, d_weights) ==
              "");
  }
}

RC_GTEST_PROP(EmbeddingDifference, RowsAreExactAndGradientsWithinBounds, ()) {
  const int64_t n = *rc::gen::inRange<int64_t>(1, 200);
  const int64_t d = *rc::gen::inRange<int64_t>(1, 70);
  const int64_t vocab = *rc::gen::inRange<int64_t>(1, 60);
  const uint64_t seed = *rc::gen::inRange<uint64_t>(0, 1000);
  const std::vector<int32_t> ids = RandomIds(n, vocab, seed, 1);
  const Floats table = NormalFloats(vocab * d, seed, 2);
  const Floats d_out = NormalFloats(n * d, seed, 3);
  const auto levels = RunAtEveryLevel([&](ThreadPool& pool) {
    Floats out(n * d), d_table(vocab * d, 7.0f);
    std::vector<int32_t> scratch(n + vocab + 1);
    kernels::EmbeddingForward({n, d, ids.data(), table.data(), out.data()},
                              pool);
    kernels::EmbeddingBackward(
        {n, d, vocab, ids.data(), d_out.data(), d_table.data(), scratch.data()},
        pool);
    return std::vector<Floats>{out, d_table};
  });
  const std::vector<Bounded> exact = [&] {
    std::vector<Bounded> rows;
    for (const int32_t id : ids) {
      for (int64_t j = 0; j < d; ++j) rows.emplace_back(table[id * d + j]);
    }
    return rows;
  }();
  std::vector<BoundedSum> sums(vocab * d);
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t j = 0; j < d; ++j) sums[ids[t] * d + j].Add(d_out[t * d + j]);
  }
  std::vector<Bounded> d_table;
  for (const BoundedSum& sum : sums) d_table.push_back(sum.Get());
  for (const std::vector<Floats>& got : levels) {
    const reference::Matrix rows =
        reference::EmbeddingForward(ids, AsMatrix(table, vocab, d));
    for (int64_t i = 0; i < n * d; ++i) RC_ASSERT(got[0][i] == rows.data()[i]);
    RC_ASSERT(Mismatch("d_table", got[1],
                       reference::EmbeddingBackward(ids, AsMatrix(d_out, n, d),
                                                    vocab),
                       d_table) == "");
  }
}

}  // namespace
}  // namespace softmoe::property_tests

// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/operations/row_bounds.h"

#include <algorithm>
#include <cmath>

#include "property_tests/error_bounds.h"
#include "property_tests/verify/engine/operation.h"
#include "reference/lapsum.h"
#include "reference/softmax.h"

namespace softmoe::verify {

namespace formula = reference::formula;
namespace {

using Bounds = reference::VectorOf<Bounded>;

Bounds ToBounds(std::span<const Bounded> numbers) {
  return Eigen::Map<const Bounds>(numbers.data(),
                                  static_cast<Eigen::Index>(numbers.size()));
}

// The shares divided by their sum.
Bounds Normalized(std::span<const Bounded> shares) {
  FloatSum total;
  for (const Bounded& share : shares) total.Add(share);
  Bounds normalized = ToBounds(shares);
  for (Bounded& share : normalized) share = share / total.Get();
  return normalized;
}

}  // namespace

LapSumRow BoundLapSumRow(const reference::Vector& scores, double mean_active,
                         double temperature) {
  LapSumRow row;
  row.solution = reference::SolveLapSum(scores, mean_active, temperature);
  row.arguments = property_tests::LapSumArguments(row.solution);
  double nearest_error = 0;  // of the smallest |u|
  for (const Bounded& u : row.arguments) {
    row.weights.push_back(reference::LaplaceCdfOf(u));
    row.densities.push_back(reference::LaplacePdfOf(u));
    if (std::abs(u.value) - u.error <= row.solution.min_distance) {
      nearest_error = std::max(nearest_error, u.error);
    }
  }
  for (size_t i = 0; i < row.arguments.size(); ++i) {
    const double q = row.solution.shares[static_cast<Eigen::Index>(i)];
    row.shares.emplace_back(
        q, q * std::expm1(row.arguments[i].error + nearest_error) +
               3 * kFloatUnit * q);
  }
  return row;
}

double LapSumAtScore(const reference::Vector& scores, int64_t j,
                     double temperature) {
  double sum = 0;
  for (const double score : scores) {
    sum += reference::LaplaceCdf((score - scores[j]) / temperature);
  }
  return sum;
}

Tensor AboveRoot(const reference::Matrix& weights, double mean_active) {
  Tensor above(Dtype::kI32, {weights.rows(), weights.cols()});
  for (int64_t i = 0; i < above.size(); ++i) {
    above.values[i] = mean_active <= 0 ? -1
                      : mean_active >= static_cast<double>(weights.cols())
                          ? 2
                          : weights.data()[i] > 0.5;
  }
  return above;
}

SoftmaxRow BoundSoftmaxRow(const reference::Vector& scores) {
  const Bounds exact = scores.unaryExpr([](double x) { return Bounded(x); });
  const formula::Exponentials<Bounded, reference::CompensatedSum<Bounded>>
      exponentials(exact);
  const Bounded log_sum = log(exponentials.total);
  const Bounds weights = formula::Softmax<Bounded>(exact);
  SoftmaxRow row;
  row.log_sum_exp = exponentials.largest + log_sum;
  for (Eigen::Index i = 0; i < weights.size(); ++i) {
    // Times 1/sum, or e^(z - ln sum).
    row.weights.push_back(property_tests::Recomputed(
        weights[i].Rounded(), exact[i] - exponentials.largest, log_sum));
  }
  return row;
}

WeightedGradient BoundLapSumGradient(const LapSumRow& row,
                                     std::span<const Bounded> v,
                                     double temperature) {
  reference::LapSumOf<Bounded> solution;
  solution.temperature = temperature;
  solution.arguments = ToBounds(row.arguments);
  solution.densities = ToBounds(row.densities);
  solution.shares = Normalized(row.shares);
  const reference::LapSumGradientOf<Bounded> gradient =
      formula::LapSumVjp<Bounded>(solution, ToBounds(v));
  WeightedGradient result;
  result.mean = gradient.d_mean_active;
  for (const Bounded& d : gradient.d_scores) {
    // e^-|u| may be a product of two exponentials; 1/T is rounded.
    result.gradient.push_back(d.Rounded(3));
  }
  result.d_temperature = gradient.d_temperature.Rounded();
  return result;
}

WeightedGradient BoundSoftmaxGradient(std::span<const Bounded> weights,
                                      std::span<const Bounded> v) {
  WeightedGradient result;
  const Bounds gradient =
      formula::SoftmaxVjp<Bounded>(Normalized(weights), ToBounds(v));
  result.gradient = {gradient.begin(), gradient.end()};
  return result;
}

void AddFlushed(const LapSumRow& row, std::span<const Bounded> v,
                double temperature, WeightedGradient* gradient) {
  std::vector<double> lost(v.size());  // of v
  double of_mean = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    const Bounded& p = row.weights[i];
    if (p.value - p.error > property_tests::kUnderflow) continue;
    lost[i] = std::abs(v[i].value);
    of_mean += (row.shares[i].value + row.shares[i].error) * lost[i];
  }
  gradient->mean.error += of_mean;
  for (size_t i = 0; i < v.size(); ++i) {
    const Bounded& f = row.densities[i];
    gradient->gradient[i].error +=
        (f.value + f.error) * (lost[i] + of_mean) / temperature;
  }
}

const Derivation& LapSumWeightsDerivation() {
  static const Derivation derivation = {"lapsum-weights-f32/4", RawLines(R"(
u = 2^-24, z_i = (r_i - anchor)/T, root = anchor + T t, u_i = z_i - t.
A relative error of score j's exponential moves t by at most its share
q_j = f_j / sum f of it. It goes through at most n additions, in any order,
and, where sums are extended score by score, s_j products with an
exponential, 3 u, one for each score from j to the root. 32 u for the
arguments of the exponentials (where sum |z| e^z / (1 + sum e^z) <= 3.4)
and the closing root and logarithm; 8 u ln n for an anchor that may be
the neighbour, and for a gap:
  |du_i| <= u (n + 3 sum_j q_j s_j + 32 + 8 ln n + 4 |z_i| + 6 |t|)
  |dp_i| <= f_i (e^|du_i| - 1) + 3 u p_i + underflow
Outside are, in float, r_i/T - root/T and (r_i - root)/T of a root that
is kept, which round at the size of the scores, and a gap to an anchor far
from the root, such as the largest score, which rounds at its own size.)")};
  return derivation;
}

const Derivation& LapSumGradientDerivation() {
  static const Derivation derivation = {"lapsum-gradient-f32/4", RawLines(R"(
d_r_i = f_i/T (v_i - m), m = sum q v / sum q, d_k = sum over rows of m,
|df_i| <= f_i (e^|du_i| - 1) + 3 u f_i from the weights' analysis; the
shares q = f / sum f take the error of the nearest score's u besides;
e^-|u| may be a product of two exponentials, and 1/T is rounded;
carried through the formula operation by operation: every rounding adds
u |x|, a sum of n terms in any order at most n u sum |x|. A weight that
float flushes to 0 may count as inactive: v may be 0 wherever the weight
is, in m and beside it.)")};
  return derivation;
}

const Derivation& SoftmaxDerivation() {
  static const Derivation derivation = {"softmax-f32/4", RawLines(R"(
s_i = e^z_i / sum, z_i = r_i - max, or e^(z_i - ln sum), whichever errs
more: exp and log within 2 u, every rounding u |x|, the sum of n terms in
any order n u sum |x|; carried through the formula operation by operation;
64 * 2^-125 for what exp flushes to 0. Outside are 2^x of a rounded
x = z log2(e), which errs by |z| u more, and e^(r_i - logsumexp), which
rounds at the size of the scores. On exact data the sums are 1, 2, 4, ...:
e^(-ln sum) must round to 1/sum there, as it does if exp and log round to
the nearest. There is no k_l in it: d_k is 0, exactly.)")};
  return derivation;
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/expected.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/errors.h"

namespace softmoe::verify {

const Tensor& At(const TensorMap& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  SOFTMOE_CHECK(found != tensors.end()) << "no tensor " << name;
  return found->second;
}

double ScalarOf(const TensorMap& tensors, const std::string& name) {
  return At(tensors, name).values.at(0);
}

Tensor ScalarTensor(double value) {
  return FromVector(Dtype::kF64, {}, std::vector<double>{value});
}

std::string WhyNoIds(const TensorMap& inputs, const std::string& name,
                     int64_t limit) {
  const Tensor& ids = At(inputs, name);
  for (int64_t i = 0; i < ids.size(); ++i) {
    const double id = ids.values[i];
    if (id >= 0 && id < static_cast<double>(limit)) continue;
    return fmt::format("{}{} is {}; it must be between 0 and {}", name,
                       IndexText(ids.shape, i), id, limit - 1);
  }
  return "";
}

std::string WhyNotSoft(const TensorMap& inputs, int64_t num_experts) {
  const double k = ScalarOf(inputs, "mean_active");
  if (!(k > 0 && k < static_cast<double>(num_experts))) {
    return "mean_active must stay between 0 and num_experts";
  }
  return ScalarOf(inputs, "temperature") > 0 ? ""
                                             : "temperature must stay above 0";
}

reference::Matrix ToMatrix(const Tensor& tensor) {
  const bool is_row = tensor.shape.size() < 2;
  const int64_t rows = is_row ? 1 : tensor.shape[0];
  const int64_t columns =
      is_row ? tensor.size()
             : NumElements({tensor.shape.begin() + 1, tensor.shape.end()});
  reference::Matrix matrix(rows, columns);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    matrix.data()[i] = tensor.values[i];
  }
  return matrix;
}

reference::Vector ToVector(const Tensor& tensor) {
  reference::Vector vector(tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) vector[i] = tensor.values[i];
  return vector;
}

Tensor ToTensor(const reference::Matrix& matrix, std::vector<int64_t> shape) {
  Tensor tensor(Dtype::kF64, std::move(shape));
  SOFTMOE_CHECK(tensor.size() == matrix.size()) << ShapeText(tensor.shape);
  tensor.values.assign(matrix.data(), matrix.data() + matrix.size());
  return tensor;
}

Tensor ToTensor(const reference::Vector& vector) {
  Tensor tensor(Dtype::kF64, {vector.size()});
  tensor.values.assign(vector.data(), vector.data() + vector.size());
  return tensor;
}

Roundings RoundingsOf(const Case& c) {
  return c.fill.name == "generic" && c.simplify.empty() ? Roundings::kRandom
                                                        : Roundings::kWorstCase;
}

const char kRandomRoundingsText[] =
    R"(Generic data is random, so are the roundings of its sums: for those, n
becomes min(n, lambda sqrt n), lambda = sqrt(2 ln(2m/delta)) = 9.2, which
fails with probability delta = 1e-9 for m = 1e9 sums.)";

namespace {

// Throws unless `same`: element `i` of `values` and the value for which its
// bound was derived may differ by rounding only. `limit` is the bound.
void RequireSameFormula(bool same, const std::string& output,
                        const Tensor& values, size_t i, double bounded,
                        double limit) {
  SOFTMOE_CHECK(same)
      << output << IndexText(values.shape, static_cast<int64_t>(i))
      << fmt::format(
             ": the bound is for another formula: {:.17g} instead of {:.17g}"
             " +- {:.3g}",
             bounded, values.values[i], limit);
}

}  // namespace

ExpectedOutput FromBounds(const std::string& output, const Tensor& values,
                          const std::vector<Bounded>& bounds,
                          const std::string& derivation) {
  SOFTMOE_CHECK(values.values.size() == bounds.size())
      << output << ": " << values.size() << " values, " << bounds.size()
      << " bounds";
  ExpectedOutput expected{values, {}, derivation, {}, {}};
  expected.bounds.reserve(bounds.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    const double limit = bounds[i].error + property_tests::kUnderflow;
    const double value = values.values[i];
    if (!(limit < HUGE_VAL)) {  // or NaN: 0 times an infinite error
      SOFTMOE_CHECK(std::isfinite(value))
          << output << IndexText(values.shape, static_cast<int64_t>(i))
          << ": no reference and no bound";
      expected.bounds.push_back(HUGE_VAL);
      continue;
    }
    // The reference and the bound sum the same n terms in double, in different
    // orders, with an error of 2^-29 of the float bound each. A NaN fails.
    const double drift = std::abs(bounds[i].value - value);
    const bool same = drift <= 0x1p-26 * limit + 0x1p-50 * std::abs(value);
    RequireSameFormula(same, output, values, i, bounds[i].value, limit);
    expected.bounds.push_back(limit);
  }
  return expected;
}

ExpectedOutput FromDoubleBounds(const std::string& output, const Tensor& values,
                                const std::vector<Bounded>& bounds,
                                const std::string& derivation) {
  SOFTMOE_CHECK(values.values.size() == bounds.size()) << output;
  ExpectedOutput expected{values, {}, derivation, {}, {}};
  for (size_t i = 0; i < bounds.size(); ++i) {
    expected.own_errors.push_back(0x1p-29 * bounds[i].error);
    const double limit = 2 * expected.own_errors.back();
    const double drift = std::abs(bounds[i].value - values.values[i]);
    RequireSameFormula(drift <= limit, output, values, i, bounds[i].value,
                       limit);
    expected.bounds.push_back(limit);
  }
  return expected;
}

namespace {

constexpr char kStoredBf16[] = "+bf16/1";  // at the end of an id

// Half of the gap between bf16 numbers at `magnitude`: the most by which
// rounding to nearest moves a number that is no larger.
double HalfBf16Gap(double magnitude) {
  constexpr int kDigits = 8, kSmallestExponent = -126;
  const int exponent = magnitude == 0
                           ? kSmallestExponent
                           : std::max(std::ilogb(magnitude), kSmallestExponent);
  return std::ldexp(1.0, exponent - kDigits);
}

ExpectedOutput StoredAsBf16(ExpectedOutput output) {
  for (int64_t i = 0; i < output.values.size(); ++i) {
    double& value = output.values.values[i];
    double& bound = output.bounds[i];
    if (bound == 0) {
      value = RoundTo(Dtype::kBf16, value);
      continue;
    }
    const double most = std::abs(value) + bound;
    bound = std::isinf(RoundTo(Dtype::kBf16, most)) ? HUGE_VAL
                                                    : bound + HalfBf16Gap(most);
  }
  output.derivation += kStoredBf16;
  return output;
}

}  // namespace

Expected StoredAsBf16(const Operation& op, const Case& c, Expected in_float) {
  if (c.dtype != Dtype::kBf16) return in_float;
  for (const OutputSpec& spec : op.outputs()) {
    if (spec.DtypeAt(c.dtype) != Dtype::kBf16) continue;
    ExpectedOutput& output = in_float.outputs.at(spec.name);
    output = StoredAsBf16(std::move(output));
  }
  return in_float;
}

std::vector<Derivation> WithStoredBf16(std::vector<Derivation> derivations) {
  const std::vector<Derivation> both = {derivations.at(0), ExactDerivation()};
  for (const Derivation& in_float : both) {
    derivations.push_back({in_float.id + kStoredBf16, RawLines(R"(
At dtype bf16. The arithmetic is float's, on inputs that are bf16 numbers,
and the result is rounded once, to the nearest, ties to even: half of the
gap between the bf16 numbers at |x| + b more, where b is float's bound;
equality with the rounded result where b is 0. In float:
)") + in_float.text});
  }
  return derivations;
}

Expected ExactAsBf16(const Operation& op, const Case& c, Expected exact) {
  Expected expected = StoredAsBf16(op, c, std::move(exact));
  expected.of_ours = expected.outputs;
  for (const OutputSpec& spec : op.outputs()) {
    if (!spec.in_float) continue;
    ExpectedOutput& output = expected.outputs.at(spec.name);
    for (int64_t i = 0; i < output.values.size(); ++i) {
      const double value = output.values.values[i];
      output.bounds[i] = std::abs(RoundTo(Dtype::kBf16, value) - value);
    }
  }
  return expected;
}

ExpectedOutput FromNaive(const OutputSpec& spec,
                         const std::vector<Naive>& naive,
                         const ExpectedOutput& plain, ExpectedOutput& ours) {
  const Tensor& values = ours.values;
  SOFTMOE_CHECK(values.values.size() == naive.size())
      << values.values.size() << " values, " << naive.size() << " naive ones";
  const double unit = spec.in_float ? 0 : 0x1p-8;
  const double tiniest = spec.in_float ? 0 : 0x1p-133;
  const auto part = [&](size_t i) {
    const size_t columns = values.shape.back(), parts = spec.parts;
    return i % columns / (columns / parts);
  };
  std::vector<double> largest(spec.parts);
  for (size_t i = 0; i < naive.size(); ++i) {
    double& most = largest[part(i)];
    most = std::fmax(most, std::abs(naive[i].value - values.values[i]));
  }
  ExpectedOutput expected{values, {}, NaiveDerivation().id, {}, {}};
  for (size_t i = 0; i < naive.size(); ++i) {
    const double bound =
        2 * largest[part(i)] + unit * std::abs(values.values[i]) + tiniest;
    // Where the data is ill-conditioned, the naive program's error decides.
    if (ours.bounds[i] == HUGE_VAL) ours.bounds[i] = bound;
    const bool bounded = plain.bounds[i] < HUGE_VAL;
    expected.bounds.push_back(
        bounded || largest[part(i)] > 0
            ? std::fmax(bound, bounded ? plain.bounds[i] : ours.bounds[i])
            : HUGE_VAL);
  }
  return expected;
}

ExpectedOutput ExactRegime(Tensor values) {
  for (int64_t i = 0; i < values.size(); ++i) {
    SOFTMOE_CHECK(RoundTo(Dtype::kF32, values.values[i]) == values.values[i])
        << IndexText(values.shape, i)
        << fmt::format(" is {:.17g}: fill exact is not exact",
                       values.values[i]);
  }
  return Exactly(std::move(values), ExactDerivation().id);
}

const Derivation& ExactDerivation() {
  static const Derivation derivation = {"exact/2", RawLines(R"(
Data of fill `exact`: small whole numbers times powers of 2, such that
every term and every partial sum, in any order, is a whole multiple of
one unit and less than 2^24 of them, and e^x is met only at 0 and where
it is 0 or infinite; in attention and lm_head the largest score of each
softmax is 0 itself, to any base and times any factor. No operation rounds:
equality. At dtype bf16 what a program may store on the way (in experts:
what our kernels store) has 8 bits, or has a weight of 0 all the same; and
others may round to bf16 what is in float.)")};
  return derivation;
}

const Derivation& NaiveDerivation() {
  static const Derivation derivation = {"twice-naive-bf16/5", RawLines(R"(
At dtype bf16, of programs of which nobody knows what they store, the
larger of two. The same formula as a naive program has it: inputs, every
intermediate result and the output stored as bf16, sums accumulated in
float; its largest error over the tensor (over the gradients of q, k and
v each), twice, and, but for outputs in float, one rounding of the output:
2^-8 |x| + 2^-133. And the bound of a plain program, derived as stored-
operands/2 is, with the same exception rounded once: it also stores the
results of products, and in attention q with its scale, the weights, and
the gradient of scores before it is scaled. Where it has no bound, that of
stored-operands/2 takes its place; where moreover the naive program happens
to have no error, there is none.)")};
  return derivation;
}

const Derivation& StoredDerivation() {
  static const Derivation derivation = {"stored-operands/2", RawLines(R"(
At dtype bf16, operation by operation, the bound of a program that
computes in float and stores what it computed and products take (in
experts also their results) as bf16, 2^-8 |x| each. Each operation of
float counts twice, and no sum's roundings are random: tensor cores may
truncate when they add, which is 2 u and always towards zero. How float
may compute it is as at f32. Scores of attention that are one product,
the same for every key of a query, have the errors of float alone: what
is stored moves all of them alike. Where this leaves no bound, that of
the naive program of twice-naive-bf16/5.)")};
  return derivation;
}

std::vector<Derivation> WithStoredOperands(
    std::vector<Derivation> derivations) {
  for (Derivation& at_bf16 : WithStoredBf16({StoredDerivation()})) {
    derivations.push_back(std::move(at_bf16));
  }
  return derivations;
}

ExpectedOutput RoundedToFloat(ExpectedOutput in_double) {
  for (int64_t i = 0; i < in_double.values.size(); ++i) {
    double& bound = in_double.bounds[i];
    bound +=
        0x1p-24 * (std::abs(in_double.values.values[i]) + bound) + 0x1p-149;
  }
  return in_double;
}

ExpectedOutput Exactly(Tensor values, const std::string& derivation) {
  ExpectedOutput expected;
  expected.bounds.assign(values.values.size(), 0.0);
  expected.values = std::move(values);
  expected.derivation = derivation;
  return expected;
}

}  // namespace softmoe::verify

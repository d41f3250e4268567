// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/operation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/errors.h"
#include "core/text/suggestion.h"

namespace softmoe::verify {
namespace {

// `value` rounded to `bits` significant bits.
double KeepBits(double value, int64_t bits) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  const double scale = std::ldexp(1.0, static_cast<int>(bits));
  return std::ldexp(std::nearbyint(fraction * scale) / scale, exponent);
}

void Apply(const Simplification& s, Tensor& tensor) {
  switch (s.how) {
    case Simplification::How::kZero:
    case Simplification::How::kOne: {
      const double value = s.how == Simplification::How::kOne ? 1 : 0;
      for (double& x : tensor.values) x = value;
      break;
    }
    case Simplification::How::kBits:
      for (double& x : tensor.values) x = KeepBits(x, s.argument);
      break;
    case Simplification::How::kOnly:
      for (int64_t i = 0; i < tensor.size(); ++i) {
        if (i != s.argument) tensor.values[i] = 0;
      }
      break;
  }
  RoundValues(tensor);
}

// Programs are given these numbers in this dtype. If one did not fit, it would
// be rounded on the way, and the reference would compute from other data.
void CheckRounded(const Operation& op, const std::string& name,
                  const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double x = tensor.values[i];
    SOFTMOE_CHECK(RoundTo(tensor.dtype, x) == x)
        << "input " << name << IndexText(tensor.shape, i) << " of " << op.name()
        << " is " << x << ", which " << DtypeName(tensor.dtype)
        << " does not have";
  }
}

// `expected`, which has the bounds of float, with those of double at f64.
Expected AtDtype(const Operation& op, const Case& c, Expected expected) {
  if (c.dtype != Dtype::kF64) return expected;
  std::set<std::string> in_double;  // their bounds are those of double
  for (const OutputSpec& spec : op.outputs()) {
    if (spec.in_double) in_double.insert(spec.name);
  }
  for (auto& [name, output] : expected.outputs) {
    if (output.values.dtype == Dtype::kI32) continue;  // whole numbers
    if (in_double.contains(name)) continue;
    // The reference itself does not become more accurate with the dtype.
    std::vector<double> own_errors;
    for (int64_t i = 0; i < output.values.size(); ++i) {
      own_errors.push_back(output.OwnError(i));
      output.bounds[i] *= 0x1p-28;
    }
    output.own_errors = std::move(own_errors);
  }
  return expected;
}

// The last expectation, and what it was derived from.
struct Remembered {
  const Operation* op = nullptr;
  Case c;
  TensorMap inputs;
  Expected expected;
};

bool SameInputs(const TensorMap& a, const TensorMap& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.dtype == y.second.dtype &&
           SameBits(x.second, y.second);
  });
}

}  // namespace

TensorMap Operation::Cotangents(const TensorMap& inputs,
                                const TensorMap& outputs) const {
  TensorMap cotangents;
  for (const auto& [name, tensor] : outputs) {
    if (tensor.dtype == Dtype::kI32) continue;  // a choice
    const auto found = inputs.find("d_" + name);
    SOFTMOE_CHECK(found != inputs.end())
        << this->name() << " has no cotangent d_" << name;
    cotangents[name] = found->second;
  }
  return cotangents;
}

const Parameter* Operation::FindParameter(const std::string& name) const {
  for (const Parameter& parameter : parameters()) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

const Derivation* Operation::FindDerivation(const std::string& id) const {
  for (const Derivation& derivation : derivations()) {
    if (derivation.id == id) return &derivation;
  }
  return nullptr;
}

TensorMap InputsOf(const Operation& op, const Case& c) {
  TensorMap inputs = op.Inputs(c);
  for (const auto& [name, tensor] : inputs) CheckRounded(op, name, tensor);
  if (!c.simplify.empty() && c.fill.name == "exact") {
    throw ConfigError(
        "simplify: cannot be combined with fill=exact, whose data is exact "
        "only unmodified");
  }
  for (const Simplification& s : c.simplify) {
    const auto found = inputs.find(s.tensor);
    if (found == inputs.end()) {
      std::vector<std::string> names;
      for (const auto& [name, tensor] : inputs) names.push_back(name);
      throw ConfigError("simplify: operation '" + c.op + "' has no input '" +
                        s.tensor + "'; " + Suggestion(s.tensor, names));
    }
    if (s.how == Simplification::How::kOnly &&
        s.argument >= found->second.size()) {
      throw ConfigError(fmt::format(
          "simplify: {}:only{} asks for an element beyond the last of {}",
          s.tensor, s.argument, found->second.size()));
    }
    Apply(s, found->second);
  }
  if (!c.simplify.empty()) {
    const std::string defect = op.WhyInvalid(c, inputs);
    if (!defect.empty()) throw ConfigError("simplify: " + defect);
  }
  return inputs;
}

Expected ExpectOf(const Operation& op, const Case& c, const TensorMap& inputs,
                  const TensorMap& got) {
  if (!got.empty()) {
    if (auto chosen = op.ExpectAfter(c, inputs, got)) {
      return AtDtype(op, c, *std::move(chosen));
    }
  }
  // The reference, whoever judges it, and all implementations of one dtype ask
  // for the same case in succession.
  thread_local Remembered last;
  Case asked = c;
  asked.impl.clear();
  if (last.op != &op || last.c != asked || !SameInputs(last.inputs, inputs)) {
    last = {&op, asked, inputs, AtDtype(op, c, op.Expect(c, inputs))};
  }
  return last.expected;
}

const Derivation& AtF64Derivation() {
  static const Derivation derivation = {"at-f64/3", RawLines(R"(
At dtype f64: 2^-28 of the bound for float. That is b(u), u = 2^-24, a
power series in u without a constant and with coefficients of 0 or more
(sums, products, quotients, e^x - 1 and 1 - sqrt(1 - x) of such are
such), so b(u)/u grows with u and b(2^-53) <= 2^-29 b(2^-24). As much
again for the reference, which computes at double too. What underflows is
far less at double; so is a root that may vanish, which errs by sqrt e for
an error e: what is under it are squares no larger than what underflows.
Outputs that are double at every dtype keep their bounds. What float
programs compute in double, such as angles, errs like the rest here, and
is derived with its operation.)")};
  return derivation;
}

}  // namespace softmoe::verify

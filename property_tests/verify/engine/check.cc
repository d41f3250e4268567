// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>
#include <optional>

#include "core/errors.h"
#include "core/failure.h"
#include "property_tests/verify/engine/diagnose.h"

namespace softmoe::verify {
namespace {

// How much nearer to zero `value` is after truncation to `dtype`. Truncation to
// double does not show in doubles, so f64 returns half of a gap, the mean.
double TruncationError(Dtype dtype, double value) {
  if (dtype == Dtype::kF64) {
    return std::abs(StepBy(dtype, value, value > 0 ? -1 : 1) - value) / 2;
  }
  double truncated = RoundTo(dtype, value);
  if (std::abs(truncated) > std::abs(value)) {
    truncated = StepBy(dtype, truncated, value > 0 ? -1 : 1);
  }
  return std::abs(value - truncated);
}

void MeasureBias(const Tensor& got, const ExpectedOutput& expected,
                 OutputResult& result) {
  int64_t count = 0;
  for (int64_t i = 0; i < got.size(); ++i) {
    const double value = expected.values.values[i], bound = expected.bounds[i];
    if (!(bound > 0 && bound < HUGE_VAL) || value == 0) continue;
    const double scaled = (got.values[i] - value) / bound;
    result.mean_scaled += scaled;
    result.towards_zero += value > 0 ? -scaled : scaled;
    result.truncation += TruncationError(got.dtype, value) / bound;
    ++count;
  }
  if (count == 0) return;
  for (double* mean :
       {&result.mean_scaled, &result.towards_zero, &result.truncation}) {
    *mean /= static_cast<double>(count);
  }
}

int DigitsOf(Dtype dtype) {
  return dtype == Dtype::kF32 ? 24 : dtype == Dtype::kBf16 ? 8 : 53;
}

// An element without a bound must still be a number. If the others agree, the
// case is undecided.
Comparison Compare(const Tensor& got, const ExpectedOutput& expected) {
  std::vector<double> bounds = expected.bounds;
  std::ranges::replace(bounds, HUGE_VAL, std::numeric_limits<double>::max());
  Expectations expectations = expected.expectations;
  expectations.digits = DigitsOf(got.dtype);
  Comparison comparison =
      Compare(got.values, expected.values.values, bounds, expectations);
  const auto unbounded = std::ranges::count(expected.bounds, HUGE_VAL);
  if (unbounded > 0 && comparison.status != Status::kFail) {
    comparison.status = Status::kInconclusive;
    comparison.reason = fmt::format(
        "{} of {} elements have no bound: the data is "
        "ill-conditioned",
        unbounded, got.size());
  }
  return comparison;
}

void CompareOutput(const std::string& name, const ExpectedOutput& expected,
                   const TensorMap& got, bool optional, CaseResult& result) {
  const auto found = got.find(name);
  if (found == got.end()) {
    if (optional) {
      result.missing.push_back(name);
    } else {
      result.Fail(name, "output " + name + " is missing");
    }
    return;
  }
  const Tensor& tensor = found->second;
  if (tensor.shape != expected.values.shape) {
    result.Fail(name, fmt::format("{} has shape {}, expected {}", name,
                                  ShapeText(tensor.shape),
                                  ShapeText(expected.values.shape)));
    return;
  }
  if (tensor.size() == 0) return;  // nothing to compare
  OutputResult output{name, Compare(tensor, expected), expected.derivation};
  if (output.comparison.status == Status::kFail) {
    result.Fail(name, name + ": " + output.comparison.reason);
  } else if (tensor.dtype != Dtype::kI32) {  // choices are not rounded
    MeasureBias(tensor, expected, output);
  }
  result.outputs.push_back(std::move(output));
}

// Every other schedule must give the same bits as the first.
void CompareSchedules(const Operation& op, const TensorMap& inputs,
                      const TensorMap& first, Implementation& implementation,
                      CaseResult& result) {
  for (int schedule = 1; schedule < implementation.schedules(); ++schedule) {
    const TensorMap again = implementation.Run(op, result.c, inputs, schedule);
    for (const auto& [name, tensor] : first) {
      const auto found = again.find(name);
      if (found != again.end() && SameBits(found->second, tensor)) continue;
      result.Fail(name,
                  fmt::format("{} under schedule {} has other bits than under "
                              "schedule 0",
                              name, schedule));
      result.hints.push_back("not deterministic: threads, or their order");
      return;
    }
  }
}

void Judge(const Operation& op, Evidence& seen, Implementation& implementation,
           CaseResult& result) {
  seen.expected = ExpectOf(op, result.c, seen.inputs, seen.got);
  TakeBoundsFor(implementation, &seen.expected);
  result.decisions = seen.expected.decisions;
  result.ambiguous = seen.expected.ambiguous;
  for (const auto& [output, defect] : seen.expected.defects) {
    result.Fail(output, output + ": " + defect);
  }
  for (const OutputSpec& spec : op.outputs()) {
    const auto expected = seen.expected.outputs.find(spec.name);
    SOFTMOE_CHECK(expected != seen.expected.outputs.end())
        << op.name() << " expects nothing of " << spec.name;
    CompareOutput(spec.name, expected->second, seen.got, spec.optional, result);
  }
  try {
    CompareSchedules(op, seen.inputs, seen.got, implementation, result);
    if (result.failed()) {
      for (const std::string& hint :
           Diagnose(op, result.c, seen, result.output, implementation)) {
        result.hints.push_back(hint);
      }
    }
  } catch (const EnvironmentError&) {
    throw;
  } catch (const StoppedError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw CurrentFailure();  // this machine's, not the implementation's
  } catch (const std::exception& error) {
    result.Fail("", std::string("run again, it threw: ") + error.what());
  }
  result.JudgeTrust();
}

}  // namespace

void TakeBoundsFor(const Implementation& implementation, Expected* expected) {
  if (!implementation.stores_as_ours()) return;
  for (const auto& [name, output] : expected->of_ours) {
    expected->outputs.at(name) = output;
  }
}

void Convergence::Add(const Convergence& other) {
  smooth += other.smooth;
  kinks += other.kinks;
  undecided += other.undecided;
  lowest_order = std::fmin(lowest_order, other.lowest_order);
  highest_order = std::fmax(highest_order, other.highest_order);
}

void CaseResult::Fail(const std::string& failing, const std::string& why) {
  if (failed()) return;
  status = Status::kFail;
  output = failing;
  reason = why;
}

void CaseResult::JudgeTrust() {
  if (failed() || outputs.empty()) return;
  const OutputResult* blamed = &outputs.front();
  for (const OutputResult& each : outputs) {
    if (each.comparison.status == Status::kPass) return;
    if (each.comparison.status == Status::kInconclusive) blamed = &each;
  }
  status = blamed->comparison.status;
  output = blamed->output;
  reason = output + ": " + blamed->comparison.reason;
}

double CaseResult::utilisation() const {
  double largest = 0;
  for (const OutputResult& each : outputs) {
    largest = std::max(largest, each.comparison.utilisation);
  }
  return largest;
}

std::string CaseResult::Place() const {
  for (const OutputResult& each : outputs) {
    if (each.output != output || each.comparison.failures == 0) continue;
    return fmt::format("{}[{}]", output, each.comparison.worst);
  }
  return output;
}

CaseResult CheckInputs(const Case& c, const TensorMap& inputs,
                       Implementation& implementation, Evidence* evidence) {
  const Operation& op = FindOperation(c.op);
  std::optional<TensorMap> before;
  if (IsCheckedAfterAnother(c) && implementation.remembers()) {
    before = InputsOf(op, OtherData(c));
  }
  const auto start = std::chrono::steady_clock::now();
  CaseResult result;
  result.c = c;
  const std::string unsupported = implementation.WhyUnsupported(op, c.dtype);
  if (!unsupported.empty()) {
    result.status = Status::kUnsupported;
    result.reason = unsupported;
    return result;
  }
  Evidence own;
  Evidence& seen = evidence == nullptr ? own : *evidence;
  seen.inputs = inputs;
  bool ran = false;
  try {
    if (before) {
      implementation.Prepare(op, {c});
      implementation.Run(op, c, *before, 0);
    }
    seen.got = implementation.Run(op, c, inputs, 0);
    ran = true;
  } catch (const RunUnsupported& error) {
    result.status = Status::kUnsupported;
    result.reason = error.what();
    return result;
  } catch (const RunFailure& error) {
    result.Fail(error.output(), error.what());
  } catch (const EnvironmentError&) {
    throw;
  } catch (const StoppedError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw CurrentFailure();
  } catch (const std::exception& error) {
    result.Fail("", std::string("it threw: ") + error.what());
  }
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (ran) Judge(op, seen, implementation, result);
  return result;
}

CaseResult CheckCase(const Case& c, Implementation& implementation,
                     Evidence* evidence) {
  return CheckInputs(c, InputsOf(FindOperation(c.op), c), implementation,
                     evidence);
}

CaseResult Finished(CaseResult last, Implementation& implementation) {
  try {
    implementation.Finish();
  } catch (const RunFailure& error) {
    last.Fail(error.output(), error.what());
  }
  return last;
}

}  // namespace softmoe::verify

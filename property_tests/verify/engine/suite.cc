// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/suite.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace softmoe::verify {
namespace {

// If the largest error of a whole suite is below this share of its bound, the
// bound has become too loose to mean much (README.md, "Warnings").
constexpr double kLoose = 1e-3;
// A bias of the errors is reported if it is certain and more than half of the
// bias that truncating the stored result would show, which is computed for each
// case from the values and their bounds. An elementary function's own bias is
// at most half of that (kernels/bf16_exhaustive_test.cc). Certain: |z| > 6
// over 50 cases or more, which independent cases without a bias reach with
// probability 3e-7 (Student's t, 49 degrees of freedom).
constexpr double kBiasZ = 6;
constexpr double kShareOfTruncation = 0.5;
constexpr int64_t kEnoughCases = 50;

bool IsForeign(const std::string& impl) {
  for (const char* family : {"serve:", "lib:", "recorded:"}) {
    if (impl.starts_with(family)) return true;
  }
  return false;
}

// The key that failures with one cause share.
std::string FailureKey(const CaseResult& result) {
  std::string key = result.c.op + " " + result.c.impl + " " + result.output;
  const std::string& what =
      result.hints.empty() ? result.reason.substr(0, result.reason.find(':'))
                           : result.hints.front();
  for (const char letter : what) {
    if (!std::isdigit(static_cast<unsigned char>(letter))) key += letter;
  }
  return key;
}

}  // namespace

void BiasStatistic::Add(double x) {
  ++count;
  sum += x;
  squares += x * x;
}

double BiasStatistic::mean() const {
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

double BiasStatistic::z() const {
  const double n = static_cast<double>(count);
  if (count < 2) return 0;
  const double variance = (squares - n * mean() * mean()) / (n - 1);
  return variance > 0 ? mean() / std::sqrt(variance / n) : 0;
}

int64_t UnitStatistics::Count(Status status) const {
  const auto found = cases.find(status);
  return found == cases.end() ? 0 : found->second;
}

int64_t UnitStatistics::ran() const {
  int64_t count = 0;
  for (const auto& [status, number] : cases) {
    if (status != Status::kUnsupported) count += number;
  }
  return count;
}

int64_t UnitStatistics::elements() const {
  int64_t count = 0;
  for (const auto& [name, output] : outputs) count += output.elements;
  return count;
}

void Suite::Add(const CaseResult& result) {
  UnitStatistics& unit = units_[{result.c.op, result.c.impl}];
  ++unit.cases[result.status];
  unit.seconds += result.seconds;
  if (result.status == Status::kUnsupported) {
    unit.unsupported = result.reason;
    return;
  }
  ++unit.fills[FillText(result.c.fill)];
  unit.decisions += result.decisions;
  unit.ambiguous += result.ambiguous;
  for (const std::string& name : result.missing) ++unit.outputs[name].missing;
  for (const OutputResult& each : result.outputs) {
    OutputStatistics& output = unit.outputs[each.output];
    ++output.compared;
    output.trusted += each.comparison.status == Status::kPass ||
                      each.comparison.status == Status::kFail;
    output.elements += each.comparison.count;
    output.convergence.Add(each.convergence);
    output.upwards.Add(each.mean_scaled);
    output.towards_zero.Add(each.towards_zero);
    output.truncation.Add(each.truncation);
    const double decade = -std::log10(each.comparison.utilisation);
    ++output.decades[static_cast<size_t>(std::clamp(decade, 0.0, 7.0))];
    for (size_t i = 0; i < output.ulps.size(); ++i) {
      output.ulps[i] += each.comparison.ulps[i];
    }
    if (each.comparison.utilisation >= output.utilisation) {
      output.utilisation = each.comparison.utilisation;
      output.loosest_derivation = each.derivation;
    }
  }
}

void Suite::AddFailure(Failure failure) {
  const std::string key = FailureKey(failure.smallest);
  for (Failure& known : failures_) {
    if (FailureKey(known.smallest) == key) {
      known.count += failure.count;
      return;
    }
  }
  failures_.push_back(std::move(failure));
}

void Suite::CountFailure(const CaseResult& result) {
  const std::string key = FailureKey(result);
  Failure* likely = nullptr;
  for (Failure& known : failures_) {
    const Case& c = known.smallest.c;
    if (FailureKey(known.first) == key || FailureKey(known.smallest) == key) {
      likely = &known;
      break;
    }
    if (c.op == result.c.op && c.impl == result.c.impl &&
        known.smallest.output == result.output && likely == nullptr) {
      likely = &known;
    }
  }
  if (likely != nullptr) {
    ++likely->count;
  } else {
    failures_.push_back({result, result, 0, 1});
  }
}

void Suite::Overturn(const CaseResult& result, Status before) {
  UnitStatistics& unit = units_.at({result.c.op, result.c.impl});
  --unit.cases.at(before);
  ++unit.cases[Status::kFail];
}

Suite Suite::Of(const Unit& unit) const {
  Suite alone;
  alone.units_[unit] = units_.at(unit);
  return alone;
}

int64_t Suite::cases() const {
  int64_t count = 0;
  for (const auto& [unit, statistics] : units_) count += statistics.ran();
  return count;
}

std::vector<std::string> Suite::Mistrusted() const {
  std::vector<std::string> list;
  for (const auto& [unit, statistics] : units_) {
    // A single case speaks for itself.
    if (statistics.ran() == 1 && statistics.Count(Status::kMistrusted) == 0) {
      continue;
    }
    for (const auto& [name, output] : statistics.outputs) {
      if (output.compared == 0 || output.trusted > 0) continue;
      list.push_back(fmt::format(
          "{} on {}: {} was compared in {} case{}, none of which can tell "
          "right from wrong",
          unit.op, unit.impl, name, output.compared,
          output.compared == 1 ? "" : "s"));
    }
  }
  return list;
}

std::vector<std::string> Suite::Warnings() const {
  std::vector<std::string> list;
  for (const auto& [unit, statistics] : units_) {
    for (const auto& [name, output] : statistics.outputs) {
      const std::string what = unit.op + " on " + unit.impl + ": " + name;
      // The reference, perhaps other people's programs, and what `grad`
      // compares are computed in double and then rounded, so nothing can come
      // nearer.
      const bool rounds = unit.impl.starts_with("reference_") ||
                          IsForeign(unit.impl) ||
                          output.convergence.directions() > 0;
      if (output.compared >= kEnoughCases && output.utilisation > 0 &&
          output.utilisation < kLoose && !rounds) {
        list.push_back(fmt::format(
            "LOOSE_BOUND {}: no error above {:.2g} of its bound ({})", what,
            output.utilisation, output.loosest_derivation));
      }
      for (const auto& [direction, bias] :
           {std::pair<const char*, const BiasStatistic&>{"upwards",
                                                         output.upwards},
            {"towards zero", output.towards_zero}}) {
        if (bias.count >= kEnoughCases && std::abs(bias.z()) > kBiasZ &&
            std::abs(bias.mean()) >
                kShareOfTruncation * output.truncation.mean()) {
          list.push_back(fmt::format(
              "BIAS {}: errors lean {} by {:.2g} of the bound (z = {:.1f}); "
              "truncation shows {:.2g}",
              what, direction, bias.mean(), bias.z(),
              output.truncation.mean()));
        }
      }
    }
  }
  return list;
}

ExitCode Suite::exit_code() const {
  if (!ended_early_) return verdict();
  const ExitCode code = ended_early_->why.code();
  const bool counts_most =
      code == ExitCode::kStopped || code == ExitCode::kSelfCheck;
  return counts_most || verdict() != ExitCode::kFailed ? code
                                                       : ExitCode::kFailed;
}

ExitCode Suite::verdict() const {
  const auto any = [&](Status status) {
    return std::ranges::any_of(units_, [&](const auto& unit) {
      return unit.second.Count(status) > 0;
    });
  };
  if (any(Status::kFail)) return ExitCode::kFailed;
  if (!Mistrusted().empty()) return ExitCode::kMistrusted;
  if (any(Status::kNotComparable)) return ExitCode::kNotComparable;
  if (any(Status::kInconclusive)) return ExitCode::kInconclusive;
  // It is no success if nothing ran although something was asked for, or if
  // there was nothing to compare.
  int64_t elements = 0;
  for (const auto& [unit, statistics] : units_) {
    elements += statistics.elements();
  }
  return elements == 0 ? ExitCode::kInconclusive : ExitCode::kDone;
}

}  // namespace softmoe::verify

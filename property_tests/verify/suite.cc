// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace softmoe::verify {
namespace {

// Below this share of its bound, the largest error of a whole suite says that
// the bound has become too loose to mean much (verification.md 8.1).
constexpr double kLoose = 1e-3;
// A lean of the errors that is certain, and large enough to be a way of
// rounding instead of an elementary function's last bit.
constexpr double kBiasZ = 6;
constexpr double kBiasSize = 0.05;
constexpr int64_t kEnoughCases = 20;

}  // namespace

double OutputStatistics::bias() const {
  return compared == 0 ? 0 : mean_sum / static_cast<double>(compared);
}

double OutputStatistics::bias_z() const {
  const double n = static_cast<double>(compared);
  if (compared < 2) return 0;
  const double variance = (mean_squares - n * bias() * bias()) / (n - 1);
  return variance > 0 ? bias() / std::sqrt(variance / n) : 0;
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
    output.trusted += each.comparison.status != Status::kMistrusted;
    output.elements += each.comparison.count;
    output.mean_sum += each.mean_scaled;
    output.mean_squares += each.mean_scaled * each.mean_scaled;
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

int64_t Suite::cases() const {
  int64_t count = 0;
  for (const auto& [unit, statistics] : units_) count += statistics.ran();
  return count;
}

std::vector<std::string> Suite::Mistrusted() const {
  std::vector<std::string> list;
  for (const auto& [unit, statistics] : units_) {
    // One case alone speaks for itself.
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
      // The rounded reference comes as near as nothing else does.
      if (output.compared >= kEnoughCases && output.utilisation > 0 &&
          output.utilisation < kLoose && unit.impl != "reference_f32") {
        list.push_back(fmt::format(
            "LOOSE_BOUND {}: no error above {:.2g} of its bound ({})", what,
            output.utilisation, output.loosest_derivation));
      }
      if (output.compared >= kEnoughCases &&
          std::abs(output.bias_z()) > kBiasZ &&
          std::abs(output.bias()) > kBiasSize) {
        list.push_back(fmt::format(
            "BIAS {}: errors lean to one side by {:.2g} of the bound (z = "
            "{:.1f})",
            what, output.bias(), output.bias_z()));
      }
    }
  }
  return list;
}

ExitCode Suite::exit_code() const {
  for (const auto& [unit, statistics] : units_) {
    if (statistics.Count(Status::kFail) > 0) return ExitCode::kFailed;
  }
  if (!Mistrusted().empty()) return ExitCode::kMistrusted;
  for (const auto& [unit, statistics] : units_) {
    if (statistics.Count(Status::kNotComparable) > 0) {
      return ExitCode::kNotComparable;
    }
  }
  for (const auto& [unit, statistics] : units_) {
    if (statistics.Count(Status::kInconclusive) > 0) {
      return ExitCode::kInconclusive;
    }
  }
  // Asked for and nothing ran: not a success.
  return cases() == 0 ? ExitCode::kInconclusive : ExitCode::kDone;
}

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

}  // namespace softmoe::verify

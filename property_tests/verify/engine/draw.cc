// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/draw.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/errors.h"
#include "core/philox.h"
#include "core/text/suggestion.h"
#include "property_tests/verify/engine/fill.h"

namespace softmoe::verify {
namespace {

using Words = std::array<uint32_t, 4>;

Words WordsFor(const std::string& name, uint64_t seed, uint32_t number) {
  return PhiloxWords(
      {seed, RandomStream::kTestData, number, NameKey("parameter " + name)}, 0);
}

// How far a parameter must at least lie below the one that limits it (float
// tells the two apart up to 256), and how far it mostly does when it is drawn.
constexpr double kBelow = 0x1p-16, kMostlyBelow = 1.0 / 64;

// `range` up to the parameter, less `below`; only `low` if the fill says so.
Range Limited(Range range, const Parameter& parameter, const Case& c,
              double below) {
  if (c.fill.name == parameter.low_in_fill) range.high = range.low;
  if (parameter.at_most.empty()) return range;
  double bound = static_cast<double>(c.Size(parameter.at_most));
  if (parameter.below) bound -= below;
  range.high = std::max(range.low, std::min(range.high, bound));
  return range;
}

int64_t ToStep(double value, int64_t step, const Range& range) {
  const int64_t low = static_cast<int64_t>(range.low);
  const int64_t high = static_cast<int64_t>(range.high);
  return std::clamp(static_cast<int64_t>(value), low, high) / step * step;
}

// Draws small sizes, neighbours of vector and block widths, any size, and now
// and then the largest, for which buffers of a fixed size are most often wrong.
int64_t DrawSize(const Parameter& parameter, const Range& range,
                 const Words& words) {
  static constexpr int64_t kWidths[] = {1, 8, 16, 32, 64, 128};
  const double u = UniformFromWord(words[1]);
  double size = range.low + u * (range.high - range.low + 1);
  if (words[0] % 4 == 0) {
    size = range.low + u * std::min(8.0, range.high - range.low + 1);
  } else if (words[0] % 4 == 1) {
    const int64_t width = kWidths[words[2] % std::size(kWidths)];
    size = static_cast<double>(width + static_cast<int64_t>(words[3] % 3) - 1);
    if (size > range.high || size < range.low) {
      size = range.low + u * (range.high - range.low + 1);
    }
  }
  // Uses the high bits, on which `%` above hardly depends.
  if ((words[2] >> 16) % 32 == 0) size = range.high;
  return ToStep(std::floor(size), parameter.step, range);
}

// Draws an end of the range, or a number between, as often of any magnitude.
double DrawUntypical(const Range& range, const Words& words) {
  const uint32_t which = words[2] % 3;
  if (which < 2) return which == 0 ? range.low : range.high;
  const double low = std::max(range.low, 0x1p-24 * range.high);
  const double u = UniformFromWord(words[3]);
  return std::clamp(low * std::pow(range.high / low, u), range.low, range.high);
}

double DrawReal(const Parameter& parameter, const Case& c, const Words& words) {
  const Range drawn = {parameter.low, parameter.high};
  // Now and then as close below the limit as allowed.
  if (parameter.below && (words[2] >> 16) % 32 == 0) {
    return Limited(drawn, parameter, c, kBelow).high;
  }
  const Range range = Limited(drawn, parameter, c, kMostlyBelow);
  if (!parameter.typical.empty()) {
    if (words[1] % 8 == 0) return DrawUntypical(range, words);
    return std::clamp(parameter.typical[words[0] % parameter.typical.size()],
                      range.low, range.high);
  }
  const double u = UniformFromWord(words[0]);
  const double value = range.low + u * (range.high - range.low);
  // A whole number now and then: plateaus occur there.
  const double grid = words[1] % 4 == 0 ? 1 : 64;
  const double rounded = std::round(value * grid) / grid;
  return std::clamp(rounded, range.low, range.high);
}

void CheckRange(const Parameter& parameter, const Range& range, double value,
                const std::string& text) {
  const bool whole = parameter.kind == Parameter::Kind::kSize;
  if (!(value >= range.low && value <= range.high) ||
      (whole && static_cast<int64_t>(value) % parameter.step != 0)) {
    const std::string limit =
        range.low == range.high && !parameter.low_in_fill.empty()
            ? "fill=" + parameter.low_in_fill
            : parameter.at_most;
    throw ConfigError(fmt::format(
        "{}={}: {} must be between {} and {}{}{}", parameter.name, text,
        parameter.name, range.low, range.high,
        limit.empty() ? "" : " here, as limited by " + limit,
        parameter.step > 1 ? fmt::format(", a multiple of {}", parameter.step)
                           : ""));
  }
}

// The number that `text` gives to a size or real parameter.
double GivenNumber(const Parameter& parameter, const std::string& text) {
  return parameter.kind == Parameter::Kind::kSize
             ? static_cast<double>(ParseWindow(parameter.name, text).count)
             : ParseDecimal(parameter.name, text);
}

void SetParameter(const Operation& op, const Parameter& p,
                  const CasePattern& fixed, Case& c) {
  const auto found = fixed.find(p.name);
  const std::string* given = found == fixed.end() ? nullptr : &found->second;
  const Words words = WordsFor(p.name, c.seed, c.number);
  if (p.kind == Parameter::Kind::kChoice) {
    std::string choice = p.choices[words[0] % p.choices.size()];
    if (given != nullptr) {
      choice = *given;
      if (std::ranges::count(p.choices, choice) == 0) {
        throw ConfigError(p.name + ": unknown '" + choice + "'; " +
                          Suggestion(choice, p.choices));
      }
    }
    c.choices[p.name] = choice;
    return;
  }
  const Range range = RangeOf(op, p, c);
  if (p.kind == Parameter::Kind::kSize) {
    const Range drawn = Limited({p.low, p.high}, p, c, kBelow);
    Window window{DrawSize(p, drawn, words), 0};
    // A size is drawn again only where it must be, so that fixing a parameter
    // leaves the others unchanged where possible.
    const double least = static_cast<double>(LeastSize(op, p.name, fixed));
    if (given == nullptr && static_cast<double>(window.count) < least &&
        least <= range.high) {
      window.count = DrawSize(p, {least, std::max(least, drawn.high)}, words);
    }
    if (given != nullptr) {
      window = ParseWindow(p.name, *given);
      CheckRange(p, range, static_cast<double>(window.count), *given);
      if (window.first > 0 && window.first > kMaxIndex - window.count) {
        throw ConfigError(
            fmt::format("{}={}: a window must end at {} or before", p.name,
                        *given, kMaxIndex));
      }
    }
    c.sizes[p.name] = window;
  } else {
    double value = DrawReal(p, c, words);
    if (given != nullptr) {
      value = ParseDecimal(p.name, *given);
      CheckRange(p, range, value, *given);
    }
    c.reals[p.name] = value;
  }
}

// Whether a word of an edge is compatible with the sizes that `fixed` gives.
bool Fits(const Operation& op, const std::string& name, const std::string& text,
          const CasePattern& fixed) {
  const Parameter* p = op.FindParameter(name);
  if (p == nullptr || p->kind == Parameter::Kind::kChoice) return true;
  const double value = GivenNumber(*p, text);
  if (p->kind == Parameter::Kind::kSize &&
      value < static_cast<double>(LeastSize(op, name, fixed))) {
    return false;
  }
  const auto limit = fixed.find(p->at_most);
  return limit == fixed.end() ||
         value + (p->below ? kBelow : 0) <=
             static_cast<double>(
                 ParseWindow(limit->first, limit->second).count);
}

FillName DrawFill(const Operation& op, const Case& c) {
  const Words words = WordsFor("fill", c.seed, c.number);
  const std::vector<std::string>& fills = op.fills();
  FillName fill;
  if (words[0] % 2 == 0) return fill;  // generic
  fill.name = fills[words[1] % fills.size()];
  if (FindFill(fill.name).takes_argument) fill.argument = 1 + words[2] % 8;
  return fill;
}

void CheckFill(const Operation& op, FillName& fill) {
  const std::vector<std::string>& fills = op.fills();
  if (std::ranges::count(fills, fill.name) == 0) {
    throw ConfigError("fill: '" + fill.name + "' is not a fill of operation '" +
                      op.name() + "'; " + Suggestion(fill.name, fills));
  }
  const bool takes = FindFill(fill.name).takes_argument;
  if (takes && fill.argument == 0) fill.argument = 1;
  if (takes && (fill.argument < 1 || fill.argument > kMaxFillArgument)) {
    throw ConfigError(
        fmt::format("fill: the number of '{}' must be between 1 and {}",
                    fill.name, kMaxFillArgument));
  }
  if (!takes && fill.argument != 0) {
    throw ConfigError("fill: '" + fill.name +
                      "' takes no number; write fill=" + fill.name);
  }
}

}  // namespace

Range RangeOf(const Operation& op, const Parameter& parameter, const Case& c) {
  Range range = {parameter.low, parameter.high};
  for (const std::string& edge : op.edges()) {
    const CasePattern pattern = ParseWords(edge);
    const auto found = pattern.find(parameter.name);
    if (found == pattern.end()) continue;
    const double value = ParseDecimal(parameter.name, found->second);
    range = {std::min(range.low, value), std::max(range.high, value)};
  }
  return Limited(range, parameter, c, kBelow);
}

int64_t LeastSize(const Operation& op, const std::string& name,
                  const CasePattern& fixed) {
  const int64_t step = op.FindParameter(name)->step;
  int64_t least = 0;
  for (const Parameter& p : op.parameters()) {
    const auto given = fixed.find(p.name);
    if (p.at_most != name || given == fixed.end()) continue;
    const double needed =
        GivenNumber(p, given->second) + (p.below ? kBelow : 0);
    // A value that no size allows is refused when its turn comes.
    if (!(needed >= p.low && needed <= static_cast<double>(kMaxIndex))) {
      continue;
    }
    const int64_t steps =
        (static_cast<int64_t>(std::ceil(needed)) + step - 1) / step;
    least = std::max(least, steps * step);
  }
  return least;
}

void Repair(const Operation& op, Case& c) {
  for (const Parameter& p : op.parameters()) {
    if (p.kind == Parameter::Kind::kChoice) continue;
    const Range range = RangeOf(op, p, c);
    if (p.kind == Parameter::Kind::kReal) {
      double& value = c.reals[p.name];
      if (value > range.high) value = Limited(range, p, c, kMostlyBelow).high;
      value = std::max(value, range.low);
    } else {
      Window& window = c.sizes[p.name];
      window.count = std::max<int64_t>(
          ToStep(static_cast<double>(window.count), p.step, range),
          static_cast<int64_t>(range.low));
    }
  }
}

Case DrawCase(const Operation& op, const CasePattern& fixed, uint64_t seed,
              uint32_t number) {
  const std::vector<std::string> known = CaseKeys(op);
  for (const auto& [key, value] : fixed) {
    if (std::ranges::count(known, key) == 0) {
      std::string having;
      for (const Operation* each : Operations()) {
        if (each->FindParameter(key) != nullptr) {
          having += " op=" + each->name();
        }
      }
      throw ConfigError(
          "unknown key '" + key + "' for operation '" + op.name() + "'; " +
          (having.empty() ? Suggestion(key, known) : "it is one of" + having));
    }
  }
  const auto given = [&](const std::string& key) -> const std::string* {
    const auto found = fixed.find(key);
    return found == fixed.end() ? nullptr : &found->second;
  };
  Case c;
  c.op = op.name();
  c.seed = seed;
  c.number = number;
  if (const std::string* impl = given("impl")) c.impl = *impl;
  const std::vector<Dtype>& dtypes = op.dtypes();
  c.dtype = dtypes.front();
  if (const std::string* dtype = given("dtype")) {
    c.dtype = ParseDtype(*dtype);
    if (std::ranges::count(dtypes, c.dtype) == 0) {
      std::string has;
      for (const Dtype each : dtypes) {
        has += (has.empty() ? "" : ", ") + std::string(DtypeName(each));
      }
      throw ConfigError("dtype: operation '" + op.name() +
                        "' has no bounds for " + *dtype + "; it has " + has);
    }
  }
  if (const std::string* fill = given("fill")) {
    c.fill = ParseFill(*fill);
    CheckFill(op, c.fill);
  } else {
    c.fill = DrawFill(op, c);
    for (const Parameter& p : op.parameters()) {
      if (p.low_in_fill == c.fill.name && given(p.name) != nullptr) {
        c.fill = {};  // a given value may differ from `low`
      }
    }
  }
  for (const Parameter& p : op.parameters()) {
    SetParameter(op, p, fixed, c);
  }
  if (const std::string* simplify = given("simplify")) {
    c.simplify = ParseSimplify(*simplify);
    InputsOf(op, c);  // throws if the keys do not fit together
  }
  return c;
}

Case DrawEdge(const Operation& op, const CasePattern& fixed, uint64_t seed,
              uint32_t number) {
  constexpr int64_t kOthers = 20;
  const std::vector<std::string>& edges = op.edges();
  SOFTMOE_CHECK(!edges.empty()) << op.name() << " has no edges";
  // The second round is shifted if the number of edges is even, so that each
  // edge has an even and an odd case (IsCheckedAfterAnother).
  const size_t count = edges.size();
  const size_t turn = number + (count % 2 == 0 ? number / count % 2 : 0);
  CasePattern pattern = fixed;
  for (const auto& [name, text] : ParseWords(edges[turn % count])) {
    if (Fits(op, name, text, fixed)) pattern.emplace(name, text);
  }
  Case c = DrawCase(op, pattern, seed, number);
  for (auto& [name, window] : c.sizes) {
    if (pattern.contains(name)) continue;
    window.count =
        std::min(window.count, std::max(kOthers, LeastSize(op, name, pattern)));
  }
  Repair(op, c);
  return c;
}

std::vector<std::string> CaseKeys(const Operation& op) {
  std::vector<std::string> keys = {"op",       "impl", "dtype", "fill",
                                   "simplify", "seed", "case"};
  for (const Parameter& p : op.parameters()) keys.push_back(p.name);
  return keys;
}

Case ParseCase(const std::string& text, const std::string& default_impl) {
  CasePattern pattern = ParseWords(text);
  const auto op = pattern.find("op");
  if (op == pattern.end()) {
    throw ConfigError("'" + text +
                      "': op=NAME is missing; `verify list` shows the names");
  }
  pattern.emplace("impl", default_impl);
  const auto seed = pattern.find("seed");
  const auto number = pattern.find("case");
  return DrawCase(
      FindOperation(op->second), pattern,
      seed == pattern.end() ? 0 : ParseSeed("seed", seed->second),
      number == pattern.end() ? 0 : ParseCaseNumber(number->second));
}

}  // namespace softmoe::verify

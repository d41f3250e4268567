// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "core/errors.h"
#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/implementation.h"

namespace softmoe::verify {
namespace {

constexpr char kManifest[] =
#include "property_tests/verify/manifest.inc"
    ;

// Why the unit cannot run on this machine; "" if it can.
std::string WhyNotHere(const Unit& unit) {
  try {
    const Operation& op = FindOperation(unit.op);
    const auto implementation = MakeImplementation(unit.impl);
    return implementation->WhyUnsupported(op, DtypeFor(op, *implementation));
  } catch (const ConfigError&) {
    return "there is no implementation '" + unit.impl + "' here";
  } catch (const EnvironmentError& error) {
    return error.what();
  }
}

}  // namespace

std::vector<Declared> ParseManifest(const std::string& text) {
  std::vector<Declared> manifest;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    Declared declared;
    std::string cases, rest;
    if (!(words >> declared.unit.op)) continue;
    words >> declared.unit.impl >> cases >> declared.needs >> rest;
    const std::string place = fmt::format("manifest line {}", number);
    if (cases.empty() || !rest.empty()) {
      throw ConfigError(place + ": '" + line +
                        "' is not OPERATION IMPLEMENTATION CASES [NEEDS]");
    }
    declared.cases = ParseWhole(place, cases);
    FindOperation(declared.unit.op);
    if (declared.cases < 1 ||
        (!declared.needs.empty() && declared.needs != "avx512" &&
         declared.needs != "gpu")) {
      throw ConfigError(place + ": '" + line +
                        "': at least 1 case; NEEDS is avx512 or gpu");
    }
    manifest.push_back(declared);
  }
  return manifest;
}

const std::vector<Declared>& Manifest() {
  static const std::vector<Declared> manifest = ParseManifest(kManifest);
  return manifest;
}

ManifestCheck CheckManifest(const std::vector<Declared>& manifest,
                            const Suite& suite) {
  ManifestCheck check;
  std::set<Unit> known;
  for (const Declared& declared : manifest) {
    const Unit& unit = declared.unit;
    known.insert(unit);
    const auto found = suite.units().find(unit);
    const int64_t ran = found == suite.units().end() ? 0 : found->second.ran();
    check.declared += declared.cases;
    check.ran += std::min(ran, declared.cases);
    if (ran >= declared.cases) continue;
    const std::string what =
        fmt::format("{} of {} declared cases of {} on {} ran", ran,
                    declared.cases, unit.op, unit.impl);
    const std::string missing = WhyNotHere(unit);
    if (!declared.needs.empty() && !missing.empty()) {
      check.not_run.push_back(what + ": needs " + declared.needs + ": " +
                              missing);
    } else {
      check.shortfalls.push_back(what +
                                 (missing.empty() ? "" : ": " + missing));
    }
  }
  for (const auto& [unit, statistics] : suite.units()) {
    if (statistics.ran() == 0 || known.contains(unit)) continue;
    check.shortfalls.push_back(fmt::format(
        "{} cases of {} on {} ran that nobody declared: add a line to "
        "manifest.inc",
        statistics.ran(), unit.op, unit.impl));
  }
  return check;
}

std::string ManifestText(const ManifestCheck& check) {
  std::string text =
      fmt::format("manifest: {} of {} cases that `test //...` declares\n",
                  check.ran, check.declared);
  for (const std::string& line : check.not_run)
    text += "not run: " + line + "\n";
  for (const std::string& line : check.shortfalls) {
    text += "fewer: " + line + "\n";
  }
  return text;
}

}  // namespace softmoe::verify

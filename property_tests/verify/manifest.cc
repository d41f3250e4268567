// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "core/errors.h"
#include "property_tests/verify/engine/implementation.h"
#include "property_tests/verify/operations/operation_table.h"

namespace softmoe::verify {
namespace {

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

const std::vector<Declared>& Manifest() {
  static const std::vector<Declared> manifest = [] {
    std::vector<Declared> all;
    const auto declare = [&](const auto& adapters, const char* impl,
                             const char* needs = "") {
      for (const auto& [op, adapter] : adapters) {
        all.push_back({{op, impl}, 100, needs});
      }
    };
    const Adapters& adapters = AdapterTable();
    declare(adapters.rows, "cpu:v3");
    declare(adapters.rows, "cpu:v4", "avx512");
    declare(adapters.rows, "shim");
    declare(adapters.rows, "cuda", "gpu");
    declare(adapters.rows, "reference_f32");
    declare(adapters.bf16, "shim:bf16");
    declare(adapters.bf16, "cuda:bf16", "gpu");
    declare(adapters.bf16, "reference_bf16");
    declare(adapters.at_double, "cpu:double");
    return all;
  }();
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
    check.shortfalls.push_back(
        fmt::format("{} cases of {} on {} ran that nobody declared: neither "
                    "operation_table.h nor manifest.cc has them",
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

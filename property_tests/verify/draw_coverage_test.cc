// SPDX-License-Identifier: Apache-2.0
//
// Random cases cover everything that they should reach now and then. This is
// counted, not hoped for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "property_tests/verify/fill_sample.h"

namespace softmoe::verify {
namespace {

// Values that hide mistakes are rarely drawn: T, tau and other factors are 1
// only where 1 is an end of their range, and k is a whole number in the
// minority of cases.
TEST(Coverage, IdentityValuesAreNotDrawn) {
  for (const Operation* op : Operations()) {
    int whole = 0, drawn = 0;
    std::map<std::string, int> ones;
    for (uint32_t number = 0; number < 400; ++number) {
      const Case c = DrawCase(*op, {}, 7, number);
      for (const auto& [name, value] : c.reals) {
        if (name == "mean_active") {
          ++drawn;
          whole += value == std::round(value);
          continue;
        }
        if (name == "spread" || name == "scale" || value != 1) continue;
        const Parameter& p = *op->FindParameter(name);
        EXPECT_TRUE(p.low == 1 || p.high == 1) << op->name() << " " << name;
        ++ones[name];
      }
    }
    for (const auto& [name, count] : ones) {
      EXPECT_LE(count, 40) << op->name() << " " << name;
    }
    EXPECT_LT(2 * whole, drawn + 1) << op->name();
  }
}

// Draws reach typical values, the ends of a range, and values in between.
TEST(Coverage, RangesAreDrawnFromEndToEnd) {
  for (const Operation* op : Operations()) {
    for (const Parameter& p : op->parameters()) {
      if (p.typical.empty()) continue;
      int lowest = 0, highest = 0, others = 0;
      for (uint32_t number = 0; number < 400; ++number) {
        const Case c = DrawCase(*op, {}, 7, number);
        const double value = c.Real(p.name);
        const double high =
            p.at_most.empty()
                ? p.high
                : std::min(p.high, static_cast<double>(c.Size(p.at_most)));
        EXPECT_GE(value, p.low) << CaseText(c);
        EXPECT_LE(value, high) << CaseText(c);
        lowest += value == p.low;
        highest += value == high;
        others += value > p.low && value < high &&
                  std::ranges::count(p.typical, value) == 0;
      }
      EXPECT_GE(lowest, 4) << op->name() << " " << p.name;
      EXPECT_GE(highest, 4) << op->name() << " " << p.name;
      EXPECT_GE(others, 4) << op->name() << " " << p.name;
    }
  }
}

// A mean over many tokens has small cotangents, and a sum large ones.
TEST(Coverage, CotangentsAreOfSeveralMagnitudes) {
  for (const auto& [name, cotangent] :
       {std::pair("attention", "d_out"),
        std::pair("balance_sums", "d_basis_sums"),
        std::pair("budget", "d_mean_active"), std::pair("experts", "d_out"),
        std::pair("jitter", "d_hidden_before"),
        std::pair("jitter", "d_router_input"), std::pair("lapsum", "d_weights"),
        std::pair("rmsnorm", "d_x_before"), std::pair("rmsnorm", "d_y"),
        std::pair("rope", "d_rotated"), std::pair("route_plan", "d_row_gate"),
        std::pair("router", "d_gates")}) {
    const Operation& op = FindOperation(name);
    int tiny = 0, small = 0, large = 0, drawn = 0;
    for (uint32_t number = 0; number < 100; ++number) {
      const TensorMap inputs =
          op.Inputs(DrawCase(op, {{"fill", "generic"}}, 7, number));
      double most = 0;
      for (const double x : At(inputs, cotangent).values) {
        most = std::max(most, std::abs(x));
      }
      drawn += most > 0;
      tiny += most > 0 && most < 1e-8;
      small += most > 1e-8 && most < 1e-5;
      large += most > 10;
    }
    EXPECT_GE(tiny, 5) << name << " " << cotangent;
    EXPECT_GE(small, 5) << name << " " << cotangent;
    EXPECT_GE(large, 5) << name << " " << cotangent;
    EXPECT_GE(drawn - tiny - small - large, 20) << name << " " << cotangent;
  }
}

// A fill changes the data of an edge in one of a few cases.
TEST(Coverage, EveryFillGoesWithEveryEdge) {
  const auto changes = [](const Operation& op, const CasePattern& fixed,
                          uint32_t number) {
    const Case c = DrawCase(op, fixed, 7, number);
    Case generic = c;
    generic.fill = {};
    return op.Inputs(c) != op.Inputs(generic);
  };
  for (const Operation* op : Operations()) {
    for (const std::string& edge : op->edges()) {
      for (const std::string& fill : op->fills()) {
        CasePattern fixed = ParseWords(edge);
        if (fill == "generic" || !fixed.emplace("fill", fill).second) continue;
        // Where there is no data, or a single id, all fills are the same.
        if (std::ranges::any_of(fixed, [](const auto& word) {
              return word.second == "0" ||
                     (word.first == "vocab_size" && word.second == "1");
            })) {
          continue;
        }
        uint32_t number = 0;
        while (number < 8 && !changes(*op, fixed, number)) ++number;
        EXPECT_LT(number, 8u) << op->name() << " " << edge << " fill=" << fill;
      }
    }
  }
}

TEST(Coverage, TheLargestSizesAreDrawn) {
  for (const Operation* op : Operations()) {
    std::map<std::string, int> largest;
    for (uint32_t number = 0; number < 400; ++number) {
      const Case c = DrawCase(*op, {}, 7, number);
      for (const Parameter& p : op->parameters()) {
        if (p.kind != Parameter::Kind::kSize || !p.at_most.empty()) continue;
        const int64_t high = static_cast<int64_t>(p.high) / p.step * p.step;
        largest[p.name] += c.Size(p.name) == high;
      }
    }
    for (const auto& [name, count] : largest) {
      EXPECT_GE(count, 4) << op->name() << " " << name;
    }
  }
}

// The router meets every reason to stop, counted over all drawn cases.
TEST(Coverage, TheRouterMeetsEveryReasonToStop) {
  std::map<std::string, int> met;
  for (uint32_t number = 0; number < 300; ++number) {
    const Sample s(FindOperation("router"), {{"rows", "8"}}, number);
    const Tensor& active = s.Active();
    for (int64_t t = 0; t < s.rows(); ++t) {
      int64_t count = 0, above = 0;
      const auto& p = s.expected.outputs.at("soft_weights").values;
      for (int64_t e = 0; e < s.experts(); ++e) {
        count += active.values[t * s.experts() + e] != 0;
        above += p.values[t * s.experts() + e] > s.Scalar("cutoff");
      }
      const std::string kind = s.c.Choice("kind");
      if (kind == "sparse") ++met["sparse"];
      if (kind != "soft") continue;
      if (above == 0) ++met[s.c.Choice("fallback") + ": none above the cutoff"];
      if (above > count) ++met["the cap decides"];
      if (above == count && count > 0 && count < s.experts()) {
        ++met["the cutoff decides"];
      }
      if (count == s.experts()) ++met["all active"];
      // The cap is expansion_factor k, rounded up.
      if (s.Scalar("mean_active") != std::round(s.Scalar("mean_active"))) {
        ++met["fractional k"];
      }
    }
  }
  for (const char* what :
       {"sparse", "none: none above the cutoff", "top1: none above the cutoff",
        "the cap decides", "the cutoff decides", "all active",
        "fractional k"}) {
    EXPECT_GE(met[what], 20) << what;
  }
}

// Loads differ within a case; experts with one token and with none occur.
TEST(Coverage, LoadsAreUnequal) {
  int unequal = 0, idle = 0, single = 0, tokens_without = 0;
  for (uint32_t number = 0; number < 100; ++number) {
    const Sample s(FindOperation("experts"),
                   {{"fill", "generic"}, {"num_experts", "7"}}, number);
    int64_t least = 1 << 20, most = 0, total = 0;
    for (int64_t e = 0; e < 7; ++e) {
      least = std::min(least, s.Load(e));
      most = std::max(most, s.Load(e));
      total += s.Load(e);
      idle += s.Load(e) == 0;
      single += s.Load(e) == 1;
    }
    unequal += most > least;
    tokens_without += total < s.Active().shape[0];
  }
  EXPECT_GE(unequal, 80);
  EXPECT_GE(idle, 20);
  EXPECT_GE(single, 10);
  EXPECT_GE(tokens_without, 5);
}

}  // namespace
}  // namespace softmoe::verify

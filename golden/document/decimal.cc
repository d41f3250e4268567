// SPDX-License-Identifier: Apache-2.0
#include "golden/document/decimal.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/errors.h"

namespace softmoe::golden {
namespace {

__extension__ typedef __int128 Wide;

constexpr int kMaxDecimals = 18;
constexpr int64_t kMaxUnits = 999'999'999'999'999'999;  // 18 digits

Wide PowerOfTen(int exponent) {
  Wide power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

Decimal Narrow(Wide units, int decimals) {
  SOFTMOE_CHECK(units <= kMaxUnits && units >= -kMaxUnits)
      << "a decimal number needs more than 18 digits";
  return Decimal(static_cast<int64_t>(units), decimals);
}

// Units at the finer of the two scales: at most 18 + 18 digits, which fit.
Wide Scaled(const Decimal& value, int decimals) {
  return Wide{value.units()} * PowerOfTen(decimals - value.decimals());
}

Wide FloorDivide(Wide numerator, Wide denominator) {
  const Wide quotient = numerator / denominator;
  return quotient - ((numerator % denominator < 0) ? 1 : 0);
}

// numerator / denominator as an integer; denominator > 0.
Wide DivideRounded(Wide numerator, Wide denominator, Rounding rule) {
  SOFTMOE_CHECK(rule != Rounding::kUnknown) << "rounding needs a rule";
  if (rule == Rounding::kTruncate) return numerator / denominator;
  return FloorDivide(2 * numerator + denominator, 2 * denominator);
}

}  // namespace

Decimal::Decimal(int64_t units, int decimals)
    : units_(units), decimals_(decimals) {
  SOFTMOE_CHECK(decimals >= 0 && decimals <= kMaxDecimals) << decimals;
  SOFTMOE_CHECK(units <= kMaxUnits && units >= -kMaxUnits) << units;
}

std::optional<Decimal> Decimal::Parse(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int64_t units = 0;
  int digits = 0, decimals = 0;
  bool point = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.' && !point && i > 0 && i + 1 < text.size()) {
      point = true;
    } else if (c >= '0' && c <= '9' && digits < kMaxDecimals) {
      units = units * 10 + (c - '0');
      ++digits;
      decimals += point ? 1 : 0;
    } else {
      return std::nullopt;
    }
  }
  if (digits == 0) return std::nullopt;
  return Decimal(negative ? -units : units, decimals);
}

double Decimal::ToDouble() const {
  return std::strtod(Text().c_str(), nullptr);
}

std::string Decimal::Text() const {
  const char* sign = units_ < 0 ? "-" : "";
  const int64_t magnitude = std::abs(units_);
  if (decimals_ == 0) return fmt::format("{}{}", sign, magnitude);
  const auto scale = static_cast<int64_t>(PowerOfTen(decimals_));
  return fmt::format("{}{}.{:0{}}", sign, magnitude / scale, magnitude % scale,
                     decimals_);
}

Decimal Decimal::operator+(const Decimal& other) const {
  const int decimals = std::max(decimals_, other.decimals_);
  return Narrow(Scaled(*this, decimals) + Scaled(other, decimals), decimals);
}

Decimal Decimal::operator-(const Decimal& other) const {
  return *this + Decimal(-other.units_, other.decimals_);
}

Decimal Decimal::operator*(const Decimal& other) const {
  return Narrow(Wide{units_} * other.units_, decimals_ + other.decimals_);
}

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  const int decimals = std::max(decimals_, other.decimals_);
  const Wide left = Scaled(*this, decimals), right = Scaled(other, decimals);
  if (left == right) return std::strong_ordering::equal;
  return left < right ? std::strong_ordering::less
                      : std::strong_ordering::greater;
}

Decimal Decimal::Round(int decimals, Rounding rule) const {
  if (decimals >= decimals_) {
    return Narrow(Scaled(*this, decimals), decimals);
  }
  return Narrow(DivideRounded(units_, PowerOfTen(decimals_ - decimals), rule),
                decimals);
}

Decimal Decimal::Quotient(int64_t numerator, int64_t denominator, int decimals,
                          Rounding rule) {
  SOFTMOE_CHECK(numerator >= 0 && denominator > 0)
      << numerator << "/" << denominator;
  SOFTMOE_CHECK(decimals >= 0 && decimals <= 12) << decimals;
  return Narrow(
      DivideRounded(Wide{numerator} * PowerOfTen(decimals), denominator, rule),
      decimals);
}

Interval PrintedInterval(const Decimal& text, Rounding rule) {
  const Decimal unit(1, text.decimals());
  const Decimal half(5, text.decimals() + 1);
  const Decimal zero;
  Decimal low = text, high = text;
  if (rule != Rounding::kTruncate) {
    low = text - half;
    high = text + half;
  }
  if (rule != Rounding::kNearest) {
    // Truncation rounds towards zero; what prints as 0 can have either sign.
    if (text >= zero) high = text + unit;
    if (text <= zero) low = text - unit;
  }
  return {low.ToDouble(), high.ToDouble()};
}

namespace {

bool Prints(int64_t count, int64_t total, const Decimal& percent,
            Rounding rule) {
  return Decimal::Quotient(100 * count, total, percent.decimals(), rule) ==
         percent;
}

}  // namespace

std::vector<int64_t> CountsThatPrint(const Decimal& percent, int64_t total,
                                     Rounding rule) {
  SOFTMOE_CHECK(total > 0 && total <= 1'000'000'000) << total;
  // Both rules change a value by at most one unit of the last digit, which
  // limits the possible counts.
  const double unit = std::pow(10.0, -percent.decimals());
  const double scale = static_cast<double>(total) / 100;
  const double value = percent.ToDouble();
  const auto limit = static_cast<double>(total);
  const auto first = static_cast<int64_t>(
      std::clamp(std::floor((value - unit) * scale) - 1, 0.0, limit));
  const auto last = static_cast<int64_t>(
      std::clamp(std::ceil((value + unit) * scale) + 1, 0.0, limit));
  std::vector<int64_t> counts;
  for (int64_t count = first; count <= last; ++count) {
    const bool nearest = rule != Rounding::kTruncate &&
                         Prints(count, total, percent, Rounding::kNearest);
    const bool truncated = rule != Rounding::kNearest &&
                           Prints(count, total, percent, Rounding::kTruncate);
    if (nearest || truncated) counts.push_back(count);
  }
  return counts;
}

}  // namespace softmoe::golden

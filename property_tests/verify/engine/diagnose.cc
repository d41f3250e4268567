// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/errors.h"

namespace softmoe::verify {
namespace {

// The elements of one output, and which of them are wrong.
struct View {
  const Tensor& got;
  const ExpectedOutput& expected;
  std::vector<int64_t> wrong;  // flat indices

  double Got(int64_t i) const { return got.values[i]; }
  double Want(int64_t i) const { return expected.values.values[i]; }
  double Bound(int64_t i) const { return expected.bounds[i]; }
  bool Within(int64_t i, double value) const {
    return std::abs(value - Want(i)) <= Bound(i);
  }
  int64_t columns() const { return got.shape.empty() ? 1 : got.shape.back(); }
  int64_t rows() const { return columns() == 0 ? 0 : got.size() / columns(); }
  // True if some elements are wrong and `holds` is true of each of them.
  template <typename Predicate>
  bool AllWrong(const Predicate& holds) const {
    return !wrong.empty() && std::ranges::all_of(wrong, holds);
  }
};

void AddNonFinite(const View& v, std::vector<std::string>& hints) {
  if (v.AllWrong([&](int64_t i) { return std::isnan(v.Got(i)); })) {
    hints.push_back(
        static_cast<int64_t>(v.wrong.size()) == v.got.size()
            ? "all NaN: never written, or a NaN spreads"
            : fmt::format("{} NaN: not written, or 0/0 or inf - inf there",
                          v.wrong.size()));
  } else if (v.AllWrong([&](int64_t i) { return std::isinf(v.Got(i)); })) {
    hints.push_back(
        "infinite: an overflow, or an exponent without its "
        "largest subtracted");
  } else if (v.AllWrong([&](int64_t i) { return v.Got(i) == 0; })) {
    hints.push_back("zero where something is expected: skipped, or flushed");
  }
}

// Is got = ratio * expected, with one ratio that has a name?
void AddRatio(const View& v, const Case& c, const TensorMap& inputs,
              std::vector<std::string>& hints) {
  std::vector<double> ratios;
  double tolerance = 1e-3;
  for (const int64_t i : v.wrong) {
    // Uses only elements whose bound leaves three digits of the ratio certain.
    if (std::abs(v.Want(i)) * 1e-3 <= v.Bound(i)) continue;
    ratios.push_back(v.Got(i) / v.Want(i));
  }
  if (ratios.empty()) return;
  const auto is_nan = [](double x) { return std::isnan(x); };
  if (std::ranges::any_of(ratios, is_nan)) return;  // and have no order
  std::ranges::nth_element(ratios, ratios.begin() + ratios.size() / 2);
  const double ratio = ratios[ratios.size() / 2];
  const auto near = [&](double x) {
    return std::abs(x - ratio) <= tolerance * std::abs(ratio);
  };
  if (ratio == 0 || !std::ranges::all_of(ratios, near)) return;

  std::vector<std::string> names;
  const auto consider = [&](const std::string& name, double value) {
    if (!(std::abs(value) > 0)) return;
    // Close to 1, a factor and its inverse look alike.
    if (near(value) && near(1 / value)) return;
    if (near(value)) names.push_back(name);
    if (near(1 / value)) names.push_back("1/" + name);
  };
  if (near(-1)) names.push_back("-1: the sign is flipped");
  consider("2", 2);
  for (const auto& [name, tensor] : inputs) {
    if (tensor.shape.empty()) consider(name, tensor.values[0]);
  }
  for (const auto& [name, window] : c.sizes) {
    const double size = static_cast<double>(window.count);
    if (size > 2) {
      consider(name, size);
      consider("sqrt(" + name + ")", std::sqrt(size));
    }
  }
  if (!names.empty()) {
    hints.push_back(fmt::format("got/expected is {:.6g} = {}", ratio,
                                fmt::join(names, ", or ")));
  } else if (ratios.size() > 1 && std::abs(ratio - 1) >= 1e-5) {
    hints.push_back(
        fmt::format("got/expected is {:.6g} for all of them", ratio));
  }
}

// Prints the worst element in full if the nine digits that reports print of a
// double do not show that it is wrong.
void AddDigits(const View& v, std::vector<std::string>& hints) {
  if (v.got.dtype != Dtype::kF64) return;
  const auto excess = [&](int64_t i) {
    return std::abs(v.Got(i) - v.Want(i)) / v.Bound(i);
  };
  const int64_t worst = *std::ranges::max_element(v.wrong, {}, excess);
  if (fmt::format("{:.9g}", v.Got(worst)) !=
      fmt::format("{:.9g}", v.Want(worst))) {
    return;
  }
  hints.push_back(
      fmt::format("in full: got {:.17g}, expected {:.17g}, bound {:.3g}",
                  v.Got(worst), v.Want(worst), v.Bound(worst)));
}

// Wrong only after the last whole vector, warp or block?
void AddPartialGroup(const View& v, std::vector<std::string>& hints) {
  const int64_t n = v.columns();
  for (const int64_t width : {64, 32, 16, 8, 4}) {
    if (n % width == 0 || n < width) continue;
    const int64_t whole = n / width * width;
    if (v.AllWrong([&](int64_t i) { return i % n >= whole; })) {
      hints.push_back(fmt::format(
          "only in the last partial group of {}: columns {} to {} of {}", width,
          whole, n - 1, n));
      return;
    }
  }
}

void AddRows(const View& v, std::vector<std::string>& hints) {
  const int64_t n = v.columns(), rows = v.rows();
  if (rows < 2) return;
  const auto row = [n](int64_t i) { return i / n; };
  const int64_t first = row(v.wrong.front()), last = row(v.wrong.back());
  const int64_t wrong_rows = [&] {
    int64_t count = 0, previous = -1;
    for (const int64_t i : v.wrong) {
      count += row(i) != previous;
      previous = row(i);
    }
    return count;
  }();
  if (first > 0 && wrong_rows == rows - first) {
    hints.push_back(
        first == 1
            ? "only in rows above 0: an offset or stride of the batch"
            : fmt::format("only in rows from {} on: a block of rows", first));
  } else if (first == last) {
    hints.push_back(fmt::format("only in row {} of {}", first, rows));
  }
  for (const int64_t width : {64, 32, 16, 8}) {
    if (rows % width == 0 || rows < width) continue;
    const int64_t whole = rows / width * width;
    if (first >= whole) {
      hints.push_back(
          fmt::format("only in the last partial block of {} rows: {} to {}",
                      width, whole, rows - 1));
      break;
    }
  }
  // Another row's numbers?
  for (const int64_t shift : {1, -1}) {
    if (v.AllWrong([&](int64_t i) {
          const int64_t from = i + shift * n;
          return from >= 0 && from < v.got.size() &&
                 std::abs(v.Got(i) - v.Want(from)) <= v.Bound(from);
        })) {
      hints.push_back(fmt::format("row t holds row t{:+d}'s values", shift));
    }
  }
}

// Is got - expected an input of the same shape, or expected itself?
void AddAccumulation(const View& v, const TensorMap& inputs,
                     std::vector<std::string>& hints) {
  for (const auto& [name, tensor] : inputs) {
    if (tensor.shape != v.got.shape || tensor.shape.empty()) continue;
    for (const double sign : {1.0, -1.0}) {
      if (v.AllWrong([&, &tensor = tensor](int64_t i) {
            return tensor.values[i] != 0 &&
                   v.Within(i, v.Got(i) - sign * tensor.values[i]);
          })) {
        hints.push_back(sign > 0 ? name + " is added to what it should be"
                                 : name + " is missing: = for +=?");
      }
    }
  }
}

// Neither all zeros nor all NaN: skipped outputs have another hint.
bool HasData(const Tensor& tensor) {
  return std::ranges::any_of(tensor.values,
                             [](double x) { return x != 0 && !std::isnan(x); });
}

// Whether no output satisfies both expectations.
bool Differ(const ExpectedOutput& a, const ExpectedOutput& b) {
  if (a.values.shape != b.values.shape) return true;
  for (int64_t i = 0; i < a.values.size(); ++i) {
    const double gap = std::abs(a.values.values[i] - b.values.values[i]);
    if (gap > a.bounds[i] + b.bounds[i]) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> DiagnoseValues(const Case& c, const TensorMap& inputs,
                                        const Tensor& got,
                                        const ExpectedOutput& expected) {
  std::vector<std::string> hints;
  View view{got, expected, {}};
  if (got.shape != expected.values.shape) return hints;
  for (int64_t i = 0; i < got.size(); ++i) {
    if (!view.Within(i, got.values[i])) view.wrong.push_back(i);
  }
  if (view.wrong.empty()) return hints;
  AddNonFinite(view, hints);
  AddRatio(view, c, inputs, hints);
  AddDigits(view, hints);
  AddPartialGroup(view, hints);
  AddRows(view, hints);
  AddAccumulation(view, inputs, hints);
  return hints;
}

std::vector<std::string> Diagnose(const Operation& op, const Case& c,
                                  const Evidence& evidence,
                                  const std::string& output,
                                  Implementation& implementation) {
  const auto got = evidence.got.find(output);
  const auto expected = evidence.expected.outputs.find(output);
  if (got == evidence.got.end() ||
      expected == evidence.expected.outputs.end()) {
    return {};
  }
  std::vector<std::string> hints =
      DiagnoseValues(c, evidence.inputs, got->second, expected->second);
  if (!implementation.remembers()) return hints;
  const auto has_bits = [&](const TensorMap& outputs, const Tensor& bits) {
    const auto found = outputs.find(output);
    return found != outputs.end() && SameBits(found->second, bits);
  };
  // Runs twice, so that both results follow a call with the same data.
  const TensorMap once = implementation.Run(op, c, evidence.inputs, 0);
  const TensorMap twice = implementation.Run(op, c, evidence.inputs, 0);
  if (once.contains(output) && !has_bits(twice, once.at(output))) {
    hints.insert(hints.begin(),
                 "not deterministic, or += for =: the same call gives other "
                 "bits");
    return hints;
  }
  // Runs other data of the same shape, then this case once more.
  const Case other = OtherData(OtherData(c));
  const TensorMap others = op.Inputs(other);
  const TensorMap elsewhere = implementation.Run(op, other, others, 0);
  if (HasData(got->second) && has_bits(elsewhere, got->second) &&
      Differ(ExpectOf(op, other, others, {}).outputs.at(output),
             expected->second)) {
    hints.insert(hints.begin(),
                 "other data gives the same bits: the output of an earlier "
                 "call, or it does not depend on its inputs");
    return hints;
  }
  if (!has_bits(implementation.Run(op, c, evidence.inputs, 0), got->second)) {
    hints.insert(hints.begin(),
                 "depends on earlier calls: a stale buffer, or += for =");
  }
  return hints;
}

}  // namespace softmoe::verify

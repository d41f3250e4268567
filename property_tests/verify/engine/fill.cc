// SPDX-License-Identifier: Apache-2.0
#include "property_tests/verify/engine/fill.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/errors.h"
#include "core/philox.h"

namespace softmoe::verify {
namespace {

double Normal(const std::array<uint32_t, 4>& words) {
  return NormalsFromWords(words[0], words[1])[0];
}

// A whole number in [-4, 4], often 0.
double SmallWhole(const std::array<uint32_t, 4>& words) {
  return static_cast<double>(words[2] % 9) - 4;
}

}  // namespace

const std::vector<FillInfo>& Fills() {
  static const std::vector<FillInfo> fills = {
      {"generic", "normal data, scores normal times `spread`"},
      {"exact",
       "small whole numbers and powers of 2, such that every intermediate is "
       "exact: bounds are 0 (where an operation can have it so)"},
      {"subnormal", "data below the smallest normal number"},
      {"huge", "data 1e4 times as large; scores at +-1e4 and a little more"},
      {"ties", "half of the scores equal to an earlier one of their row"},
      {"near_ties",
       "half of the scores at most N ulp from an earlier one of their row",
       true},
      {"plateau", "scores in three clusters, 8 `spread` apart"},
      {"wide_gap",
       "a whole mean_active, and as many scores of each row 40, 200 or 2000 T "
       "above the others: sum f is nearly 0"},
      {"wide_gap_beside",
       "the same, with mean_active 1 to 4 ulp beside the whole number"},
      {"all_equal",
       "one score per row; in some rows 0 and -0 beside each other, which tie"},
      {"dominant", "one score of each row far above the others"},
      {"monotone", "scores fall with the expert"},
      {"breakpoint", "mean_active such that the root meets a score"},
      {"whole_k", "mean_active rounded to a whole number"},
      {"cutoff_exact",
       "equal scores, p = 1/2 = cutoff: none is strictly above it"},
      {"cutoff_at_weight",
       "the cutoff is 1 or 2 ulp from a weight of the first row"},
      {"none_active", "a cutoff that no weight reaches"},
      {"cap_reached", "a cutoff of 0: only the cap decides"},
      {"one_expert_all", "every row goes to the first expert, and no other"},
      {"expert_0_and_1",
       "the first expert gets no row, the second exactly the first one"},
      {"uneven_ranks",
       "seven of eight rows go to the first four experts, the others to the "
       "rest: unequal loads of ranks that hold four each"},
      {"empty", "no row has an active expert"},
      {"repeated", "all ids are the same"},
      {"first_update",
       "moments of zero, as before the first update; every second gradient is "
       "0, too"},
      {"unseen",
       "every second gradient is 0, and some steps have no other: the moments "
       "decay all the same"},
      {"far_below",
       "every score so far below 0 that e to its power is 0: at -200, at f64 "
       "at -1000, and except at bf16 in some cases at -12000; in attention at "
       "bf16 those of a query are equal"},
      {"largest", "numbers beside the largest finite ones"},
      {"zero_rows",
       "the first of every four rows is 0; in experts also the first of every "
       "four columns of G"},
  };
  return fills;
}

uint32_t NameKey(const std::string& name) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619u;
  }
  return (hash ^ (hash >> 24)) & 0xffffffu;
}

const FillInfo& FindFill(const std::string& name) {
  for (const FillInfo& fill : Fills()) {
    if (fill.name == name) return fill;
  }
  throw InternalError("fill '" + name + "' is offered but not known");
}

Window Filler::Axis(const std::string& parameter) const {
  const auto found = case_.sizes.find(parameter);
  SOFTMOE_CHECK(found != case_.sizes.end()) << parameter;
  return found->second;
}

std::array<uint32_t, 4> Filler::Words(const std::string& name,
                                      const std::vector<int64_t>& index) const {
  SOFTMOE_CHECK(index.size() <= 4) << name;
  uint64_t address = 0;
  for (const int64_t& i : index) {
    const bool first = &i == index.data() && index.size() <= 2;
    SOFTMOE_CHECK(i >= 0 && (first || i < kMaxIndex)) << name << " at " << i;
    address = address << 16 | static_cast<uint64_t>(i);
  }
  return PhiloxWords(
      {case_.seed, RandomStream::kTestData, case_.number, NameKey(name)},
      address);
}

template <typename Value>
Tensor Filler::Build(Dtype dtype, const std::vector<Window>& axes,
                     const Value& value) const {
  std::vector<int64_t> shape, index;
  for (const Window& axis : axes) {
    shape.push_back(axis.count);
    index.push_back(axis.first);
  }
  Tensor tensor(dtype, shape);
  for (double& element : tensor.values) {
    element = RoundTo(dtype, value(index));
    for (size_t d = axes.size(); d-- > 0;) {
      if (++index[d] < axes[d].first + axes[d].count) break;
      index[d] = axes[d].first;
    }
  }
  return tensor;
}

Tensor Filler::Plain(const std::string& name, const std::vector<Window>& axes,
                     double scale) const {
  const bool exact = case_.fill.name == "exact";
  return Build(dtype_, axes, [&](const std::vector<int64_t>& index) {
    const auto words = Words(name, index);
    return exact ? SmallWhole(words) : scale * Normal(words);
  });
}

Tensor Filler::Cotangent(const std::string& name,
                         const std::vector<Window>& axes) const {
  static constexpr double kScales[] = {0x1p-30, 0x1p-20, 1, 1, 0x1p10};
  const std::string& fill = case_.fill.name;
  const double scale =
      fill == "exact" || fill == "huge"
          ? 1
          : kScales[Words("cotangent", {0})[0] % std::size(kScales)];
  return Plain(name, axes, scale);
}

Tensor Filler::Data(const std::string& name, const std::vector<Window>& axes,
                    double scale) const {
  const std::string& fill = case_.fill.name;
  if (fill != "subnormal" && fill != "huge") return Plain(name, axes, scale);
  return Build(dtype_, axes, [&](const std::vector<int64_t>& index) {
    const auto words = Words(name, index);
    if (fill == "huge") return 1e4 * scale * Normal(words);
    return Subnormal(words);
  });
}

double Filler::Subnormal(const std::array<uint32_t, 4>& words) const {
  int64_t most = 2048;
  if (case_.dtype == Dtype::kBf16) {
    most = dtype_ == Dtype::kBf16 ? 127 : 0x7fffff;
  }
  return StepBy(dtype_, 0, words[0] % (2 * most + 1) - most);
}

double Filler::Temperature() const {
  const auto found = case_.reals.find("temperature");
  return found == case_.reals.end() ? 1 : found->second;
}

double Filler::WholeActive(const std::string& experts) const {
  const double count = static_cast<double>(Axis(experts).count);
  const double k = case_.Real("mean_active");
  return count < 2 ? k : std::clamp(std::round(k), 1.0, count - 1);
}

double Filler::BesideWholeActive(const std::string& experts) const {
  static constexpr int64_t kSteps[] = {1, -1, 2, -2, 3, -3, 4, -4};
  const int64_t step = kSteps[Words("beside", {0})[0] % std::size(kSteps)];
  return StepBy(dtype_, RoundTo(dtype_, WholeActive(experts)), step);
}

double Filler::FarBelow() const {
  if (case_.dtype == Dtype::kBf16) return 200;
  if (Words("far below", {0})[0] % 3 == 0) return 12000;
  return case_.dtype == Dtype::kF64 ? 1000 : 200;
}

bool Filler::AmongFirst(const std::string& name, int64_t row, int64_t expert,
                        const Window& experts, int64_t count) const {
  const int64_t start = Words(name, {row, kMaxIndex - 1})[2] % experts.count;
  return (expert - experts.first + start) % experts.count < count;
}

double Filler::Score(const std::string& name, int64_t row, int64_t expert,
                     const Window& experts, double spread) const {
  const std::string& fill = case_.fill.name;
  const auto words = Words(name, {row, expert});
  const double plain = spread * Normal(words);
  const bool tied = expert > 0 && words[2] % 2 == 0;
  const int64_t partner = expert > 0 ? words[3] % expert : 0;
  if (fill == "ties" && tied) {
    return Score(name, row, partner, experts, spread);
  }
  if (fill == "near_ties" && tied) {
    const int64_t width = 2 * case_.fill.argument + 1;
    return StepBy(
        dtype_, RoundTo(dtype_, Score(name, row, partner, experts, spread)),
        static_cast<int64_t>((words[2] >> 1) % width) - case_.fill.argument);
  }
  if (fill == "plateau") {
    return 8 * spread * (static_cast<double>(words[2] % 3) - 1);
  }
  if (fill == "wide_gap" || fill == "wide_gap_beside") {
    const int64_t count =
        static_cast<int64_t>(WholeActive("num_experts"));  // above the gap
    const bool above = AmongFirst(name, row, expert, experts, count);
    const double gap = row % 3 == 0 ? 40 : row % 3 == 1 ? 200 : 2000;
    return Temperature() * ((above ? gap : 0) + Normal(words) / 4);
  }
  if (fill == "exact") {
    // 1, 2, 4, ... scores are equal; the others are so far below that e^x is 0.
    const auto row_words = Words(name, {row, kMaxIndex - 1});
    const int64_t choices =
        std::bit_width(static_cast<uint64_t>(experts.count));
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a row has an expert
    const int64_t count = int64_t{1} << row_words[3] % choices;
    const double top = 1024 * (static_cast<double>(row_words[0] % 5) - 2);
    return AmongFirst(name, row, expert, experts, count)
               ? top
               : top - 1024 * (1 + static_cast<double>(words[0] % 4));
  }
  if (fill == "all_equal" || fill == "cutoff_exact") {
    const auto row_words = Words(name, {row, kMaxIndex - 1});
    if (fill == "all_equal" && row_words[2] % 4 == 0) {
      return words[2] % 2 == 0 ? 0.0 : -0.0;
    }
    return spread * Normal(row_words);
  }
  if (fill == "dominant") {
    const int64_t leader =
        experts.first + Words(name, {row, kMaxIndex - 1})[2] % experts.count;
    return expert == leader ? 16 * spread + plain : plain / 64;
  }
  if (fill == "monotone") {
    return spread * (static_cast<double>(-expert) / 4 +
                     static_cast<double>(row % 8) / 2);
  }
  if (fill == "subnormal") return Subnormal(words);
  if (fill == "huge") return (words[2] % 2 == 0 ? 1e4 : -1e4) + plain;
  const double far = 64 * (spread + Temperature());
  if (fill == "one_expert_all") return expert == 0 ? far : plain;
  if (fill == "uneven_ranks") {
    return GoesToTheFirstRank(row) == (expert < kRankExperts) ? plain + far
                                                              : plain;
  }
  if (fill == "expert_0_and_1") {
    if (expert > 1) return plain;
    return expert == 1 && row == 0 ? far : -far;
  }
  return plain;
}

Tensor Filler::Scores(const std::string& name,
                      const std::string& rows_parameter,
                      const std::string& experts_parameter,
                      double spread) const {
  const Window experts = Axis(experts_parameter);
  return Build(dtype_, {Axis(rows_parameter), experts},
               [&](const std::vector<int64_t>& index) {
                 return Score(name, index[0], index[1], experts, spread);
               });
}

Tensor Filler::OneOf(const std::string& name, const std::vector<Window>& axes,
                     const std::vector<double>& values) const {
  return Build(dtype_, axes, [&](const std::vector<int64_t>& index) {
    return values[Words(name, index)[2] % values.size()];
  });
}

std::vector<int64_t> Filler::Ranks(const std::string& name,
                                   const std::vector<int64_t>& before,
                                   const Window& axis) const {
  std::vector<std::pair<uint32_t, int64_t>> order;
  for (int64_t i = 0; i < axis.count; ++i) {
    std::vector<int64_t> index = before;
    index.push_back(axis.first + i);
    order.emplace_back(Words(name + " rank", index)[0], i);
  }
  std::ranges::sort(order);
  std::vector<int64_t> ranks(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    ranks[order[i].second] = static_cast<int64_t>(i);
  }
  return ranks;
}

Tensor Filler::Ids(const std::string& name, const std::vector<Window>& axes,
                   int64_t limit) const {
  const bool repeated = case_.fill.name == "repeated";
  return Build(Dtype::kI32, axes, [&](const std::vector<int64_t>& index) {
    const std::vector<int64_t> first(index.size(), kMaxIndex - 1);
    const auto words = Words(name, repeated ? first : index);
    return static_cast<double>(words[0] % static_cast<uint64_t>(limit));
  });
}

Tensor Filler::Scalar(double value) const {
  Tensor scalar(dtype_, {});
  scalar.values = {RoundTo(dtype_, value)};
  return scalar;
}

Lattice::Lattice(int64_t points, double unit) : unit_(unit) {
  while (width_ * width_ < points) ++width_;
}

std::array<double, Lattice::kFactors> Lattice::Query(int64_t point) const {
  const double x = static_cast<double>(point % width_ - width_ / 2);
  const double y = static_cast<double>(point / width_ - width_ / 2);
  return {x * x + y * y, x, y, 1};
}

std::array<double, Lattice::kFactors> Lattice::Key(int64_t point) const {
  const auto [square, x, y, one] = Query(point);
  return {-unit_ * one, unit_ * 2 * x, unit_ * 2 * y, -unit_ * square};
}

}  // namespace softmoe::verify

// SPDX-License-Identifier: Apache-2.0
//
// Every directed fill of every operation produces what its name says, in every
// case. This is checked in the data and, where the name promises an effect, in
// what the reference computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "property_tests/verify/engine/fill.h"
#include "property_tests/verify/fill_sample.h"
#include "reference/lm_head.h"
#include "reference/matrix.h"

namespace softmoe::verify {
namespace {

constexpr int kCases = 20;

using Promise = std::function<bool(const Sample&)>;

bool EveryRow(const Sample& s, const std::function<bool(int64_t)>& holds) {
  for (int64_t t = 0; t < s.rows(); ++t) {
    if (!holds(t)) return false;
  }
  return true;
}

// The share of scores that are within `ulps` of an earlier one in their row.
double ShareNearEarlier(const Sample& s, int64_t ulps) {
  int64_t near = 0;
  for (int64_t t = 0; t < s.rows(); ++t) {
    for (int64_t e = 1; e < s.experts(); ++e) {
      bool found = false;
      for (int64_t i = 0; i < e && !found; ++i) {
        const double low = StepBy(Dtype::kF32, s.Score(t, i), -ulps);
        const double high = StepBy(Dtype::kF32, s.Score(t, i), ulps);
        found = s.Score(t, e) >= low && s.Score(t, e) <= high;
      }
      near += found;
    }
  }
  return static_cast<double>(near) /
         static_cast<double>(s.rows() * (s.experts() - 1));
}

bool IsExact(const Sample& s) {
  for (const auto& [name, tensor] : s.inputs) {
    // Data that the fill does not reach may stay as drawn.
    if (tensor.shape.empty()) continue;
    for (const double x : tensor.values) {
      if (std::nearbyint(4 * x) != 4 * x) return false;
    }
  }
  for (const auto& [name, output] : s.expected.outputs) {
    if (output.values.dtype == Dtype::kI32) continue;
    if (std::ranges::all_of(output.bounds, [](double b) { return b == 0; })) {
      return true;
    }
  }
  return false;
}

// Whether some tensor is 1e4 times the generic one, element by element, up to
// its rounding.
bool IsTenThousandTimesGeneric(const Sample& s) {
  Case generic = s.c;
  generic.fill = {};
  const TensorMap others = InputsOf(s.op, generic);
  return std::ranges::any_of(s.inputs, [&](const auto& each) {
    const std::vector<double>& huge = each.second.values;
    const std::vector<double>& plain = others.at(each.first).values;
    double largest = 0;
    bool holds = true;
    for (size_t i = 0; i < huge.size(); ++i) {
      holds = holds &&
              std::abs(huge[i] - 1e4 * plain[i]) <= 0x1p-22 * std::abs(huge[i]);
      largest = std::max(largest, std::abs(huge[i]));
    }
    return holds && largest > 0;
  });
}

bool OneExpertAll(const Sample& s) {
  if (!s.Has("active") && !s.Soft()) {  // the others also take the next
    return EveryRow(s,
                    [&](int64_t t) { return s.Score(t, 0) == s.Sorted(t)[0]; });
  }
  for (int64_t e = 1; e < s.Active().shape[1]; ++e) {
    if (s.Load(e) != 0) return false;
  }
  return s.Load(0) == s.Active().shape[0];
}

bool ExpertsZeroAndOne(const Sample& s) {
  if (s.op.name() == "balance_sums") {
    const auto& counts = s.expected.outputs.at("counts").values.values;
    return counts[0] == 0 && counts[1] == 1;
  }
  return s.Load(0) == 0 && s.Load(1) == 1;
}

// At least three times the load: 11 of the 12 rows of FixedFor.
bool UnevenRanks(const Sample& s) {
  std::vector<double> loads;
  if (s.op.name() == "balance_sums") {
    loads = s.expected.outputs.at("counts").values.values;
  } else {
    for (int64_t e = 0; e < s.Active().shape[1]; ++e) {
      loads.push_back(static_cast<double>(s.Load(e)));
    }
  }
  const auto rest = loads.begin() + Filler::kRankExperts;
  const double first = std::accumulate(loads.begin(), rest, 0.0);
  return first > 0 && first >= 3 * std::accumulate(rest, loads.end(), 0.0);
}

// The scores of every query with every key of its sequence, later ones
// included, or the logits of every token.
std::vector<double> AttentionScoresOrLogits(const Sample& s) {
  std::vector<double> scores;
  if (s.op.name() == "lm_head") {
    const reference::Matrix logits =
        reference::LmHeadLogits(ToMatrix(At(s.inputs, "hidden")),
                                ToMatrix(At(s.inputs, "head_weight")));
    scores.assign(logits.data(), logits.data() + logits.size());
    return scores;
  }
  const reference::Matrix qkv = ToMatrix(At(s.inputs, "qkv"));
  const int64_t length = s.c.Size("length"), dim = s.c.Size("head_dim");
  const int64_t width = qkv.cols() / 3;
  for (int64_t t = 0; t < qkv.rows(); ++t) {
    for (int64_t key = t / length * length; key < (t / length + 1) * length;
         ++key) {
      for (int64_t column = 0; column < width; column += dim) {
        const double product =
            qkv.row(t)
                .segment(column, dim)
                .dot(qkv.row(key).segment(width + column, dim));
        scores.push_back(product / std::sqrt(static_cast<double>(dim)));
      }
    }
  }
  return scores;
}

bool EverySecondGradientIsZero(const Sample& s) {
  const Tensor& gradient = At(s.inputs, "gradient");
  for (int64_t i = 0; i < gradient.size(); ++i) {
    const int64_t step = i / gradient.shape[1], j = i % gradient.shape[1];
    if ((gradient.values[i] == 0) != ((step + j) % 2 == 0)) return false;
  }
  return true;
}

const std::map<std::string, Promise>& Promises() {
  static const std::map<std::string, Promise> promises = {
      {"generic",
       [](const Sample& s) {
         std::vector<double> values;
         for (const auto& [name, tensor] : s.inputs) {
           if (tensor.dtype == Dtype::kI32 || tensor.shape.empty()) continue;
           values.insert(values.end(), tensor.values.begin(),
                         tensor.values.end());
         }
         return std::ranges::all_of(
                    values, [](double x) { return std::isfinite(x); }) &&
                std::ranges::any_of(values,
                                    [&](double x) { return x != values[0]; });
       }},
      {"exact", IsExact},
      {"subnormal",
       [](const Sample& s) {
         return s.SomeTensor([](double x) { return std::abs(x) < 0x1p-126; });
       }},
      {"huge",
       [](const Sample& s) {
         if (!s.Has("scores")) return IsTenThousandTimesGeneric(s);
         return EveryRow(s, [&](int64_t t) {
           return std::abs(std::abs(s.Sorted(t)[0]) - 1e4) < 1e3;
         });
       }},
      {"ties", [](const Sample& s) { return ShareNearEarlier(s, 0) > 0.25; }},
      {"near_ties",
       [](const Sample& s) {
         return ShareNearEarlier(s, s.c.fill.argument) > 0.25 &&
                ShareNearEarlier(s, 0) < ShareNearEarlier(s, 8);
       }},
      {"plateau",
       [](const Sample& s) {
         const double gap = 8 * s.c.Real("spread");
         return EveryRow(s, [&](int64_t t) {
           return std::ranges::all_of(s.Sorted(t), [&](double x) {
             return x == 0 || std::abs(x) == RoundTo(Dtype::kF32, gap);
           });
         });
       }},
      {"wide_gap",
       [](const Sample& s) {
         const double k = s.Scalar("mean_active");
         return k == std::round(k) && EveryRow(s, [&](int64_t t) {
                  const auto row = s.Sorted(t);
                  const int64_t i = static_cast<int64_t>(k);
                  // Every density is below e^-15/2: sum f is nearly 0.
                  return row[i - 1] - row[i] > 30 * s.Scalar("temperature") &&
                         s.Solve(t).min_distance > 15;
                });
       }},
      {"wide_gap_beside",
       [](const Sample& s) {
         const double k = s.Scalar("mean_active"), whole = std::round(k);
         const double beside = std::abs(k - whole);
         return beside > 0 && beside <= 0x1p-21 * whole &&
                EveryRow(s, [&](int64_t t) {
                  const auto row = s.Sorted(t);
                  const int64_t i = static_cast<int64_t>(whole);
                  return row[i - 1] - row[i] > 30 * s.Scalar("temperature");
                });
       }},
      {"all_equal",
       [](const Sample& s) {
         return EveryRow(s, [&](int64_t t) {
           return s.Sorted(t).front() == s.Sorted(t).back();
         });
       }},
      {"dominant",
       [](const Sample& s) {
         return EveryRow(s, [&](int64_t t) {
           const auto row = s.Sorted(t);
           return row[0] - row[1] > 8 * s.c.Real("spread");
         });
       }},
      {"monotone",
       [](const Sample& s) {
         return EveryRow(s, [&](int64_t t) {
           for (int64_t e = 1; e < s.experts(); ++e) {
             if (s.Score(t, e) >= s.Score(t, e - 1)) return false;
           }
           return true;
         });
       }},
      {"whole_k",
       [](const Sample& s) {
         const double k = s.Scalar("mean_active");
         return k == std::round(k) && k >= 1 &&
                k < static_cast<double>(s.experts());
       }},
      {"breakpoint",
       [](const Sample& s) {
         // The rounding of mean_active, 2^-24 k, moves u by at most twice that.
         return s.Solve(0).min_distance <=
                0x1p-22 * static_cast<double>(s.experts());
       }},
      {"cutoff_exact",
       [](const Sample& s) {
         return EveryRow(s, [&](int64_t t) {
           return (s.Solve(t).weights.array() == 0.5).all() &&
                  s.Scalar("cutoff") == 0.5;
         });
       }},
      {"cutoff_at_weight",
       [](const Sample& s) {
         const reference::Vector p = s.Solve(0).weights;
         return (p.array() - s.Scalar("cutoff")).abs().minCoeff() <=
                0x1p-21 * s.Scalar("cutoff");
       }},
      {"none_active",
       [](const Sample& s) {
         for (int64_t e = 0; e < s.experts(); ++e) {
           if (s.Load(e) != 0) return false;
         }
         return true;
       }},
      {"cap_reached",
       [](const Sample& s) {
         int64_t total = 0;
         for (int64_t e = 0; e < s.experts(); ++e) total += s.Load(e);
         return total == s.rows() * s.c.Size("max_active");
       }},
      {"one_expert_all", OneExpertAll},
      {"expert_0_and_1", ExpertsZeroAndOne},
      {"uneven_ranks", UnevenRanks},
      {"empty",
       [](const Sample& s) {
         const auto& active = s.Active().values;
         return std::ranges::all_of(active, [](double x) { return x == 0; });
       }},
      {"repeated",
       [](const Sample& s) {
         return std::ranges::any_of(s.inputs, [](const auto& each) {
           const std::vector<double>& ids = each.second.values;
           return each.second.dtype == Dtype::kI32 &&
                  std::ranges::all_of(ids,
                                      [&](double x) { return x == ids[0]; });
         });
       }},
      {"first_update",
       [](const Sample& s) {
         const auto zero = [](double x) { return x == 0; };
         return s.c.Size("completed") == 0 &&
                std::ranges::all_of(At(s.inputs, "first_moment").values,
                                    zero) &&
                std::ranges::all_of(At(s.inputs, "second_moment").values,
                                    zero) &&
                // An element that no update has seen still decays.
                EverySecondGradientIsZero(s);
       }},
      {"unseen",
       [](const Sample& s) {
         const Tensor& gradient = At(s.inputs, "gradient");
         const int64_t size = gradient.shape[1];
         std::vector<double> moments = At(s.inputs, "first_moment").values;
         std::ranges::transform(moments, At(s.inputs, "second_moment").values,
                                moments.begin(), std::multiplies<>());
         for (int64_t step = 0; step < gradient.shape[0]; ++step) {
           int64_t unseen = 0;
           for (int64_t i = 0; i < size; ++i) {
             unseen += gradient.values[step * size + i] == 0 && moments[i] != 0;
           }
           if (unseen < size / 2) return false;
         }
         return true;
       }},
      {"far_below",
       [](const Sample& s) {
         const double depth = s.c.dtype == Dtype::kF64 ? 800 : 120;
         return std::ranges::all_of(AttentionScoresOrLogits(s),
                                    [&](double x) { return x < -depth; });
       }},
      {"largest",
       [](const Sample& s) {
         return std::ranges::all_of(At(s.inputs, "x").values, [](double x) {
           return std::abs(x) > 0x1.fcp127 && std::abs(x) < 0x1.ffp127;
         });
       }},
      {"zero_rows",
       [](const Sample& s) {
         const Tensor& x = At(s.inputs, s.Has("x") ? "x" : "hidden");
         const int64_t width = x.shape[1];
         for (int64_t i = 0; i < x.size(); ++i) {
           if ((x.values[i] == 0) != (i / width % 4 == 0)) return false;
         }
         return true;
       }},
  };
  return promises;
}

// The parameters that a case of this fill fixes so that the promise can be
// kept: only the soft router selects by cutoff, and only some shapes are exact.
CasePattern FixedFor(const Operation& op, const std::string& fill) {
  CasePattern fixed = {{"fill", fill}};
  const auto fix = [&](const std::string& name, const std::string& value) {
    if (op.FindParameter(name) != nullptr) fixed[name] = value;
  };
  fix("rows", "12");
  fix("num_experts", op.name() == "experts" ? "7" : "17");
  fix("max_active", "3");
  fix("count_top", "3");
  fix("kind", fill == "exact" ? "sparse" : "soft");
  fix("fallback", "none");
  if (fill == "exact") {
    fix("basis", "softmax");
    fix("d_model", "32");
    fix("head_dim", "16");
  }
  if (fill == "expert_0_and_1") fix("basis", "softmax");
  return fixed;
}

TEST(Fills, AreAllOfferedByAnOperation) {
  std::set<std::string> offered;
  for (const Operation* op : Operations()) {
    for (const std::string& fill : op->fills()) offered.insert(fill);
  }
  for (const FillInfo& fill : Fills()) {
    EXPECT_TRUE(offered.contains(fill.name)) << fill.name;
  }
}

// At bf16, if 8 bits hold what our kernels store on the way, one number is
// right.
TEST(Fills, ExactIsExactAtBf16) {
  const std::pair<const char*, CasePattern> kSmall[] = {
      {"attention", {{"head_dim", "16"}, {"length", "80"}}},
      {"lm_head", {}},
      {"experts", {{"d_model", "2"}, {"d_ffn", "4"}}}};
  for (const auto& [name, sizes] : kSmall) {
    CasePattern fixed = sizes;
    fixed.insert({{"dtype", "bf16"}, {"fill", "exact"}});
    const Sample s(FindOperation(name), fixed, 0);
    for (const OutputSpec& spec : s.op.outputs()) {
      const ExpectedOutput& output = s.expected.of_ours.at(spec.name);
      for (int64_t i = 0; i < output.values.size(); ++i) {
        EXPECT_EQ(output.bounds[i], 0) << name << " " << spec.name;
      }
    }
  }
}

// A fallback may choose an expert whose soft weight float flushes to 0.
TEST(Fills, GatesOfActiveExpertsAreZeroNowAndThen) {
  for (const char* name : {"experts", "route_plan"}) {
    const Operation& op = FindOperation(name);
    for (const std::string& fill : op.fills()) {
      if (fill == "empty") continue;
      int zero = 0, other = 0;
      for (uint32_t number = 0; number < kCases; ++number) {
        const Sample s(op, FixedFor(op, fill), number);
        const Tensor& gates = At(s.inputs, "gates");
        for (int64_t i = 0; i < gates.size(); ++i) {
          if (s.Active().values[i] == 0) continue;
          ++(gates.values[i] == 0 ? zero : other);
        }
      }
      EXPECT_GE(zero, 10) << name << " " << fill;
      EXPECT_GE(other, 2 * zero) << name << " " << fill;
    }
  }
}

// SiLU has an argument of 0 there, and a slope of 1/2.
TEST(Fills, ZeroColumnsOfGHaveGradients) {
  const Operation& op = FindOperation("experts");
  for (const Dtype dtype : op.dtypes()) {
    int shown = 0;
    for (uint32_t number = 0; number < kCases; ++number) {
      CasePattern fixed = FixedFor(op, "zero_rows");
      fixed["dtype"] = DtypeName(dtype);
      const Sample s(op, fixed, number);
      const int64_t inner = s.c.Size("d_ffn");
      const Tensor& weight = At(s.inputs, "gate_up_weight");
      const ExpectedOutput& d = s.expected.outputs.at("d_gate_up_weight");
      bool shows = false;
      for (int64_t i = 0; i < weight.size(); ++i) {
        const int64_t column = i % (2 * inner);
        const bool zero = column < inner && column % 4 == 0;
        ASSERT_EQ(weight.values[i] == 0, zero) << CaseText(s.c);
        shows = shows || (zero && std::abs(d.values.values[i]) > d.bounds[i]);
      }
      shown += shows;
    }
    EXPECT_GE(shown, kCases / 2) << DtypeName(dtype);
  }
}

// A program whose softmax divides 0 by 0, or yields 0 for it, is wrong, and one
// that stores scores is right: only finite bounds can show either.
TEST(Fills, FarBelowHasBoundsAtBf16) {
  const Operation& op = FindOperation("attention");
  for (uint32_t number = 0; number < kCases; ++number) {
    const Sample s(op, {{"fill", "far_below"}, {"dtype", "bf16"}}, number);
    for (const auto* outputs : {&s.expected.outputs, &s.expected.of_ours}) {
      for (const auto& [name, output] : *outputs) {
        for (const double bound : output.bounds) {
          ASSERT_LT(bound, HUGE_VAL) << name << " " << CaseText(s.c);
        }
      }
      const ExpectedOutput& out = outputs->at("out");
      bool shows = out.values.size() == 0;
      for (int64_t i = 0; i < out.values.size(); ++i) {
        shows = shows || std::abs(out.values.values[i]) > out.bounds[i];
      }
      EXPECT_TRUE(shows) << CaseText(s.c);
    }
  }
}

// Zeros of either sign tie, although their bits differ.
TEST(Fills, AllEqualHasZerosOfBothSignsInARow) {
  for (const Operation* op : Operations()) {
    if (std::ranges::count(op->fills(), "all_equal") == 0) continue;
    int both = 0, rows = 0;
    for (uint32_t number = 0; number < kCases; ++number) {
      const Sample s(*op, FixedFor(*op, "all_equal"), number);
      for (int64_t t = 0; t < s.rows(); ++t) {
        int signs[2] = {0, 0};
        for (int64_t e = 0; e < s.experts(); ++e) {
          const double score = s.Score(t, e);
          if (score == 0) ++signs[std::signbit(score)];
        }
        ++rows;
        both += signs[0] > 0 && signs[1] > 0;
      }
    }
    EXPECT_GE(8 * both, rows) << op->name();
    EXPECT_LE(2 * both, rows) << op->name();
  }
}

class EveryFill : public ::testing::TestWithParam<const Operation*> {};

TEST_P(EveryFill, ProducesWhatItsNameSays) {
  const Operation& op = *GetParam();
  for (const std::string& fill : op.fills()) {
    const auto promise = Promises().find(fill);
    ASSERT_NE(promise, Promises().end())
        << "say here what fill " << fill << " promises";
    for (uint32_t number = 0; number < kCases; ++number) {
      const std::string name = FindFill(fill).takes_argument
                                   ? fill + ":" + std::to_string(1 + number % 8)
                                   : fill;
      CasePattern fixed = FixedFor(op, name);
      if (fill == "exact") fixed = FixedFor(op, "exact");
      if (fill == "subnormal" || fill == "far_below") {  // at every dtype
        fixed["dtype"] = DtypeName(op.dtypes()[number % op.dtypes().size()]);
      }
      const Sample sample(op, fixed, number);
      EXPECT_TRUE(promise->second(sample)) << CaseText(sample.c);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryFill, ::testing::ValuesIn(Operations()),
                         [](const auto& info) { return info.param->name(); });

}  // namespace
}  // namespace softmoe::verify

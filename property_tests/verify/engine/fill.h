// SPDX-License-Identifier: Apache-2.0
//
// fill.h - the data of a case, element by element.
//
// Each element is a pure function of (seed, case number, tensor name, index in
// every dimension), by Philox: threads do not matter, and a window of a
// dimension (case.h) keeps the values that it shows. (But `dominant`, the wide
// gaps and `exact` scores depend on the window, too.) Fills have names; to
// change what a name means, take a new name or a new version of the REPRO line
// (replay.h).
#ifndef SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_FILL_H_
#define SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_FILL_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/verify/engine/case.h"
#include "property_tests/verify/engine/tensor.h"

namespace softmoe::verify {

struct FillInfo {
  std::string name, text;
  bool takes_argument = false;
};
// All fills, whichever operations offer them.
const std::vector<FillInfo>& Fills();
// Throws InternalError for an unknown name.
const FillInfo& FindFill(const std::string& name);

// A number for a name, below 2^24: the part of the Philox key that keeps
// tensors and parameters apart.
uint32_t NameKey(const std::string& name);

// The largest N of "near_ties:N".
inline constexpr int64_t kMaxFillArgument = 1 << 20;

// The number of indices per dimension; the first dimension of a tensor of rank
// 1 or 2 may have more. Tensors have at most four dimensions.
inline constexpr int64_t kMaxIndex = 1 << 16;

class Filler {
 public:
  explicit Filler(const Case& c) : case_(c), dtype_(c.dtype) {}

  // For inputs that programs do not keep as bf16: the same, in float there.
  Filler InFloat() const {
    Filler filler = *this;
    if (dtype_ == Dtype::kBf16) filler.dtype_ = Dtype::kF32;
    return filler;
  }

  // The window of a size parameter, or a whole dimension of `count`.
  Window Axis(const std::string& parameter) const;
  static Window All(int64_t count) { return {count, 0}; }

  // Data that follows the fill, except for fills that only shape scores:
  //   exact      whole numbers in [-4, 4]
  //   subnormal  below the smallest normal number
  //   huge       1e4 times as large
  //   otherwise  normal with standard deviation `scale`
  Tensor Data(const std::string& name, const std::vector<Window>& axes,
              double scale = 1) const;
  // Normal for every fill except `exact`, which takes whole numbers: for
  // weights.
  Tensor Plain(const std::string& name, const std::vector<Window>& axes,
               double scale = 1) const;
  // Plain, times a power of 2 that all cotangents of the case share: 2^-30,
  // 2^-20, 1 or 2^10. It is 1 in fills `exact` and `huge`.
  Tensor Cotangent(const std::string& name,
                   const std::vector<Window>& axes) const;
  // Router scores [rows, experts]; Fills() says what each fill means.
  Tensor Scores(const std::string& name, const std::string& rows_parameter,
                const std::string& experts_parameter, double spread) const;
  // Any of `values`, equally likely.
  Tensor OneOf(const std::string& name, const std::vector<Window>& axes,
               const std::vector<double>& values) const;
  // A random permutation of 0 .. axis.count-1, the ranks of the window's
  // elements; `before` holds the indices of the dimensions before it.
  std::vector<int64_t> Ranks(const std::string& name,
                             const std::vector<int64_t>& before,
                             const Window& axis) const;
  // mean_active as a whole number that leaves at least one expert active and
  // one inactive, if there are two experts.
  double WholeActive(const std::string& experts_parameter) const;
  // WholeActive plus or minus 1 to 4 units in the last place of the dtype.
  double BesideWholeActive(const std::string& experts_parameter) const;
  // For fill zero_rows: whether the row is 0.
  bool IsZeroRow(int64_t row) const {
    return case_.fill.name == "zero_rows" && row % 4 == 0;
  }
  // For fill far_below: by how much scores are below 0. Beyond 10^4, a mask of
  // -10^4 is not far enough below them.
  double FarBelow() const;
  // Whole numbers in [0, limit), i32.
  Tensor Ids(const std::string& name, const std::vector<Window>& axes,
             int64_t limit) const;
  // For fill uneven_ranks: seven of eight rows go to the first rank's experts.
  static constexpr int64_t kRankExperts = 4;
  static bool GoesToTheFirstRank(int64_t row) { return row % 8 != 7; }
  // A number as a tensor of shape [].
  Tensor Scalar(double value) const;

  // Four random words for an element.
  std::array<uint32_t, 4> Words(const std::string& name,
                                const std::vector<int64_t>& index) const;

 private:
  template <typename Value>
  Tensor Build(Dtype dtype, const std::vector<Window>& axes,
               const Value& value) const;
  // One of the smallest numbers; at bf16, which has only 127 below the smallest
  // normal one, any of those or, for tensors in float, any between them.
  double Subnormal(const std::array<uint32_t, 4>& words) const;
  double Score(const std::string& name, int64_t row, int64_t expert,
               const Window& experts, double spread) const;
  // Whether `expert` is among the `count` neighbouring experts that its row
  // picks.
  bool AmongFirst(const std::string& name, int64_t row, int64_t expert,
                  const Window& experts, int64_t count) const;
  double Temperature() const;

  const Case& case_;
  Dtype dtype_;
};

// Points of a square lattice around the origin, as factors of the scores of
// fill `exact`: <Query(a), Key(s)> = -unit |a - s|^2, 0 for the same point.
// Query's elements, and Key's in units, are whole numbers; the products of two
// points add up to at most 2 width^2 units, and no score is below
// -2 (width - 1)^2 units.
class Lattice {
 public:
  static constexpr int64_t kFactors = 4;

  explicit Lattice(int64_t points, double unit = 1);
  int64_t width() const { return width_; }
  std::array<double, kFactors> Query(int64_t point) const;
  std::array<double, kFactors> Key(int64_t point) const;

 private:
  int64_t width_ = 1;
  double unit_;
};

}  // namespace softmoe::verify

#endif  // SOFTMOE_PROPERTY_TESTS_VERIFY_ENGINE_FILL_H_

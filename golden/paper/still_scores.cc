// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/still_scores.h"

#include <algorithm>
#include <array>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <complex>
#include <cstdint>
#include <eigen3/Eigen/Core>
#include <limits>
#include <vector>

#include "core/errors.h"

namespace softmoe::golden {
namespace {

using Complex = std::complex<double>;

// The normal mass beyond, 1e-15, is neglected.
constexpr double kReach = 8;
// Sums farther from their mean than Bernstein's bound allows at this
// log-probability, of 1e-7, are taken as certain.
constexpr double kTail = 16.1;
// The characteristic function's tail is dropped below this.
constexpr double kSmall = 1e-8;
// Maximum steps of the inversion, reached only with few experts, or if the
// scores spread so widely that hardly any other is near the m-th largest.
constexpr int kMostSteps = 1 << 10;
constexpr int kMostTemperatures = 32;  // of a schedule

double Density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * M_PI); }
double Above(double z) { return std::erfc(z / std::sqrt(2)) / 2; }

double Laplace(double u) {
  return u <= 0 ? std::exp(u) / 2 : 1 - std::exp(-u) / 2;
}
double LaplaceQuantile(double p) {
  return p <= 0.5 ? std::log(2 * p) : -std::log(2 * (1 - p));
}

// The Gauss-Legendre rule on [-1, 1].
template <int n>
struct Rule {
  std::array<double, n> node, weight;
  Rule() {
    for (int i = 0; i < n; ++i) {
      double x = std::cos(M_PI * (i + 0.75) / (n + 0.5)), slope = 0;
      for (int newton = 0; newton < 8; ++newton) {
        double before = 1, now = x;
        for (int j = 2; j <= n; ++j) {
          before = ((2 * j - 1) * x * now - (j - 1) * before) / j;
          std::swap(before, now);
        }
        slope = n * (x * now - before) / (x * x - 1);
        x -= now / slope;
      }
      node[i] = x;
      weight[i] = 2 / ((1 - x * x) * slope * slope);
    }
  }
};

// The terms G of the scores on one side of r, as values with probabilities.
struct Terms {
  std::vector<double> value, probability;
  double mean = 0, variance = 0, reach = 0;  // reach: of value from the mean

  // z in [from, to] is the score in units of its deviation.
  void Add(double from, double to, double z_of_r, double scale, double shift) {
    static const Rule<16> rule;
    if (!(to > from)) return;
    for (size_t i = 0; i < rule.node.size(); ++i) {
      const double z = (from + to + (to - from) * rule.node[i]) / 2;
      value.push_back(Laplace(scale * (z - z_of_r) + shift));
      probability.push_back(rule.weight[i] * (to - from) / 2 * Density(z));
    }
  }

  void Finish() {
    double sum = 0;
    for (const double p : probability) sum += p;
    for (size_t i = 0; i < value.size(); ++i) {
      probability[i] /= sum;
      mean += probability[i] * value[i];
    }
    for (size_t i = 0; i < value.size(); ++i) {
      const double off = value[i] - mean;
      variance += probability[i] * off * off;
      reach = std::max(reach, std::abs(off));
    }
  }
};

// A term's characteristic function at h/2, 3h/2, 5h/2, ...
class Characteristic {
 public:
  Characteristic(const Terms& terms, double h) {
    const auto n = static_cast<Eigen::Index>(terms.value.size());
    const Eigen::Map<const Eigen::ArrayXd> value(terms.value.data(), n);
    const Eigen::Map<const Eigen::ArrayXd> probability(terms.probability.data(),
                                                       n);
    const Eigen::ArrayXd half = h / 2 * value;
    cosine_ = half.cos();
    sine_ = half.sin();
    step_cosine_ = cosine_.square() - sine_.square();
    step_sine_ = 2 * cosine_ * sine_;
    cosine_ *= probability;
    sine_ *= probability;
  }
  Complex Next() {
    const Complex result(cosine_.sum(), sine_.sum());
    turned_ = cosine_ * step_cosine_ - sine_ * step_sine_;
    sine_ = cosine_ * step_sine_ + sine_ * step_cosine_;
    cosine_.swap(turned_);
    return result;
  }

 private:
  Eigen::ArrayXd cosine_, sine_, step_cosine_, step_sine_, turned_;
};

Complex Power(Complex base, int64_t exponent) {
  Complex result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

// Tapers the second half of the steps, so that a function that has not decayed
// by then ends without a jump: this smooths the distribution by about 1 /
// (steps h).
double Taper(int step) {
  static const std::vector<double> table = [] {
    std::vector<double> taper(kMostSteps, 1.0);
    for (int i = kMostSteps / 2; i < kMostSteps; ++i) {
      taper[i] = (1 + std::cos(M_PI * (2.0 * i / kMostSteps - 1))) / 2;
    }
    return taper;
  }();
  return table[step];
}

// The part of P(N >= m) that depends on one score z, in units of its deviation.
class ScoreAt {
 public:
  ScoreAt(const StillScores& s, double cutoff, double z)
      : num_experts_(s.num_experts), limit_(s.mean_active - cutoff), z_(z) {
    const double scale = s.spread / s.temperature;
    const double shift = LaplaceQuantile(cutoff);
    if (num_experts_ == 2 && limit_ > 0 && limit_ < 1) {
      most_ = z + (LaplaceQuantile(limit_) - shift) / scale;
      return;
    }
    // F' has a kink at 1/2, and F is steep within about 1/scale: no panel of
    // nodes spans either.
    std::vector<double> ends = {z - kReach - std::abs(z), z,
                                z + kReach + std::abs(z)};
    for (const double u : {-shift, -6.0, 6.0, 6.0 - shift}) {
      const double at = z + u / scale;
      if (at > ends.front() && at < ends.back()) ends.push_back(at);
      std::ranges::sort(ends);
    }
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      (ends[i] < z ? below_ : above_)
          .Add(std::max(ends[i], -kReach), std::min(ends[i + 1], kReach), z,
               scale, shift);
    }
    below_.Finish();
    above_.Finish();
  }

  // P(active | the score is the m-th largest) for m = 1, ..., ranks: that the
  // m - 1 terms above it and the E - m below sum to less than the limit.
  //
  // Gil-Pelaez's integral by the midpoint rule errs by at most the probability
  // beyond pi / h from the limit (Davies 1973), which Bernstein's bound tells;
  // h is the smallest that a rank asks for, so that all share the
  // characteristic functions.
  std::vector<double> ActiveAsRank(size_t ranks) const {
    // Each term is between 0 and 1.
    if (limit_ <= 0) return std::vector<double>(ranks, 0.0);
    if (limit_ >= static_cast<double>(num_experts_ - 1)) {
      return std::vector<double>(ranks, 1.0);
    }
    std::vector<double> result(ranks);
    if (num_experts_ == 2) {
      result[0] = most_ < z_ ? Above(-most_) / Above(-z_) : 1;
      if (ranks > 1) result[1] = most_ > z_ ? 1 - Above(most_) / Above(z_) : 0;
      return result;
    }
    std::vector<size_t> open;  // ranks whose answer is not certain
    double h = std::numeric_limits<double>::infinity();
    for (size_t m = 0; m < ranks; ++m) {
      const auto i = static_cast<double>(m);
      const auto j = static_cast<double>(num_experts_ - 1) - i;
      const double distance = limit_ - (i * above_.mean + j * below_.mean);
      const double variance = i * above_.variance + j * below_.variance;
      const double reach =
          std::max(i > 0 ? above_.reach : 0, j > 0 ? below_.reach : 0);
      const double a = kTail * reach / 3;
      const double radius = a + std::sqrt(a * a + 2 * kTail * variance);
      if (std::abs(distance) > radius) {
        result[m] = distance > 0 ? 1 : 0;
        continue;
      }
      open.push_back(m);
      h = std::min(h, M_PI / (radius + std::abs(distance)));
    }
    if (open.empty()) return result;
    Characteristic of_above(above_, h), of_below(below_, h);
    Complex turn = std::polar(1.0, -h * limit_ / 2);
    const Complex turn_step = std::polar(1.0, -h * limit_);
    // Stops only after several small terms, since an oscillating one may pass
    // near 0.
    for (int step = 0, small = 0; step < kMostSteps && small < 8; ++step) {
      const double nth = step + 0.5;
      const Complex above = of_above.Next(), below = of_below.Next();
      const double weight = Taper(step) / nth;
      double largest = 0;
      for (const size_t m : open) {
        const auto rank = static_cast<int64_t>(m);
        const Complex phi =
            Power(above, rank) * Power(below, num_experts_ - 1 - rank);
        result[m] += weight * (phi * turn).imag();
        largest = std::max(largest, std::norm(phi));
      }
      turn *= turn_step;
      small = largest < kSmall * nth * kSmall * nth ? small + 1 : 0;
    }
    for (const size_t m : open) {
      result[m] = std::clamp(0.5 - result[m] / M_PI, 0.0, 1.0);
    }
    return result;
  }

 private:
  int64_t num_experts_;
  double limit_, z_;
  double most_ = 0;  // of two experts, the other's z whose term is the limit
  Terms above_, below_;
};

// The density of the m-th largest of E normals.
double RankDensity(int64_t experts, int64_t m, double z) {
  const auto e = static_cast<double>(experts), rank = static_cast<double>(m);
  return std::exp(std::lgamma(e + 1) - std::lgamma(rank) -
                  std::lgamma(e - rank + 1) + (e - rank) * std::log(Above(-z)) +
                  (rank - 1) * std::log(Above(z))) *
         Density(z);
}

// P(N >= m) for m = 1, ..., cap.
std::vector<double> AtLeast(const StillScores& s) {
  const auto cap = static_cast<size_t>(s.max_active);
  const double cutoff =
      s.tau * s.mean_active / static_cast<double>(s.num_experts);
  if (cutoff >= 1) return std::vector<double>(cap, 0.0);
  if (cutoff == 0 || s.mean_active >= static_cast<double>(s.num_experts)) {
    return std::vector<double>(cap, 1.0);
  }
  // Equal scores have equal weights k / E.
  if (s.spread == 0) return std::vector<double>(cap, s.tau < 1 ? 1.0 : 0.0);
  static const Rule<8> rule;
  std::vector<double> sums(cap), mass(cap);
  // A rank's density is narrower than a score's by a factor of about sqrt(E).
  const int panels = static_cast<int>(
      16 * std::ceil(std::sqrt(static_cast<double>(s.num_experts) / 32)));
  const double width = 2 * kReach / panels;
  for (int panel = 0; panel < panels; ++panel) {
    for (size_t i = 0; i < rule.node.size(); ++i) {
      const double z = -kReach + width * (panel + (1 + rule.node[i]) / 2);
      const double weight = rule.weight[i] * width / 2;
      std::vector<double> share(cap);
      size_t ranks = 0;  // beyond these no share counts
      for (size_t m = 0; m < cap; ++m) {
        share[m] =
            weight * RankDensity(s.num_experts, static_cast<int64_t>(m) + 1, z);
        mass[m] += share[m];
        if (share[m] > kSmall) ranks = m + 1;
      }
      if (ranks == 0) continue;
      const std::vector<double> active =
          ScoreAt(s, cutoff, z).ActiveAsRank(ranks);
      for (size_t m = 0; m < ranks; ++m) sums[m] += share[m] * active[m];
    }
  }
  for (size_t m = 0; m < cap; ++m) sums[m] /= mass[m];
  return sums;
}

void Check(const StillScores& s) {
  SOFTMOE_CHECK(s.num_experts >= 1 && s.max_active >= 1 &&
                s.max_active <= s.num_experts)
      << s.max_active << " of " << s.num_experts << " experts";
  SOFTMOE_CHECK(s.mean_active > 0 &&
                s.mean_active <= static_cast<double>(s.num_experts))
      << "k = " << s.mean_active;
  SOFTMOE_CHECK(s.tau >= 0 && s.temperature > 0 && s.spread >= 0 &&
                std::isfinite(s.spread / s.temperature))
      << "tau = " << s.tau << ", T = " << s.temperature
      << ", spread = " << s.spread;
}

}  // namespace

StillActivity ActivityOf(const StillScores& scores) {
  Check(scores);
  const std::vector<double> at_least = AtLeast(scores);
  StillActivity activity;
  for (const double p : at_least) activity.active_experts += p;
  activity.zero_active_fraction = 1 - at_least.front();
  if (scores.fallback_top1) {
    activity.active_experts += activity.zero_active_fraction;
  }
  return activity;
}

double CalibratedTau(const StillScores& scores) {
  StillScores trial = scores;
  trial.fallback_top1 = false;
  // The slack is for a cap of k, where all tau below some value have this mean.
  const double wanted = scores.mean_active - 1e-6;
  const auto excess = [&](double tau) {
    trial.tau = tau;
    const double value = ActivityOf(trial).active_experts - wanted;
    return std::abs(value) < 1e-7 ? 0 : value;
  };
  const auto close = [](double low, double high) {
    return high - low <= 1e-7 * high;
  };
  // A cutoff of 0 leaves nothing out, one of 1 leaves nothing active.
  const double highest =
      static_cast<double>(scores.num_experts) / scores.mean_active;
  std::uintmax_t evaluations = 100;
  const auto [low, high] = boost::math::tools::toms748_solve(
      excess, 0.0, highest, static_cast<double>(scores.max_active) - wanted,
      -wanted, close, evaluations);
  return (low + high) / 2;
}

StillActivity MeanActivity(const StillScores& scores, double start, double end,
                           int64_t steps) {
  SOFTMOE_CHECK(steps >= 1) << steps << " steps";
  // T is even about both ends of the schedule, so the trapezoidal rule is as
  // good with a few intervals as with one for each step; the sum over the steps
  // has the first of them whole and the last, T = end, not at all.
  const int64_t intervals = std::min<int64_t>(steps, kMostTemperatures);
  StillActivity mean;
  for (int64_t i = 0; i <= intervals; ++i) {
    StillScores at = scores;
    const double done = static_cast<double>(i) / static_cast<double>(intervals);
    at.temperature = std::lerp(end, start, (1 + std::cos(M_PI * done)) / 2);
    const StillActivity activity = ActivityOf(at);
    double weight =
        (i == 0 || i == intervals ? 0.5 : 1.0) / static_cast<double>(intervals);
    if (i == 0) weight += 0.5 / static_cast<double>(steps);
    if (i == intervals) weight -= 0.5 / static_cast<double>(steps);
    mean.active_experts += weight * activity.active_experts;
    mean.zero_active_fraction += weight * activity.zero_active_fraction;
  }
  return mean;
}

}  // namespace softmoe::golden

// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/still_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
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
    for (size_t i = 0; i < terms.value.size(); ++i) {
      now_.push_back(terms.probability[i] *
                     std::polar(1.0, h * terms.value[i] / 2));
      step_.push_back(std::polar(1.0, h * terms.value[i]));
    }
  }
  Complex Next() {
    double real = 0, imaginary = 0;
    for (size_t i = 0; i < now_.size(); ++i) {
      const double a = now_[i].real(), b = now_[i].imag();
      const double c = step_[i].real(), d = step_[i].imag();
      real += a;
      imaginary += b;
      now_[i] = {a * c - b * d, a * d + b * c};
    }
    return {real, imaginary};
  }

 private:
  std::vector<Complex> now_, step_;
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
  const double late = 2.0 * step / kMostSteps - 1;
  return late <= 0 ? 1 : (1 + std::cos(M_PI * late)) / 2;
}

// P(the sum of `num_above` terms of one kind and `num_below` of the other <
// limit). Gil-Pelaez's integral by the midpoint rule errs by at most the
// probability beyond pi / h from the limit (Davies 1973); h is chosen by
// Bernstein's bound.
double ProbabilityBelow(double limit, const Terms& above, int64_t num_above,
                        const Terms& below, int64_t num_below) {
  if (num_above + num_below == 0) return limit > 0 ? 1 : 0;
  const auto i = static_cast<double>(num_above);
  const auto j = static_cast<double>(num_below);
  const double distance = limit - (i * above.mean + j * below.mean);
  const double variance = i * above.variance + j * below.variance;
  const double reach = std::max(num_above > 0 ? above.reach : 0,
                                num_below > 0 ? below.reach : 0);
  const double a = kTail * reach / 3;
  const double radius = a + std::sqrt(a * a + 2 * kTail * variance);
  if (std::abs(distance) > radius) return distance > 0 ? 1 : 0;
  const double h = M_PI / (radius + std::abs(distance));
  Characteristic of_above(above, num_above > 0 ? h : 0), of_below(below, h);
  double sum = 0;
  int small = 0;
  // Stops only after several small terms, since an oscillating one may pass
  // near 0.
  for (int step = 0; step < kMostSteps && small < 8; ++step) {
    const double w = (step + 0.5) * h;
    Complex phi = Power(of_below.Next(), num_below);
    if (num_above > 0) phi *= Power(of_above.Next(), num_above);
    sum +=
        Taper(step) * (phi * std::polar(1.0, -w * limit)).imag() / (step + 0.5);
    small = std::abs(phi) < kSmall * (step + 0.5) ? small + 1 : 0;
  }
  return std::clamp(0.5 - sum / M_PI, 0.0, 1.0);
}

// The part of P(N >= m) that depends on one score z, in units of its deviation.
class ScoreAt {
 public:
  ScoreAt(const StillScores& s, double cutoff, double z)
      : num_experts_(s.num_experts), limit_(s.mean_active - cutoff) {
    const double scale = s.spread / s.temperature;
    const double shift = LaplaceQuantile(cutoff);
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
  // P(active | the score is the m-th largest).
  double ActiveAsRank(int64_t m) const {
    return ProbabilityBelow(limit_, above_, m - 1, below_, num_experts_ - m);
  }

 private:
  int64_t num_experts_;
  double limit_;
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
      bool counts = false;
      for (size_t m = 0; m < cap; ++m) {
        share[m] =
            weight * RankDensity(s.num_experts, static_cast<int64_t>(m) + 1, z);
        mass[m] += share[m];
        counts |= share[m] > kSmall;
      }
      if (!counts) continue;
      const ScoreAt score(s, cutoff, z);
      for (size_t m = 0; m < cap; ++m) {
        if (share[m] <= kSmall) continue;
        sums[m] += share[m] * score.ActiveAsRank(static_cast<int64_t>(m) + 1);
      }
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
  // A cutoff of 1 leaves nothing active, one of 0 leaves nothing out. The slack
  // is for a cap of k, where all tau below some value have this mean.
  double low = 0,
         high = static_cast<double>(scores.num_experts) / scores.mean_active;
  const double wanted = scores.mean_active - 1e-6;
  double above = static_cast<double>(scores.max_active) - wanted;
  double below = -wanted;
  // Regula falsi that halves the weight of the retained end (Illinois).
  int same = 0;
  while (high - low > 1e-7 * high) {
    trial.tau = low + (high - low) * above / (above - below);
    const double off = ActivityOf(trial).active_experts - wanted;
    if (std::abs(off) < 1e-7) return trial.tau;
    if (off > 0) {
      low = trial.tau;
      above = off;
      if (same > 0) below /= 2;
      same = 1;
    } else {
      high = trial.tau;
      below = off;
      if (same < 0) above /= 2;
      same = -1;
    }
  }
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
    at.temperature = end + (start - end) * (1 + std::cos(M_PI * done)) / 2;
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

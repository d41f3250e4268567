// SPDX-License-Identifier: Apache-2.0
#include "golden/paper/protocol_report.h"

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "core/config/router_traits.h"
#include "core/text/text_table.h"
#include "golden/paper/document_report.h"
#include "golden/paper/paper_lookup.h"
#include "golden/paper/still_scores.h"

namespace softmoe::golden {
namespace {

constexpr double kLeastSpread = 0.02, kMostSpread = 4;
constexpr double kRatio = 1.1;  // between spreads examined in turn

struct Curve {
  std::vector<double> spread;
  std::vector<StillActivity> activity;
};

double WithFallback(const StillActivity& activity, bool top1) {
  return activity.active_experts + (top1 ? activity.zero_active_fraction : 0);
}

// Where a function with these values crosses `wanted`, interpolated linearly in
// the logarithm of the spread.
std::vector<double> Crossings(const std::vector<double>& spread,
                              const std::vector<double>& value, double wanted) {
  std::vector<double> found;
  for (size_t i = 1; i < spread.size(); ++i) {
    const double a = value[i - 1] - wanted, b = value[i] - wanted;
    if (a == b || (a < 0) == (b < 0)) continue;
    found.push_back(spread[i - 1] *
                    std::pow(spread[i] / spread[i - 1], a / (a - b)));
  }
  return found;
}

// The final activity as a function of the spread, from least to most.
Curve EndCurve(StillScores scores, bool calibrated, double end) {
  Curve curve;
  const double start = scores.temperature;
  const int steps = static_cast<int>(
      std::ceil(std::log(kMostSpread / kLeastSpread) / std::log(kRatio)));
  for (int i = 0; i <= steps; ++i) {
    scores.spread = kLeastSpread * std::pow(kMostSpread / kLeastSpread,
                                            static_cast<double>(i) / steps);
    scores.temperature = start;
    if (calibrated) scores.tau = CalibratedTau(scores);
    scores.temperature = end;
    curve.spread.push_back(scores.spread);
    curve.activity.push_back(ActivityOf(scores));
  }
  return curve;
}

// The least spread / T at which `scores.tau` leaves k experts active.
double CalibratedAt(StillScores scores) {
  scores.temperature = 1;
  const auto too_few = [&scores](double spread) {
    scores.spread = spread;
    return ActivityOf(scores).active_experts < scores.mean_active;
  };
  // Equal scores have weight k / E, so all are active if tau < 1.
  double low = 0, high = kLeastSpread;
  if (!too_few(low)) return 0;
  while (too_few(high)) {
    if (high >= kMostSpread) return 0;
    low = high;
    high *= kRatio;
  }
  while (high - low > 1e-4 * high) {
    const double middle = (low + high) / 2;
    (too_few(middle) ? low : high) = middle;
  }
  return (low + high) / 2;
}

// A router in one reading of tau, without fallback: the part that rows share.
struct Router {
  StillScores scores;  // at the start
  StillActivity start, middle, end;
  double calibrated_at = 0;
  Curve at_end;
  std::map<double, StillActivity> train;  // keyed by the number of steps
};

Router MakeRouter(StillScores scores, bool calibrated, double end) {
  if (calibrated) scores.tau = CalibratedTau(scores);
  Router router;
  router.scores = scores;
  router.start = ActivityOf(scores);
  StillScores later = scores;
  later.temperature = (scores.temperature + end) / 2;
  router.middle = ActivityOf(later);
  later.temperature = end;
  router.end = ActivityOf(later);
  router.calibrated_at =
      calibrated ? scores.spread / scores.temperature : CalibratedAt(scores);
  router.at_end = EndCurve(scores, calibrated, end);
  return router;
}

std::string Spreads(const std::vector<double>& spreads) {
  if (spreads.empty()) return fmt::format("none up to {}", kMostSpread);
  std::string text;
  for (const double spread : spreads) {
    text += (text.empty() ? "" : ", ") + fmt::format("{:.2g}", spread);
  }
  return text;
}

}  // namespace

std::vector<ProtocolReading> ReadProtocol(const Document& paper) {
  RequirePaper(paper);
  const Table& table = TableOf(paper, "main_results");
  std::vector<ProtocolReading> readings;
  std::map<std::tuple<double, int64_t, double>, Router> routers;
  for (const Row& row : table.rows) {
    if (CellOf(table, row, "expansion_factor").empty()) continue;
    const auto number = [&](const char* column) {
      return NumberOf(table, row, column).ToDouble();
    };
    const auto field = [&](const char* name) {
      return FieldNumber(paper, row, name).ToDouble();
    };
    const double start = field("router.temperature_start");
    const double end = field("router.temperature_end");
    const double steps = field("training.steps");
    StillScores scores;
    scores.num_experts = std::llround(field("model.num_experts"));
    scores.mean_active = number("mean_active_experts");
    scores.max_active = WholeExperts(
        number("expansion_factor") * scores.mean_active, scores.num_experts);
    scores.temperature = start;
    scores.spread = field("model.init_std") * std::sqrt(field("model.d_model"));
    for (const bool calibrated : {true, false}) {
      scores.tau = calibrated ? 0 : field("router.tau");
      const std::tuple key(scores.mean_active, scores.max_active, scores.tau);
      if (!routers.contains(key)) {
        routers[key] = MakeRouter(scores, calibrated, end);
      }
      Router& router = routers[key];
      const auto [train, is_new] = router.train.try_emplace(steps);
      if (is_new) {
        train->second =
            MeanActivity(router.scores, start, end, std::llround(steps));
      }
      for (const bool top1 : {false, true}) {
        std::vector<double> at_end;
        for (const StillActivity& each : router.at_end.activity) {
          at_end.push_back(WithFallback(each, top1));
        }
        const double printed = number("infer_ae");
        readings.push_back(
            {.row = row.id,
             .calibrated = calibrated,
             .fallback_top1 = top1,
             .tau = router.scores.tau,
             .calibrated_at = router.calibrated_at,
             .start = WithFallback(router.start, top1),
             .start_zero = router.start.zero_active_fraction,
             .middle = WithFallback(router.middle, top1),
             .middle_zero = router.middle.zero_active_fraction,
             .end = WithFallback(router.end, top1),
             .end_zero = router.end.zero_active_fraction,
             .train_ae = WithFallback(train->second, top1),
             .printed_train_ae = number("train_ae"),
             .printed_infer_ae = printed,
             .spreads = Crossings(router.at_end.spread, at_end, printed)});
      }
    }
  }
  return readings;
}

std::string DescribeProtocol(const std::vector<ProtocolReading>& readings) {
  std::string text = Wrap(
      "How many experts the routers of the main table would activate if their "
      "scores kept the spread with which they are drawn (init_std "
      "sqrt(d_model), for inputs of mean square 1), by quadrature: where T "
      "starts, halfway, where it ends (Infer-AE), and in the mean of all "
      "steps (Train-AE), beside what the paper prints. Zero: the share of "
      "tokens without an expert, before any fallback. Calibrated at: the "
      "spread of scores / T at which this tau leaves k experts active. Spread "
      "for it: the spreads of scores, from 0.02 to 4, at which the end has "
      "the printed Infer-AE; a calibrated tau is calibrated at that spread.",
      kTextWidth, 0);
  TextTable table({"row", "tau", "fallback", "calibrated at", "start", "zero",
                   "middle", "zero", "end = Infer-AE", "zero", "paper",
                   "Train-AE", "paper", "spread for it"});
  const auto share = [](double p) { return fmt::format("{:.1f}%", 100 * p); };
  const auto count = [](double ae) { return fmt::format("{:.2f}", ae); };
  for (const ProtocolReading& r : readings) {
    table.Add({r.row, fmt::format("{}{:.3f}", r.calibrated ? "~" : "", r.tau),
               r.fallback_top1 ? "top1" : "none", count(r.calibrated_at),
               count(r.start), share(r.start_zero), count(r.middle),
               share(r.middle_zero), count(r.end), share(r.end_zero),
               count(r.printed_infer_ae), count(r.train_ae),
               count(r.printed_train_ae), Spreads(r.spreads)});
  }
  return text + "\n\n" + table.Text() +
         "~: calibrated; any other tau is the published one of " +
         "this row or, if it has none, of the row with the same k.\n";
}

}  // namespace softmoe::golden

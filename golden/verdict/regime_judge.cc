// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/regime_judge.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/errors.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::golden {
namespace {

using Seeds = std::vector<int64_t>;
using Rows = std::vector<const RegimeRow*>;
using Number = double MiniatureRun::*;

std::vector<std::string> IdsOf(const Rows& rows) {
  std::vector<std::string> ids;
  for (const RegimeRow* row : rows) ids.push_back(row->id);
  return ids;
}

class RegimeJudge {
 public:
  RegimeJudge(const RegimeDefinitions& definitions,
              const std::vector<MiniatureRun>& runs)
      : definitions_(definitions), sparse_(definitions.RowsOf("sparse")) {
    for (const RegimeRow* row : sparse_) k_.push_back(row->infer_ae_aim);
    verdicts_.hash = definitions.Hash();
    verdicts_.confidence = definitions.confidence;
    verdicts_.margin = definitions.margin;
    verdicts_.exponents = definitions.exponents;
    for (const MiniatureRun& run : runs) AddRun(run);
  }

  RegimeVerdicts Run() {
    for (const RegimeRow& row : definitions_.rows) {
      CountRuns(row);
      FindEqualSeeds(row);
      DescribeRow(row);
    }
    PutControls();
    JudgePrimary();
    JudgeRows();
    JudgeLearned();
    for (RegimeEstimate& each : verdicts_.estimates) {
      each.status =
          verdicts_.missing.empty() ? each.leaning : RegimeStatus::kInterim;
    }
    return std::move(verdicts_);
  }

 private:
  void AddRun(const MiniatureRun& run) {
    const std::string name = NameOfRun(run.corpus, run.row, run.seed);
    const bool pilot = definitions_.IsPilot(run.row, run.seed);
    if (run.corpus != definitions_.corpus ||
        (!pilot && !definitions_.Judges(run.row, run.seed))) {
      throw DataError(
          fmt::format("run {} is not planned: runs that were added later "
                      "cannot be judged with the others; leave it out",
                      name));
    }
    const RegimeRow& planned = *definitions_.Row(run.row);
    // A mislabelled row would bend the curve.
    if (planned.role == "sparse" && run.infer_ae != planned.infer_ae_aim &&
        !std::isnan(run.infer_ae)) {
      throw DataError(
          fmt::format("run {} has {:g} active experts, but a sparse row has "
                      "its k, {:g}; record it anew",
                      name, run.infer_ae, planned.infer_ae_aim));
    }
    // All sparse rows have one reading of the balance loss, all others one.
    const std::string& reading =
        readings_.emplace(planned.role == "sparse", run.load_balance)
            .first->second;
    if (run.load_balance != reading) {
      throw DataError(
          fmt::format("run {} was trained with the reading '{}' of the balance "
                      "loss, and others with '{}': they cannot be judged "
                      "together; record runs of one reading",
                      name, run.load_balance, reading));
    }
    SeedRuns& row = (pilot ? pilots_ : judged_)[run.row];
    if (!row.emplace(run.seed, &run).second) {
      throw DataError(
          fmt::format("run {} is there twice; leave one out", name));
    }
  }

  void CountRuns(const RegimeRow& row) {
    auto count = [&](int64_t seed, const SeedRuns& runs) {
      ++verdicts_.planned;
      if (runs.contains(seed)) {
        ++verdicts_.finished;
      } else {
        verdicts_.missing.push_back(
            NameOfRun(definitions_.corpus, row.id, seed));
      }
    };
    for (const int64_t seed : row.seeds) count(seed, judged_[row.id]);
    for (const int64_t seed : definitions_.pilot_seeds) {
      if (definitions_.IsPilot(row.id, seed)) count(seed, pilots_[row.id]);
    }
  }

  void FindEqualSeeds(const RegimeRow& row) {
    SeedRuns runs = judged_[row.id];
    runs.insert(pilots_[row.id].begin(), pilots_[row.id].end());
    for (const std::string& seeds : EqualSeeds(runs)) {
      verdicts_.equal_seeds.push_back(fmt::format("{}: {}", row.id, seeds));
      equal_.insert(row.id);
    }
  }

  // The mean over the runs that have the number; NaN without any. NumberProblem
  // reports judged runs that lack it, DescribeRow pilots.
  static double MeanOf(const SeedRuns& runs, Number number) {
    double sum = 0, count = 0;
    for (const auto& [seed, run] : runs) {
      if (!std::isfinite(run->*number)) continue;
      sum += run->*number;
      ++count;
    }
    return sum / count;
  }

  void DescribeRow(const RegimeRow& row) {
    const SeedRuns& judged = judged_[row.id];
    const SeedRuns& pilots = pilots_[row.id];
    const bool piloted = row.role != "sparse" && row.infer_ae_aim > 0;
    RegimeRowRuns runs = {.id = row.id,
                          .role = row.role,
                          .planned = static_cast<int64_t>(row.seeds.size()),
                          .judged = static_cast<int64_t>(judged.size()),
                          .pilots = static_cast<int64_t>(pilots.size()),
                          .aim = piloted ? row.infer_ae_aim : 0,
                          .pilot_ae = MeanOf(pilots, &MiniatureRun::infer_ae),
                          .infer_ae = MeanOf(judged, &MiniatureRun::infer_ae),
                          .train_ae = MeanOf(judged, &MiniatureRun::train_ae),
                          .paper_train_low = row.paper_train_low,
                          .paper_train_high = row.paper_train_high,
                          .problem = "",
                          .infer_ae_only = false};
    if (piloted && pilots.empty()) {
      runs.problem = fmt::format(
          "'{}' has no pilot that says how many experts "
          "it has",
          row.id);
    } else if (piloted && std::ranges::any_of(pilots, [](const auto& pilot) {
                 return !std::isfinite(pilot.second->infer_ae);
               })) {
      runs.problem =
          fmt::format("'{}' has a pilot that gave no number", row.id);
    } else if (piloted && !(std::abs(runs.pilot_ae - row.infer_ae_aim) <=
                            definitions_.infer_ae_within)) {
      runs.problem = fmt::format(
          "the pilots of '{}' have {:.4g} active experts, not within {:g} of "
          "{:g}",
          row.id, runs.pilot_ae, definitions_.infer_ae_within,
          row.infer_ae_aim);
    }
    runs.infer_ae_only = IsInferAeOnly(definitions_, row, runs.train_ae);
    verdicts_.rows.push_back(std::move(runs));
  }

  const RegimeRowRuns& RunsOf(const RegimeRow& row) const {
    return *std::ranges::find(verdicts_.rows, row.id, &RegimeRowRuns::id);
  }

  const MiniatureRun* JudgedRun(const RegimeRow& row, int64_t seed) const {
    const auto runs = judged_.find(row.id);
    if (runs == judged_.end()) return nullptr;
    const auto run = runs->second.find(seed);
    return run == runs->second.end() ? nullptr : run->second;
  }

  // The run must exist.
  double NumberOf(const RegimeRow& row, int64_t seed, Number number) const {
    return judged_.at(row.id).at(seed)->*number;
  }

  // The elements of `seeds` that all rows have.
  Seeds SeedsOfAll(const Rows& rows, const Seeds& seeds) const {
    Seeds common;
    for (const int64_t seed : seeds) {
      if (std::ranges::all_of(rows, [&](const RegimeRow* row) {
            return JudgedRun(*row, seed) != nullptr;
          })) {
        common.push_back(seed);
      }
    }
    return common;
  }

  // The seeds under which all rows are planned.
  static Seeds PlannedSeeds(const Rows& rows) {
    Seeds planned = rows.front()->seeds;
    for (const RegimeRow* row : rows) {
      std::erase_if(planned, [&](int64_t seed) {
        return std::ranges::find(row->seeds, seed) == row->seeds.end();
      });
    }
    return planned;
  }

  Seeds WithoutKnown(Seeds seeds) const {
    std::erase_if(seeds, [&](int64_t seed) {
      const Seeds& known = definitions_.known_seeds;
      return std::ranges::find(known, seed) != known.end();
    });
    return seeds;
  }

  // The problem of the first run, under any of the seeds, that lacks one of the
  // numbers (all positive); "" if there is none.
  std::string NumberProblem(const Rows& rows, const Seeds& seeds,
                            const std::vector<Number>& numbers) const {
    for (const RegimeRow* row : rows) {
      for (const int64_t seed : seeds) {
        const MiniatureRun* run = JudgedRun(*row, seed);
        if (run == nullptr) continue;
        for (const Number number : numbers) {
          if (!(run->*number > 0) || !std::isfinite(run->*number)) {
            return fmt::format("run {} gave no number",
                               NameOfRun(run->corpus, run->row, run->seed));
          }
        }
      }
    }
    return "";
  }

  // The problem of the first run beyond the ends of the sparse curve.
  std::string CurveProblem(const Rows& rows, const Seeds& seeds,
                           Number active) const {
    for (const RegimeRow* row : rows) {
      for (const int64_t seed : seeds) {
        const MiniatureRun* run = JudgedRun(*row, seed);
        if (run == nullptr) continue;
        if (!(run->*active >= k_.front() && run->*active <= k_.back())) {
          return fmt::format(
              "run {} has {:.4g} active experts, and the sparse rows have {:g} "
              "to {:g}: its distance from their curve is not defined",
              NameOfRun(run->corpus, run->row, run->seed), run->*active,
              k_.front(), k_.back());
        }
      }
    }
    return "";
  }

  static std::string TooFewSeeds(const Seeds& seeds) {
    return seeds.size() >= 2
               ? ""
               : fmt::format(
                     "{} seed{} with all of its rows, and two are "
                     "needed",
                     seeds.size(), seeds.size() == 1 ? "" : "s");
  }

  // Once all runs are in, the first control that could not be checked: nobody
  // knows whether it would have failed.
  std::string ControlProblem() const {
    if (!verdicts_.missing.empty()) return "";
    for (const RegimeControl& control : verdicts_.controls) {
      if (control.id == "left_out" || control.problem.empty()) continue;
      return fmt::format("it could not be checked whether {}: {}", control.text,
                         control.problem);
    }
    return "";
  }

  std::string RowProblem(const Rows& rows) const {
    for (const RegimeRow* row : rows) {
      const std::string& problem = RunsOf(*row).problem;
      if (!problem.empty()) return problem;
    }
    return "";
  }

  RegimeTable TableOf(const Rows& rows, const Seeds& seeds,
                      Number active) const {
    RegimeTable table;
    table.k = k_;
    for (const int64_t seed : seeds) {
      std::vector<double> sparse, loss, experts;
      for (const RegimeRow* row : sparse_) {
        sparse.push_back(NumberOf(*row, seed, &MiniatureRun::loss));
      }
      for (const RegimeRow* row : rows) {
        loss.push_back(NumberOf(*row, seed, &MiniatureRun::loss));
        experts.push_back(NumberOf(*row, seed, active));
      }
      table.sparse.push_back(std::move(sparse));
      table.loss.push_back(std::move(loss));
      table.active.push_back(std::move(experts));
    }
    return table;
  }

  // The first non-empty text.
  static std::string FirstOf(std::initializer_list<std::string> problems) {
    for (const std::string& problem : problems) {
      if (!problem.empty()) return problem;
    }
    return "";
  }

  RegimeReading Reading(const std::vector<double>& numbers) const {
    return ReadingOf(numbers, definitions_.confidence);
  }

  static bool IsOfPrimary(const std::string& id) {
    return id.starts_with("primary");
  }

  // Judges rows against the sparse curve, over those of `planned` that all rows
  // have.
  void JudgeDistance(const std::string& id, const Rows& rows,
                     const Seeds& planned, Number active) {
    RegimeEstimate estimate;
    estimate.id = id;
    estimate.text = fmt::format(
        "{}loss minus the sparse curve at the run's own {}",
        rows.size() == 1 ? "" : fmt::format("mean of {} rows: ", rows.size()),
        active == &MiniatureRun::train_ae ? "Train-AE" : "Infer-AE");
    Rows all = rows;
    all.insert(all.end(), sparse_.begin(), sparse_.end());
    estimate.seeds = SeedsOfAll(all, planned);
    estimate.reason = FirstOf(
        {RowProblem(rows),
         NumberProblem(rows, planned, {&MiniatureRun::loss, active}),
         NumberProblem(sparse_, planned, {&MiniatureRun::loss}),
         CurveProblem(rows, planned, active), TooFewSeeds(estimate.seeds),
         IsOfPrimary(id) ? ControlProblem() : ""});
    if (estimate.reason.empty()) {
      const RegimeDistances distances = DistancesFromCurve(
          TableOf(rows, estimate.seeds, active), definitions_.exponents);
      estimate.readings = {Reading(distances.linear),
                           Reading(distances.smooth)};
      estimate.exponent = distances.exponent;
    }
    Decide(std::move(estimate), rows, all);
  }

  // `among`: the rows that decide, `rows` and those they are compared with.
  void Decide(RegimeEstimate estimate, const Rows& rows, const Rows& among) {
    estimate.rows = IdsOf(rows);
    for (const RegimeRow* row : rows) {
      if (RunsOf(*row).infer_ae_only) {
        estimate.infer_ae_only.push_back(row->id);
      }
    }
    const bool of_primary = IsOfPrimary(estimate.id);
    if (!estimate.reason.empty()) {
      estimate.leaning = RegimeStatus::kNotTestable;
    } else {
      estimate.worse = IsWorse(estimate.readings);
      estimate.leaning = DecideRegime(estimate.readings, definitions_.margin);
      for (const RegimeRow* row : among) {
        if (!equal_.contains(row->id)) continue;
        estimate.leaning = RegimeStatus::kMistrusted;
        estimate.reason =
            fmt::format("two seeds of '{}' gave the same bits", row->id);
        break;
      }
      for (const RegimeControl& control : verdicts_.controls) {
        if (!of_primary || !control.failed) continue;
        estimate.leaning = RegimeStatus::kMistrusted;
        estimate.reason = fmt::format(
            "a control failed, for it does not hold that {}", control.text);
      }
    }
    verdicts_.estimates.push_back(std::move(estimate));
  }

  void JudgePrimary() {
    const Rows rows = definitions_.RowsOf("primary");
    const Seeds seeds = PlannedSeeds(rows);
    JudgeDistance("primary", rows, seeds, &MiniatureRun::infer_ae);
    JudgeDistance("primary.new_seeds", rows, WithoutKnown(seeds),
                  &MiniatureRun::infer_ae);
    JudgeDistance("primary.train_ae", rows, seeds, &MiniatureRun::train_ae);
  }

  void JudgeRows() {
    for (const RegimeRow& row : definitions_.rows) {
      if (row.role == "sparse") continue;
      JudgeDistance("row." + row.id, {&row}, row.seeds,
                    &MiniatureRun::infer_ae);
    }
    for (const RegimeRow& row : definitions_.rows) {
      if (row.role == "sparse") continue;
      JudgeDistance("row." + row.id + ".train_ae", {&row}, row.seeds,
                    &MiniatureRun::train_ae);
    }
  }

  void JudgeLearned() {
    const Rows learned = definitions_.RowsOf("learned");
    if (learned.empty()) return;
    JudgeDistance("C1b", learned, PlannedSeeds(learned),
                  &MiniatureRun::infer_ae);
    JudgeAgainstFixed("C5.loss", learned);
    for (const RegimeRow* row : learned) {
      JudgeAgainstFixed("C5.loss." + row->id, {row});
    }
    CountExperts(learned);
  }

  Rows FixedOf(const Rows& learned) const {
    Rows fixed;
    for (const RegimeRow* row : learned) {
      fixed.push_back(definitions_.Row(row->fixed));
    }
    return fixed;
  }

  // Per seed, the mean over learned rows of a number minus the fixed row's.
  std::vector<double> RiseOf(const Rows& learned, const Seeds& seeds,
                             Number number) const {
    const Rows fixed = FixedOf(learned);
    std::vector<double> rises;
    for (const int64_t seed : seeds) {
      double sum = 0;
      for (size_t i = 0; i < learned.size(); ++i) {
        sum += NumberOf(*learned[i], seed, number) -
               NumberOf(*fixed[i], seed, number);
      }
      rises.push_back(sum / static_cast<double>(learned.size()));
    }
    return rises;
  }

  Rows WithFixed(const Rows& learned) const {
    Rows all = learned;
    for (const RegimeRow* row : FixedOf(learned)) all.push_back(row);
    return all;
  }

  void JudgeAgainstFixed(const std::string& id, const Rows& learned) {
    const Rows all = WithFixed(learned);
    const Seeds planned = PlannedSeeds(learned);
    RegimeEstimate estimate;
    estimate.id = id;
    estimate.text = fmt::format(
        "{}loss of learned allocation minus that of fixed allocation",
        learned.size() == 1 ? ""
                            : fmt::format("mean of {} rows: ", learned.size()));
    estimate.seeds = SeedsOfAll(all, planned);
    estimate.reason = FirstOf(
        {RowProblem(all), NumberProblem(all, planned, {&MiniatureRun::loss}),
         TooFewSeeds(estimate.seeds)});
    if (estimate.reason.empty()) {
      estimate.readings = {
          Reading(RiseOf(learned, estimate.seeds, &MiniatureRun::loss))};
    }
    Decide(std::move(estimate), learned, all);
  }

  void CountExperts(const Rows& learned) {
    const Rows all = WithFixed(learned);
    const Seeds planned = PlannedSeeds(learned);
    RegimeExperts& experts = verdicts_.experts;
    experts.seeds = SeedsOfAll(all, planned);
    experts.problem = FirstOf(
        {RowProblem(all),
         NumberProblem(all, planned,
                       {&MiniatureRun::infer_ae, &MiniatureRun::mean_cap}),
         TooFewSeeds(experts.seeds)});
    if (!experts.problem.empty()) return;
    experts.rise =
        Reading(RiseOf(learned, experts.seeds, &MiniatureRun::infer_ae));
    experts.caps =
        Reading(RiseOf(learned, experts.seeds, &MiniatureRun::mean_cap));
  }

  void PutControls() {
    const Seeds planned = PlannedSeeds(sparse_);
    const Seeds seeds = SeedsOfAll(sparse_, planned);
    const std::string problem =
        FirstOf({NumberProblem(sparse_, planned, {&MiniatureRun::loss}),
                 TooFewSeeds(seeds)});
    const RegimeControls& controls = definitions_.controls;
    RegimeControl* control = AddControl(
        "relabelled",
        fmt::format("{}, called a soft row at {:g} experts, is found superior",
                    controls.relabelled, controls.relabelled_at),
        problem, definitions_.confidence);
    if (problem.empty()) Relabel(seeds, control);
    CompareHalves();
    control = AddControl("left_out",
                         fmt::format("the smooth curve without {}, read there, "
                                     "minus what was measured",
                                     controls.left_out),
                         problem, definitions_.confidence);
    if (problem.empty()) LeaveOut(seeds, control);
  }

  RegimeControl* AddControl(const std::string& id, const std::string& text,
                            const std::string& problem, double confidence) {
    RegimeControl& control = verdicts_.controls.emplace_back();
    control.id = id;
    control.text = text;
    control.problem = problem;
    control.confidence = confidence;
    return &control;
  }

  void Relabel(const Seeds& seeds, RegimeControl* control) const {
    RegimeTable table =
        TableOf({definitions_.Row(definitions_.controls.relabelled)}, seeds,
                &MiniatureRun::infer_ae);
    for (std::vector<double>& active : table.active) {
      active[0] = definitions_.controls.relabelled_at;
    }
    const RegimeDistances distances =
        DistancesFromCurve(table, definitions_.exponents);
    control->readings = {Reading(distances.linear), Reading(distances.smooth)};
    control->failed = DecideRegime(control->readings, definitions_.margin) !=
                      RegimeStatus::kSuperior;
  }

  // Uses the linear reading: a common p would make the halves dependent.
  void CompareHalves() {
    const RegimeControls& controls = definitions_.controls;
    const RegimeRow* row = definitions_.Row(controls.halved);
    Rows all = sparse_;
    all.push_back(row);
    const Seeds first = SeedsOfAll(all, controls.first_half);
    const Seeds second = SeedsOfAll(all, controls.second_half);
    RegimeControl* control = AddControl(
        "halves",
        fmt::format("the distances of two halves of the seeds of {} do not "
                    "differ at {:g}",
                    row->id, controls.halves_level),
        FirstOf({NumberProblem({row}, row->seeds,
                               {&MiniatureRun::loss, &MiniatureRun::infer_ae}),
                 NumberProblem(sparse_, row->seeds, {&MiniatureRun::loss}),
                 CurveProblem({row}, row->seeds, &MiniatureRun::infer_ae),
                 TooFewSeeds(first), TooFewSeeds(second)}),
        1 - controls.halves_level);
    if (!control->problem.empty()) return;
    auto distances = [&](const Seeds& half) {
      return DistancesFromCurve(TableOf({row}, half, &MiniatureRun::infer_ae),
                                definitions_.exponents)
          .linear;
    };
    control->readings = {
        DifferenceOf(distances(first), distances(second), control->confidence)};
    const Interval& interval = control->readings[0].interval;
    control->failed = interval.low > 0 || interval.high < 0;
  }

  void LeaveOut(const Seeds& seeds, RegimeControl* control) const {
    const RegimeRow* left_out =
        definitions_.Row(definitions_.controls.left_out);
    std::vector<double> k, means;
    std::vector<std::vector<double>> losses(seeds.size());
    for (const RegimeRow* row : sparse_) {
      if (row == left_out) continue;
      k.push_back(row->infer_ae_aim);
      means.push_back(0);
      for (size_t s = 0; s < seeds.size(); ++s) {
        losses[s].push_back(NumberOf(*row, seeds[s], &MiniatureRun::loss));
        means.back() += losses[s].back() / static_cast<double>(seeds.size());
      }
    }
    control->exponent = SmoothExponent(k, means, definitions_.exponents);
    std::vector<double> misses;
    for (size_t s = 0; s < seeds.size(); ++s) {
      misses.push_back(ReadSmoothCurve(k, losses[s], control->exponent,
                                       left_out->infer_ae_aim) -
                       NumberOf(*left_out, seeds[s], &MiniatureRun::loss));
    }
    control->readings = {Reading(misses)};
  }

  const RegimeDefinitions& definitions_;
  const Rows sparse_;
  std::vector<double> k_;
  std::map<std::string, SeedRuns> judged_, pilots_;
  std::set<std::string> equal_;           // rows
  std::map<bool, std::string> readings_;  // by whether rows are sparse
  RegimeVerdicts verdicts_;
};

}  // namespace

bool IsInferAeOnly(const RegimeDefinitions& definitions, const RegimeRow& row,
                   double train_ae) {
  const double within = definitions.train_ae_within;
  return row.paper_train_high > 0 && (train_ae < row.paper_train_low - within ||
                                      train_ae > row.paper_train_high + within);
}

bool RegimeVerdicts::mistrusted() const {
  return !equal_seeds.empty() ||
         std::ranges::any_of(estimates, [](const RegimeEstimate& each) {
           return each.status == RegimeStatus::kMistrusted;
         });
}

RegimeVerdicts JudgeRegime(const RegimeDefinitions& definitions,
                           const std::vector<MiniatureRun>& runs) {
  return RegimeJudge(definitions, runs).Run();
}

bool HasRegimeRuns(const RegimeDefinitions& definitions,
                   const std::vector<MiniatureRun>& runs) {
  return std::ranges::any_of(runs, [&](const MiniatureRun& run) {
    const RegimeRow* row = definitions.Row(run.row);
    return row != nullptr && row->role != "sparse";
  });
}

void RequireSameRegime(const RegimeDefinitions& definitions,
                       const std::string& recorded_hash,
                       const std::string& where) {
  if (definitions.Hash() == recorded_hash) return;
  throw DataError(fmt::format(
      "{} was recorded under other definitions of the experiment regime (hash "
      "{}; this program has {}): they must be fixed before the runs; judge it "
      "with the version that recorded it",
      where, recorded_hash, definitions.Hash()));
}

}  // namespace softmoe::golden

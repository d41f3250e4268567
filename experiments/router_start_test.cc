// SPDX-License-Identifier: Apache-2.0
//
// "The router's start" in golden/RESULTS.md: its tables are computed again from
// the shipped runs, by the curve and the rule of the regime experiment.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "core/files/atomic_file.h"
#include "experiments/run/run_record.h"
#include "experiments/testing/grid_test_util.h"
#include "golden/verdict/regime_curve.h"
#include "golden/verdict/regime_judge.h"
#include "golden/verdict/statistics.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

using golden::RegimeReading;
using golden::RegimeTable;

constexpr char kNoAnnealing[] = "regime-1.5-T1";

const Strings kStarts = {"0.02", "0.0447", "0.0885", "0.177"};
const Strings kSeeds = {"1240", "1241", "1242", "1243"};
const Strings kSixSeeds = {"1240", "1241", "1242", "1243", "1244", "1245"};
const Strings kPilotSeeds = {"7001", "7002"};
const Strings kSparseRows = {"sparse-1", "sparse-2", "sparse-3", "sparse-4"};
const Strings kPrimaryRows = {"regime-1", "regime-1.5", "regime-2"};

// router.init_std of the frozen rows.
std::string OwnStart(const std::string& row) {
  static const std::map<std::string, std::string> kOwn = {
      {"regime-1", "0.0885"},
      {"regime-1.5", "0.177"},
      {"regime-2", "0.177"},
      {kNoAnnealing, "0.0885"}};
  const auto own = kOwn.find(row);
  return own == kOwn.end() ? "0.02" : own->second;
}

// router.tau of soft rows.
using Taus = std::map<std::string, std::string>;
const Taus kFrozenTaus = {{"regime-1", "1"},
                          {"regime-1.5", "2.35"},
                          {"regime-2", "1.3"},
                          {kNoAnnealing, "1.87"}};
// For this start pilots tried some values, and these were chosen.
constexpr char kChosenStart[] = "0.0447";
const std::map<std::string, Strings> kTriedTaus = {
    {"regime-1", {"1.04", "1.08", "1.12", "1.16"}},
    {"regime-1.5", {"1.5", "1.6", "1.7", "1.8"}},
    {"regime-2", {"1.05", "1.12", "1.19", "1.26"}},
    {kNoAnnealing, {"1.35", "1.45", "1.55", "1.65"}}};
const Taus kChosenTaus = {{"regime-1", "1.08"},
                          {"regime-1.5", "1.62"},
                          {"regime-2", "1.24"},
                          {kNoAnnealing, "1.56"}};

// "0": a sparse row.
std::string TauOf(const Taus& taus, const std::string& row) {
  const auto tau = taus.find(row);
  return tau == taus.end() ? "0" : tau->second;
}

struct End {
  double loss = 0;               // nat/token
  double active = 0, train = 0;  // active experts at the end, and in training
};

using Ends = std::vector<End>;

using Number = double End::*;

double MeanOf(const Ends& ends, Number number) {
  double sum = 0;
  for (const End& end : ends) sum += end.*number;
  return sum / static_cast<double>(ends.size());
}

std::string Text(const RegimeReading& reading) {
  return fmt::format("{:+.3f} [{:+.3f}, {:+.3f}]", reading.estimate,
                     reading.interval.low, reading.interval.high);
}

struct ShippedRuns {
  // By start, row, tau and seed.
  std::map<std::tuple<std::string, std::string, std::string, std::string>, End>
      ends;
  int repeated = 0;

  // A run that is there twice must have ended alike.
  void Add(const std::string& start, const std::string& row,
           const std::string& tau, const std::string& seed, const End& end) {
    const auto [there, is_new] = ends.try_emplace({start, row, tau, seed}, end);
    if (is_new) return;
    EXPECT_EQ(there->second.loss, end.loss) << row << " " << seed;
    ++repeated;
  }

  // Adds the finished runs of a runs.csv with a column router_init_std.
  void AddCsv(const std::string& csv) {
    // Only labels have quotes, and commas inside of them.
    std::istringstream lines(
        std::regex_replace(csv, std::regex("\"[^\"]*\""), ""));
    Strings names;
    for (std::string line; std::getline(lines, line);) {
      std::map<std::string, std::string> fields;
      std::istringstream stream(line);
      Strings values;
      for (std::string field; std::getline(stream, field, ',');) {
        values.push_back(field);
      }
      if (names.empty()) {
        names = values;
        continue;
      }
      for (size_t i = 0; i < values.size(); ++i) fields[names[i]] = values[i];
      if (fields["state"] != "finished") continue;
      Add(fields["router_init_std"], fields["row"], fields["tau"],
          fields["seed"],
          {std::stod(fields["val_loss"]), std::stod(fields["infer_ae"]),
           std::stod(fields["train_ae"])});
    }
  }

  // Adds the frozen rows with the seeds of the tables.
  void AddRecord(const RunRecord& record) {
    for (const RecordedRun& run : record.runs) {
      const trainer::RunResult& result = run.result;
      const auto seed = std::to_string(result.config.training.seed);
      if (std::ranges::find(kSeeds, seed) == kSeeds.end()) continue;
      // CORPUS/ROW/SEED
      const std::string row = fs::path(run.id).parent_path().filename();
      Add(OwnStart(row), row, fmt::format("{}", result.tau), seed,
          {result.final_validation.loss, result.final_validation.active_experts,
           result.train_ae});
    }
  }
};

// Read once for all tests.
const ShippedRuns& Shipped() {
  static const ShippedRuns shipped = [] {
    ShippedRuns runs;
    runs.AddCsv(ReadWholeFile("golden/runs/router_start_h200.csv"));
    runs.AddRecord(ReadRunRecord("golden/runs/regime_h200.h5"));
    return runs;
  }();
  return shipped;
}

class RouterStart : public testing::Test {
 protected:
  void SetUp() override { results_ = ReadWholeFile("golden/RESULTS.md"); }

  // Those of `seeds` that are there, in this order.
  Ends EndsOf(const std::string& start, const std::string& row,
              const Taus& taus, const Strings& seeds) const {
    Ends ends;
    for (const std::string& seed : seeds) {
      const auto end =
          Shipped().ends.find({start, row, TauOf(taus, row), seed});
      if (end != Shipped().ends.end()) ends.push_back(end->second);
    }
    return ends;
  }

  // Rows that began at `start` ("": their own) against sparse rows that began
  // at `sparse_start`, at the soft rows' `number` of active experts.
  golden::RegimeDistances Distances(const std::string& start,
                                    const Strings& rows,
                                    const std::string& sparse_start,
                                    const Taus& taus = kFrozenTaus,
                                    const Strings& seeds = kSeeds,
                                    Number number = &End::active) const {
    RegimeTable table;
    table.sparse.resize(seeds.size());
    table.loss.resize(seeds.size());
    table.active.resize(seeds.size());
    for (const std::string& row : kSparseRows) {
      table.k.push_back(static_cast<double>(table.k.size() + 1));
      const Ends ends = EndsOf(sparse_start, row, taus, seeds);
      for (size_t s = 0; s < seeds.size(); ++s) {
        table.sparse[s].push_back(ends.at(s).loss);
      }
    }
    for (const std::string& row : rows) {
      const Ends ends =
          EndsOf(start.empty() ? OwnStart(row) : start, row, taus, seeds);
      for (size_t s = 0; s < seeds.size(); ++s) {
        table.loss[s].push_back(ends.at(s).loss);
        table.active[s].push_back(ends.at(s).*number);
      }
    }
    return golden::DistancesFromCurve(table, definitions_.exponents);
  }

  bool IsInferAeOnly(const std::string& id, double train_ae) const {
    return golden::IsInferAeOnly(definitions_, *definitions_.Row(id), train_ae);
  }

  // "LINEAR | SMOOTH | VERDICT".
  std::string Judged(const golden::RegimeDistances& distances) const {
    const std::vector<RegimeReading> readings = {Reading(distances.linear),
                                                 Reading(distances.smooth)};
    return fmt::format("{} | {} | {}", Text(readings[0]), Text(readings[1]),
                       golden::RegimeStatusName(golden::DecideRegime(
                           readings, definitions_.margin)));
  }

  void ExpectInResults(const std::string& line) const {
    EXPECT_NE(results_.find(line), std::string::npos)
        << "golden/RESULTS.md lacks: " << line;
  }

  RegimeReading Reading(const std::vector<double>& distances) const {
    return golden::ReadingOf(distances, definitions_.confidence);
  }

  const golden::RegimeDefinitions definitions_ = golden::LoadRegime();
  std::string results_;
};

TEST_F(RouterStart, HasTheMeansThatTheResultsSay) {
  EXPECT_EQ(Shipped().repeated, 1);
  Strings rows = kSparseRows;
  rows.insert(rows.end(), kPrimaryRows.begin(), kPrimaryRows.end());
  rows.emplace_back(kNoAnnealing);
  for (const std::string& row : rows) {
    std::string line = fmt::format("| {} |", row);
    for (const std::string& start : kStarts) {
      const Ends ends = EndsOf(start, row, kFrozenTaus, kSeeds);
      if (!ends.empty()) {
        line += fmt::format(" {:.{}f}", MeanOf(ends, &End::loss),
                            ends.size() == kSeeds.size() ? 4 : 3);
        if (!row.starts_with("sparse")) {
          line += fmt::format(", {:.2f}", MeanOf(ends, &End::active));
        }
        if (ends.size() == 3) line += " (three seeds)";
        if (start == OwnStart(row)) line += " (frozen)";
      }
      line += " |";
    }
    ExpectInResults(line + "\n");
  }
}

TEST_F(RouterStart, HasTheDistancesThatTheResultsSay) {
  std::map<std::string, Strings> lines = {{"mean", kPrimaryRows}};
  for (const std::string& row : kPrimaryRows) lines[row] = {row};
  lines[kNoAnnealing] = {kNoAnnealing};
  for (const auto& [name, rows] : lines) {
    std::string line = fmt::format("| {} | {}|", name,
                                   name == "mean" ? "" : OwnStart(name) + " ");
    for (const std::string& start : kStarts) {
      line += fmt::format(" {} |",
                          Text(Reading(Distances("", rows, start).smooth)));
    }
    ExpectInResults(line + "\n");
  }
  std::vector<double> of_own_start(kSeeds.size());
  for (const std::string& row : kPrimaryRows) {
    const auto distances = Distances("", {row}, OwnStart(row)).smooth;
    for (size_t s = 0; s < kSeeds.size(); ++s) {
      of_own_start[s] +=
          distances[s] / static_cast<double>(kPrimaryRows.size());
    }
  }
  ExpectInResults("sparse rows of its own start: " +
                  Text(Reading(of_own_start)) + " in the mean");
}

TEST_F(RouterStart, AnswersThePlannedQuestionsAsTheResultsSay) {
  const std::tuple<std::string, std::string, Strings, std::string>
      kQuestions[] = {{"*primary*: mean of regime-1, regime-1.5, regime-2 ",
                       "0.0447", kPrimaryRows, " (Infer-AE only)"},
                      {"", "0.0885", {kNoAnnealing}, ""},
                      {"", "0.177", {kNoAnnealing}, ""}};
  for (const auto& [name, start, rows, reach] : kQuestions) {
    ExpectInResults(fmt::format("| {}| {} | {}{} |\n", name, start,
                                Judged(Distances(start, rows, start)), reach));
  }
  // NOT_TESTABLE: the sparse curve begins at one expert.
  for (const std::string start : {"0.02", "0.0447"}) {
    for (const End& end : EndsOf(start, kNoAnnealing, kFrozenTaus, kSeeds)) {
      EXPECT_LT(end.active, 1);
    }
  }
}

TEST_F(RouterStart, HasTheTausThatPilotsChose) {
  for (const auto& [row, chosen] : kChosenTaus) {
    const golden::RegimeRow& defined = *definitions_.Row(row);
    // Where straight lines between the pilots reach the aim.
    double reached = 0;
    std::string line = fmt::format("| {} |", row);
    double left_tau = 0, left_active = 0;
    for (const std::string& tau : kTriedTaus.at(row)) {
      const Ends pilot =
          EndsOf(kChosenStart, row, {{row, tau}}, {kPilotSeeds.front()});
      ASSERT_EQ(pilot.size(), 1U) << row << " " << tau;
      const double active = pilot.front().active;
      line += fmt::format("{} {}: {:.2f}, {:.2f}", left_tau == 0 ? "" : ";",
                          tau, active, pilot.front().train);
      if (left_active >= defined.infer_ae_aim &&
          active < defined.infer_ae_aim) {
        reached = left_tau + (std::stod(tau) - left_tau) *
                                 (left_active - defined.infer_ae_aim) /
                                 (left_active - active);
      }
      left_tau = std::stod(tau);
      left_active = active;
    }
    EXPECT_EQ(fmt::format("{:.2f}", reached), chosen);
    const Ends pilots = EndsOf(kChosenStart, row, kChosenTaus, kPilotSeeds);
    const Ends judged = EndsOf(kChosenStart, row, kChosenTaus, kSixSeeds);
    ASSERT_EQ(pilots.size(), kPilotSeeds.size());
    EXPECT_NEAR(MeanOf(pilots, &End::active), defined.infer_ae_aim,
                definitions_.infer_ae_within);
    ExpectInResults(fmt::format(
        "{} | {} | {:.2f} | {:.2f}, {:.2f} | {:.4f} |\n", line, chosen,
        MeanOf(pilots, &End::active), MeanOf(judged, &End::active),
        MeanOf(judged, &End::train), MeanOf(judged, &End::loss)));
  }
}

TEST_F(RouterStart, JudgesTheChosenTausAsTheResultsSay) {
  const std::tuple<std::string, Strings, Strings, Number> kQuestions[] = {
      {"*primary*: mean of the three", kPrimaryRows, kSixSeeds, &End::active},
      {"the same, 1240 to 1243 alone (not planned)", kPrimaryRows, kSeeds,
       &End::active},
      {"the same, 1244 and 1245 alone (not planned)",
       kPrimaryRows,
       {"1244", "1245"},
       &End::active},
      {"the same, at the active experts of training (not planned)",
       kPrimaryRows, kSixSeeds, &End::train},
      {"*secondary*: regime-1", {"regime-1"}, kSixSeeds, &End::active},
      {"*secondary*: regime-1.5", {"regime-1.5"}, kSixSeeds, &End::active},
      {"*secondary*: regime-2", {"regime-2"}, kSixSeeds, &End::active},
      {"*secondary*: regime-1.5-T1", {kNoAnnealing}, kSixSeeds, &End::active}};
  for (const auto& [name, rows, seeds, number] : kQuestions) {
    bool infer_ae_only = false;
    for (const std::string& row : rows) {
      const Ends ends = EndsOf(kChosenStart, row, kChosenTaus, seeds);
      infer_ae_only |= IsInferAeOnly(row, MeanOf(ends, &End::train));
    }
    ExpectInResults(
        fmt::format("| {} | {}{} |\n", name,
                    Judged(Distances(kChosenStart, rows, kChosenStart,
                                     kChosenTaus, seeds, number)),
                    infer_ae_only ? " (Infer-AE only)" : ""));
  }
}

TEST_F(RouterStart, ComparesRowsOfTheChosenTausAsTheResultsSay) {
  const auto losses = [&](const std::string& row) {
    std::vector<double> values;
    for (const End& end : EndsOf(kChosenStart, row, kChosenTaus, kSixSeeds)) {
      values.push_back(end.loss);
    }
    return values;
  };
  std::vector<double> sparse, k;
  for (const std::string& row : kSparseRows) {
    sparse.push_back(golden::Mean(losses(row)));
    k.push_back(static_cast<double>(k.size() + 1));
  }
  ExpectInResults(fmt::format("{:.4f}, {:.4f}, {:.4f} and {:.4f}", sparse[0],
                              sparse[1], sparse[2], sparse[3]));
  const std::pair<std::string, std::string> kPairs[] = {
      {kNoAnnealing, "sparse-2"},
      {kNoAnnealing, "sparse-3"},
      {kNoAnnealing, "sparse-4"},
      {kNoAnnealing, "regime-1.5"},
      {"regime-1.5", "sparse-1"}};
  for (const auto& [row, other] : kPairs) {
    std::vector<double> differences = losses(row);
    const std::vector<double> others = losses(other);
    for (size_t s = 0; s < differences.size(); ++s) differences[s] -= others[s];
    ExpectInResults(fmt::format("| {} minus {} | {} |\n", row, other,
                                Text(Reading(differences))));
  }
  const auto primary = [&](const Taus& taus) {
    return Distances(kChosenStart, kPrimaryRows, kChosenStart, taus).smooth;
  };
  std::vector<double> gains = primary(kChosenTaus);
  const std::vector<double> frozen = primary(kFrozenTaus);
  for (size_t s = 0; s < gains.size(); ++s) gains[s] -= frozen[s];
  ExpectInResults(
      fmt::format("| the three's distance from the smooth curve, minus that "
                  "with the frozen "
                  "tau, 1240 to 1243 | {} |\n",
                  Text(Reading(gains))));
  std::vector<double> falls(kSeeds.size(), 0.0);
  for (const std::string& row : kPrimaryRows) {
    const Ends chosen = EndsOf(kChosenStart, row, kChosenTaus, kSeeds);
    const Ends before = EndsOf(kChosenStart, row, kFrozenTaus, kSeeds);
    for (size_t s = 0; s < falls.size(); ++s) {
      falls[s] += (chosen[s].loss - before[s].loss) /
                  static_cast<double>(kPrimaryRows.size());
    }
  }
  ExpectInResults(fmt::format(
      "| the three's loss, minus that with the frozen tau, 1240 to 1243 | {} "
      "|\n",
      Text(Reading(falls))));
  // The pilots of regime-2 against the curve through the means.
  const double exponent =
      golden::SmoothExponent(k, sparse, definitions_.exponents);
  std::string line;
  for (const std::string tau : {"1.05", "1.12", "1.19", "1.24", "1.26"}) {
    const End pilot = EndsOf(kChosenStart, "regime-2", {{"regime-2", tau}},
                             {kPilotSeeds.front()})
                          .at(0);
    line += fmt::format(
        "{}{:+.3f} with {}", line.empty() ? "" : ", ",
        pilot.loss - golden::ReadSmoothCurve(k, sparse, exponent, pilot.active),
        tau);
  }
  ExpectInResults("| pilots of regime-2 minus the curve | " + line + " |\n");
  // The rule's control: sparse-3, called a soft row at two experts.
  const golden::RegimeControls& controls = definitions_.controls;
  RegimeTable relabelled;
  relabelled.k = k;
  for (size_t s = 0; s < kSixSeeds.size(); ++s) {
    relabelled.sparse.emplace_back();
    for (const std::string& row : kSparseRows) {
      relabelled.sparse[s].push_back(losses(row).at(s));
    }
    relabelled.loss.push_back({losses(controls.relabelled).at(s)});
    relabelled.active.push_back({controls.relabelled_at});
  }
  ExpectInResults(fmt::format(
      "| control: sparse-3, called a soft row at 2 experts | {} |\n",
      Judged(golden::DistancesFromCurve(relabelled, definitions_.exponents))));
}

}  // namespace
}  // namespace softmoe::experiments

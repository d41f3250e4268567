// SPDX-License-Identifier: Apache-2.0
//
// "The router's start" in golden/RESULTS.md: its tables are computed again from
// the shipped runs, by the curve and the rule of the regime experiment.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "core/files/atomic_file.h"
#include "experiments/testing/grid_test_util.h"
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

struct End {
  double loss = 0, active = 0;  // nat/token, active experts at the end
};

std::string Text(const RegimeReading& reading) {
  return fmt::format("{:+.3f} [{:+.3f}, {:+.3f}]", reading.estimate,
                     reading.interval.low, reading.interval.high);
}

class RouterStart : public GridProgram {
 protected:
  void SetUp() override {
    results_ = ReadWholeFile("golden/RESULTS.md");
    const std::string record = fs::absolute("golden/runs/regime_h200.h5");
    AddRuns(ReadWholeFile("golden/runs/router_start_h200.csv"));
    GridProgram::SetUp();
    const auto reported =
        Grid({"report", "regime", "--scale=mini", "--seeds",
              "1240,1241,1242,1243", "--from", record, "--out", "told"});
    ASSERT_LE(reported.exit_status, 1) << reported.output;
    AddRuns(Bytes("told/regime/runs.csv"));
  }

  // Takes the finished runs of a runs.csv. A run that is there twice must have
  // ended alike.
  void AddRuns(const std::string& csv) {
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
      const std::string& row = fields["row"];
      const std::string start = fields.contains("router_init_std")
                                    ? fields["router_init_std"]
                                    : OwnStart(row);
      const End end{std::stod(fields["val_loss"]),
                    std::stod(fields["infer_ae"])};
      const auto [there, is_new] =
          ends_.try_emplace({start, row, fields["seed"]}, end);
      if (!is_new) {
        EXPECT_EQ(there->second.loss, end.loss) << line;
        ++repeated_;
      }
    }
  }

  // In the order of seeds.
  std::vector<End> Ends(const std::string& start,
                        const std::string& row) const {
    std::vector<End> ends;
    for (const std::string& seed : kSeeds) {
      const auto end = ends_.find({start, row, seed});
      if (end != ends_.end()) ends.push_back(end->second);
    }
    return ends;
  }

  // Rows that began at `start` ("": their own) against sparse rows that began
  // at `sparse_start`.
  golden::RegimeDistances Distances(const std::string& start,
                                    const Strings& rows,
                                    const std::string& sparse_start) const {
    RegimeTable table;
    for (size_t s = 0; s < kSeeds.size(); ++s) {
      table.sparse.emplace_back();
      for (size_t k = 0; k < kSparseRows.size(); ++k) {
        if (s == 0) table.k.push_back(static_cast<double>(k + 1));
        table.sparse[s].push_back(
            Ends(sparse_start, kSparseRows[k]).at(s).loss);
      }
      table.loss.emplace_back();
      table.active.emplace_back();
      for (const std::string& row : rows) {
        const End end = Ends(start.empty() ? OwnStart(row) : start, row).at(s);
        table.loss[s].push_back(end.loss);
        table.active[s].push_back(end.active);
      }
    }
    return golden::DistancesFromCurve(table, definitions_.exponents);
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
  std::map<std::tuple<std::string, std::string, std::string>, End> ends_;
  int repeated_ = 0;
};

TEST_F(RouterStart, HasTheMeansThatTheResultsSay) {
  EXPECT_EQ(repeated_, 1);
  Strings rows = kSparseRows;
  rows.insert(rows.end(), kPrimaryRows.begin(), kPrimaryRows.end());
  rows.emplace_back(kNoAnnealing);
  for (const std::string& row : rows) {
    std::string line = fmt::format("| {} |", row);
    for (const std::string& start : kStarts) {
      const std::vector<End> ends = Ends(start, row);
      std::vector<double> losses, active;
      for (const End& end : ends) {
        losses.push_back(end.loss);
        active.push_back(end.active);
      }
      if (!ends.empty()) {
        line += fmt::format(" {:.{}f}", golden::Mean(losses),
                            ends.size() == kSeeds.size() ? 4 : 3);
        if (!row.starts_with("sparse")) {
          line += fmt::format(", {:.2f}", golden::Mean(active));
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
    const golden::RegimeDistances distances = Distances(start, rows, start);
    const std::vector<RegimeReading> readings = {Reading(distances.linear),
                                                 Reading(distances.smooth)};
    const std::string verdict = golden::RegimeStatusName(
        golden::DecideRegime(readings, definitions_.margin));
    ExpectInResults(fmt::format("| {}| {} | {} | {} | {}{} |\n", name, start,
                                Text(readings[0]), Text(readings[1]), verdict,
                                reach));
  }
  // NOT_TESTABLE: the sparse curve begins at one expert.
  for (const std::string start : {"0.02", "0.0447"}) {
    for (const End& end : Ends(start, kNoAnnealing)) EXPECT_LT(end.active, 1);
  }
}

}  // namespace
}  // namespace softmoe::experiments

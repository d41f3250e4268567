// SPDX-License-Identifier: Apache-2.0
//
// power_truth.h - the true numbers that made-up records are drawn from, as
// earlier runs say or by default, and the designs that draw them (power.h).
#ifndef SOFTMOE_EXPERIMENTS_REPORT_POWER_TRUTH_H_
#define SOFTMOE_EXPERIMENTS_REPORT_POWER_TRUTH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "experiments/grids/grid_file.h"
#include "experiments/report/power.h"
#include "experiments/run/run_record.h"
#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"

namespace softmoe::experiments {

inline constexpr uint64_t kPowerSeed = 20261124;

// True effects in nat/token: 0.05 is more than separates Sparse-2 from
// Sparse-4.
inline constexpr double kEffects[] = {0, 0.01, 0.02, 0.05};

using RowKey = std::pair<std::string, std::string>;  // corpus, row

// The configuration of the row's runs; with --seeds some rows of the frozen
// plan have none, and get that of the grid's first run.
const Config& ConfigOf(const Grid& grid, const RowKey& row);

// The runs of the records by row, each run once.
class KnownRuns {
 public:
  explicit KnownRuns(const std::vector<RunRecord>& records);

  // Leaves out the runs that `keep` is false of.
  void Keep(const std::function<bool(const golden::MiniatureRun&)>& keep);

  // The records' names.
  const std::string& source() const { return source_; }

  // Empty if the row has none.
  const std::vector<golden::MiniatureRun>& Of(const RowKey& row) const;

  // The standard deviation over seeds within the rows, pooled; `paired` removes
  // the effect of the seed, common to the rows, too. nullopt if the runs are
  // too few for that.
  template <typename Read>
  std::optional<double> Deviation(const std::vector<RowKey>& rows, bool paired,
                                  const Read& read) const {
    std::vector<SeedValue> values;
    for (size_t row = 0; row < rows.size(); ++row) {
      for (const golden::MiniatureRun& run : Of(rows[row])) {
        values.push_back({row, run.seed, read(run)});
      }
    }
    return DeviationOf(std::move(values), paired);
  }

 private:
  struct SeedValue {
    size_t row;
    int64_t seed;
    double value;
  };
  static std::optional<double> DeviationOf(std::vector<SeedValue> values,
                                           bool paired);

  std::string source_;
  std::map<RowKey, std::vector<golden::MiniatureRun>> runs_;
};

// The expected numbers of a row.
struct RowTruth {
  bool sparse = false;
  double loss = 0, infer_ae = 0, train_ae = 0, mean_cap = 0;
  double log_load_variance = 0;
  std::string load_balance;
  // Learned rows only: ascending by step, as MiniatureRun::allocation.
  std::vector<golden::AllocationPoint> allocation;
  // At other tau: share of the active experts, and loss minus the trained
  // tau's.
  std::vector<golden::TauPoint> at_tau;
};

// Standard deviations over seeds.
struct Deviations {
  double loss = 0;        // after pairing by seed
  double experts = 0;     // active experts of soft rows
  double load = 0;        // of the logarithm of load variance
  double allocation = 0;  // of one layer's k_l
};

// Used where no record has runs: those of the mini grid's.
inline constexpr Deviations kDefaultDeviations = {
    .loss = 0.011, .experts = 0.03, .load = 0.1, .allocation = 0.02};

// Common to all rows, so pairing removes it.
inline constexpr double kSeedDeviation = 0.05;

// `known`, or else `fallback`; adds to `texts` which of the two it is.
double DeviationOr(double fallback, const std::optional<double>& known,
                   const std::string& what, std::vector<std::string>* texts);

// The loss of a row without known runs, by its active experts: close to the
// mini grid's sparse rows.
double DefaultLoss(double experts);

// The truth of a row, from its known runs, if there are any; else the active
// experts of a soft row lie within a budget group, not at its end.
RowTruth TruthOf(const std::vector<golden::MiniatureRun>& known,
                 const Config& config);

// The power of the claims in miniature.
DesignPower PowerOfMiniature(const Grid& grid, const KnownRuns& known,
                             int draws);

// The power of the regime experiment: soft rows lie one effect below the smooth
// sparse curve. Pilots, which are not judged, are not among the runs it knows.
DesignPower PowerOfRegime(const Grid& grid, KnownRuns known, int draws);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_POWER_TRUTH_H_

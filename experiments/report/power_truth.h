// SPDX-License-Identifier: Apache-2.0
//
// power_truth.h - the true numbers from which made-up records are drawn, taken
// from earlier runs or from defaults, and the designs that draw them (power.h).
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

// True effects in nat/token; 0.05 is more than the difference between Sparse-2
// and Sparse-4.
inline constexpr double kEffects[] = {0, 0.01, 0.02, 0.05};

using RowKey = std::pair<std::string, std::string>;  // corpus, row

// The configuration of the row's runs. With --seeds some rows of the frozen
// plan have no runs; they get the configuration of the grid's first run.
const Config& ConfigOf(const Grid& grid, const RowKey& row);

// The runs of the records by row, each run once.
class KnownRuns {
 public:
  explicit KnownRuns(const std::vector<RunRecord>& records);

  // Drops the runs for which `keep` returns false.
  void Keep(const std::function<bool(const golden::MiniatureRun&)>& keep);

  // The records' names.
  const std::string& source() const { return source_; }

  // The known runs of a row; may be empty.
  const std::vector<golden::MiniatureRun>& Of(const RowKey& row) const;

  // The standard deviation over seeds within the rows, pooled. `paired` also
  // removes the effect of the seed, which the rows share. nullopt if there are
  // too few runs.
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
  // At other tau: the share of the active experts that is left, and the loss
  // minus that at the trained tau.
  std::vector<golden::TauPoint> at_tau;
};

// Standard deviations over seeds.
struct Deviations {
  double loss = 0;        // after pairing by seed
  double experts = 0;     // active experts of soft rows
  double load = 0;        // of the logarithm of load variance
  double allocation = 0;  // of one layer's k_l
};

// Used where no record has runs; they are those of the mini grid's runs.
inline constexpr Deviations kDefaultDeviations = {
    .loss = 0.011, .experts = 0.03, .load = 0.1, .allocation = 0.02};

// Common to all rows, so pairing removes it.
inline constexpr double kSeedDeviation = 0.05;

// `known`, or else `fallback`; adds to `texts` the value and which one it is.
double DeviationOr(double fallback, const std::optional<double>& known,
                   const std::string& what, std::vector<std::string>* texts);

// The loss of a row without known runs, given its active experts; close to that
// of the mini grid's sparse rows.
double DefaultLoss(double experts);

// The truth of a row, from its known runs if there are any. If there are none,
// the active experts of a soft row lie within a budget group, not at its end.
RowTruth TruthOf(const std::vector<golden::MiniatureRun>& known,
                 const Config& config);

// The power of the claims in miniature.
DesignPower PowerOfMiniature(const Grid& grid, const KnownRuns& known,
                             int draws);

// The power of the regime experiment: soft rows lie one effect below the smooth
// sparse curve. Pilots, which are never judged, are dropped.
DesignPower PowerOfRegime(const Grid& grid, KnownRuns known, int draws);

}  // namespace softmoe::experiments

#endif  // SOFTMOE_EXPERIMENTS_REPORT_POWER_TRUTH_H_

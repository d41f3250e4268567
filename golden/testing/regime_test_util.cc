// SPDX-License-Identifier: Apache-2.0
#include "golden/testing/regime_test_util.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "core/errors.h"

namespace softmoe::golden {

const RegimeDefinitions& FrozenRegime() {
  static const RegimeDefinitions kRegime = LoadRegime();
  return kRegime;
}

// The active experts of a row's made-up runs.
static double ActiveExpertsOf(const RegimeRow& row) {
  if (row.infer_ae_aim > 0) return row.infer_ae_aim;
  if (row.fixed.empty()) return 1.77;
  return FrozenRegime().Row(row.fixed)->infer_ae_aim + 0.28;
}

std::vector<MiniatureRun> MadeUpRegime(double effect) {
  const RegimeDefinitions& regime = FrozenRegime();
  std::vector<MiniatureRun> runs;
  for (const RegimeRow& row : regime.rows) {
    std::vector<int64_t> seeds = row.seeds;
    for (const int64_t seed : regime.pilot_seeds) {
      if (regime.IsPilot(row.id, seed)) seeds.push_back(seed);
    }
    const auto number = static_cast<double>(&row - regime.rows.data());
    for (const int64_t seed : seeds) {
      const auto s = static_cast<double>(seed % 1000);
      const double noise = std::sin(2.3 * s * (number + 1) + number);
      const bool sparse = row.role == "sparse";
      const double aim = ActiveExpertsOf(row);
      MiniatureRun run;
      run.row = row.id;
      run.corpus = regime.corpus;
      run.seed = seed;
      run.infer_ae = sparse ? aim : aim + 0.02 * std::cos(5.1 * s + number);
      run.train_ae =
          sparse ? aim : run.infer_ae - (row.role == "primary" ? 0.16 : 0.3);
      if (row.id == "regime-2") run.train_ae = run.infer_ae - 0.5;
      run.loss = 3.55 + 0.12 * std::pow(run.infer_ae, -1.5) +
                 0.05 * std::sin(1.7 * s) + 0.003 * noise;
      if (!sparse) run.loss += effect;
      if (row.role == "learned") run.loss -= 0.02;
      run.mean_cap = row.role == "learned" ? 3.4 + 0.01 * noise : 3;
      if (sparse) run.mean_cap = aim;
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

MiniatureRun& RunOf(std::vector<MiniatureRun>& runs, const std::string& row,
                    int64_t seed) {
  for (MiniatureRun& run : runs) {
    if (run.row == row && run.seed == seed) return run;
  }
  throw InternalError("no run " + row + " " + std::to_string(seed));
}

const RegimeEstimate& EstimateOf(const RegimeVerdicts& verdicts,
                                 const std::string& id) {
  const auto found =
      std::ranges::find(verdicts.estimates, id, &RegimeEstimate::id);
  if (found == verdicts.estimates.end()) throw InternalError("no " + id);
  return *found;
}

void PrintTo(RegimeStatus status, std::ostream* out) {
  *out << RegimeStatusName(status);
}

}  // namespace softmoe::golden

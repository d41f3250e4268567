// SPDX-License-Identifier: Apache-2.0
#include "golden/testing/miniature_test_util.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "core/errors.h"

namespace softmoe::golden {
namespace {

constexpr double kNoise = 0.001;
constexpr int kLayers = 10;

struct RowTruth {
  double loss, infer_ae, sign;
};

// Signs of the noise: multiplied by those of four seeds they sum to zero over
// rows and seeds, so that pairing removes none of it.
const std::map<std::string, RowTruth>& Truths() {
  static const std::map<std::string, RowTruth> kTruths = {
      {"sparse-1", {3.10, 1, 1}},
      {"sparse-2", {3.00, 2, -1}},
      {"sparse-3", {2.95, 3, 1}},
      {"sparse-4", {2.92, 4, -1}},
      {"softmoe-star-1-calibrated", {2.85, 3.7, 1}},
      {"softmoe-star-1.5-calibrated", {2.93, 1.8, -1}},
      {"softmoe-star-2-calibrated", {2.87, 3.2, 1}},
      {"softmoe-1.5-calibrated", {2.90, 2.2, -1}},
      {"softmoe-2-calibrated", {2.84, 3.6, 0}},
      {"softmoe-star-1-paper-tau", {2.86, 3.5, 1}},
      {"softmoe-star-1.5-paper-tau", {2.94, 1.5, -1}},
      {"softmoe-star-2-paper-tau", {2.88, 3.0, 1}},
      {"softmoe-1.5-paper-tau", {2.91, 2.0, -1}},
      {"softmoe-2-paper-tau", {2.85, 3.3, 0}},
      {"sparse-1-jitter-0.05", {3.11, 1, 1}},
      {"sparse-2-jitter-0.05", {3.01, 2, -1}},
      {"sparse-3-jitter-0.05", {2.96, 3, 0}}};
  return kTruths;
}

// Both sum to zero over four seeds.
double SeedEffect(size_t index) {
  constexpr double kEffects[] = {1, -1, 0.6, -0.6};
  return kEffects[index % 4];
}
double NoiseSign(size_t index) {
  return index % 4 == 0 || index % 4 == 3 ? 1 : -1;
}

bool IsSoft(const std::string& row) { return row.starts_with("softmoe"); }
bool IsLearned(const std::string& row) {
  return row.starts_with("softmoe-1.5") || row.starts_with("softmoe-2");
}

// k_l that rises with depth from below to above `mean`; `done` is the part of
// the way moved.
std::vector<double> Rising(double mean, double done, double wobble) {
  std::vector<double> allocation;
  for (int layer = 0; layer < kLayers; ++layer) {
    const double slope = (layer - 0.5 * (kLayers - 1)) / kLayers;
    allocation.push_back(mean + done * (0.8 + wobble) * slope);
  }
  return allocation;
}

}  // namespace

const MiniatureClaims& FrozenClaims() {
  static const MiniatureClaims kClaims = LoadMiniatureClaims();
  return kClaims;
}

MiniatureVerdicts JudgeMadeUp(const RunChange& change) {
  return JudgeMiniature(FrozenClaims(), MadeUpResults(FrozenClaims(), change));
}

void AddToLoss(const std::string& row, double difference, MiniatureRun* run) {
  if (run->row == row) run->loss += difference;
}

// Eight rows with noise, four seeds each, over (9 - 1)(4 - 1).
double MadeUpDeviation() { return kNoise * std::sqrt(32.0 / 24); }

MiniatureResults MadeUpResults(const MiniatureClaims& claims,
                               const RunChange& change) {
  MiniatureResults results;
  for (const PlannedRuns& planned : claims.planned) {
    for (const std::string& row : planned.rows) {
      const RowTruth& truth = Truths().at(row);
      for (size_t i = 0; i < planned.seeds.size(); ++i) {
        const double noise = truth.sign * NoiseSign(i);
        MiniatureRun run;
        run.row = row;
        run.corpus = planned.corpus;
        run.seed = planned.seeds[i];
        run.loss = truth.loss + 0.05 * SeedEffect(i) + kNoise * noise;
        run.infer_ae = truth.infer_ae + (IsSoft(row) ? 0.003 * noise : 0);
        run.mean_cap = IsLearned(row) ? 4.5 : 4;
        if (IsSoft(row))
          run.load_balance = IsLearned(row) ? "megatron" : "soft";
        run.train_ae = 0.9 * run.infer_ae;
        run.load_variance = 0.05 * std::exp(0.01 * noise + 0.1 * SeedEffect(i));
        if (IsLearned(row)) {
          const double mean = row.find("1.5") == std::string::npos ? 2 : 1.5;
          const double wobble = 0.01 * NoiseSign(i) + 0.001 * SeedEffect(i);
          run.allocation = {{100, Rising(mean, 0.6, wobble), 1},
                            {200, Rising(mean, 0.8, wobble), 2},
                            {1000, Rising(mean, 1, wobble), 8}};
          // At 150 steps about 0.7 of the movement is done.
          for (double& k : run.allocation[1].allocation) {
            k = mean + (k - mean) * (1 + 0.01 * NoiseSign(i));
          }
        }
        if (IsSoft(row)) {
          const double cost = 0.02 + 0.0005 * NoiseSign(i);
          run.at_tau = {{0.5, 1.2 * run.infer_ae, run.loss + 0.001},
                        {1, run.infer_ae, run.loss},
                        {1.5, 0.6 * run.infer_ae, run.loss + cost / 2},
                        {2, 0.4 * run.infer_ae, run.loss + 3 * cost / 2}};
        }
        if (change) change(i, &run);
        results.runs.push_back(std::move(run));
      }
    }
  }
  return results;
}

MiniatureClaims PairClaims(int num_claims, int num_seeds) {
  constexpr const char* kPairs[][2] = {
      {"r1", "r2"}, {"r3", "r4"}, {"r5", "r6"}, {"r7", "r8"},
      {"r9", "r3"}, {"r4", "r5"}, {"r6", "r7"}, {"r8", "r9"},
      {"r3", "r5"}, {"r4", "r6"}, {"r5", "r7"}, {"r6", "r8"}};
  const std::string rows =
      R"(["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9"])";
  std::string seeds;
  for (int seed = 1; seed <= num_seeds; ++seed) {
    seeds += (seed == 1 ? "" : ", ") + std::to_string(seed);
  }
  std::string text = fmt::format(
      "[family]\nprocedure = 2\nlevel = 0.05\nmeasures = {}\n"
      "confidence = 0.95\nown_deviation = 3\nown_deviation_rows = 0.34\n"
      "equal_deviations = 0.01\n"
      "[[planned]]\nrows = {}\ncorpus = \"text\"\nseeds = [{}]\n"
      "[groups]\nsparse = [\"r1\", \"r2\"]\n",
      num_claims, rows, seeds);
  for (int i = 0; i < num_claims; ++i) {
    text += fmt::format(
        "[[claims]]\nid = \"P{0}\"\ntitle = \"pair {0}\"\nsentence = \"s\"\n"
        "where = \"w\"\nnot_testable = \"n\"\nassumes = \"a\"\n"
        "[[claims.measures]]\nid = \"P{0}.loss\"\ntext = \"loss\"\n"
        "quantity = \"loss\"\nunit = \"nat/token\"\nrows = [\"{1}\"]\n"
        "against = \"rows\"\nagainst_rows = [\"{2}\"]\ncorpora = [\"text\"]\n"
        "of_cases = \"every\"\nholds = \"below\"\nmargin = 0\n"
        "noise = \"paired\"\npooled = {3}\n",
        i + 1, kPairs[i][0], kPairs[i][1], rows);
  }
  return ParseMiniatureClaims(text, "pairs.toml");
}

void PrintTo(MiniatureStatus status, std::ostream* out) {
  *out << MiniatureStatusName(status);
}

const MiniatureVerdict& ClaimOf(const MiniatureVerdicts& verdicts,
                                const std::string& id) {
  for (const MiniatureVerdict& claim : verdicts.claims) {
    if (claim.id == id) return claim;
  }
  throw InternalError("no claim " + id);
}

const MiniatureMeasureVerdict& MeasureOf(const MiniatureVerdicts& verdicts,
                                         const std::string& id) {
  for (const MiniatureVerdict& claim : verdicts.claims) {
    for (const MiniatureMeasureVerdict& measure : claim.measures) {
      if (measure.id == id) return measure;
    }
  }
  throw InternalError("no measure " + id);
}

const MiniatureCase& CaseOf(const MiniatureVerdicts& verdicts,
                            const std::string& measure,
                            const std::string& corpus, const std::string& row) {
  const MiniatureMeasureVerdict& of = MeasureOf(verdicts, measure);
  for (const auto* cases : {&of.cases, &of.parts}) {
    for (const MiniatureCase& each : *cases) {
      if (each.corpus == corpus &&
          (each.label == row || each.label.starts_with(row + " - "))) {
        return each;
      }
    }
  }
  throw InternalError("no case " + measure + " " + corpus + " " + row);
}

// ---- The experiment `regime`.

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

// SPDX-License-Identifier: Apache-2.0
//
// Planted effects: made-up runs with known means and deviations. An absent
// effect must not be found too often, and a present one must be found as often
// as planned.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/philox.h"
#include "golden/testing/miniature_test_util.h"
#include "golden/verdict/miniature_evidence.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/miniature_noise.h"
#include "golden/verdict/statistics.h"

namespace softmoe::golden {
namespace {

using enum MiniatureStatus;

constexpr uint64_t kSeed = 20260121;
constexpr int kDraws = 2000;
// 5 % plus three standard errors of a share of 2000 draws.
constexpr double kFamilyLimit = 0.065;

// Whether any measure is decided.
bool AnyDecided(const MiniatureVerdicts& verdicts) {
  for (const MiniatureVerdict& claim : verdicts.claims) {
    for (const MiniatureMeasureVerdict& measure : claim.measures) {
      if (measure.status == kShown || measure.status == kContradicted) {
        return true;
      }
    }
  }
  return false;
}

// Random runs in which every claim just fails to hold: all cases lie on their
// margins, or only as many as prevent the claim, with the others far on its
// side. Any decision is false. Losses, load and accuracies share their seed's
// effect.
class BoundaryRuns {
 public:
  BoundaryRuns(const MiniatureClaims& claims, bool all_on_margin)
      : claims_(claims), all_(all_on_margin) {}

  MiniatureResults Draw(uint32_t draw) const {
    Normals normals(kSeed, draw);
    MiniatureResults results;
    std::map<std::pair<std::string, int64_t>, double> seeds;
    for (const PlannedRuns& planned : claims_.planned) {
      for (const std::string& row : planned.rows) {
        for (const int64_t seed : planned.seeds) {
          const auto [effect, is_new] =
              seeds.try_emplace({planned.corpus, seed}, 0);
          if (is_new) effect->second = 0.05 * normals.Next();
          results.runs.push_back(
              Run(planned.corpus, row, seed, effect->second, &normals));
        }
      }
    }
    for (const double experts : {1.0, 1.5, 2.0, 3.0, 4.0}) {
      // On the margin: as fast as with fewer experts.
      const double speed = all_ || experts < 2 ? 7 : 7 - experts;
      ThroughputSamples samples{experts, {}, "soft"};
      for (int i = 0; i < 3; ++i) {
        samples.tokens_per_second.push_back(
            std::exp(speed + 0.02 * normals.Next()));
      }
      results.throughput.push_back(samples);
    }
    return results;
  }

 private:
  MiniatureRun Run(const std::string& corpus, const std::string& row,
                   int64_t seed, double effect, Normals* normals) const {
    const bool sparse = row.starts_with("sparse");
    const bool learned =
        row.starts_with("softmoe-1.5") || row.starts_with("softmoe-2");
    // The pairs of k = 1.5 on one corpus: without them `every` cannot hold, and
    // `most` needs one of them among four pairs.
    const bool pair = row.find("-1.5-") != std::string::npos;
    const bool on_margin = all_ || (corpus == "gcide" && pair);
    const bool even = all_ || pair;  // learned and fixed allocation are alike
    MiniatureRun run;
    run.row = row;
    run.corpus = corpus;
    run.seed = seed;
    // Sparse rows beyond the first are equal, so that groups and curve have the
    // same loss wherever a row's Infer-AE lies.
    double loss = row.starts_with("sparse-1") ? 3.2 : 3.0;
    if (!sparse && !on_margin) loss = learned && !even ? 2.8 : 2.9;
    if (row.find("jitter") != std::string::npos) {
      loss += all_ || row.starts_with("sparse-1") || row.starts_with("sparse-2")
                  ? -0.03
                  : 0.3;
    }
    run.loss = loss + effect + 0.01 * normals->Next();
    // The means over pairs, and over rows (two of ten on the margin), are zero,
    // or log 2, as well.
    const double more = all_ || !learned ? 0 : pair ? -0.5 : 0.5;
    run.infer_ae = sparse ? row[7] - '0' : 2.9 + more + 0.02 * normals->Next();
    const double parts = all_ ? 1 : 5;
    run.load_variance =
        0.05 * std::exp((!sparse && on_margin ? parts * std::log(2.0) : 0) +
                        effect + 0.1 * normals->Next());
    if (!sparse) run.load_balance = learned ? "megatron" : "soft";
    run.hellaswag = 0.4 + (!sparse && !on_margin ? 0.2 : 0) + effect +
                    0.05 * normals->Next();
    if (learned) {
      const double slope = on_margin ? 0 : 6;
      AllocationPoint last{1000, {}, 8}, early{150, {}, 2};
      double sum = 0;
      for (int layer = 0; layer < 10; ++layer) {
        last.allocation.push_back(5 + slope * (layer - 4.5) / 9 +
                                  0.5 * normals->Next());
        sum += last.allocation.back();
      }
      const double done = (on_margin ? 0.5 : 0.9) + 0.02 * normals->Next();
      for (const double k : last.allocation) {
        early.allocation.push_back(sum / 10 + done * (k - sum / 10));
      }
      run.allocation = {early, last};
    }
    if (!sparse) {
      // Half of the gap between Sparse-1 and Sparse-4.
      const double cost =
          (all_ || corpus == "gcide" ? 0.1 : -0.5) + 0.01 * normals->Next();
      run.at_tau = {{1, run.infer_ae, run.loss},
                    {2, run.infer_ae / 2, run.loss + cost}};
    }
    return run;
  }

  const MiniatureClaims& claims_;
  const bool all_;
};

double ShareOfFalseFinds(bool all_on_margin) {
  MiniatureClaims claims = LoadMiniatureClaims();
  // No loss can lie on this margin and on C5.loss's at once; where it lies does
  // not affect how often a test errs.
  for (MiniatureClaim& claim : claims.claims) {
    if (claim.id == "C1b") claim.measures[0].margin = 0;
  }
  const BoundaryRuns runs(claims, all_on_margin);
  int found = 0;
  for (uint32_t draw = 0; draw < kDraws; ++draw) {
    found += AnyDecided(TestMiniature(claims, runs.Draw(draw)));
  }
  return static_cast<double>(found) / kDraws;
}

TEST(PlantedEffect, NothingIsFoundTooOftenWhereAllCasesAreOnTheirMargin) {
  EXPECT_LT(ShareOfFalseFinds(true), kFamilyLimit);
}

TEST(PlantedEffect, NothingIsFoundTooOftenWhereOneCaseKeepsAClaimFromHolding) {
  EXPECT_LT(ShareOfFalseFinds(false), kFamilyLimit);
}

// Nine rows and four seeds whose losses scatter by 0.01 nat, with a seed effect
// ten times as large; the first pair differs by `difference`.
double ShareFound(const MiniatureClaims& claims, double difference,
                  int* false_finds) {
  int found = 0;
  *false_finds = 0;
  for (uint32_t draw = 0; draw < kDraws; ++draw) {
    Normals normals(kSeed, draw);
    std::map<int64_t, double> effects;
    for (const int64_t seed : claims.planned[0].seeds) {
      effects[seed] = 0.1 * normals.Next();
    }
    MiniatureResults results;
    for (const std::string& row : claims.planned[0].rows) {
      for (const int64_t seed : claims.planned[0].seeds) {
        MiniatureRun run;
        run.row = row;
        run.corpus = "text";
        run.seed = seed;
        run.loss = 3 + effects[seed] + 0.01 * normals.Next() -
                   (row == "r1" ? difference : 0);
        results.runs.push_back(run);
      }
    }
    const MiniatureVerdicts verdicts = TestMiniature(claims, results);
    found += ClaimOf(verdicts, "P1").status == kShown;
    bool others = ClaimOf(verdicts, "P1").status == kContradicted;
    for (const MiniatureVerdict& claim : verdicts.claims) {
      others = others || (claim.id != "P1" && claim.status != kUndecided);
    }
    *false_finds += others;
  }
  return static_cast<double>(found) / kDraws;
}

// As planned: 80 % for 2.1 deviations in one test, and for 2.8 among twelve.
// The tolerance is three standard errors of the share, and 0.01 for the
// planning formula, which treats the noncentral distribution as a shifted one.
constexpr double kPower = 0.8;
constexpr double kPowerError = 0.027 + 0.01;

TEST(PlantedEffect, OneTestFindsWhatItIsPlannedToFind) {
  const double planned = DetectableDifference(0.01, 24, 4, 0.05, kPower);
  EXPECT_NEAR(planned, 2.1 * 0.01, 0.05 * 0.01);
  int false_finds = 0;
  EXPECT_NEAR(ShareFound(PairClaims(1, 4), planned, &false_finds), kPower,
              kPowerError);
  EXPECT_LT(false_finds, kFamilyLimit * kDraws);
}

TEST(PlantedEffect, TwelveTestsFindWhatTheyArePlannedToFind) {
  const double planned = DetectableDifference(0.01, 24, 4, 0.05 / 12, kPower);
  EXPECT_NEAR(planned, 2.8 * 0.01, 0.05 * 0.01);
  int false_finds = 0;
  EXPECT_NEAR(ShareFound(PairClaims(12, 4), planned, &false_finds), kPower,
              kPowerError);
  EXPECT_LT(false_finds, kFamilyLimit * kDraws);
}

// For nine rows with the same deviation: how often some row is taken for much
// noisier than the others, and how often a 95 % interval for the difference of
// two pooled rows holds the truth.
struct TakenForNoisy {
  double share = 0, coverage = 0;
};

TakenForNoisy OfEqualRows(int64_t num_seeds) {
  int noisy = 0, covered = 0, intervals = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    Normals normals(kSeed, static_cast<uint32_t>(draw));
    SeedValues values;
    std::map<std::string, double> means;
    for (char row = 'a'; row <= 'i'; ++row) {
      for (int64_t seed = 0; seed < num_seeds; ++seed) {
        const double value = normals.Next();
        values[{row}][seed] = value;
        means[{row}] += value / static_cast<double>(num_seeds);
      }
    }
    const RowNoise noise = PoolRows(values, Noise::kPaired, FrozenClaims());
    if (!noise.own.empty()) ++noisy;
    for (char row = 'a'; row < 'i'; row += 2) {
      const std::string first = {row}, second = {static_cast<char>(row + 1)};
      const auto count = static_cast<size_t>(num_seeds);
      const SumError sum =
          ErrorOf({{first, 1, count}, {second, -1, count}}, noise);
      ++intervals;
      if (std::abs(means[first] - means[second]) <=
          StudentQuantile(0.975, sum.freedom) * sum.error) {
        ++covered;
      }
    }
  }
  return {static_cast<double>(noisy) / kDraws,
          static_cast<double>(covered) / intervals};
}

// FORMAT.md, "Claims in miniature", gives these numbers.
TEST(PlantedEffect, OfTwoSeedsChanceMakesSomeRowsLookNoisy) {
  const TakenForNoisy two = OfEqualRows(2);
  EXPECT_NEAR(two.share, 0.37, 0.033);  // three standard errors
  EXPECT_GT(two.coverage, 0.90);
  EXPECT_LT(two.coverage, 0.93);
  const TakenForNoisy four = OfEqualRows(4);
  EXPECT_LT(four.share, 0.02);
  EXPECT_GT(four.coverage, 0.94);
}

}  // namespace
}  // namespace softmoe::golden

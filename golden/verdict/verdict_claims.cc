// SPDX-License-Identifier: Apache-2.0
//
// Tests claims one-sided on our own runs, never on the golden's numbers, which
// give the claim's published verdict and what is comparable.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "golden/document/claims.h"
#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_evidence.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/statistics.h"
#include "golden/verdict/verdict_judge.h"

namespace softmoe::golden::internal {
namespace {

// The test of a claim: a positive `advantage` speaks for the claim.
struct ClaimTest {
  double p_holds = 1;
  double p_refuted = 1;
};

// One-sided p-values of an observed difference with standard error `error`;
// `cdf` is its distribution function in units of `error`.
template <typename Cdf>
ClaimTest TestDifference(double advantage, double error, const Cdf& cdf) {
  if (error == 0) {
    return {advantage > 0 ? 0.0 : 1.0, advantage < 0 ? 0.0 : 1.0};
  }
  return {cdf(-advantage / error), cdf(advantage / error)};
}

class ClaimJudge {
 public:
  ClaimJudge(const Document& results, const Document& golden,
             Verdicts* verdicts)
      : results_(results), golden_(golden), verdicts_(*verdicts) {}

  void Run() {
    std::set<std::string> groups;
    for (const Claim& claim : golden_.claims) {
      if (claim.of_cases == Quantifier::kEvery) {
        JudgeClaim(claim);
      } else if (groups.insert(claim.group()).second) {
        JudgeMost(claim.group());
      }
    }
    ApplyHolm();
  }

 private:
  struct Tested {
    size_t claim;  // index into the verdicts
    double p_value;
    bool holds;  // which direction p_value is about
    bool capped;
    Status undecided = Status::kInconclusive;  // without a decision
  };

  // One pair. If only Holm's procedure can decide the claim (`has_noise`),
  // `verdict.reason` is the text that follows the test's own.
  struct JudgedPair {
    ClaimVerdict verdict;
    ClaimTest test;          // {1, 1}: it says nothing
    bool is_tested = false;  // `test` has been made
    bool has_noise = false;
    bool capped = false;  // a strict claim under open fields

    // The test is in both directions, each at half the level.
    bool holds() const { return test.p_holds <= test.p_refuted; }
    double p_value() const {
      return std::min(1.0, 2 * std::min(test.p_holds, test.p_refuted));
    }
  };

  void JudgeClaim(const Claim& claim) {
    std::optional<JudgedPair> pair = JudgePair(claim);
    if (!pair) return;
    if (pair->has_noise) {
      tested_.push_back({verdicts_.claims.size(), pair->p_value(),
                         pair->holds(), pair->capped});
    }
    verdicts_.claims.push_back(std::move(pair->verdict));
  }

  // More than half of all pairs must hold, whether or not the results have
  // them: as in a measure of claims in miniature.
  void JudgeMost(const std::string& group) {
    ClaimVerdict verdict;
    verdict.claim = group;
    std::vector<MiniatureCase> cases;
    std::vector<std::string> published;
    std::set<Status> statuses;  // of pairs that are not tested
    int64_t tested = 0, pointing = 0;
    bool capped = false;
    for (const Claim& claim : golden_.claims) {
      if (claim.of_cases == Quantifier::kEvery || claim.group() != group) {
        continue;
      }
      published.push_back(claim.published_verdict);
      MiniatureCase& each = cases.emplace_back();
      const std::optional<JudgedPair> pair = JudgePair(claim);
      if (!pair) {
        statuses.insert(Status::kUnsupported);
        continue;
      }
      each.p_shown = pair->test.p_holds;
      each.p_contradicted = pair->test.p_refuted;
      Merge(pair->verdict.assumptions, &verdict.assumptions);
      verdict.cases.push_back({claim.id, CaseReason(*pair)});
      if (!pair->is_tested) {
        statuses.insert(pair->verdict.status);
        continue;
      }
      ++tested;
      if (each.p_shown < each.p_contradicted) ++pointing;
      capped |= pair->capped;
    }
    if (verdict.cases.empty()) return;  // not about these results
    const auto pairs = static_cast<int64_t>(cases.size());
    const int64_t needed = CasesNeeded(OfCases::kMost, pairs);
    if (statuses.contains(Status::kMistrusted)) {
      verdict.status = Status::kMistrusted;
      verdict.reason = kEqualRuns;
    } else if (tested < std::min(needed, pairs - needed + 1)) {
      verdict.status = WhyNotTested(statuses);
      verdict.reason = fmt::format("{} of {} pairs can be tested, {} needed",
                                   tested, pairs, needed);
    } else {
      const MeasureTest test = Combine(cases, needed);
      tested_.push_back(
          {verdicts_.claims.size(), test.p, test.leans_to_shown, capped,
           tested < needed ? WhyNotTested(statuses) : Status::kInconclusive});
      verdict.reason = fmt::format("; {} of {} pairs point to it, {} needed",
                                   pointing, pairs, needed);
      if (tested < pairs) {
        verdict.reason += fmt::format(" ({} can be tested)", tested);
      }
    }
    verdict.reason += "; the published numbers: " + PublishedOfMost(published);
    verdicts_.claims.push_back(std::move(verdict));
  }

  // The status of a claim of whose pairs too few were tested.
  static Status WhyNotTested(const std::set<Status>& statuses) {
    for (const Status status : {Status::kNotComparable, Status::kUnsupported}) {
      if (statuses.contains(status)) return status;
    }
    return Status::kInconclusive;
  }

  static std::string CaseReason(const JudgedPair& pair) {
    if (!pair.has_noise) return pair.verdict.reason;
    return fmt::format("points to {} (p = {:.2g}){}",
                       pair.holds() ? "holding" : "not holding", pair.p_value(),
                       pair.verdict.reason);
  }

  // nullopt if the results lack one of its rows: the claim is not about them.
  std::optional<JudgedPair> JudgePair(const Claim& claim) {
    const ClaimSide left = FindSide(results_, claim, claim.left);
    const ClaimSide right = FindSide(results_, claim, claim.right);
    if (left.row == nullptr || (right.row == nullptr && !right.is_number)) {
      return std::nullopt;
    }
    JudgedPair pair;
    ClaimVerdict& verdict = pair.verdict;
    verdict.claim = claim.id;
    std::vector<std::string> differences;  // names of fields
    std::vector<FieldDifference> open;
    for (const ClaimSide* side : {&left, &right}) {
      if (side->row == nullptr) continue;
      const Row* golden_row =
          golden_.FindTable(claim.scope)->FindRow(side->row->id);
      const FingerprintComparison comparison = CompareFingerprints(
          FieldsOf(results_, *side->row), FieldsOf(golden_, *golden_row),
          golden_.provenance.origin);
      Merge(FieldNames(comparison.differences), &differences);
      Merge(comparison.open, &open);
    }
    verdict.assumptions = IndicesOf(open, verdicts_.assumptions);
    if (!differences.empty()) {
      verdict.status = Status::kNotComparable;
      verdict.reason = "differs in " + JoinNames(differences);
    } else if (!left.has_value() || !right.has_value()) {
      verdict.status = Status::kUnsupported;
      verdict.reason = "the results have no value for it";
    } else if (const std::string differ = WhatDiffers(claim, left, right);
               !differ.empty()) {
      verdict.status = Status::kNotComparable;
      verdict.reason = differ;
    } else {
      AssumeDefinitions(claim, left, right, &verdict);
      const bool assumes = !verdict.assumptions.empty();
      if (right.is_number) {
        TestAgainstNumber(claim, left, right, assumes, &pair);
      } else {
        TestRows(claim, left, right, assumes, &pair);
      }
    }
    verdict.reason += Published(claim);
    return pair;
  }

  // Why the sides differ from the golden's cells in unit, definition or items,
  // or from each other in items; "" if they do not.
  std::string WhatDiffers(const Claim& claim, const ClaimSide& left,
                          const ClaimSide& right) const {
    for (const ClaimSide* side : {&left, &right}) {
      if (side->is_number) continue;
      const Column& ours = *side->column;
      std::string differ =
          ColumnsDiffer(golden_, GoldenColumn(claim, ours), ours);
      if (differ.empty()) {
        const Row& golden_row = GoldenRow(claim, *side);
        differ = ItemsDiffer(
            ItemsOf(golden_, golden_row, GoldenCell(claim, *side), ours.id),
            "in the golden", ItemsOfSide(*side), "here");
      }
      if (!differ.empty()) return differ;
    }
    if (right.is_number) return "";
    return ItemsDiffer(ItemsOfSide(left), "on the left", ItemsOfSide(right),
                       "on the right");
  }

  Items ItemsOfSide(const ClaimSide& side) const {
    return ItemsOf(results_, *side.row, *side.cell, side.column->id);
  }

  void AssumeDefinitions(const Claim& claim, const ClaimSide& left,
                         const ClaimSide& right, ClaimVerdict* verdict) {
    for (const ClaimSide* side : {&left, &right}) {
      if (side->is_number) continue;
      const Column& ours = *side->column;
      Merge(AssumedDefinition(golden_, GoldenColumn(claim, ours), ours,
                              claim.scope + "/" + side->row->id,
                              &verdicts_.assumptions),
            &verdict->assumptions);
    }
  }

  std::optional<TokenSizes> TokensOf(const Claim& claim,
                                     const ClaimSide& side) const {
    return TokenSizesOf(
        results_, golden_, claim.scope, GoldenColumn(claim, *side.column),
        *golden_.FindTable(claim.scope)->FindRow(side.row->id), *side.row);
  }

  // Converts `*side` to the paper's tokens, stores its new cell in `*cell`, and
  // returns its noise. Adds what this assumes to the verdict.
  PooledDeviation Convert(const Claim& claim, const TokenSizes& tokens,
                          ClaimSide* side, Cell* cell, ClaimVerdict* verdict) {
    if (tokens.converts()) {
      Merge({AddDifference(tokens.field, claim.scope + "/" + side->row->id,
                           &verdicts_.assumptions)},
            &verdict->assumptions);
    }
    PooledDeviation noise = NoiseOf(claim, *side);
    noise.deviation *= tokens.factor;
    *cell = Scaled(*side->cell, tokens.factor);
    side->cell = cell;
    return noise;
  }

  // A number is in the paper's tokens, as its cells are.
  void TestAgainstNumber(const Claim& claim, const ClaimSide& left,
                         const ClaimSide& right, bool open, JudgedPair* pair) {
    const auto tokens = TokensOf(claim, left);
    if (!tokens) {
      Test(claim, left, right, NoiseOf(claim, left), open, pair);
      return;
    }
    ClaimSide judged = left;
    Cell cell;
    const PooledDeviation noise =
        Convert(claim, *tokens, &judged, &cell, &pair->verdict);
    Test(claim, judged, right, noise, open || tokens->converts(), pair);
    pair->verdict.reason += "; " + DescribeTokens(*tokens, *left.cell);
  }

  // Rows in tokens of two sizes are compared in the paper's, as cells are.
  void TestRows(const Claim& claim, const ClaimSide& left,
                const ClaimSide& right, bool open, JudgedPair* pair) {
    const auto tokens = TokensOf(claim, left);
    const auto other_tokens = TokensOf(claim, right);
    // If either size is unknown, the numbers are compared as they are.
    if (!tokens || !other_tokens || !tokens->known || !other_tokens->known ||
        !DifferInSize(tokens->factor, other_tokens->factor)) {
      Test(claim, left, right,
           Larger(NoiseOf(claim, left), NoiseOf(claim, right)), open, pair);
      return;
    }
    ClaimSide judged = left, other = right;
    Cell cell, other_cell;
    const PooledDeviation noise =
        Convert(claim, *tokens, &judged, &cell, &pair->verdict);
    const PooledDeviation other_noise =
        Convert(claim, *other_tokens, &other, &other_cell, &pair->verdict);
    Test(claim, judged, other, Larger(noise, other_noise), /*open=*/true, pair);
    pair->verdict.reason += fmt::format(
        "; {}: {}; {}: {}", left.row->id, DescribeTokens(*tokens, *left.cell),
        right.row->id, DescribeTokens(*other_tokens, *right.cell));
  }

  // Appends items that are not there yet.
  template <typename T>
  static void Merge(const std::vector<T>& from, std::vector<T>* to) {
    for (const T& item : from) {
      if (std::find(to->begin(), to->end(), item) == to->end()) {
        to->push_back(item);
      }
    }
  }

  // Strict claims are capped if the golden leaves fields open (ruling 2).
  void Test(const Claim& claim, const ClaimSide& left, const ClaimSide& right,
            const PooledDeviation& noise, bool open, JudgedPair* pair) {
    const Column& column = GoldenColumn(claim, *left.column);
    const double width = ComparableWidth(golden_, claim);
    ClaimVerdict* verdict = &pair->verdict;
    pair->capped = open && claim.op != "==" && claim.op.size() == 1;
    if (column.lane == Lane::kExact || claim.op == "==") {
      TestExactly(claim, left, right, column, width, verdict);
      pair->is_tested = true;
      if (verdict->status == Status::kPass) pair->test.p_holds = 0;
      if (verdict->status == Status::kFail) pair->test.p_refuted = 0;
      const bool decided = verdict->status != Status::kInconclusive;
      if (pair->capped && decided) {
        verdict->status = Status::kInconclusive;
        verdict->reason += "; a strict claim is not decided under open fields";
      }
    } else if (!noise.known()) {
      verdict->status = Status::kInconclusive;
      verdict->reason =
          "no row of this corpus has two runs, so the seed noise is unknown";
    } else if (noise.all_equal() || IsSuspicious(claim, left) ||
               IsSuspicious(claim, right)) {
      verdict->status = Status::kMistrusted;
      verdict->reason = kEqualRuns;
    } else {
      pair->test = TestWithNoise(claim, left, right, width, noise);
      pair->is_tested = pair->has_noise = true;
    }
  }

  PooledDeviation NoiseOf(const Claim& claim, const ClaimSide& side) const {
    return PoolColumn(results_, golden_, claim.scope, side.column->id,
                      *side.row);
  }

  // The larger of two noises, which differ if columns, corpora or tokens do.
  static PooledDeviation Larger(PooledDeviation noise,
                                const PooledDeviation& other) {
    noise.deviation = std::max(noise.deviation, other.deviation);
    noise.freedom = std::min(noise.freedom, other.freedom);
    const bool known = noise.flip_share && other.flip_share;
    noise.flip_share =
        known ? std::max(noise.flip_share, other.flip_share) : std::nullopt;
    return noise;
  }

  // What the golden's numbers say, and how much of that survives their noise.
  std::string Published(const Claim& claim) const {
    std::string text = "; the published numbers: " + claim.published_verdict;
    const PublishedEvidence evidence = EvidenceOf(golden_, claim);
    if (evidence.sampling && evidence.resolved != evidence.as_printed) {
      text += fmt::format(" ({} with the sampling error of their items)",
                          evidence.resolved);
    } else if (evidence.deviation) {
      text += fmt::format(
          " (unless a run deviates by {:.2g} or more over "
          "seeds)",
          *evidence.deviation);
    }
    return text;
  }

  // Whether one of our cells should have noise and has none.
  bool IsSuspicious(const Claim& claim, const ClaimSide& side) const {
    if (side.is_number) return false;
    return AreSuspicious(*side.cell, golden_, GoldenCell(claim, side));
  }

  const Row& GoldenRow(const Claim& claim, const ClaimSide& side) const {
    return *golden_.FindTable(claim.scope)->FindRow(side.row->id);
  }

  const Cell& GoldenCell(const Claim& claim, const ClaimSide& side) const {
    const int64_t column =
        golden_.FindTable(claim.scope)->FindColumn(side.column->id);
    return GoldenRow(claim, side).cells[static_cast<size_t>(column)];
  }

  const Column& GoldenColumn(const Claim& claim, const Column& ours) const {
    const Table* table = golden_.FindTable(claim.scope);
    const int64_t index = table->FindColumn(ours.id);
    return index < 0 ? ours : table->columns[static_cast<size_t>(index)];
  }

  // The interval in which all runs of a side must lie: no number is more than
  // (n - 1)/sqrt(n) standard deviations from the mean of n (Samuelson 1968).
  static Interval OverRuns(const ClaimSide& side) {
    const Interval mean = side.interval();
    if (side.is_number || !side.cell->deviation) return mean;
    const auto n = static_cast<double>(side.cell->runs);
    const double most = (n - 1) / std::sqrt(n) * *side.cell->deviation;
    return {mean.low - most, mean.high + most};
  }

  // Without noise, equality means that both print alike. A claim must hold in
  // every run.
  static void TestExactly(const Claim& claim, const ClaimSide& left,
                          const ClaimSide& right, const Column& column,
                          double width, ClaimVerdict* verdict) {
    const Interval a = OverRuns(left), b = OverRuns(right);
    const double tolerance = 0.5 * std::pow(10.0, -column.decimals);
    const double low = a.low - b.high + width, high = a.high - b.low + width;
    const bool equal = low >= -tolerance && high <= tolerance;
    const bool apart = low > tolerance || high < -tolerance;
    std::optional<bool> holds;
    if (claim.op == "==") {
      if (equal) holds = true;
      if (apart) holds = false;
    } else {
      const bool less = claim.op[0] == '<';
      const bool strict = claim.op.size() == 1;
      // How far the left side is on the claim's side, at least and at most.
      const double least = less ? -high : low, most = less ? -low : high;
      if (strict ? least > tolerance : least >= -tolerance) holds = true;
      if (strict ? most <= tolerance : most < -tolerance) holds = false;
    }
    verdict->status = !holds   ? Status::kInconclusive
                      : *holds ? Status::kPass
                               : Status::kFail;
    const double right_value =
        right.is_number ? right.number : right.cell->value;
    const auto differs = [](const ClaimSide& side) {
      return !side.is_number && side.cell->deviation &&
             !RunsAreEqual(*side.cell);
    };
    const char* open = differs(left) || differs(right)
                           ? "is not decided: runs differ"
                           : "is not decided at this rounding";
    verdict->reason = fmt::format("{:.6g} {} {:.6g} {}", left.cell->value,
                                  claim.op, right_value,
                                  !holds   ? open
                                  : *holds ? "holds exactly"
                                           : "does not hold");
  }

  static ClaimTest TestWithNoise(const Claim& claim, const ClaimSide& left,
                                 const ClaimSide& right, double width,
                                 const PooledDeviation& noise) {
    const double sign = claim.op[0] == '<' ? -1 : 1;
    const double value = right.is_number ? right.number : right.cell->value;
    const double advantage = sign * (left.cell->value - value) + width;
    const double variance =
        1.0 / static_cast<double>(left.cell->runs) +
        (right.is_number ? 0.0 : 1.0 / static_cast<double>(right.cell->runs));
    ClaimTest test =
        TestDifference(advantage, noise.deviation * std::sqrt(variance),
                       [&](double t) { return StudentCdf(t, noise.freedom); });
    // Percentages also carry the noise of their items, as in Compare.
    const auto& items = left.cell->proportion;
    if (items) {
      const auto total = static_cast<double>(items->total);
      const double p = std::clamp(left.cell->value / 100, 0.0, 1.0);
      const double q = std::clamp(value / 100, 0.0, 1.0);
      const double other = right.is_number ? 0 : q * (1 - q);
      double error = 100 * std::sqrt((p * (1 - p) + other) / total);
      if (noise.flip_share && (right.is_number || right.cell->proportion)) {
        error = std::hypot(FlipDeviation(*noise.flip_share, *left.cell),
                           right.is_number
                               ? 0
                               : FlipDeviation(*noise.flip_share, *right.cell));
      }
      const ClaimTest sampling = TestDifference(advantage, error, NormalCdf);
      test.p_holds = std::max(test.p_holds, sampling.p_holds);
      test.p_refuted = std::max(test.p_refuted, sampling.p_refuted);
    }
    return test;
  }

  void ApplyHolm() {
    std::vector<double> p_values;
    for (const Tested& tested : tested_) p_values.push_back(tested.p_value);
    const std::vector<bool> rejected = HolmRejections(p_values, kLevel);
    for (size_t i = 0; i < tested_.size(); ++i) {
      const Tested& tested = tested_[i];
      ClaimVerdict& verdict = verdicts_.claims[tested.claim];
      const std::string rest = verdict.reason;
      if (!rejected[i]) {
        verdict.status = tested.undecided;
        verdict.reason = fmt::format(
            "leans towards {} (p = {:.2g}), not decided among {} claims",
            tested.holds ? "holding" : "not holding", tested.p_value,
            tested_.size());
      } else if (tested.capped) {
        verdict.status = Status::kInconclusive;
        verdict.reason = fmt::format(
            "our runs say that it {} (p = {:.2g}); a strict claim is not "
            "decided under open fields",
            tested.holds ? "holds" : "does not hold", tested.p_value);
      } else {
        verdict.status = tested.holds ? Status::kPass : Status::kFail;
        verdict.reason = fmt::format("{} in our runs (p = {:.2g})",
                                     tested.holds ? "holds" : "does not hold",
                                     tested.p_value);
      }
      verdict.reason += rest;
    }
  }

  const Document& results_;
  const Document& golden_;
  Verdicts& verdicts_;
  std::vector<Tested> tested_;
};

}  // namespace

void JudgeClaims(const Document& results, const Document& golden,
                 Verdicts* verdicts) {
  ClaimJudge(results, golden, verdicts).Run();
}

}  // namespace softmoe::golden::internal

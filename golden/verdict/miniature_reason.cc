// SPDX-License-Identifier: Apache-2.0
#include "golden/verdict/miniature_reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>

#include "golden/verdict/miniature_evidence.h"

namespace softmoe::golden {
namespace {

// The first problems, and how many more there are.
std::string ProblemsOf(const std::vector<MiniatureCase>& cases) {
  constexpr size_t kMost = 2;
  std::vector<std::string> problems = ProblemTexts(cases);
  const size_t others = problems.size() - std::min(kMost, problems.size());
  problems.resize(problems.size() - others);
  std::string text = fmt::format("{}", fmt::join(problems, "; "));
  if (others > 0) {
    text +=
        fmt::format("; and {} more reason{}", others, others > 1 ? "s" : "");
  }
  return text;
}

std::string Reported(const std::vector<MiniatureCase>& cases) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  size_t tested = 0;
  for (const MiniatureCase& each : cases) {
    if (!each.problem.empty()) continue;
    ++tested;
    least = std::min(least, each.estimate);
    most = std::max(most, each.estimate);
  }
  if (tested == 0) return "reported, not judged: " + ProblemsOf(cases);
  return fmt::format("reported, not judged: {:+.3g} to {:+.3g} in {} case{}",
                     least, most, tested, tested == 1 ? "" : "s");
}

// The rise of active experts if every token filled its cap.
std::string CapsAlone(const MiniatureMeasureVerdict& measure) {
  std::vector<std::string> rises;
  for (const MiniatureCase& each :
       measure.parts.empty() ? measure.cases : measure.parts) {
    if (!each.cap_rise || !each.problem.empty()) continue;
    rises.push_back(fmt::format("{:+.2f} ({}: {})", *each.cap_rise, each.corpus,
                                each.label));
  }
  if (rises.empty()) return "";
  std::string text =
      fmt::format("; rounding of caps alone gives {}", fmt::join(rises, ", "));
  const MiniatureCase& deciding = measure.cases[measure.deciding];
  if (deciding.cap_rise && deciding.problem.empty()) {
    text += fmt::format(", which is {:.2f} of the effect",
                        *deciding.cap_rise / deciding.estimate);
  }
  return text;
}

// Which deviations were not pooled, and how much depends on pooling the
// others.
std::string Deviations(const MiniatureMeasureVerdict& measure) {
  std::set<std::string> out, unequal;
  for (const MiniatureCase& each :
       measure.parts.empty() ? measure.cases : measure.parts) {
    const std::string corpus = each.corpus.empty() ? "" : each.corpus + "/";
    for (const std::string& row : each.left_out) out.insert(corpus + row);
    if (each.not_pooled) {
      unequal.insert(fmt::format("{}p = {:.2g}",
                                 each.corpus.empty() ? "" : each.corpus + ": ",
                                 each.bartlett));
    }
  }
  std::string text;
  if (!out.empty()) {
    text += fmt::format("; left out of the pool: {}", fmt::join(out, ", "));
  }
  if (!unequal.empty()) {
    text += fmt::format(
        "; not pooled, for the rows scatter unequally (Bartlett, {})",
        fmt::join(unequal, ", "));
  }
  if (measure.p_not_pooled) {
    text +=
        fmt::format("; p {:.2g}, and by each difference's own deviation {:.2g}",
                    measure.p, *measure.p_not_pooled);
  }
  return text;
}

}  // namespace

std::vector<std::string> ProblemTexts(const std::vector<MiniatureCase>& cases) {
  std::vector<std::string> problems;
  for (const MiniatureCase& each : cases) {
    if (each.problem.empty()) continue;
    const std::string problem =
        (each.corpus.empty() ? "" : each.corpus + ": ") + each.problem;
    if (std::find(problems.begin(), problems.end(), problem) ==
        problems.end()) {
      problems.push_back(problem);
    }
  }
  return problems;
}

std::string ReasonOf(const MiniatureMeasure& definition,
                     const MiniatureMeasureVerdict& measure,
                     const std::vector<std::string>& equal_seeds) {
  size_t tested = 0, holding = 0;
  for (const MiniatureCase& each : measure.cases) {
    if (!each.problem.empty()) continue;
    ++tested;
    if (PointsToClaim(definition, each.estimate)) ++holding;
  }
  std::string text;
  switch (measure.status) {
    case MiniatureStatus::kMistrusted:
      return fmt::format(
          "two seeds gave the same bits ({}): are the seeds "
          "different?",
          fmt::join(equal_seeds, ", "));
    case MiniatureStatus::kNotTestable:
      return ProblemsOf(measure.cases);
    case MiniatureStatus::kReported:
      return Reported(measure.cases) + Deviations(measure);
    default:
      text = fmt::format("{} of {} cases point to the claim, {} needed",
                         holding, tested, measure.cases_needed);
      if (tested < measure.cases.size()) {
        text += fmt::format(" (of {}, not all of which can be tested)",
                            measure.cases.size());
      }
  }
  if (measure.status == MiniatureStatus::kUndecided) {
    text += fmt::format("; leans to {}",
                        measure.leans_to_shown ? "shown" : "contradicted");
  }
  return text + CapsAlone(measure) + Deviations(measure);
}

}  // namespace softmoe::golden

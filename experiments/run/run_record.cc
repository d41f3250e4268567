// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "experiments/grids/experiment.h"
#include "experiments/run/bench_samples.h"
#include "experiments/run/run_folder.h"
#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/regime.h"
#include "golden/verdict/regime_judge.h"
#include "kernels/isa.h"
#include "trainer/evaluation/final_evaluations.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/run_digest.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;
using trainer::InferenceTau;
using trainer::StepRecord;
using trainer::TaskResult;

// The experiment, and the scale at which its runs are judged.
constexpr char kRegime[] = "regime";
constexpr char kRegimeScale[] = "mini";

constexpr size_t kFirstPoints = 10;
constexpr size_t kEvenPoints = kRecordedPoints - kFirstPoints;

int64_t Seed(const RecordedRun& run) { return run.result.config.training.seed; }

// "CORPUS/ROW"
std::string RowOf(const RecordedRun& run) {
  return run.id.substr(0, run.id.rfind('/'));
}

// Throws DataError if the settings differ: one row's numbers would mix both.
void RequireOneReading(const RunRecord& record, const RecordedRun& run,
                       const RecordedRun& first) {
  Config there = first.result.identity.config;
  there.training.seed = Seed(run);
  if (ConfigHash(there) == ConfigHash(run.result.identity.config)) return;
  throw DataError(
      fmt::format("{}: mixes readings of a row: {} has other settings than {}: "
                  "{}; record the runs of one of them in another file",
                  record.path.string(), run.id, first.id,
                  trainer::DescribeConfigDifferences(trainer::CompareConfigs(
                      there, run.result.identity.config))));
}

// How many runs have each value: "v3" -> 12.
using Counts = std::map<std::string, size_t>;
std::string Listed(const Counts& counts) {
  std::vector<std::string> texts;
  for (const auto& [name, count] : counts) {
    texts.push_back(fmt::format("{} ({})", name, count));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// The tokens of `run` on this machine; nullptr if nothing is known about them.
const trainer::TokenIdentity* TokensHere(const GridOutcome& outcome,
                                         const GridRun& run) {
  for (const trainer::PreparedCorpus& corpus : outcome.corpora) {
    if (IsCorpusOf(run, corpus)) return &corpus.tokens;
  }
  return nullptr;
}

// Throws DataError if the tokens of `recorded` are not `tokens`.
void RequireTokens(const trainer::TokenIdentity& tokens,
                   const trainer::PreparedCorpus& recorded,
                   const fs::path& record) {
  const std::string other =
      trainer::DescribeTokenDifferences(recorded.tokens, tokens);
  if (other.empty()) return;
  throw DataError(fmt::format(
      "{}: its runs on {} were trained on other token files: {}; record these "
      "in another file (--to)",
      record.string(), recorded.corpus, other));
}

// What `run` lacks of the evaluations that `other` has, in words.
std::string LackingBeside(const trainer::RunResult& run,
                          const trainer::RunResult& other) {
  return trainer::MissingEvaluations(trainer::WithEarlierPlans({}, other), run);
}

// The part of `evaluations` that `other` also has, whatever its numbers.
trainer::FinalEvaluations SharedWith(const trainer::FinalEvaluations& other,
                                     trainer::FinalEvaluations evaluations) {
  const auto share_tasks = [](const std::vector<TaskResult>& there,
                              std::vector<TaskResult>& tasks) {
    std::erase_if(tasks, [&](const TaskResult& task) {
      return std::ranges::find(there, task.name, &TaskResult::name) ==
             there.end();
    });
  };
  share_tasks(other.tasks, evaluations.tasks);
  std::vector<InferenceTau> shared;
  for (InferenceTau& at : evaluations.inference_tau) {
    const auto there = std::ranges::find(other.inference_tau, at.factor,
                                         &InferenceTau::factor);
    if (there == other.inference_tau.end()) continue;
    share_tasks(there->tasks, at.tasks);
    if (there->validation.active_histogram.empty()) {
      at.validation.active_histogram.clear();
    }
    shared.push_back(std::move(at));
  }
  evaluations.inference_tau = std::move(shared);
  if (other.router_health.empty()) evaluations.router_health.clear();
  return evaluations;
}

// What differs between two results of a run, in words; "": nothing.
struct ResultDifference {
  std::string what = {};
  // Whether `verify-record`, which trains the run again, can tell them apart.
  bool repeatable = true;
};

// Compares the evaluations that both results have.
ResultDifference OtherEvaluations(const trainer::RunResult& recorded,
                                  const trainer::RunResult& run) {
  if (!recorded.final_evaluations || !run.final_evaluations) return {};
  const auto there =
      SharedWith(*run.final_evaluations, *recorded.final_evaluations);
  const auto here =
      SharedWith(*recorded.final_evaluations, *run.final_evaluations);
  for (size_t i = 0; i < there.tasks.size(); ++i) {
    if (there.tasks[i].sha256 != here.tasks[i].sha256) {
      return {.what = "items of the task " + there.tasks[i].name,
              .repeatable = false};
    }
  }
  if (trainer::EvaluationsDigest(there) == trainer::EvaluationsDigest(here)) {
    return {};
  }
  return {.what = fmt::format("evaluations (measured by version {}, now by {})",
                              there.code_version, here.code_version)};
}

void AddRun(const RunOutcome& run, RunRecord& record, RecordChange& change) {
  const std::string key = RunIdentityKey(run.run);
  RecordedRun added{
      .id = run.run.id,
      .key = key,
      .result = *run.result,
      .training_sha256 = run.recorded ? run.training_sha256
                                      : trainer::TrainingDigest(*run.result)};
  added.result.steps = ThinnedSteps(run.result->steps);
  for (RecordedRun& there : record.runs) {
    if (there.key == key) {
      const ResultDifference other =
          there.training_sha256 != added.training_sha256
              ? ResultDifference{.what = "bits"}
              : OtherEvaluations(there.result, *run.result);
      if (!other.what.empty()) {
        throw DataError(fmt::format(
            "{}: has {} with other {}: recorded from version {} and "
            "instruction set {}, now from {} and {}. The record is unchanged; "
            "{}--to another file records the new one",
            record.path.string(), there.id, other.what,
            there.result.code_version,
            trainer::PlaceText(there.result.identity), run.result->code_version,
            trainer::PlaceText(run.result->identity),
            other.repeatable ? "`verify-record` tells which of the two this "
                               "program gives, and "
                             : ""));
      }
      if (!LackingBeside(there.result, *run.result).empty() &&
          LackingBeside(*run.result, there.result).empty()) {
        there.result.final_evaluations = run.result->final_evaluations;
        ++change.completed;
      }
      return;
    }
    if (there.id == added.id) {
      throw DataError(fmt::format(
          "{}: has {} with other settings: {}; record these in another file "
          "(--to)",
          record.path.string(), added.id,
          trainer::DescribeConfigDifferences(trainer::CompareConfigs(
              there.result.identity.config, added.result.identity.config))));
    }
  }
  record.runs.push_back(std::move(added));
  ++change.added;
}

// Throws DataError if a run was recorded with other settings than it has in
// `outcome`: its row would mix the two.
void RequireSameReadings(const RunRecord& record, const GridOutcome& outcome) {
  for (const RunOutcome& run : outcome.runs) {
    const auto there =
        std::ranges::find(record.runs, run.run.id, &RecordedRun::id);
    if (there == record.runs.end()) continue;
    if (there->key == RunIdentityKey(run.run)) continue;
    throw DataError(fmt::format(
        "{}: {} was recorded with other settings than its row has now: {}; "
        "read it with the version that recorded it, or record the runs of this "
        "one in another file",
        record.path.string(), there->id,
        trainer::DescribeConfigDifferences(trainer::CompareConfigs(
            there->result.identity.config, run.run.config))));
  }
}

// Throws DataError if only one of a grid and the record is of the experiment
// regime.
void RequireSameExperiment(bool of_regime, const RunRecord& record) {
  if (of_regime == IsRegime(record)) return;
  throw DataError(fmt::format(
      "{}: is {} of the experiment {}, whose runs are judged on their own; "
      "name the grid that is recorded there, or another file (--to)",
      record.path.string(), of_regime ? "not a record" : "a record", kRegime));
}

// Throws DataError for a run that has ended but is not planned by `regime`.
void RequirePlanned(const golden::RegimeDefinitions& regime,
                    const GridOutcome& outcome, const fs::path& record) {
  for (const RunOutcome& run : outcome.runs) {
    if (!HasEnded(run.state)) continue;
    const auto& [row, seed] = std::pair(run.run.row.id, run.run.seed);
    if (regime.Judges(row, seed) || regime.IsPilot(row, seed)) continue;
    throw DataError(fmt::format(
        "{}: {} is neither a judged run nor a pilot of golden/paper/"
        "regime.toml, which was fixed beforehand, and is not recorded; leave "
        "out --seeds",
        record.string(), run.run.id));
  }
}

}  // namespace

const RecordedRun* RunRecord::Find(const std::string& key) const {
  const auto found = std::ranges::find(runs, key, &RecordedRun::key);
  return found == runs.end() ? nullptr : &*found;
}

std::vector<std::string> RunRecord::Missing() const {
  std::vector<std::string> missing;
  for (const PlannedRun& plan : planned) {
    if (Find(plan.key) == nullptr && !diverged.contains(plan.key)) {
      missing.push_back(plan.id);
    }
  }
  return missing;
}

void CheckRuns(const RunRecord& record) {
  std::map<std::string, const RecordedRun*> ids, keys, bits, rows;
  for (const RecordedRun& run : record.runs) {
    const bool new_id = ids.emplace(run.id, &run).second;
    const auto [same, new_key] = keys.emplace(run.key, &run);
    if (!new_id || !new_key) {
      throw DataError(fmt::format(
          "{}: holds a run twice: {} ({}){}; record the finished runs anew, in "
          "another file",
          record.path.string(), run.id, run.key,
          new_id ? fmt::format(", also as {}", same->second->id) : ""));
    }
    RequireOneReading(record, run,
                      *rows.emplace(RowOf(run), &run).first->second);
    const auto [twin, new_bits] = bits.emplace(run.training_sha256, &run);
    if (!new_bits && Seed(*twin->second) != Seed(run)) {
      throw Error(
          ExitCode::kMistrusted,
          fmt::format(
              "{}: MISTRUSTED: {} and {} have the same bits, though two seeds "
              "never give the same: one of them is not what its name says. "
              "Nothing was recorded; delete the result.h5 of both in the "
              "folder of the grid, `run` them again, and record the results",
              record.path.string(), twin->second->id, run.id));
    }
  }
  for (const std::string& key : record.diverged) {
    const bool planned =
        std::ranges::find(record.planned, key, &PlannedRun::key) !=
        record.planned.end();
    if (planned && record.Find(key) == nullptr) continue;
    throw DataError(fmt::format("{}: says that {} diverged, which {}",
                                record.path.string(), key,
                                planned ? "is finished" : "is not planned"));
  }
}

std::vector<StepRecord> ThinnedSteps(const std::vector<StepRecord>& steps) {
  if (steps.size() <= kRecordedPoints) return steps;
  std::set<size_t> kept;  // counted from 1
  for (size_t i = 1; i <= kFirstPoints; ++i) kept.insert(i);
  for (size_t i = 1; i <= kEvenPoints; ++i) {
    kept.insert((i * steps.size() + kEvenPoints - 1) / kEvenPoints);
  }
  std::vector<StepRecord> points;
  for (const size_t step : kept) points.push_back(steps[step - 1]);
  return points;
}

bool IsRegime(const Grid& grid) {
  return grid.experiment == kRegime && grid.scale_grid == kRegimeScale &&
         grid.scale == kRegimeScale && SetsOnlyRuntime(grid);
}

bool IsRegime(const RunRecord& record) {
  const golden::RegimeDefinitions regime = golden::LoadRegime();
  return std::ranges::any_of(record.planned, [&](const PlannedRun& plan) {
    return std::ranges::any_of(regime.rows, [&](const golden::RegimeRow& row) {
      return row.role != "sparse" &&
             plan.id.starts_with(regime.corpus + "/" + row.id + "/");
    });
  });
}

void RequireKnownMargins(const RunRecord& record) {
  if (IsRegime(record)) {
    golden::RequireSameRegime(golden::LoadRegime(), record.margins_sha256,
                              record.path.string());
    return;
  }
  golden::RecordedUnder(golden::LoadMiniatureClaims(), record.margins_sha256,
                        record.path.string());
}

void RequireRunsOf(const Grid& grid, const Grid& judged,
                   const RunRecord& record) {
  if (record.runs.empty()) return;
  RequireSameExperiment(IsRegime(grid), record);
  std::set<std::string> rows;
  for (const Grid* one : {&grid, &judged}) {
    for (const GridRun& run : one->runs) {
      rows.insert(run.corpus.id + "/" + run.row.id);
    }
  }
  if (std::ranges::any_of(record.runs, [&](const RecordedRun& run) {
        return rows.contains(RowOf(run));
      })) {
    return;
  }
  throw DataError(fmt::format(
      "{}: has no run of a row of grid '{}', whose summary would replace that "
      "of its own runs, such as {}; name the grid that is recorded there, or "
      "another file (--to)",
      record.path.string(), grid.name, record.runs.front().id));
}

RecordChange AddFinishedRuns(const GridOutcome& outcome, RunRecord& record) {
  RunRecord grown = record;
  const bool of_regime = IsRegime(outcome.grid);
  if (of_regime) {
    RequirePlanned(golden::LoadRegime(), outcome, record.path);
  }
  if (grown.margins_sha256.empty()) {
    grown.margins_sha256 = of_regime ? golden::LoadRegime().Hash()
                                     : golden::LoadMiniatureClaims().Hash();
  } else {
    RequireKnownMargins(grown);
    RequireSameExperiment(of_regime, grown);
  }
  for (const GridRun& run : outcome.grid.runs) {
    const std::string key = RunIdentityKey(run);
    const bool known =
        std::ranges::find(grown.planned, key, &PlannedRun::key) !=
        grown.planned.end();
    if (!known) grown.planned.push_back({.id = run.id, .key = key});
  }
  for (const trainer::PreparedCorpus& corpus : outcome.corpora) {
    const std::string name = corpus.prefix.filename().string();
    const auto [there, added] = grown.corpora.emplace(name, corpus);
    RequireTokens(corpus.tokens, there->second, record.path);
  }
  RecordChange change;
  for (const RunOutcome& run : outcome.runs) {
    const std::string key = RunIdentityKey(run.run);
    if (run.state == RunState::kFailed && grown.Find(key) == nullptr) {
      grown.diverged.insert(key);
    }
    if (run.state != RunState::kFinished) continue;
    grown.diverged.erase(key);
    const auto corpus = grown.corpora.find(CorpusName(run.run));
    if (corpus != grown.corpora.end()) {
      RequireTokens(run.result->identity.tokens, corpus->second, record.path);
    }
    AddRun(run, grown, change);
  }
  std::ranges::sort(grown.runs, {}, &RecordedRun::id);
  CheckRuns(grown);
  record = std::move(grown);
  return change;
}

void AddBenchmark(const std::string& text, const std::string& place,
                  RunRecord& record) {
  ParseBenchSamples(text, place);
  if (!record.bench.empty() && record.bench != text) {
    throw DataError(
        fmt::format("{}: has a different benchmark from {} and keeps it, since "
                    "nobody may choose between two measurements; to judge by "
                    "the new one, record into another file (--to)",
                    record.path.string(), place));
  }
  record.bench = text;
}

std::string DescribeRecord(const RunRecord& record) {
  const std::vector<std::string> missing = record.Missing();
  Counts versions, levels;
  for (const RecordedRun& run : record.runs) {
    ++versions[run.result.code_version];
    ++levels[trainer::PlaceText(run.result.identity)];
  }
  std::string text = fmt::format(
      "{}: {} of {} planned runs{}\ncode versions: {}\ninstruction sets: {}\n",
      record.path.string(),
      record.planned.size() - missing.size() - record.diverged.size(),
      record.planned.size(), missing.empty() ? "" : ": PARTIAL",
      Listed(versions), Listed(levels));
  if (!missing.empty()) {
    text += fmt::format("missing: {}\n", fmt::join(missing, ", "));
  }
  for (const PlannedRun& plan : record.planned) {
    if (!record.diverged.contains(plan.key)) continue;
    text +=
        fmt::format("diverged, so that its row has no number: {}\n", plan.id);
  }
  return text;
}

std::string DescribeUnjudged(const Grid& judged, const RunRecord& record) {
  std::set<std::string> keys, rows;
  for (const GridRun& run : judged.runs) {
    keys.insert(RunIdentityKey(run));
    rows.insert(run.corpus.id + "/" + run.row.id);
  }
  std::vector<std::string> unjudged;
  for (const RecordedRun& run : record.runs) {
    if (rows.contains(RowOf(run)) && !keys.contains(run.key)) {
      unjudged.push_back(run.id);
    }
  }
  if (unjudged.empty()) return "";
  return fmt::format(
      "NOT JUDGED by golden, since {} has other seeds or settings: {}\n",
      judged.path.string(), fmt::join(unjudged, ", "));
}

std::vector<std::string> TakeRecordedRuns(const RunRecord& record,
                                          GridOutcome& outcome) {
  std::vector<std::string> notes;
  Counts versions, levels;
  size_t taken = 0;
  if (IsRegime(outcome.grid) && IsRegime(record)) {
    RequireSameReadings(record, outcome);
  }
  for (RunOutcome& run : outcome.runs) {
    if (HasEnded(run.state)) continue;
    const std::string key = RunIdentityKey(run.run);
    const RecordedRun* recorded = record.Find(key);
    if (recorded == nullptr &&
        (run.state != RunState::kWaiting || !record.diverged.contains(key))) {
      continue;
    }
    const std::string corpus = CorpusName(run.run);
    const auto* here = TokensHere(outcome, run.run);
    const auto known = record.corpora.find(corpus);
    const auto* there = recorded != nullptr ? &recorded->result.identity.tokens
                        : known != record.corpora.end() ? &known->second.tokens
                                                        : nullptr;
    const std::string other =
        here == nullptr || there == nullptr
            ? ""
            : trainer::DescribeTokenDifferences(*there, *here);
    if (!other.empty()) {
      notes.push_back(fmt::format(
          "{}: {} was trained on other token files ({}) and does not count as "
          "{}",
          record.path.string(), recorded == nullptr ? run.run.id : recorded->id,
          other, recorded == nullptr ? "diverged" : "finished"));
      continue;
    }
    if (recorded == nullptr) {
      run.state = RunState::kFailed;
      run.problem = "diverged, as " + record.path.string() + " says";
      continue;
    }
    if (here == nullptr && known != record.corpora.end()) {
      outcome.corpora.push_back(known->second);
      outcome.corpora.back().prefix = corpus;
    }
    run.state = RunState::kFinished;
    run.recorded = true;
    run.training_sha256 = recorded->training_sha256;
    run.problem.clear();
    run.result = recorded->result;
    ++taken;
    ++versions[recorded->result.code_version];
    ++levels[trainer::PlaceText(recorded->result.identity)];
  }
  outcome.margins_sha256 = record.margins_sha256;
  if (!record.bench.empty()) {
    outcome.throughput = ParseBenchSamples(record.bench, record.path.string());
  }
  const std::string from =
      fmt::format("{}: {} runs count as finished", record.path.string(), taken);
  notes.push_back(
      taken == 0
          ? from
          : fmt::format("{}, of version {}, instruction set {} (here {})", from,
                        Listed(versions), Listed(levels),
                        kernels::IsaName(kernels::ActiveIsa())));
  return notes;
}

}  // namespace softmoe::experiments

// SPDX-License-Identifier: Apache-2.0
#include "experiments/run/verify_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <system_error>
#include <vector>

#include "core/code_version.h"
#include "core/errors.h"
#include "core/files/folder_lock.h"
#include "core/text/ascii.h"
#include "core/text/suggestion.h"
#include "golden/verdict/statistics.h"
#include "trainer/evaluation/final_evaluations.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_digest.h"
#include "trainer/results/run_result_file.h"
#include "trainer/tasks/task_items.h"
#include "trainer/tokens/prepare.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;

constexpr double kDeviations = 3;
constexpr size_t kLeastDigits = 7;

std::string CorpusOf(const RecordedRun& run) {
  return run.key.substr(0, run.key.find('/'));
}

// Whether training gave the recorded hash, but not the numbers that the record
// holds beside it.
bool HoldsOtherNumbers(const RecordedRun& run,
                       const trainer::RunResult& again) {
  trainer::RunResult thinned = again;
  thinned.steps = ThinnedSteps(again.steps);
  return run.training_sha256 == trainer::TrainingDigest(again) &&
         trainer::TrainingDigest(run.result) !=
             trainer::TrainingDigest(thinned);
}

// Whether the metrics that the digests leave out are the same, except those
// that an older record lacks.
bool SameLater(const trainer::RunResult& there,
               const trainer::RunResult& here) {
  return trainer::SameMetrics(there, here, [](const trainer::Metric& metric) {
    return metric.later && !metric.clock;
  });
}

bool SameBits(const RecordedRun& run, const trainer::RunResult& again) {
  const auto& there = run.result.final_evaluations;
  const auto& here = again.final_evaluations;
  return run.training_sha256 == trainer::TrainingDigest(again) &&
         SameLater(run.result, again) &&
         there.has_value() == here.has_value() &&
         (!there || trainer::EvaluationsDigest(*there) ==
                        trainer::EvaluationsDigest(*here));
}

// Whether `again` has the settings, tokens and ranks of `recorded`, as far as
// the record knows them; where either was computed does not matter.
bool IsSameTraining(const trainer::RunIdentity& recorded,
                    const trainer::RunIdentity& again) {
  return std::ranges::all_of(
      trainer::CompareIdentities(recorded, again),
      [](const trainer::IdentityDifference& difference) {
        return difference.part == trainer::IdentityPart::kIsa ||
               difference.part == trainer::IdentityPart::kDevice;
      });
}

// Whether the training of `run` can go on in the folder: it has no result, and
// its checkpoint, if any, is one that this version wrote for this run.
bool GoesOn(const fs::path& folder, const trainer::RunIdentity& run) {
  const fs::path checkpoint = folder / trainer::kCheckpointName;
  if (fs::exists(folder / trainer::kResultName)) return false;
  if (!fs::exists(checkpoint)) return true;
  try {
    const trainer::Checkpoint there(checkpoint);
    return there.state().code_version == CodeVersion() &&
           IsSameTraining(run, there.identity());
  } catch (const DataError&) {
    return false;  // of another format, or damaged
  }
}

// The number of ranks to train the run again: 1 if it does not affect the bits.
int RanksOf(const RunRecord& record, const RecordedRun& run) {
  const std::string& text = run.result.identity.ranks;
  if (text.empty()) return 1;
  const std::optional<int> ranks = ParseNumber<int>(text);
  if (ranks > 0) return *ranks;
  throw DataError(fmt::format(
      "{}: {} was trained by '{}' ranks, which is not a number of ranks: the "
      "record was changed; get it from version control again",
      record.path.string(), run.id, text));
}

// Throws DataError if the items in `task_files` are not those that the run was
// asked, since equal bits would give other answers, and what ReadPlannedTasks
// throws.
void RequireRecordedItems(const RunRecord& record, const RecordedRun& run,
                          const trainer::EvaluationPlan& plan,
                          const fs::path& task_files) {
  for (const trainer::TaskItems& here :
       trainer::ReadPlannedTasks(plan, task_files)) {
    for (const trainer::TaskResult& there :
         run.result.final_evaluations->tasks) {
      if (there.name != here.name || there.sha256 == here.sha256) continue;
      throw DataError(fmt::format(
          "{}: {} was asked other items of the task {} than {} has: {} items, "
          "SHA-256 {}, here {}, SHA-256 {}; give the items that it was asked",
          record.path.string(), run.id, here.name, here.file.string(),
          there.right.size(), there.sha256, here.items.size(), here.sha256));
    }
  }
}

}  // namespace

golden::PooledDeviation LossDeviation(const RunRecord& record,
                                      const RecordedRun& run) {
  std::map<std::string, std::vector<double>> rows;
  for (const RecordedRun& other : record.runs) {
    if (CorpusOf(other) != CorpusOf(run)) continue;
    Config row = other.result.identity.config;
    row.training.seed = 0;
    rows[ConfigHash(row)].push_back(other.result.final_validation.loss);
  }
  golden::PooledDeviation pooled;
  double squares = 0;
  for (const auto& [row, losses] : rows) {
    squares += golden::SquaresAroundMean(losses);
    pooled.freedom += static_cast<double>(losses.size()) - 1;
  }
  if (pooled.known()) pooled.deviation = std::sqrt(squares / pooled.freedom);
  return pooled;
}

RunVerdict JudgeAgain(const RunRecord& record, const RecordedRun& run,
                      const trainer::RunResult& again,
                      const std::string& changed_by) {
  const double before = run.result.final_validation.loss;
  const double now = again.final_validation.loss;
  std::string text = fmt::format(
      "{}\nrecorded: validation loss {:.17g}, instruction set {}, version {}\n"
      "again:    validation loss {:.17g}, instruction set {}, version {}\n",
      run.id, before, trainer::PlaceText(run.result.identity),
      run.result.code_version, now, trainer::PlaceText(again.identity),
      again.code_version);
  const auto verdict = [&](ExitCode code, const std::string& says) {
    return RunVerdict{.code = code, .text = text + says + "\n"};
  };
  if (HoldsOtherNumbers(run, again)) {
    return verdict(
        ExitCode::kFailed,
        fmt::format(
            "FAIL: training gave the recorded hash, but not the numbers in the "
            "record: {} was changed; get it from version control again",
            record.path.string()));
  }
  if (SameBits(run, again)) {
    return verdict(ExitCode::kDone,
                   "PASS: the same bits, in every number of every step");
  }
  if (!trainer::SamePlace(run.result.identity, again.identity)) {
    const bool cpu =
        run.result.identity.backend.empty() && again.identity.backend.empty();
    return verdict(
        ExitCode::kNotComparable,
        cpu ? fmt::format(
                  "NOT_COMPARABLE: other bits, as expected on another "
                  "instruction set; use --isa {}, on a machine that has it",
                  run.result.identity.isa)
            : "NOT_COMPARABLE: other bits, as expected on another device or "
              "with other libraries; repeat it on the same device with the "
              "same libraries");
  }
  if (changed_by.empty()) {
    return verdict(
        ExitCode::kFailed,
        "FAIL: other bits. If CHANGELOG.md names a commit between these "
        "versions that changed them on purpose, give --changed-by COMMIT");
  }
  const golden::PooledDeviation pooled = LossDeviation(record, run);
  if (!pooled.known()) {
    return verdict(ExitCode::kInconclusive,
                   fmt::format("INCONCLUSIVE: other bits since {}, and no row "
                               "of this corpus has two seeds in {}",
                               changed_by, record.path.string()));
  }
  const double bound = kDeviations * pooled.deviation;
  const double moved = std::abs(now - before);
  const bool within = moved <= bound;
  return verdict(
      within ? ExitCode::kDone : ExitCode::kFailed,
      fmt::format("{}: other bits since {}; the loss moved by {:.3g}, {} "
                  "{:.3g}, {} deviations over seeds ({:g} degrees of freedom)",
                  within ? "PASS" : "FAIL", changed_by, moved,
                  within ? "within" : "more than", bound, kDeviations,
                  pooled.freedom));
}

const RecordedRun& FindRecorded(const RunRecord& record,
                                const std::string& id) {
  const auto found = std::ranges::find(record.runs, id, &RecordedRun::id);
  if (found != record.runs.end()) return *found;
  std::vector<std::string> ids;
  for (const RecordedRun& run : record.runs) ids.push_back(run.id);
  throw ConfigError(fmt::format("--run {}: {} has no such run; {}", id,
                                record.path.string(), Suggestion(id, ids)));
}

void RequireInChangelog(const std::string& commit, const std::string& text) {
  const bool hex =
      commit.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (hex && commit.size() >= kLeastDigits &&
      std::regex_search(text, std::regex("\\b" + commit))) {
    return;
  }
  throw ConfigError(fmt::format(
      "--changed-by {}: CHANGELOG.md names no such commit; it lists those that "
      "changed numbers on purpose, by at least {} hex digits",
      commit, kLeastDigits));
}

RunVerdict VerifyRecordedRun(const RunRecord& record, const RecordedRun& run,
                             const VerifyOptions& options) {
  const trainer::RunIdentity& there = run.result.identity;
  const int ranks = RanksOf(record, run);
  // Everything that was measured on the recorded run's final model.
  const trainer::EvaluationPlan evaluations =
      trainer::WithEarlierPlans({.keep_checkpoint = false}, run.result);
  RequireRecordedItems(record, run, evaluations, options.task_files);
  // Where the run was computed, unless the user says otherwise.
  RuntimeConfig runtime = options.runtime;
  if (runtime.isa.empty() && runtime.device.empty()) {
    (there.backend.empty() ? runtime.isa : runtime.device) =
        there.backend.empty() ? there.isa : "cuda";
  }
  trainer::PrepareOptions prepare;
  prepare.threads = options.runtime.threads;
  prepare.places = trainer::PlacesOf(options.runtime);
  prepare.quiet = options.quiet;
  const trainer::PreparedCorpus corpus = trainer::PrepareCorpus(
      there.config.data, there.config.model.vocab_size, prepare);
  const std::string other =
      trainer::DescribeTokenDifferences(there.tokens, corpus.tokens);
  if (!other.empty()) {
    throw DataError(fmt::format(
        "{}: {} was trained on other token files than '{}' gives here: {}",
        record.path.string(), run.id, there.config.data.corpus, other));
  }
  // An existing result would not be retrained, a checkpoint of another version
  // says nothing about this one, and another record may have another run of
  // this id. If another process is at work, TrainRun refuses.
  if (!HolderOf(options.folder) && !GoesOn(options.folder, there)) {
    fs::remove_all(options.folder);
  }
  trainer::RunOptions train;
  train.folder = options.folder;
  train.tokens = corpus.prefix;
  train.runtime = runtime;
  train.ranks = ranks;
  train.quiet = options.quiet;
  train.evaluations = evaluations;
  train.task_files = options.task_files;
  const trainer::RunResult again = trainer::TrainRun(there.config, train);
  RunVerdict verdict = JudgeAgain(record, run, again, options.changed_by);
  std::error_code stays;
  fs::remove_all(options.folder, stays);
  return verdict;
}

}  // namespace softmoe::experiments

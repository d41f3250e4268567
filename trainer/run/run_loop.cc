// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/code_version.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/stoppable_output.h"
#include "core/text/progress.h"
#include "optimized/allocation.h"
#include "optimized/initialize.h"
#include "trainer/evaluation/final_evaluations.h"
#include "trainer/evaluation/validation.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/progress_line.h"
#include "trainer/run/calibration.h"
#include "trainer/run/rank_main.h"
#include "trainer/run/schedules.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::trainer {
namespace {

// A calibration may miss the number of weights that it aims at by this fraction
// of it (1 / kCalibrationShare).
constexpr int64_t kCalibrationShare = 100;

}  // namespace

std::vector<optimized::Agreement> Agreements(const RunIdentity& identity) {
  std::vector<optimized::Agreement> result = {
      {"configuration", ConfigHash(identity.config)}};
  const bool on_cpu = identity.backend.empty();
  VisitIdentityTexts(identity, [&](IdentityPart part, const char* name,
                                   const std::string& text) {
    result.push_back({name, text.empty() ? "none" : text});
    if (part == IdentityPart::kIsa && on_cpu) {
      result.back().remedy =
          "give all ranks the same --device, and --isa=v3, the lower level";
    } else if (part == IdentityPart::kIsa || part == IdentityPart::kDevice) {
      result.back().remedy =
          "give all ranks the same --device, on machines of one kind";
    }
  });
  return result;
}

RunLoop::RunLoop(const RunIdentity& identity, const RunOptions& options,
                 std::span<const TaskItems> tasks,
                 optimized::Communicator& communicator,
                 optimized::CarrierKind carrier, optimized::Device& device,
                 const StopSignal& stop)
    : identity_(identity),
      options_(options),
      tasks_(tasks),
      config_(identity_.config),
      start_(SteadySeconds()),
      communicator_(communicator),
      stop_(stop),
      pool_(static_cast<int>(options.runtime.threads)),
      data_(config_, options.tokens),
      model_(optimized::MakeModel(
          config_, config_.training.balance_group_sequences, pool_, device,
          options.runtime.recompute, &communicator)),
      updater_(communicator.size() == 1
                   ? model_->MakeUpdater()
                   : model_->MakeUpdater(communicator, carrier)),
      step_(*model_, *updater_, data_) {
  const std::filesystem::path path = options_.folder / kCheckpointName;
  // Rank 0 looks for the checkpoint, so that all ranks do the same.
  uint8_t resumes[] = {leads() && std::filesystem::exists(path)};
  communicator_.Broadcast<uint8_t>(resumes, 0);
  if (resumes[0] != 0) {
    // Ranks read it one after the other, since libhdf5 is not thread-safe.
    for (int rank = 0; rank < communicator_.size(); ++rank) {
      if (rank == communicator_.rank()) Resume(path);
      communicator_.Barrier();
    }
  } else {
    Initialize();
  }
  Agree();
  OpenLog();
}

void RunLoop::OpenLog() {
  if (!leads() || metrics_ != nullptr) return;
  metrics_ = std::make_unique<MetricsLog>(options_.folder / kMetricsName,
                                          identity_, state_);
}

template <typename Record>
void RunLoop::Log(const Record& record) {
  if (metrics_ == nullptr) return;
  try {
    metrics_->Add(record);
  } catch (const EnvironmentError& error) {
    metrics_.reset();
    Warn(
        fmt::format("{}; training continues, and the next checkpoint adds the "
                    "missing lines",
                    error.what()));
  }
}

void RunLoop::Agree() {
  std::vector<optimized::Agreement> run = Agreements(identity_);
  run.push_back({"step", std::to_string(state_.step)});
  run.push_back({"tau", fmt::format("{:a}", state_.tau)});
  std::string caps;
  for (const optimized::LayerAllocation& layer :
       model_->Allocations({.tau = state_.tau})) {
    caps += fmt::format("{} ", layer.max_active);
  }
  run.push_back({"caps", caps});
  communicator_.Agree(run);
}

void RunLoop::Resume(const std::filesystem::path& path) {
  if (!leads() && !std::filesystem::exists(path)) {
    throw EnvironmentError(
        fmt::format("{}: rank 0 continues from this file, but this rank does "
                    "not see it; all ranks need the output folder under the "
                    "same path, on a file system that they share",
                    path.string()));
  }
  const Checkpoint checkpoint(path);
  checkpoint.RequireSameRun(identity_);
  state_ = checkpoint.state();
  const CheckpointTensors tensors =
      checkpoint.ReadTensors(model_->layout().total);
  model_->WriteParameters(tensors.parameters, 0);
  updater_->WriteMoments(tensors.first_moment, tensors.second_moment);
  earlier_seconds_ = state_.seconds;
  saved_step_ = state_.step;
  resumed_ = true;
  Say(fmt::format("continuing after step {}/{} of {}", state_.step,
                  config_.training.steps, path.string()));
  if (!state_.code_version.ends_with(CodeVersion())) {
    Warn(
        fmt::format("trained so far by version {} of this project, but this is "
                    "{}: the result may differ from what either gives alone",
                    state_.code_version, CodeVersion()));
    state_.code_version += ", " + CodeVersion();
  }
}

void RunLoop::Initialize() {
  const int64_t lost = LoggedSteps(options_.folder / kMetricsName);
  if (lost > 0) {
    Warn(
        fmt::format("{} has {} steps of a session that left no checkpoint; "
                    "beginning anew",
                    kMetricsName, lost));
  }
  state_.code_version = CodeVersion();
  optimized::InitializeParameters(
      *model_, static_cast<uint64_t>(config_.training.seed), pool_);
  if (!TraitsOf(config_).cutoff) return;
  if (config_.router.tau.has_value()) {
    state_.tau = *config_.router.tau;
    return;
  }
  communicator_.Begin({.name = "the calibration of tau"});
  const TauCalibration found =
      CalibrateTau(*model_, data_, communicator_, [this] { StopIfAsked(); });
  state_.tau = found.tau;
  state_.tau_calibrated = true;
  Say(fmt::format(
      "tau = {:.4f}, calibrated on {} batches: {} of {} soft weights above it",
      found.tau, config_.router.calibration_batches, found.rank,
      found.num_ratios));
  // Where all weights should lie above tau, one is left out.
  const int64_t apart = std::abs(found.rank - found.wanted);
  if (apart > std::max<int64_t>(1, found.wanted / kCalibrationShare)) {
    // Too many weights lie above tau if scores hardly count, and too few if
    // weights underflow to 0.
    Warn(fmt::format(
        "{} soft weights should lie above tau, for router.mean_active_experts "
        "= {:g}, but {} do, because so many are equal at temperature {:g}; set "
        "router.tau, or {} router.temperature_start",
        found.wanted, config_.router.mean_active_experts, found.rank,
        Temperature(config_, 0),
        found.rank > found.wanted ? "lower" : "raise"));
  }
}

RunResult RunLoop::Run() {
  while (state_.step < config_.training.steps) {
    if (EvaluationDue()) Evaluate();
    OneStep();
  }
  // Saves before the validation, which may take long, so that a run that is
  // killed then loses nothing.
  Save();
  Evaluate();
  // Syncs the log before the result is written; nobody writes the log later.
  OpenLog();
  if (leads()) metrics_->Sync();
  // Counting the splits of C4 means reading 8 GB, so only one rank does.
  RunResult result;
  if (leads()) result = MakeResult();
  communicator_.Begin({.name = "the evaluations of the trained model"});
  // MakeResult has read the run's clock, so that evaluations do not count.
  result.final_evaluations = MeasureFinalModel(
      *model_, data_, state_.tau, options_.evaluations, tasks_, options_.tokens,
      identity_.tokens.tokenizer_sha256, communicator_, [this] {
        if (options_.on_evaluation) options_.on_evaluation();
        StopIfAsked();
      });
  return result;
}

void RunLoop::OneStep() {
  communicator_.Begin(
      {.name = fmt::format("step {}", state_.step + 1), .limited = true});
  const StepOutcome outcome = step_.Run(state_.step, state_.tau);
  const StepRecord& record = outcome.record;
  state_.step = record.step;
  state_.max_active = std::max(state_.max_active, outcome.max_active);
  state_.most_active_in_a_token =
      std::max(state_.most_active_in_a_token, outcome.most_active_in_a_token);
  state_.history.push_back(record);
  Log(record);

  seconds_per_step_ = seconds_per_step_ == 0
                          ? record.seconds
                          : 0.9 * seconds_per_step_ + 0.1 * record.seconds;
  if (record.step == 1 && record.zero_active_fraction > 0.5 &&
      config_.router.fallback == Fallback::kNone) {
    Warn(fmt::format(
        "{} at the start: these tokens have no expert and train none. tau {:g} "
        "is high for T = {:g}; {}router.fallback = \"top1\" would help",
        Titled(metrics::kZeroActiveFraction, record.zero_active_fraction),
        state_.tau, record.temperature,
        state_.tau_calibrated ? "" : "router.tau = \"calibrated\" or "));
  }
  const int64_t log_every = std::max<int64_t>(1, options_.runtime.log_every);
  if (record.step == 1 || record.step % log_every == 0 ||
      record.step == config_.training.steps) {
    Say(ProgressLine(config_, record, seconds_per_step_));
  }
  if (options_.on_step) options_.on_step(record);
  ReserveOrSave();
  StopIfAsked();
  const int64_t every = options_.runtime.checkpoint_every;
  if (every > 0 && state_.step % every == 0) Save();
}

void RunLoop::Save() {
  if (saved_step_ == state_.step) return;
  communicator_.Begin(
      {.name = fmt::format("the checkpoint after step {}", state_.step)});
  state_.seconds = Seconds();
  Agree();
  // Each rank has a shard of the moments. All ranks read whole arrays, but only
  // rank 0 keeps them; EstimateResources counts on that.
  CheckpointTensors tensors;
  const auto keep = [&](std::vector<float> array, std::vector<float>* kept) {
    if (leads()) *kept = std::move(array);
  };
  keep(model_->ReadParameters(), &tensors.parameters);
  keep(updater_->ReadFirstMoment(), &tensors.first_moment);
  keep(updater_->ReadSecondMoment(), &tensors.second_moment);
  if (leads()) {
    WriteCheckpoint(options_.folder / kCheckpointName, identity_,
                    options_.tokens, state_, tensors);
  }
  communicator_.Barrier();
  saved_step_ = state_.step;
  try {
    OpenLog();
  } catch (const EnvironmentError& error) {
    Warn(error.what());
  }
}

void RunLoop::ReserveOrSave() {
  // The host has memory for all caps, but a device only for those of one step.
  if (identity_.backend.empty() || !TraitsOf(config_).learned_budget) return;
  std::string lack;
  try {
    model_->Reserve();
  } catch (const EnvironmentError& error) {
    lack = error.what();
  }
  // All ranks have the same caps, but not the same free memory.
  const int rank = FirstRankWhere(!lack.empty(), communicator_);
  if (rank < 0) return;
  Save();
  if (lack.empty()) {
    lack = fmt::format("rank {} has too little memory on its device", rank);
  }
  throw EnvironmentError(fmt::format(
      "{}; after step {}/{}, saved in {}: the same command continues from "
      "there, with another runtime.recompute or more memory",
      lack, state_.step, config_.training.steps,
      (options_.folder / kCheckpointName).string()));
}

void RunLoop::StopIfAsked() {
  const int asked_rank = RankAskedToStop(stop_, communicator_);
  if (asked_rank < 0) return;
  const bool nothing = state_.step == 0;
  if (!nothing) Save();
  const std::string done =
      nothing ? "before the first step, so there is nothing to save; the same "
                "command begins again"
              : fmt::format(
                    "after step {}/{}, saved in {}; the same command continues "
                    "from there",
                    state_.step, config_.training.steps,
                    (options_.folder / kCheckpointName).string());
  ThrowStopped(stop_, asked_rank, done);
}

bool RunLoop::EvaluationDue() const {
  const int64_t every = config_.training.eval_every;
  // The checkpoint of a step is written before its evaluation, so a resumed run
  // never has that evaluation already.
  return every > 0 && state_.step > 0 && state_.step % every == 0;
}

void RunLoop::Evaluate() {
  communicator_.Begin(
      {.name = fmt::format("the validation after step {}", state_.step)});
  const auto poll = [this] {
    if (options_.on_validation) options_.on_validation();
    StopIfAsked();
  };
  const double temperature = Temperature(config_, state_.step);
  at_one_ = Validate(*model_, data_, state_.tau, 1.0, communicator_, poll);
  at_schedule_temperature_ = temperature == 1.0
                                 ? at_one_
                                 : Validate(*model_, data_, state_.tau,
                                            temperature, communicator_, poll);
  // Only the validation at T = 1 counts: digests of recorded runs have this.
  for (const auto& histogram : at_one_.active_histogram) {
    for (size_t n = 0; n < histogram.size(); ++n) {
      if (histogram[n] == 0) continue;
      state_.most_active_in_a_token =
          std::max(state_.most_active_in_a_token, static_cast<int64_t>(n));
    }
  }
  state_.evaluations.push_back(
      {.step = state_.step,
       .temperature = temperature,
       .schedule_loss = at_schedule_temperature_.loss,
       .schedule_active_experts = at_schedule_temperature_.active_experts,
       .loss = at_one_.loss,
       .active_experts = at_one_.active_experts,
       .zero_active_fraction = at_one_.zero_active_fraction,
       .relative_load_variance = at_one_.relative_load_variance});
  Log(state_.evaluations.back());
  std::string loss = Titled(metrics::kLoss, at_one_.loss);
  if (temperature != 1.0) {
    loss += fmt::format(" at T 1, {} at {}",
                        Shown(metrics::kLoss, at_schedule_temperature_.loss),
                        Titled(metrics::kTemperature, temperature));
  }
  Say(fmt::format(
      "validation after step {} | {} | {} | {} | {}", state_.step, loss,
      Titled(metrics::kActiveExperts, at_one_.active_experts),
      Titled(metrics::kZeroActiveFraction, at_one_.zero_active_fraction),
      Titled(metrics::kRelativeLoadVariance, at_one_.relative_load_variance)));
}

RunResult RunLoop::MakeResult() {
  RunResult result;
  result.identity = identity_;
  result.config = config_;
  if (state_.tau_calibrated) result.config.router.tau = state_.tau;
  result.tau = state_.tau;
  result.tau_calibrated = state_.tau_calibrated;
  result.parameters = model_->layout().total;
  result.steps = state_.history;
  result.at_schedule_temperature = at_schedule_temperature_;
  result.final_validation = at_one_;
  const SplitCounts counts = data_.CountSplits(config_.training.eval_sequences);
  result.unigram_loss = UnigramLoss(counts);
  if (!identity_.tokens.tokenizer_sha256.empty()) {
    const BytesPerToken bytes = MeasureBytes(
        counts,
        Tokenizer::FromCheckedFile(WithSuffix(options_.tokens, ".model"),
                                   identity_.tokens.tokenizer_sha256));
    result.train_bytes_per_token = bytes.training;
    result.val_bytes_per_token = bytes.targets;
    if (bytes.targets) result.val_loss_per_byte = at_one_.loss / *bytes.targets;
  }
  result.train_ae = TrainActiveExperts(state_.history);
  for (const optimized::LayerAllocation& layer :
       model_->Allocations({.tau = state_.tau})) {
    result.allocation.push_back(layer.mean_active);
    state_.max_active = std::max(state_.max_active, layer.max_active);
  }
  result.max_active = state_.max_active;
  result.most_active_in_a_token = state_.most_active_in_a_token;
  result.seconds = Seconds();
  result.resumed = resumed_;
  result.code_version = state_.code_version;
  return result;
}

double RunLoop::Seconds() const {
  return earlier_seconds_ + (SteadySeconds() - start_);
}

void RunLoop::Say(const std::string& line) const {
  if (options_.quiet) return;
  PrintUnlessStopped(stdout, line + "\n");
}

void RunLoop::Warn(const std::string& text) const {
  if (!leads() || !options_.warns) return;
  PrintUnlessStopped(
      stderr, fmt::format("warning: {}: {}\n", options_.folder.string(), text));
}

}  // namespace softmoe::trainer

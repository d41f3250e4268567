// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/train_run.h"

#include <fmt/core.h>
#include <gnu/libc-version.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/code_version.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/folder_lock.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/text/progress.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/in_process.h"
#include "optimized/initialize.h"
#include "optimized/memory_plan.h"
#include "optimized/rank_groups.h"
#include "optimized/step.h"
#include "trainer/evaluation/final_evaluations.h"
#include "trainer/evaluation/validation.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/progress_line.h"
#include "trainer/results/run_result_file.h"
#include "trainer/run/calibration.h"
#include "trainer/run/rank_devices.h"
#include "trainer/run/rank_main.h"
#include "trainer/run/resources.h"
#include "trainer/run/schedules.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::trainer {
namespace {

// A calibration may miss the number of weights that it aims at by one of so
// many.
constexpr int64_t kCalibrationShare = 100;

// What ranks must have in common to give the same bits.
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

}  // namespace

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
  // What rank 0 finds there, so that all do the same.
  uint8_t resumes[] = {leads() && std::filesystem::exists(path)};
  communicator_.Broadcast<uint8_t>(resumes, 0);
  if (resumes[0] != 0) {
    // One after the other, since libhdf5 is not thread-safe.
    for (int rank = 0; rank < communicator_.size(); ++rank) {
      if (rank == communicator_.rank()) Resume(path);
      communicator_.Barrier();
    }
  } else {
    Begin();
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
        fmt::format("{}; training goes on, and the next checkpoint comes "
                    "with the lines that are missing",
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
    throw EnvironmentError(fmt::format(
        "{}: rank 0 goes on from there, and this rank does not see it; all "
        "ranks need the output folder under the same path, on a file system "
        "that they share",
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
  Say(fmt::format("going on after step {}/{} of {}", state_.step,
                  config_.training.steps, path.string()));
  if (!state_.code_version.ends_with(CodeVersion())) {
    Warn(fmt::format(
        "trained so far by version {} of this project, this is {}: the result "
        "may not be what either gives alone",
        state_.code_version, CodeVersion()));
    state_.code_version += ", " + CodeVersion();
  }
}

void RunLoop::Begin() {
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
  // One weight is left out where all of them should be above.
  const int64_t apart = std::abs(found.rank - found.wanted);
  if (apart > std::max<int64_t>(1, found.wanted / kCalibrationShare)) {
    // Too many lie above where scores hardly count, and too few where weights
    // underflow to 0.
    Warn(fmt::format(
        "{} soft weights should lie above tau, for "
        "router.mean_active_experts = {:g}, and {} do: so many are equal at a "
        "temperature of {:g}; set router.tau, or {} router.temperature_start",
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
  // Saved before the validation, which may take long: being killed then loses
  // nothing.
  Save();
  Evaluate();
  // Synced before the result is written, after which nobody writes the log.
  OpenLog();
  if (leads()) metrics_->Sync();
  // To count the splits of C4 takes reading 8 GB, on one rank.
  RunResult result;
  if (leads()) result = MakeResult();
  communicator_.Begin({.name = "the evaluations of the trained model"});
  // Measured after the run's clock was read, so that evaluations do not count.
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
  // Each rank has a shard of the moments. All read whole arrays, of which the
  // others keep none: EstimateResources counts on it.
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
  // The host has memory for all caps, and a device for those of one step.
  if (identity_.backend.empty() || !TraitsOf(config_).learned_budget) return;
  std::string lack;
  try {
    model_->Reserve();
  } catch (const EnvironmentError& error) {
    lack = error.what();
  }
  // The caps are those of all ranks, the free memory is not.
  const int rank = FirstRankWhere(!lack.empty(), communicator_);
  if (rank < 0) return;
  Save();
  if (lack.empty()) {
    lack = fmt::format("rank {} has too little memory on its device", rank);
  }
  throw EnvironmentError(fmt::format(
      "{}; after step {}/{}, saved in {}: the same command goes on from there, "
      "with another runtime.recompute or more memory",
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
                    "after step {}/{}, saved in {}; the same command goes on "
                    "from there",
                    state_.step, config_.training.steps,
                    (options_.folder / kCheckpointName).string());
  ThrowStopped(stop_, asked_rank, done);
}

bool RunLoop::EvaluationDue() const {
  const int64_t every = config_.training.eval_every;
  // A checkpoint of this step is written before its evaluation, so a resumed
  // run never has that evaluation already.
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
  // Not of the other one: digests of recorded runs have this number.
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
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void RunLoop::Warn(const std::string& text) const {
  if (!leads() || !options_.warns) return;
  std::fprintf(stderr, "warning: %s: %s\n", options_.folder.c_str(),
               text.c_str());
}

namespace {

// The result of a run that ended earlier, if it is the requested run. Reading
// it uses no kernels, so if no place is requested it may have been computed
// anywhere.
RunResult ReadFinishedRun(RunIdentity identity, const RuntimeConfig& runtime,
                          int ranks, const std::filesystem::path& path) {
  RunResult result = ReadRunResult(path);
  if (runtime.isa.empty() && runtime.device.empty()) {
    identity.isa = result.identity.isa;
    identity.backend = result.identity.backend;
    identity.device = result.identity.device;
    identity.libraries = result.identity.libraries;
  }
  // One process, which nobody need have asked for.
  if (ranks == 1) identity.ranks = result.identity.ranks;
  RequireSameRun(
      path, result.identity, identity,
      {.config = "Use another output folder, or delete this one to begin anew",
       .tokens = "Give those it was trained on, or use another output folder",
       .place = "Use another output folder, or leave --isa and --device out "
                "to read this one"});
  return result;
}

// Rank 0 alone prints and calls back.
void Silence(RunOptions* options) {
  options->quiet = true;
  options->on_step = nullptr;
  options->on_validation = nullptr;
  options->on_evaluation = nullptr;
}

// The part of `options` that is rank `rank`'s.
RunOptions OptionsOfRank(RunOptions options, int rank) {
  const int64_t threads =
      options.runtime.threads == 0 ? AvailableCores() : options.runtime.threads;
  options.runtime.threads = std::max<int64_t>(
      1, threads * (rank + 1) / options.ranks - threads * rank / options.ranks);
  if (rank != 0) Silence(&options);
  return options;
}

// Trains on all ranks, of this process or of `processes`. In this process the
// result is that of rank 0, whose clock counts.
RunResult RunOnRanks(const RunIdentity& identity, const RunOptions& options,
                     std::span<const TaskItems> tasks,
                     optimized::Communicator& processes,
                     optimized::CarrierKind carrier,
                     optimized::Device& device) {
  const StopSignal stop;
  if (options.ranks == 1) {
    RunOptions own = options;
    if (processes.rank() != 0) Silence(&own);
    return RunLoop(identity, own, tasks, processes, carrier, device, stop)
        .Run();
  }
  RunResult result;
  optimized::RunInProcessRanks(
      options.ranks, [&](optimized::Communicator& communicator) {
        const int rank = communicator.rank();
        const auto other = rank == 0 ? nullptr : device.OfRank(rank);
        RunResult of_rank =
            RunLoop(identity, OptionsOfRank(options, rank), tasks, communicator,
                    carrier, other ? *other : device, stop)
                .Run();
        if (rank == 0) result = std::move(of_rank);
      });
  return result;
}

// Call it only once the result is durable: the checkpoint's loss then costs
// only evaluations that could still be made.
void RemoveCheckpoint(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) throw FileError("delete", path, error.value());
}

// The items of the plan's tasks, which all processes must have alike.
std::vector<TaskItems> TasksOfRun(const EvaluationPlan& plan,
                                  const RunOptions& options,
                                  const RunIdentity& identity,
                                  optimized::Communicator& processes) {
  std::vector<TaskItems> tasks = ReadPlannedTasks(plan, options.task_files);
  if (!tasks.empty() && identity.tokens.tokenizer_sha256.empty()) {
    throw DataError(fmt::format(
        "{}: tokens without a tokenizer, so a model of them cannot be asked in "
        "words; leave `tasks` out, or train it on what //:prepare_data makes",
        options.tokens.string()));
  }
  std::vector<optimized::Agreement> items;
  for (const TaskItems& task : tasks) {
    items.push_back({"--task-files, " + task.name, task.sha256});
  }
  if (processes.size() > 1 && !items.empty()) processes.Agree(items);
  return tasks;
}

// Measures what the plan asks for and a finished run's result lacks, if its
// checkpoint is still usable; otherwise changes nothing. Rank 0 of the
// processes decides and writes; all of them measure.
void EvaluateLater(const RunOptions& options,
                   optimized::Communicator& processes,
                   optimized::Device& device, RunResult* result) {
  const bool leads = processes.rank() == 0;
  EvaluationPlan plan = options.evaluations;
  const std::filesystem::path checkpoint = options.folder / kCheckpointName;
  std::optional<FolderLock> lock;
  uint8_t measure[] = {0};
  if (leads && !MissingEvaluations(plan, *result).empty() &&
      EvaluationObstacle(*result, checkpoint, device.identity()).empty()) {
    lock.emplace(options.folder);
    // Another process may have measured it meanwhile, and removed the
    // checkpoint.
    *result = ReadRunResult(options.folder / kResultName);
    measure[0] = !MissingEvaluations(plan, *result).empty() &&
                 std::filesystem::exists(checkpoint);
    if (measure[0] == 0) lock.reset();
  }
  processes.Broadcast<uint8_t>(measure, 0);
  if (measure[0] == 0) return;
  if (!leads) *result = ReadRunResult(options.folder / kResultName);
  // What earlier plans asked for is measured again.
  plan = WithEarlierPlans(plan, *result);
  const std::vector<TaskItems> tasks =
      TasksOfRun(plan, options, result->identity, processes);
  const StopSignal stop;
  result->final_evaluations = EvaluateFinishedRun(
      checkpoint, options.tokens, options.runtime.threads, device, plan, tasks,
      processes, [&] {
        if (leads && options.on_evaluation) options.on_evaluation();
        const int asked_rank = RankAskedToStop(stop, processes);
        if (asked_rank < 0) return;
        ThrowStopped(
            stop, asked_rank,
            "during the evaluations of a finished run, whose files are as they "
            "were; the same command begins them again");
      });
  if (!leads) return;
  WriteRunResult(*result, options.folder / kResultName);
  if (!plan.keep_checkpoint) RemoveCheckpoint(checkpoint);
}

// What to tell the user about ranks on devices.
std::string DeviceRanksText(int on_device, optimized::CarrierKind carrier) {
  const std::string sharing = fmt::format(
      "{} ranks share a device: each has a model of its own there, and they "
      "take turns. As many devices as ranks would be faster; the bits are the "
      "same. ",
      on_device);
  return (on_device > 1 ? sharing : "") +
         (carrier == optimized::CarrierKind::kNccl
              ? "Gradients and parameters go between ranks over NCCL, from "
                "device to device"
              : "Gradients and parameters go between ranks through memory of "
                "the host");
}

// Before ranks do anything together. Builds are the same if their bytes are:
// the version of the code may be unknown. The C library is the machine's, and
// the last bits of its sines and logarithms are its version's.
void AgreeOnRun(const RunIdentity& identity, const RunOptions& options,
                optimized::Communicator& processes) {
  if (processes.size() == 1) return;
  std::vector<optimized::Agreement> run = Agreements(identity);
  run.push_back({"--exchange", NameOf(options.exchange)});
  // All take part in a checkpoint.
  run.push_back(
      {"--checkpoint-every", std::to_string(options.runtime.checkpoint_every)});
  run.push_back({"program", Sha256OfFile("/proc/self/exe")});
  run.push_back({"C library", gnu_get_libc_version()});
  processes.Agree(run);
}

}  // namespace

std::string RanksInIdentity(const Config& config, int ranks) {
  if (ranks < 1) {
    throw ConfigError(fmt::format("{} ranks; there is at least one", ranks));
  }
  const int64_t groups = optimized::NumGroups(config.training);
  return optimized::RanksAreSubtrees(groups, ranks) ? ""
                                                    : std::to_string(ranks);
}

std::string OtherBitsOfRanks(const Config& config, int ranks) {
  if (RanksInIdentity(config, ranks).empty()) return "";
  return fmt::format(
      "{0} ranks add the gradients of {1} balance groups in an order of their "
      "own: the bits are those of {0} ranks, and no other number goes on with "
      "what they train",
      ranks, optimized::NumGroups(config.training));
}

namespace {

RunResult FindOrTrain(const Config& config, const RunOptions& options) {
  optimized::SingleCommunicator alone;
  optimized::Communicator& processes =
      options.processes != nullptr ? *options.processes : alone;
  const bool leads = processes.rank() == 0;
  SOFTMOE_CHECK(options.ranks == 1 || processes.size() == 1);
  ValidateConfig(config);
  CheckEvaluationPlan(options.evaluations);
  const int ranks = options.ranks * processes.size();
  const std::string ranks_in_identity = RanksInIdentity(config, ranks);
  const std::filesystem::path result_path = options.folder / kResultName;
  // A finished run is read wherever it was trained.
  if (!std::filesystem::exists(result_path)) {
    optimized::CheckPrecision(config, options.runtime);
  }
  // Checked before anything is written: throws if there is no such device.
  const auto device =
      optimized::MakeDevice(options.runtime, RankOnMachine(processes));
  RunIdentity identity =
      IdentifyRun(config, options.tokens, device->identity());
  identity.ranks = ranks_in_identity;
  AgreeOnRun(identity, options, processes);
  // What rank 0 finds there, so that all do the same.
  const auto is_finished = [&] {
    uint8_t finished[] = {leads && std::filesystem::exists(result_path)};
    processes.Broadcast<uint8_t>(finished, 0);
    return finished[0] != 0;
  };
  if (!is_finished()) {
    const std::vector<TaskItems> tasks =
        TasksOfRun(options.evaluations, options, identity, processes);
    const DeviceSharing sharing =
        ShareDevices(*device, options.ranks, processes);
    const int on_device = sharing.ranks_on_device;
    const optimized::CarrierKind carrier = ChooseCarrier(
        options.exchange, *device, options.ranks, on_device, processes);
    if (options.runtime.device == "cuda") {
      optimized::RequireStepMemory(
          config, options.runtime.recompute, device->FreeMemory(), ranks,
          on_device, /*new_queues=*/options.ranks == 1 ? 0 : on_device - 1);
      if (ranks > 1 && leads && !options.quiet) {
        fmt::print("{}\n", DeviceRanksText(on_device, carrier));
      }
    }
    std::optional<FolderLock> lock;
    if (leads) {
      MakeFolder(options.folder);
      lock.emplace(options.folder);
    }
    // Another process may have finished the run meanwhile.
    if (!is_finished()) {
      if (leads) {
        // Leftovers of a killed process take disk space and are of no use; a
        // checkpoint may take gigabytes.
        if (lock->held()) {
          for (const char* name :
               {kCheckpointName, kMetricsName, kResultName}) {
            RemoveLeftoversOf(options.folder / name);
          }
        }
        RequireDiskSpace(config, options.folder);
      }
      RunResult result =
          RunOnRanks(identity, options, tasks, processes, carrier, *device);
      if (!leads) return result;
      result.devices = sharing.devices;
      WriteRunResult(result, result_path);
      if (!options.evaluations.keep_checkpoint) {
        RemoveCheckpoint(options.folder / kCheckpointName);
      }
      return result;
    }
  }
  RunResult result;
  if (leads) {
    result = ReadFinishedRun(identity, options.runtime, ranks, result_path);
  }
  EvaluateLater(options, processes, *device, &result);
  return result;
}

}  // namespace

RunResult TrainRun(const Config& config, const RunOptions& options) {
  return optimized::WithDeviceErrors(
      "the same command goes on from the last checkpoint, if there is one",
      [&] { return FindOrTrain(config, options); });
}

}  // namespace softmoe::trainer

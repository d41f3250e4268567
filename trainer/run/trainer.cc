// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/trainer.h"

#include <fmt/core.h>
#include <gnu/libc-version.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/folder_lock.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "core/parallel_for.h"
#include "core/process/stop_signal.h"
#include "optimized/communicator/communicator.h"
#include "optimized/communicator/in_process.h"
#include "optimized/device.h"
#include "optimized/rank_groups.h"
#include "optimized/step.h"
#include "optimized/step_memory.h"
#include "optimized/updater.h"
#include "trainer/evaluation/evaluation_plan.h"
#include "trainer/evaluation/final_evaluations.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics_log.h"
#include "trainer/results/run_result_file.h"
#include "trainer/run/rank_devices.h"
#include "trainer/run/rank_main.h"
#include "trainer/run/resources.h"
#include "trainer/run/run_loop.h"
#include "trainer/tasks/task_items.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::trainer {
namespace {

// Returns the result of a run that ended earlier; throws if it is not the
// requested run. Reading a result uses no kernels, so if no place is requested,
// it may have been computed anywhere.
RunResult ReadFinishedRun(RunIdentity identity, const RuntimeConfig& runtime,
                          int ranks, const std::filesystem::path& path) {
  RunResult result = ReadRunResult(path);
  if (runtime.isa.empty() && runtime.device.empty()) {
    identity.isa = result.identity.isa;
    identity.backend = result.identity.backend;
    identity.device = result.identity.device;
    identity.libraries = result.identity.libraries;
  }
  // One rank is the default, so any number of ranks may have trained the run.
  if (ranks == 1) identity.ranks = result.identity.ranks;
  RequireSameRun(
      path, result.identity, identity,
      {.config = "Use another output folder, or delete this one to begin anew",
       .tokens = "Give those it was trained on, or use another output folder",
       .place = "Use another output folder, or leave --isa and --device out "
                "to read this one"});
  return result;
}

// Makes a rank other than 0 neither print nor call back.
void Silence(RunOptions* options) {
  options->quiet = true;
  options->on_step = nullptr;
  options->on_validation = nullptr;
  options->on_evaluation = nullptr;
}

// Returns the options of rank `rank`, with its share of the threads.
RunOptions OptionsOfRank(RunOptions options, int rank) {
  const int64_t threads =
      options.runtime.threads == 0 ? AvailableCores() : options.runtime.threads;
  options.runtime.threads = std::max<int64_t>(
      1, threads * (rank + 1) / options.ranks - threads * rank / options.ranks);
  if (rank != 0) Silence(&options);
  return options;
}

// Trains on all ranks, be they threads of this process or `processes`. If they
// are threads, the result is that of rank 0, whose clock counts.
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

// Call it only once the result is durable. Losing the checkpoint then costs
// only the evaluations that could still be made.
void RemoveCheckpoint(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) throw FileError("delete", path, error.value());
}

// Returns the items of the plan's tasks, which all processes must share.
std::vector<TaskItems> TasksOfRun(const EvaluationPlan& plan,
                                  const RunOptions& options,
                                  const RunIdentity& identity,
                                  optimized::Communicator& processes) {
  std::vector<TaskItems> tasks = ReadPlannedTasks(plan, options.task_files);
  if (!tasks.empty() && identity.tokens.tokenizer_sha256.empty()) {
    throw DataError(
        fmt::format("{}: tokens without a tokenizer, so tasks cannot be "
                    "encoded for a model of them; leave `tasks` out, or train "
                    "on token files that //:prepare_data makes",
                    options.tokens.string()));
  }
  std::vector<optimized::Agreement> items;
  for (const TaskItems& task : tasks) {
    items.push_back({"--task-files, " + task.name, task.sha256});
  }
  if (processes.size() > 1 && !items.empty()) processes.Agree(items);
  return tasks;
}

// Measures what the plan asks for and a finished run's result lacks, if the
// run's checkpoint is still usable; otherwise changes nothing. Rank 0 of the
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
    // Meanwhile another process may have measured it and removed the
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
  RequireNoFewerItems(tasks, *result, (options.folder / kResultName).string());
  const StopSignal stop;
  result->final_evaluations = EvaluateFinishedRun(
      checkpoint, options.tokens, options.runtime.threads, device, plan, tasks,
      processes, [&] {
        if (leads && options.on_evaluation) options.on_evaluation();
        const int asked_rank = RankAskedToStop(stop, processes);
        if (asked_rank < 0) return;
        ThrowStopped(
            stop, asked_rank,
            "during the evaluations of a finished run, whose files are "
            "unchanged; the same command begins the evaluations again");
      });
  if (!leads) return;
  WriteRunResult(*result, options.folder / kResultName);
  if (!plan.keep_checkpoint) RemoveCheckpoint(checkpoint);
}

// Returns what to tell the user about ranks on devices.
std::string DeviceRanksText(int on_device, optimized::CarrierKind carrier) {
  const std::string sharing = fmt::format(
      "{} ranks share a device: each has a model of its own there, and they "
      "take turns. A device for each rank would be faster; the bits are the "
      "same. ",
      on_device);
  return (on_device > 1 ? sharing : "") +
         (carrier == optimized::CarrierKind::kNccl
              ? "Gradients and parameters go between ranks over NCCL, from "
                "device to device"
              : "Gradients and parameters go between ranks through memory of "
                "the host");
}

// Checks, before ranks do anything together, that they agree. Builds are the
// same if their bytes are, since the code version may be unknown. The machine's
// C library decides the last bits of sines and logarithms.
void AgreeOnRun(const RunIdentity& identity, const RunOptions& options,
                optimized::Communicator& processes) {
  if (processes.size() == 1) return;
  std::vector<optimized::Agreement> run = Agreements(identity);
  run.push_back({"--exchange", NameOf(options.exchange)});
  // All ranks take part in a checkpoint.
  run.push_back(
      {"--checkpoint-every", std::to_string(options.runtime.checkpoint_every)});
  run.push_back({"program", Sha256OfFile("/proc/self/exe")});
  run.push_back({"C library", gnu_get_libc_version()});
  processes.Agree(run);
}

// Whether rank 0 finds the result, so that all do the same.
bool IsFinished(const std::filesystem::path& result,
                optimized::Communicator& processes) {
  uint8_t finished[] = {processes.rank() == 0 &&
                        std::filesystem::exists(result)};
  processes.Broadcast<uint8_t>(finished, 0);
  return finished[0] != 0;
}

// Prepares the folder on rank 0, before the training and under the lock.
void PrepareFolder(const FolderLock& lock, const RunOptions& options,
                   const Config& config) {
  // A checkpoint shows that the folder is that of a run.
  if (!std::filesystem::exists(options.folder / kCheckpointName)) {
    RequireReplaceableLog(options.folder / kMetricsName);
  }
  // Leftovers of a killed process are useless and take disk space: gigabytes,
  // if they are checkpoints.
  if (lock.held()) {
    for (const char* name : {kCheckpointName, kMetricsName, kResultName}) {
      RemoveLeftoversOf(options.folder / name);
    }
  }
  RequireDiskSpace(config, options.folder);
}

// Trains and returns the result, or returns nothing if the run is finished.
std::optional<RunResult> TrainIfUnfinished(const RunIdentity& identity,
                                           const RunOptions& options,
                                           optimized::Communicator& processes,
                                           optimized::Device& device) {
  const Config& config = identity.config;
  const bool leads = processes.rank() == 0;
  const int ranks = options.ranks * processes.size();
  const std::filesystem::path result_path = options.folder / kResultName;
  if (IsFinished(result_path, processes)) return std::nullopt;
  const std::vector<TaskItems> tasks =
      TasksOfRun(options.evaluations, options, identity, processes);
  const DeviceSharing sharing = ShareDevices(device, options.ranks, processes);
  const int on_device = sharing.ranks_on_device;
  const optimized::CarrierKind carrier = ChooseCarrier(
      options.exchange, device, options.ranks, on_device, processes);
  if (options.runtime.device == "cuda") {
    optimized::RequireStepMemory(
        config, options.runtime.recompute, device.FreeMemory(), ranks,
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
  if (IsFinished(result_path, processes)) return std::nullopt;
  if (leads) PrepareFolder(*lock, options, config);
  RunResult result =
      RunOnRanks(identity, options, tasks, processes, carrier, device);
  if (!leads) return result;
  result.devices = sharing.devices;
  WriteRunResult(result, result_path);
  if (!options.evaluations.keep_checkpoint) {
    RemoveCheckpoint(options.folder / kCheckpointName);
  }
  return result;
}

RunResult FindOrTrain(const Config& config, const RunOptions& options) {
  optimized::SingleCommunicator alone;
  optimized::Communicator& processes =
      options.processes != nullptr ? *options.processes : alone;
  SOFTMOE_CHECK(options.ranks == 1 || processes.size() == 1);
  ValidateConfig(config);
  CheckEvaluationPlan(options.evaluations);
  const int ranks = options.ranks * processes.size();
  const std::string ranks_in_identity = RanksInIdentity(config, ranks);
  const std::filesystem::path result_path = options.folder / kResultName;
  // A finished run is only read, whatever it was trained on.
  if (!std::filesystem::exists(result_path)) {
    optimized::CheckPrecision(config, options.runtime);
  }
  // Throws, before anything is written, if there is no such device.
  const auto device =
      optimized::MakeDevice(options.runtime, RankOnMachine(processes));
  RunIdentity identity =
      IdentifyRun(config, options.tokens, device->identity());
  identity.ranks = ranks_in_identity;
  AgreeOnRun(identity, options, processes);
  std::optional<RunResult> trained =
      TrainIfUnfinished(identity, options, processes, *device);
  if (trained) return *std::move(trained);
  RunResult result;
  if (processes.rank() == 0) {
    result = ReadFinishedRun(identity, options.runtime, ranks, result_path);
  }
  EvaluateLater(options, processes, *device, &result);
  return result;
}

}  // namespace

std::string RanksInIdentity(const Config& config, int ranks) {
  if (ranks < 1) {
    throw ConfigError(fmt::format("{} ranks; at least one is needed", ranks));
  }
  const int64_t groups = optimized::NumGroups(config.training);
  return optimized::RanksAreSubtrees(groups, ranks) ? ""
                                                    : std::to_string(ranks);
}

std::string OtherBitsOfRanks(const Config& config, int ranks) {
  if (RanksInIdentity(config, ranks).empty()) return "";
  return fmt::format(
      "{0} ranks add the gradients of {1} balance groups in an order of their "
      "own: the result is specific to {0} ranks, and only {0} ranks can resume "
      "this run",
      ranks, optimized::NumGroups(config.training));
}

RunResult TrainRun(const Config& config, const RunOptions& options) {
  return optimized::WithDeviceErrors(
      "the same command continues from the last checkpoint, if there is one",
      [&] { return FindOrTrain(config, options); });
}

}  // namespace softmoe::trainer

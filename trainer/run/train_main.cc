// SPDX-License-Identifier: Apache-2.0
//
// //:train - trains one model from a configuration file.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/code_version.h"
#include "core/config/config_toml.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "core/text/text_table.h"
#include "optimized/communicator/communicator.h"
#include "optimized/device.h"
#include "optimized/expected_step.h"
#include "optimized/memory_plan.h"
#include "trainer/corpora/corpus.h"
#include "trainer/corpora/standin_corpora.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/results/safetensors.h"
#include "trainer/run/profile_run.h"
#include "trainer/run/rank_devices.h"
#include "trainer/run/rank_main.h"
#include "trainer/run/resources.h"
#include "trainer/run/schedules.h"
#include "trainer/run/trainer.h"
#include "trainer/tokens/prepare.h"
#include "trainer/tokens/prepared_corpus.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/token_memory.h"

namespace {

using softmoe::Config;
using softmoe::ExitCode;
using softmoe::FormatBytes;
using softmoe::optimized::Communicator;
using softmoe::trainer::Ranks;
using softmoe::trainer::RunResult;

constexpr char kDescription[] =
    "Trains one SoftMoE (LapSum) or sparse MoE model. Given the same command "
    "again, an interrupted run continues where it stopped and gives the same "
    "bits as an uninterrupted one; a finished run is only read.";

constexpr char kExamples[] = R"(
Examples:
  train --config trainer/configs/tiny.toml --corpus path:book.txt
      seconds on one text file; tokenizer and tokens go to the cache
  train --config my.toml --set router.kind=soft_fixed \
        --set router.mean_active_experts=1.5 --data corpus/tokens --out run15
      token files prepared earlier (//:prepare_data, or Megatron's)
  train --config my.toml --data corpus/tokens --dry-run
      prints the resolved configuration and what the run needs
  train --config my.toml --data corpus/tokens --ranks 4
      on four ranks, each with a part of every batch and of the moments
  mpirun -n 4 train --config my.toml --data corpus/tokens --ranks mpi
      the same on four processes, of one machine or several, which all see the
      output folder and the tokens under the same paths; under Slurm:
      srun -n 4 --mpi=pmix train ... --ranks mpi
  train --config my.toml --data corpus/tokens --device cuda
      on a CUDA device: another backend has other bits, so a run stays on one
  train --config my.toml --data corpus/tokens --export my.safetensors
      the trained parameters for other programs, by the names of
      reference/NOTATION.md; of a finished run: those of its checkpoint
  train --config my.toml --data corpus/tokens --profile
      where the time of one step goes, operation by operation: trains nothing

In the output folder: checkpoint.h5, metrics.jsonl (a line per step),
result.h5. Ctrl-C, SIGTERM and a closed terminal (SIGHUP; not under nohup)
finish the step and save, whether or not anybody still reads the output. But
mpirun that gets one kills its ranks a second or two later (Open MPI 4.1): send
it to one of the ranks (kill -TERM PID), or set --checkpoint-every.

Exit codes: 0 done; 1 the loss is not finite; 2 usage, configuration, or a
damaged file; 5 a file, the device or its memory is missing, the device failed,
the disk full, or another rank silent; 75 stopped by a signal, state saved.)";

struct Arguments {
  std::string config, data, corpus, out, exported;
  std::vector<std::string> overrides;
  std::vector<std::string> runtime;  // "runtime.threads=4", ...
  softmoe::trainer::RankOptions ranks;
  bool dry_run = false, profile = false, quiet = false, recheck = false;
};

// runs/train/<name of the file>-<hash> under the user's folder, or --out.
std::filesystem::path OutputFolder(const Arguments& arguments,
                                   const Config& config) {
  if (!arguments.out.empty()) return softmoe::UserPath(arguments.out);
  const std::string name =
      std::filesystem::path(arguments.config).stem().string();
  return softmoe::UserPath("runs/train/" + name + "-" + ConfigHash(config));
}

void PrintPlan(const Config& config, const std::filesystem::path& folder,
               const std::string& tokens, int ranks,
               const std::string& exchange) {
  const auto need = softmoe::trainer::EstimateResources(config, ranks);
  const auto& training = config.training;
  const int64_t tokens_per_step =
      training.global_batch_sequences * config.model.sequence_length;
  fmt::print(
      "\noutput folder    {}\n"
      "tokens           {}\n"
      "parameters       {}\n"
      "training tokens  {} in {} steps of {}: {} balance groups of {} "
      "sequences\n"
      "memory           {} for parameters, gradients, moments and a "
      "checkpoint{}; activations apart\n"
      "disk             {} (a checkpoint has {})\n{}",
      folder.string(), tokens, need.parameters,
      tokens_per_step * training.steps, training.steps, tokens_per_step,
      training.global_batch_sequences / training.balance_group_sequences,
      training.balance_group_sequences, FormatBytes(need.state_bytes),
      need.calibration_bytes > 0
          ? ", " + FormatBytes(need.calibration_bytes) + " to calibrate tau"
          : "",
      FormatBytes(need.disk_bytes), FormatBytes(need.checkpoint_bytes),
      exchange);
  fmt::print("schedules        step: learning rate, temperature\n");
  int64_t last = -1;
  for (double part : {0.0, training.warmup_fraction, 0.25, 0.5, 0.75, 1.0}) {
    const auto m =
        static_cast<int64_t>(part * static_cast<double>(training.steps));
    if (m <= last) continue;
    last = m;
    fmt::print("                 {:>8}: {:.3e}, {:.3f}\n", m,
               softmoe::trainer::LearningRate(training, m),
               softmoe::trainer::Temperature(config, m));
  }
}

// What the plan says of ranks: which devices there are is known later.
std::string ExchangeLine(softmoe::trainer::ExchangeChoice choice, int ranks) {
  using softmoe::trainer::ExchangeChoice;
  if (ranks == 1) return "";
  const std::string name = NameOf(choice);
  switch (choice) {
    case ExchangeChoice::kAuto:
      return "exchange         " + name +
             ": between ranks over NCCL where each has a device of its own, "
             "else through memory of the host\n";
    case ExchangeChoice::kHost:
      return "exchange         " + name + ": through memory of the host\n";
    case ExchangeChoice::kNccl:
      return "exchange         " + name + ": from device to device\n";
  }
  return "";
}

void PrintResult(const RunResult& result, const std::filesystem::path& folder) {
  namespace metrics = softmoe::trainer::metrics;
  const auto line = [](const softmoe::trainer::Metric& metric, double value) {
    fmt::print("{}", ReportLine(metric, value));
  };
  fmt::print("\n");
  line(metrics::kValLoss, result.final_validation.loss);
  line(metrics::kUnigramLoss, result.unigram_loss);
  if (result.val_loss_per_byte) {
    line(metrics::kValLossPerByte, *result.val_loss_per_byte);
    line(metrics::kValBytesPerToken, *result.val_bytes_per_token);
  }
  line(metrics::kTrainAe, result.train_ae);
  line(metrics::kInferAe, result.final_validation.active_experts);
  line(metrics::kRunSeconds, result.seconds);
  fmt::print("{:<22}{}{}\n", "result",
             (folder / softmoe::trainer::kResultName).string(),
             result.resumed ? " (trained in several sessions)" : "");
}

// The tokens of the configuration's corpus. Rank 0 prepares what the others
// find in the cache.
std::filesystem::path Prepare(const softmoe::ConfigDraft& draft, bool quiet,
                              Communicator& processes) {
  softmoe::trainer::PrepareOptions prepare;
  prepare.threads = draft.runtime.threads;
  prepare.places = softmoe::trainer::PlacesOf(draft.runtime);
  prepare.quiet = quiet || processes.rank() != 0;
  const auto prefix = [&] {
    return PrepareCorpus(draft.config.data, draft.config.model.vocab_size,
                         prepare)
        .prefix;
  };
  if (processes.rank() != 0) processes.Barrier();
  const std::filesystem::path tokens = prefix();
  if (processes.rank() == 0) processes.Barrier();
  return tokens;
}

// Throws DataError for tokens of another corpus than the configuration names,
// if it names one, and with `of_its_vocabulary` for those of another one.
// Tokens that others wrote have no PREFIX.json, and may be of any.
void RequireTokensOfConfig(const Config& config,
                           const std::filesystem::path& prefix,
                           bool of_its_vocabulary) {
  if (!std::filesystem::exists(softmoe::trainer::WithSuffix(prefix, ".json"))) {
    return;
  }
  const auto corpus = softmoe::trainer::ReadPreparedCorpus(
      prefix, of_its_vocabulary ? config.model.vocab_size : 0);
  if (config.data.corpus.empty()) return;
  softmoe::trainer::RequireTokensOf(config.data, corpus);
}

// Throws what the run would throw first if the token files `data` are missing
// or damaged or, without them, if the configuration's corpus is unknown or
// missing. Downloads nothing.
void RequireText(const softmoe::ConfigDraft& draft, const std::string& data) {
  const softmoe::DataConfig& text = draft.config.data;
  if (!data.empty()) {
    (void)softmoe::trainer::TokenFile(softmoe::UserPath(data),
                                      draft.config.model.vocab_size);
  } else if (softmoe::trainer::FindStandin(text.corpus) == nullptr) {
    (void)softmoe::trainer::FindCorpus(
        text.corpus, {.cache = softmoe::CacheFolder(),
                      .places = softmoe::trainer::PlacesOf(draft.runtime),
                      .normalise = text.normalise});
  }
}

// Trains as a rank of `processes`: a single one where ranks are threads.
ExitCode Train(const Arguments& arguments, Communicator& processes) {
  const bool leads = processes.rank() == 0;
  const int in_process = arguments.ranks.in_process();
  const int ranks = in_process * processes.size();
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.corpus.empty()) {
    overrides.push_back("data.corpus=" + arguments.corpus);
  }
  // The options for [runtime] are short forms of --set.
  overrides.insert(overrides.end(), arguments.runtime.begin(),
                   arguments.runtime.end());
  const softmoe::ConfigDraft draft =
      softmoe::LoadConfig(softmoe::UserPath(arguments.config), overrides);
  const Config& config = draft.config;
  const std::string other_bits =
      softmoe::trainer::OtherBitsOfRanks(config, ranks);
  const std::filesystem::path folder = OutputFolder(arguments, config);
  if (leads) {
    fmt::print("{}", softmoe::trainer::ConfigTable(config));
    if (!other_bits.empty()) fmt::print("{}\n", other_bits);
  }
  // A finished run is read wherever it was trained.
  if (!std::filesystem::exists(folder / softmoe::trainer::kResultName)) {
    softmoe::optimized::CheckPrecision(config, draft.runtime);
  }
  if (leads && draft.runtime.device == "cuda") {
    fmt::print("\n{}", softmoe::optimized::StepMemoryText(
                           config, draft.runtime.recompute, ranks));
    if (arguments.dry_run) {
      fmt::print("\n{}", softmoe::optimized::ExpectedStepText(
                             config, draft.runtime.recompute, ranks));
    }
  }
  if (!arguments.data.empty()) {
    // A run asks for its vocabulary when it opens the files, and a profile
    // takes any.
    RequireTokensOfConfig(config, softmoe::UserPath(arguments.data),
                          arguments.dry_run);
  }
  if (arguments.dry_run) {
    if (!leads) return ExitCode::kDone;
    RequireText(draft, arguments.data);
    PrintPlan(config, folder,
              arguments.data.empty()
                  ? "prepared from " + config.data.corpus
                  : softmoe::UserPath(arguments.data).string(),
              ranks, ExchangeLine(arguments.ranks.exchange, ranks));
    return ExitCode::kDone;
  }
  if (arguments.recheck) softmoe::trainer::ForgetTokens();
  std::fflush(stdout);
  // Checked before the corpus is prepared, which may take long.
  if (!arguments.profile) {
    (void)softmoe::optimized::MakeDevice(
        draft.runtime, softmoe::trainer::RankOnMachine(processes));
  }
  softmoe::trainer::RunOptions options;
  options.folder = folder;
  options.runtime = draft.runtime;
  options.ranks = in_process;
  options.exchange = arguments.ranks.exchange;
  options.processes = &processes;
  options.quiet = arguments.quiet;
  if (arguments.data.empty()) {
    options.tokens = Prepare(draft, arguments.quiet, processes);
  } else {
    options.tokens = softmoe::UserPath(arguments.data);
  }
  if (arguments.profile) {
    fmt::print("\n{}", softmoe::trainer::ProfileRun(config, options.tokens,
                                                    options.runtime));
    return ExitCode::kDone;
  }
  const RunResult result = softmoe::trainer::TrainRun(config, options);
  if (leads) PrintResult(result, folder);
  if (leads && !arguments.exported.empty()) {
    const std::filesystem::path to = softmoe::UserPath(arguments.exported);
    softmoe::trainer::ExportSafetensors(
        folder / softmoe::trainer::kCheckpointName, to);
    fmt::print("{:<22}{}\n", "parameters", to.string());
  }
  return ExitCode::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kDescription, "train"};
  app.footer(kExamples);
  app.set_version_flag("--version", softmoe::CodeVersion(),
                       "the commit that this was built from");
  Arguments arguments;
  app.add_option("--config", arguments.config, "TOML file of the configuration")
      ->required();
  app.add_option("--set", arguments.overrides,
                 "section.key=value, on top of the file; may be repeated");
  auto* source = app.add_option_group("text");
  source->add_option("--data", arguments.data,
                     "prefix of .bin/.idx token files; with a PREFIX.json, "
                     "they must be of data.corpus, if the configuration names "
                     "one");
  source->add_option("--corpus", arguments.corpus,
                     "corpus to prepare, or find in the cache: a name that "
                     "//:prepare_data knows, or path:FILE");
  source->require_option(1);
  app.add_option_function<std::vector<std::string>>(
      "--place",
      [&](const std::vector<std::string>& places) {
        for (const std::string& place : places) {
          arguments.runtime.push_back("runtime.place_" + place);
        }
      },
      "owt=PATH or c4=PATH: where the corpus of that name is, if not in the "
      "cache");
  app.add_option("--out", arguments.out,
                 "output folder [runs/train/CONFIG-HASH]");
  auto* const exported = app.add_option(
      "--export", arguments.exported,
      "safetensors file for the parameters at the end of training");
  const auto runtime = [&](const char* option, const std::string& key,
                           const char* help) {
    app.add_option_function<std::string>(
        option,
        [&arguments, key](const std::string& value) {
          arguments.runtime.push_back("runtime." + key + "=" + value);
        },
        help);
  };
  runtime("--threads", "threads",
          "threads; 0: one per core; never changes the result [0]");
  auto* const ranks = AddRankOptions(app, &arguments.ranks);
  runtime("--isa", "isa", "instruction set, v3 or v4 [the best here]");
  runtime("--device", "device",
          "cpu, or cuda: device 0, or with --ranks one for each rank [cpu]");
  runtime("--log-every", "log_every", "steps between progress lines [10]");
  runtime("--checkpoint-every", "checkpoint_every",
          "steps between checkpoints; 0: at the end and on a signal [0]");
  auto* const dry_run =
      app.add_flag("--dry-run", arguments.dry_run,
                   "print the resolved configuration and the plan, with "
                   "--device=cuda also the expected time of a step, and stop")
          ->excludes(exported);
  app.add_flag("--profile", arguments.profile,
               "print a table of one step by operation, with all threads and "
               "with one, and stop")
      ->excludes(dry_run)
      ->excludes(exported)
      ->excludes(ranks);
  app.add_flag("--recheck", arguments.recheck,
               "read the token files whole again, which this machine remembers "
               "as long as their size, time and inode stay");
  app.add_flag("--quiet", arguments.quiet, "no progress lines");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  softmoe::trainer::RankMainOptions processes = arguments.ranks.processes;
  processes.mpi = arguments.ranks.mpi();
  return RunRankMain("train", processes, [&](const Ranks& all) {
    return Train(arguments, all.communicator);
  });
}

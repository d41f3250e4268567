// SPDX-License-Identifier: Apache-2.0
//
// //:train - trains one model from a configuration file.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/code_version.h"
#include "core/config/config.h"
#include "core/config/config_toml.h"
#include "core/errors.h"
#include "core/files/paths.h"
#include "core/text/command_line.h"
#include "core/text/text_table.h"
#include "optimized/communicator/communicator.h"
#include "optimized/device.h"
#include "optimized/expected_step.h"
#include "optimized/rank_groups.h"
#include "optimized/step_memory.h"
#include "trainer/corpora/corpus.h"
#include "trainer/corpora/standin_corpora.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_result.h"
#include "trainer/results/run_result_file.h"
#include "trainer/results/safetensors.h"
#include "trainer/run/rank_devices.h"
#include "trainer/run/rank_main.h"
#include "trainer/run/resources.h"
#include "trainer/run/schedules.h"
#include "trainer/run/trainer.h"
#include "trainer/tokens/prepare.h"
#include "trainer/tokens/prepared_corpus.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/token_memory.h"

namespace softmoe::trainer {
namespace {

using optimized::Communicator;

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
      on a CUDA device; backends give different bits, so a run stays on one
  train --config my.toml --data corpus/tokens --export my.safetensors
      the trained parameters for other programs, by the names of
      reference/NOTATION.md; of a finished run: those of its checkpoint

In the output folder: checkpoint.h5, metrics.jsonl (a line per step),
result.h5. Ctrl-C, SIGTERM and a closed terminal (SIGHUP; not under nohup)
finish the step and save, whether or not anybody still reads the output. But
an mpirun that gets such a signal kills its ranks a second or two later (Open
MPI 4.1): signal one of the ranks (kill -TERM PID), or set --checkpoint-every.

Exit codes: 0 done; 1 the loss is not finite; 2 usage, configuration, or a
damaged file; 5 a file, the device or its memory is missing, the device failed,
the disk full, or another rank silent; 75 stopped by a signal, state saved.)";

struct Arguments {
  std::string config, data, corpus, out, exported;
  std::vector<std::string> overrides;
  std::vector<std::string> runtime;  // "runtime.threads=4", ...
  RankOptions ranks;
  bool dry_run = false, quiet = false, recheck = false;
};

// Returns --out, or runs/train/<name of the file>-<hash> in the user's folder.
std::filesystem::path OutputFolder(const Arguments& arguments,
                                   const Config& config) {
  if (!arguments.out.empty()) return UserPath(arguments.out);
  const std::string name =
      std::filesystem::path(arguments.config).stem().string();
  return UserPath("runs/train/" + name + "-" + ConfigHash(config));
}

void PrintPlan(const Config& config, const std::filesystem::path& folder,
               const std::string& tokens, int ranks,
               const std::string& exchange) {
  const auto need = EstimateResources(config, ranks);
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
      "checkpoint{}; without activations\n"
      "disk             {} (a checkpoint has {})\n{}",
      folder.string(), tokens, need.parameters,
      tokens_per_step * training.steps, training.steps, tokens_per_step,
      optimized::NumGroups(training), training.balance_group_sequences,
      FormatBytes(need.state_bytes),
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
               LearningRate(training, m), Temperature(config, m));
  }
}

// Returns what the plan says about ranks. The devices are not known yet.
std::string ExchangeLine(ExchangeChoice choice, int ranks) {
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
  const auto line = [](const Metric& metric, double value) {
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
  fmt::print("{:<22}{}{}\n", "result", (folder / kResultName).string(),
             result.resumed ? " (trained in several sessions)" : "");
}

// Returns the tokens of the configuration's corpus. Rank 0 prepares them, and
// the other ranks find them in the cache.
std::filesystem::path Prepare(const ConfigDraft& draft, bool quiet,
                              Communicator& processes) {
  PrepareOptions prepare;
  prepare.threads = draft.runtime.threads;
  prepare.places = PlacesOf(draft.runtime);
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

// Throws DataError for tokens of a corpus other than that of the configuration,
// if it names one, and with `of_its_vocabulary` for those of another
// vocabulary. Foreign tokens have no PREFIX.json; any are accepted.
void RequireTokensOfConfig(const Config& config,
                           const std::filesystem::path& prefix,
                           bool of_its_vocabulary) {
  if (!std::filesystem::exists(WithSuffix(prefix, ".json"))) {
    return;
  }
  const auto corpus = ReadPreparedCorpus(
      prefix, of_its_vocabulary ? config.model.vocab_size : 0);
  if (config.data.corpus.empty()) return;
  RequireTokensOf(config.data, corpus);
}

// Throws what the run would throw first if the token files `data` are missing
// or damaged or, if `data` is empty, if the configuration's corpus is unknown
// or missing. Downloads nothing.
void RequireText(const ConfigDraft& draft, const std::string& data) {
  const DataConfig& text = draft.config.data;
  if (!data.empty()) {
    (void)TokenFile(UserPath(data), draft.config.model.vocab_size);
  } else if (FindStandin(text.corpus) == nullptr) {
    (void)FindCorpus(text.corpus, {.cache = CacheFolder(),
                                   .places = PlacesOf(draft.runtime),
                                   .normalise = text.normalise});
  }
}

ConfigDraft LoadDraft(const Arguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  if (!arguments.corpus.empty()) {
    overrides.push_back("data.corpus=" + arguments.corpus);
  }
  // The options for [runtime] are short forms of --set.
  overrides.insert(overrides.end(), arguments.runtime.begin(),
                   arguments.runtime.end());
  return LoadConfig(UserPath(arguments.config), overrides);
}

// Prints, on the leading rank, the configuration and what a step needs on a
// device. Throws ConfigError, on all ranks, for a number of ranks or a
// precision that the run cannot have.
void PrintWhatIsAsked(const Arguments& arguments, const ConfigDraft& draft,
                      const std::filesystem::path& folder, int ranks,
                      bool leads) {
  const Config& config = draft.config;
  const std::string other_bits = OtherBitsOfRanks(config, ranks);
  if (leads) {
    fmt::print("{}", ConfigTable(config));
    if (!other_bits.empty()) fmt::print("{}\n", other_bits);
  }
  // A finished run is read wherever it was trained.
  if (!std::filesystem::exists(folder / kResultName)) {
    optimized::CheckPrecision(config, draft.runtime);
  }
  if (!leads || draft.runtime.device != "cuda") return;
  fmt::print("\n{}",
             optimized::StepMemoryText(config, draft.runtime.recompute, ranks));
  if (arguments.dry_run) {
    fmt::print("\n{}", optimized::ExpectedStepText(
                           config, draft.runtime.recompute, ranks));
  }
}

// Returns the options of a run on `processes`. Prepares the tokens if none are
// given.
RunOptions OptionsOf(const Arguments& arguments, const ConfigDraft& draft,
                     const std::filesystem::path& folder,
                     Communicator& processes) {
  RunOptions options;
  options.folder = folder;
  options.runtime = draft.runtime;
  options.ranks = arguments.ranks.in_process();
  options.exchange = arguments.ranks.exchange;
  options.processes = &processes;
  options.quiet = arguments.quiet;
  if (arguments.data.empty()) {
    options.tokens = Prepare(draft, arguments.quiet, processes);
  } else {
    options.tokens = UserPath(arguments.data);
  }
  return options;
}

// Trains as a rank of `processes`, which is the only one if ranks are threads.
ExitCode Train(const Arguments& arguments, Communicator& processes) {
  const bool leads = processes.rank() == 0;
  const int ranks = arguments.ranks.in_process() * processes.size();
  const ConfigDraft draft = LoadDraft(arguments);
  const Config& config = draft.config;
  const std::filesystem::path folder = OutputFolder(arguments, config);
  PrintWhatIsAsked(arguments, draft, folder, ranks, leads);
  if (!arguments.data.empty()) {
    // A run checks the vocabulary itself, when it opens the files.
    RequireTokensOfConfig(config, UserPath(arguments.data), arguments.dry_run);
  }
  if (arguments.dry_run) {
    if (!leads) return ExitCode::kDone;
    RequireText(draft, arguments.data);
    PrintPlan(config, folder,
              arguments.data.empty() ? "prepared from " + config.data.corpus
                                     : UserPath(arguments.data).string(),
              ranks, ExchangeLine(arguments.ranks.exchange, ranks));
    return ExitCode::kDone;
  }
  if (leads && !arguments.exported.empty()) {
    RequireExportable(UserPath(arguments.exported), folder);
  }
  if (arguments.recheck) ForgetTokens();
  std::fflush(stdout);
  // Checked before the corpus is prepared, which may take long.
  (void)optimized::MakeDevice(draft.runtime, RankOnMachine(processes));
  const RunOptions options = OptionsOf(arguments, draft, folder, processes);
  const RunResult result = TrainRun(config, options);
  if (leads) PrintResult(result, folder);
  if (leads && !arguments.exported.empty()) {
    const std::filesystem::path to = UserPath(arguments.exported);
    ExportSafetensors(result, folder / kCheckpointName, to);
    fmt::print("{:<22}{}\n", "parameters", to.string());
  }
  return ExitCode::kDone;
}

void AddOptions(CLI::App* app, Arguments* arguments) {
  app->footer(kExamples);
  app->set_version_flag("--version", CodeVersion(),
                        "the commit that this was built from");
  app->add_option("--config", arguments->config,
                  "TOML file of the configuration")
      ->required();
  app->add_option("--set", arguments->overrides,
                  "section.key=value, on top of the file; may be repeated");
  auto* source = app->add_option_group("text");
  source->add_option("--data", arguments->data,
                     "prefix of .bin/.idx token files; with a PREFIX.json, "
                     "they must be of data.corpus, if the configuration names "
                     "one");
  source->add_option("--corpus", arguments->corpus,
                     "corpus to prepare, or find in the cache: a name that "
                     "//:prepare_data knows, or path:FILE");
  source->require_option(1);
  app->add_option_function<std::vector<std::string>>(
      "--place",
      [arguments](const std::vector<std::string>& places) {
        for (const std::string& place : places) {
          const bool known =
              place.starts_with("owt=") || place.starts_with("c4=");
          if (!known || place.ends_with('=')) {
            throw ConfigError("--place " + place +
                              ": write --place owt=PATH or --place c4=PATH");
          }
          arguments->runtime.push_back("runtime.place_" + place);
        }
      },
      "owt=PATH or c4=PATH: where the corpus of that name is, if not in the "
      "cache");
  app->add_option("--out", arguments->out,
                  "output folder [runs/train/CONFIG-HASH]");
  auto* const exported = app->add_option(
      "--export", arguments->exported,
      "safetensors file for the parameters at the end of training; replaces an "
      "existing safetensors file, but no other file");
  const auto runtime = [&](const char* option, const std::string& key,
                           const char* help) {
    app->add_option_function<std::string>(
        option,
        [arguments, key](const std::string& value) {
          arguments->runtime.push_back("runtime." + key + "=" + value);
        },
        help);
  };
  runtime("--threads", "threads",
          "threads; 0: one per core; never changes the result [0]");
  AddRankOptions(*app, &arguments->ranks);
  runtime("--isa", "isa", "instruction set, v3 or v4 [the best here]");
  runtime("--device", "device",
          "cpu, or cuda: device 0, or with --ranks one for each rank [cpu]");
  runtime("--log-every", "log_every", "steps between progress lines [10]");
  runtime("--checkpoint-every", "checkpoint_every",
          "steps between checkpoints; 0: at the end and on a signal [0]");
  app->add_flag("--dry-run", arguments->dry_run,
                "print the resolved configuration and the plan, with "
                "--device=cuda also the expected time of a step, and stop")
      ->excludes(exported);
  app->add_flag(
      "--recheck", arguments->recheck,
      "read the token files in full again, even those that this machine has "
      "checked before and whose size, times and inode are the same");
  app->add_flag("--quiet", arguments->quiet, "no progress lines");
}

int Main(int argc, char** argv) {
  CLI::App app{kDescription, "train"};
  Arguments arguments;
  AddOptions(&app, &arguments);
  bool trains = false;
  const int parsed = RunMain("train", [&] {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      return app.exit(error) == 0 ? ExitCode::kDone : ExitCode::kUsage;
    }
    RequireValues(app);
    trains = true;
    return ExitCode::kDone;
  });
  if (!trains) return parsed;
  return RunRankMain("train", arguments.ranks, [&](const Ranks& all) {
    return Train(arguments, all.communicator);
  });
}

}  // namespace
}  // namespace softmoe::trainer

int main(int argc, char** argv) { return softmoe::trainer::Main(argc, argv); }

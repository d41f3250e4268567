// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/evaluation.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/config/config_fields.h"
#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/files/json_lines.h"
#include "core/files/sha256.h"
#include "core/process/stop_signal.h"
#include "optimized/communicator/communicator.h"
#include "optimized/device.h"
#include "optimized/model.h"
#include "trainer/evaluation/loaded_model.h"
#include "trainer/evaluation/routing_trace.h"
#include "trainer/evaluation/validation.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_result_file.h"
#include "trainer/tasks/score_requests.h"
#include "trainer/tokens/dataset.h"
#include "trainer/tokens/prepared_corpus.h"
#include "trainer/tokens/token_file.h"
#include "trainer/tokens/tokenizer.h"

namespace softmoe::trainer {
namespace {

// A run whose model is to be measured.
struct OpenedRun {
  std::unique_ptr<optimized::Device> device;
  std::filesystem::path path;  // of the checkpoint
  Checkpoint checkpoint;
};

OpenedRun OpenRun(const EvaluationOptions& options) {
  if (!kFloat.Contains(options.temperature)) {
    throw ConfigError(
        fmt::format("--temperature {} must be {}; the tables use 1",
                    options.temperature, kFloat.Describe()));
  }
  if (options.tau && !(*options.tau >= 0 && std::isfinite(*options.tau))) {
    throw ConfigError(fmt::format(
        "--tau {} must be >= 0; the paper uses 1.1 to 2.4", *options.tau));
  }
  auto device = optimized::MakeDevice(options.runtime);
  const std::filesystem::path path = options.folder / kCheckpointName;
  if (!std::filesystem::exists(path)) {
    const std::filesystem::path result = options.folder / kResultName;
    if (std::filesystem::exists(result)) {
      throw EnvironmentError(fmt::format(
          "{}: the checkpoint is gone: a grid deletes those of finished runs "
          "unless told to keep them. What was measured is in {}; to measure "
          "more, delete that file and train the run again with `//:grid -- run "
          "--keep-checkpoints`, or list it in the grid's [evaluations]",
          path.string(), result.string()));
    }
    throw EnvironmentError(fmt::format(
        "{}: no checkpoint there; give the folder of a run that was trained "
        "with //:train or //:grid, or train it first",
        path.string()));
  }
  return {.device = std::move(device),
          .path = path,
          .checkpoint = Checkpoint(path)};
}

// Fills in which model is measured, and how. Throws ConfigError if `options` do
// not fit the model.
void CheckAndFill(const OpenedRun& run, const EvaluationOptions& options,
                  MeasuredModel* measured) {
  const Checkpoint& checkpoint = run.checkpoint;
  measured->config = checkpoint.identity().config;
  if (measured->config.training.precision == Precision::kBf16 &&
      options.runtime.device != "cuda") {
    throw ConfigError(
        fmt::format("{}: the model computes in bf16, but the CPU only in fp32; "
                    "measure it on a device (--device=cuda)",
                    run.path.string()));
  }
  optimized::CheckPrecision(measured->config, options.runtime);
  measured->config_hash = ConfigHash(measured->config);
  measured->step = checkpoint.state().step;
  measured->tau = options.tau.value_or(checkpoint.state().tau);
  const RouterTraits traits = TraitsOf(measured->config);
  const char* const meaningless =
      !traits.cutoff && options.tau                     ? "--tau"
      : !traits.temperature && options.temperature != 1 ? "--temperature"
                                                        : nullptr;
  if (meaningless != nullptr) {
    throw ConfigError(
        fmt::format("{} has no meaning for the {} router; leave it out",
                    meaningless, RouterKindName(measured->config.router.kind)));
  }
  measured->temperature = options.temperature;
  measured->tokens =
      options.tokens.empty() ? checkpoint.tokens() : options.tokens;
  measured->device = run.device->identity();
}

// Throws if the run's own token files are needed and PREFIX`suffix` is missing.
void RequireTokens(const EvaluationOptions& options,
                   const MeasuredModel& measured, const char* suffix) {
  if (!options.tokens.empty() ||
      std::filesystem::exists(WithSuffix(measured.tokens, suffix))) {
    return;
  }
  throw EnvironmentError(fmt::format(
      "{}: the token files that the run was trained on are not there any "
      "more; say with --data where they are now, or make them again with "
      "`./bazelw run //:prepare_data`",
      measured.tokens.string()));
}

// Writes the trace of the sequences that were evaluated.
void WriteTrace(const RoutingTrace& trace, const Config& trained,
                const RunIdentity& measured, const Dataset& data,
                const optimized::Model& model, const MeasuredModel& report,
                const std::filesystem::path& path) {
  const int64_t sequences = NumEvaluated(report.config, data);
  std::vector<int32_t> tokens(
      static_cast<size_t>(sequences * report.config.model.sequence_length));
  std::vector<int32_t> targets(tokens.size());
  data.FillValidation(0, sequences, tokens, targets);
  TracedModel traced{.identity = measured,
                     .step = report.step,
                     .tau = report.tau,
                     .temperature = report.temperature};
  traced.identity.config = trained;
  trace.Write(path, traced, tokens, targets,
              model.Allocations(
                  {.temperature = report.temperature, .tau = report.tau}));
}

}  // namespace

EvaluationReport EvaluateRun(const EvaluationOptions& options) {
  EvaluationReport report;
  if (!options.trace.empty()) RequireReplaceableTrace(options.trace);
  const OpenedRun run = OpenRun(options);
  CheckAndFill(run, options, &report);
  if (options.sequences) {
    report.config.training.eval_sequences = *options.sequences;
  }
  RequireTokens(options, report, ".bin");
  const RunIdentity now =
      IdentifyRun(report.config, report.tokens, report.device);
  const IdentityDifferences differences =
      CompareTokens(run.checkpoint.identity().tokens, now.tokens);
  if (Differs(differences, IdentityPart::kTokenizer)) {
    throw DataError(
        fmt::format("{}: not known to have the vocabulary of the model in {}: "
                    "{}. Give token files of that vocabulary, which "
                    "`//:prepare_data --tokenizer` makes with the PREFIX.model "
                    "of the run's token files, or leave --data out",
                    report.tokens.string(), run.path.string(),
                    DescribeTokenDifferences(differences)));
  }
  report.data_sha256 = now.tokens.data_sha256;
  report.other_tokens = !differences.empty();

  const Dataset data(report.config, report.tokens, /*trains=*/false);
  LoadedModel loaded(run.checkpoint, report.config, options.runtime.threads,
                     *run.device);
  std::optional<RoutingTrace> trace;
  GroupObserver observe;
  if (!options.trace.empty()) {
    trace.emplace(report.config, NumEvaluated(report.config, data));
    observe = [&](std::span<const optimized::StepStats>) {
      trace->Add(LastRouting(*loaded.model));
    };
  }
  const StopSignal stop;
  report.validation = Validate(
      *loaded.model, data, report.tau, report.temperature,
      [&stop] {
        stop.ThrowIfRequested("during the evaluation; nothing was changed");
      },
      observe);
  if (trace) {
    WriteTrace(*trace, run.checkpoint.identity().config, now, data,
               *loaded.model, report, options.trace);
  }
  const SplitCounts counts =
      data.CountSplits(report.config.training.eval_sequences);
  report.unigram_loss = UnigramLoss(counts);
  if (!now.tokens.tokenizer_sha256.empty()) {
    report.val_bytes_per_token =
        MeasureBytes(counts, Tokenizer::FromCheckedFile(
                                 WithSuffix(report.tokens, ".model"),
                                 now.tokens.tokenizer_sha256))
            .targets;
  }
  return report;
}

TaskReport EvaluateTasks(const EvaluationOptions& options,
                         std::vector<TaskItems> tasks) {
  TaskReport report;
  const OpenedRun run = OpenRun(options);
  CheckAndFill(run, options, &report);
  RequireTokens(options, report, ".model");
  const std::filesystem::path path = WithSuffix(report.tokens, ".model");
  const std::string& trained =
      run.checkpoint.identity().tokens.tokenizer_sha256;
  if (trained.empty()) {
    throw DataError(
        fmt::format("{}: the run was trained on tokens without a tokenizer, so "
                    "tasks cannot be encoded for the model; train it on token "
                    "files that //:prepare_data makes",
                    run.path.string()));
  }
  report.tokenizer_sha256 = Sha256OfFile(path);
  if (report.tokenizer_sha256 != trained) {
    throw DataError(fmt::format(
        "{}: not the tokenizer of the model in {}: SHA-256 {} here, {} there. "
        "Give with --data the token files that the model was trained on",
        path.string(), run.path.string(), report.tokenizer_sha256, trained));
  }
  const Tokenizer tokenizer = Tokenizer::FromFile(path);

  LoadedModel loaded(run.checkpoint, report.config, options.runtime.threads,
                     *run.device);
  const StopSignal stop;
  optimized::SingleCommunicator alone;
  for (TaskItems& task : tasks) {
    report.tasks.push_back(ScoreTask(
        std::move(task), *loaded.model,
        {.temperature = report.temperature, .tau = report.tau, .noise = false},
        [&](std::string_view text) { return tokenizer.Encode(text); },
        tokenizer.end_of_document(), alone,
        [&stop] {
          stop.ThrowIfRequested("during the evaluation; nothing was written");
        }));
  }
  return report;
}

AnsweringModel Answering(const TaskReport& report) {
  return {.config_hash = report.config_hash,
          .tokenizer_sha256 = report.tokenizer_sha256,
          .step = report.step,
          .tau = report.tau,
          .temperature = report.temperature,
          .device = report.device.backend.empty() ? report.device.isa
                                                  : report.device.model};
}

namespace {

// Prints one number, or one for each layer; histograms are for programs.
class TextLines {
 public:
  explicit TextLines(const Validation& validation) : validation_(validation) {}

  void operator()(const Metric& metric, double Validation::*member) {
    text_ += ReportLine(metric, validation_.*member);
  }
  void operator()(const Metric& metric, int64_t Validation::*member) {
    text_ += ReportLine(metric, static_cast<double>(validation_.*member));
  }
  void operator()(const Metric& metric,
                  std::vector<double> Validation::*member) {
    std::vector<std::string> numbers;
    for (const double value : validation_.*member) {
      numbers.push_back(Shown(metric, value));
    }
    text_ += fmt::format("{:<22}{} {}\n", metric.title, fmt::join(numbers, " "),
                         metric.unit);
  }
  void operator()(const Metric&,
                  std::vector<std::vector<int64_t>> Validation::*) {}

  const std::string& text() const { return text_; }

 private:
  const Validation& validation_;
  std::string text_;
};

// The lines that say which model was measured; `remark` is about its tokens.
std::string HeadText(const MeasuredModel& report, const char* remark) {
  std::string text = fmt::format(
      "{:<22}{} after {} steps, configuration {}\n"
      "{:<22}{}{}\n",
      "model", RouterKindName(report.config.router.kind), report.step,
      report.config_hash, "tokens", report.tokens.string(), remark);
  if (!report.device.backend.empty()) {
    text += fmt::format("{:<22}{}, {}\n", "device", report.device.model,
                        report.device.libraries);
  }
  const RouterTraits traits = TraitsOf(report.config);
  if (traits.temperature) {
    text += ReportLine(metrics::kTemperature, report.temperature);
  }
  if (traits.cutoff) text += ReportLine(metrics::kTau, report.tau);
  return text;
}

}  // namespace

std::string EvaluationText(const EvaluationReport& report) {
  TextLines lines(report.validation);
  VisitValidationMetrics(lines);
  std::string text =
      HeadText(report,
               report.other_tokens ? "  (not those it was trained on)" : "") +
      lines.text() + ReportLine(metrics::kUnigramLoss, report.unigram_loss);
  if (report.val_bytes_per_token) {
    text += ReportLine(metrics::kValBytesPerToken, *report.val_bytes_per_token);
    text += ReportLine(metrics::kValLossPerByte,
                       report.validation.loss / *report.val_bytes_per_token);
  }
  return text;
}

std::string TaskText(const TaskReport& report) {
  return HeadText(report, "") + "\n" + TaskTable(report.tasks);
}

std::string EvaluationJson(const EvaluationReport& report) {
  nlohmann::ordered_json json = {
      {"config_hash", report.config_hash},
      {"router", RouterKindName(report.config.router.kind)},
      {"step", report.step},
      {metrics::kTau.name, report.tau},
      {metrics::kTemperature.name, report.temperature},
      {"tokens", report.tokens.string()},
      {"data_sha256", report.data_sha256},
      {"other_tokens", report.other_tokens},
      {"isa", report.device.isa},
      {metrics::kUnigramLoss.name, report.unigram_loss}};
  if (report.val_bytes_per_token) {
    json[metrics::kValBytesPerToken.name] = *report.val_bytes_per_token;
    json[metrics::kValLossPerByte.name] =
        report.validation.loss / *report.val_bytes_per_token;
  }
  if (!report.device.backend.empty()) {
    json["backend"] = report.device.backend;
    json["device"] = report.device.model;
    json["libraries"] = report.device.libraries;
  }
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    json[metric.name] = report.validation.*member;
  });
  return JsonLine(json) + "\n";  // a path need not be UTF-8
}

}  // namespace softmoe::trainer

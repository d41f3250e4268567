// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation/evaluation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/config/router_traits.h"
#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/process/stop_signal.h"
#include "optimized/device.h"
#include "optimized/model.h"
#include "trainer/evaluation/validation.h"
#include "trainer/identity/run_identity.h"
#include "trainer/results/checkpoint.h"
#include "trainer/results/metrics.h"
#include "trainer/results/run_result_file.h"
#include "trainer/tokens/dataset.h"
#include "trainer/tokens/prepared_corpus.h"
#include "trainer/tokens/token_file.h"

namespace softmoe::trainer {

EvaluationReport EvaluateRun(const EvaluationOptions& options) {
  if (!(options.temperature > 0) || std::isinf(options.temperature)) {
    throw ConfigError(
        fmt::format("--temperature {} must be > 0; the tables "
                    "are at 1",
                    options.temperature));
  }
  if (options.tau && !(*options.tau >= 0 && std::isfinite(*options.tau))) {
    throw ConfigError(fmt::format(
        "--tau {} must be >= 0; the paper uses 1.1 to 2.4", *options.tau));
  }
  const auto device = optimized::MakeDevice(options.runtime);
  const std::filesystem::path path = options.folder / kCheckpointName;
  if (!std::filesystem::exists(path)) {
    const std::filesystem::path result = options.folder / kResultName;
    if (std::filesystem::exists(result)) {
      throw EnvironmentError(fmt::format(
          "{}: the checkpoint is gone, as those of finished runs go that a "
          "grid does not keep. What was measured is in {}; to measure more, "
          "delete that file and train the run again with `//:grid -- run "
          "--keep-checkpoints`, or list it in the grid's [evaluations]",
          path.string(), result.string()));
    }
    throw EnvironmentError(fmt::format(
        "{}: no checkpoint there; give the folder of a run that was trained "
        "with //:train or //:grid, or train it first",
        path.string()));
  }
  const Checkpoint checkpoint(path);

  EvaluationReport report;
  report.config = checkpoint.identity().config;
  optimized::CheckPrecision(report.config, options.runtime);
  report.config_hash = ConfigHash(report.config);
  report.step = checkpoint.state().step;
  report.tau = options.tau.value_or(checkpoint.state().tau);
  if (!TraitsOf(report.config).cutoff && options.tau) {
    throw ConfigError(
        fmt::format("--tau has no meaning for the {} router; leave it out",
                    RouterKindName(report.config.router.kind)));
  }
  report.temperature = options.temperature;
  report.tokens = options.tokens.empty() ? checkpoint.tokens() : options.tokens;
  if (options.sequences) {
    report.config.training.eval_sequences = *options.sequences;
  }
  if (options.tokens.empty() &&
      !std::filesystem::exists(WithSuffix(report.tokens, ".bin"))) {
    throw EnvironmentError(fmt::format(
        "{}: the token files that the run was trained on are not there any "
        "more; say with --data where they are now, or make them again with "
        "`bazel run //:prepare_data`",
        report.tokens.string()));
  }
  report.device = device->identity();
  const RunIdentity now =
      IdentifyRun(report.config, report.tokens, report.device);
  const IdentityDifferences differences =
      CompareTokens(checkpoint.identity().tokens, now.tokens);
  if (Differs(differences, IdentityPart::kTokenizer)) {
    throw DataError(fmt::format(
        "{}: not known to have the vocabulary of the model in {}: {}. "
        "Give token files of that vocabulary, or leave --data out",
        report.tokens.string(), path.string(),
        DescribeTokenDifferences(differences)));
  }
  report.data_sha256 = now.tokens.data_sha256;
  report.other_tokens = !differences.empty();

  ThreadPool pool(static_cast<int>(options.runtime.threads));
  const Dataset data(report.config, report.tokens);
  optimized::Model model(report.config,
                         report.config.training.balance_group_sequences, pool,
                         *device);
  model.WriteParameters(checkpoint.ReadParameters(model.layout().total));
  const StopSignal stop;
  report.validation =
      Validate(model, data, report.tau, report.temperature, [&stop] {
        stop.ThrowIfRequested("during the evaluation; nothing was changed");
      });
  report.unigram_loss = data.UnigramLoss(report.config.training.eval_sequences);
  return report;
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

}  // namespace

std::string EvaluationText(const EvaluationReport& report) {
  std::string text = fmt::format(
      "{:<22}{} after {} steps, configuration {}\n"
      "{:<22}{}{}\n",
      "model", RouterKindName(report.config.router.kind), report.step,
      report.config_hash, "tokens", report.tokens.string(),
      report.other_tokens ? "  (not those it was trained on)" : "");
  if (!report.device.backend.empty()) {
    text += fmt::format("{:<22}{}, {}\n", "device", report.device.model,
                        report.device.libraries);
  }
  const RouterTraits traits = TraitsOf(report.config);
  if (traits.temperature) {
    text += ReportLine(metrics::kTemperature, report.temperature);
  }
  if (traits.cutoff) text += ReportLine(metrics::kTau, report.tau);
  TextLines lines(report.validation);
  VisitValidationMetrics(lines);
  return text + lines.text() +
         ReportLine(metrics::kUnigramLoss, report.unigram_loss);
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
  if (!report.device.backend.empty()) {
    json["backend"] = report.device.backend;
    json["device"] = report.device.model;
    json["libraries"] = report.device.libraries;
  }
  VisitValidationMetrics([&](const Metric& metric, auto member) {
    json[metric.name] = report.validation.*member;
  });
  return json.dump() + "\n";
}

}  // namespace softmoe::trainer

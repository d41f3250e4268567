// SPDX-License-Identifier: Apache-2.0
#include "trainer/evaluation.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/errors.h"
#include "core/parallel_for.h"
#include "core/stop_signal.h"
#include "kernels/isa.h"
#include "optimized/model.h"
#include "trainer/checkpoint.h"
#include "trainer/dataset.h"
#include "trainer/run_identity.h"
#include "trainer/token_format.h"
#include "trainer/token_identity.h"
#include "trainer/train_run.h"
#include "trainer/validation.h"

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
  kernels::SelectIsa(options.runtime.isa);
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
  report.config_hash = ConfigHash(report.config);
  report.step = checkpoint.state().step;
  report.tau = options.tau.value_or(checkpoint.state().tau);
  if (report.config.router.kind == RouterKind::kSparse && options.tau) {
    throw ConfigError(
        "--tau has no meaning for the sparse router; leave it out");
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
  const RunIdentity now = IdentifyRun(report.config, report.tokens);
  const TokenIdentity& trained = checkpoint.identity().tokens;
  const std::string difference = DescribeTokenDifference(trained, now.tokens);
  if (now.tokens.tokenizer_sha256 != trained.tokenizer_sha256) {
    throw DataError(fmt::format(
        "{}: cannot be told to have the vocabulary of the model in {}: {}. "
        "Give token files of that vocabulary, or leave --data out",
        report.tokens.string(), path.string(), difference));
  }
  report.data_sha256 = now.tokens.data_sha256;
  report.isa = now.isa;
  report.other_tokens = !difference.empty();

  ThreadPool pool(static_cast<int>(options.runtime.threads));
  const Dataset data(report.config, report.tokens);
  optimized::Model model(report.config,
                         report.config.training.balance_group_sequences, pool);
  checkpoint.ReadParameters(model.parameters());
  const StopSignal stop;
  report.validation =
      Validate(model, data, report.tau, report.temperature, [&stop] {
        stop.ThrowIfRequested("during the evaluation; nothing was changed");
      });
  report.unigram_loss = data.UnigramLoss(report.config.training.eval_sequences);
  return report;
}

std::string EvaluationText(const EvaluationReport& report) {
  const Validation& v = report.validation;
  std::string text = fmt::format(
      "model            {} after {} steps, configuration {}\n"
      "tokens           {}{}\n"
      "held-out tokens  {}\n"
      "loss             {:.4f} nat/token at T = {:g} (unigram {:.4f})\n",
      RouterKindName(report.config.router.kind), report.step,
      report.config_hash, report.tokens.string(),
      report.other_tokens ? "  (not those it was trained on)" : "",
      v.num_tokens, v.loss, report.temperature, report.unigram_loss);
  if (report.config.router.kind != RouterKind::kSparse) {
    text += fmt::format("tau              {:.4f}\n", report.tau);
  }
  text += fmt::format(
      "active experts   {:.4f} per token and layer; {:.2f}% {}\n",
      v.active_experts, 100 * v.zero_active_fraction,
      report.config.router.fallback == Fallback::kTop1 ? "by the fallback"
                                                       : "without any");
  text += fmt::format(
      "load variance    {:.4f} var/mean^2, {:.4f} sd/mean, {:.2f} var/mean\n",
      v.load_variance, v.load_cv, v.load_var_over_mean);
  text += "active by layer ";
  for (double active : v.layer_active) text += fmt::format(" {:.2f}", active);
  return text + "\n";
}

std::string EvaluationJson(const EvaluationReport& report) {
  const Validation& v = report.validation;
  const nlohmann::ordered_json json = {
      {"config_hash", report.config_hash},
      {"router", RouterKindName(report.config.router.kind)},
      {"step", report.step},
      {"tau", report.tau},
      {"temperature", report.temperature},
      {"tokens", report.tokens.string()},
      {"data_sha256", report.data_sha256},
      {"other_tokens", report.other_tokens},
      {"isa", report.isa},
      {"loss", v.loss},
      {"unigram_loss", report.unigram_loss},
      {"num_tokens", v.num_tokens},
      {"active_experts", v.active_experts},
      {"zero_active_fraction", v.zero_active_fraction},
      {"load_variance", v.load_variance},
      {"load_cv", v.load_cv},
      {"load_var_over_mean", v.load_var_over_mean},
      {"layer_active", v.layer_active},
      {"active_histogram", v.active_histogram},
      {"tokens_per_expert", v.tokens_per_expert},
  };
  return json.dump() + "\n";
}

}  // namespace softmoe::trainer

// SPDX-License-Identifier: Apache-2.0
//
// //:evaluate - validation loss and active experts of a trained model.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>

#include "core/errors.h"
#include "core/files/paths.h"
#include "trainer/evaluation/evaluation.h"

namespace {

using softmoe::ExitCode;
using softmoe::trainer::EvaluationOptions;

constexpr char kDescription[] =
    "Measures the model of a finished or interrupted run on its held-out "
    "split: loss in nats per token, active experts per token and layer, how "
    "evenly the experts are loaded.";

constexpr char kExamples[] = R"(
Examples:
  evaluate --run runs/train/tiny-0123456789abcdef
      the numbers of the tables: T = 1, noise off, tau as trained
  evaluate --run DIR --tau 1.8
      the inference ablation: another cutoff than in training
  evaluate --run DIR --data other/tokens --json
      the held-out split of other token files of the same vocabulary

Exit codes: 0 done; 1 the loss is not finite; 2 usage, or a damaged file;
5 a file or the device is missing; 75 stopped by a signal.)";

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kDescription, "evaluate"};
  app.footer(kExamples);
  std::string run, data;
  EvaluationOptions options;
  bool json = false;
  app.add_option("--run", run, "folder of the run: holds checkpoint.h5")
      ->required();
  app.add_option("--tau", options.tau,
                 "cutoff in units of k_l/num_experts [as trained]");
  app.add_option("--temperature", options.temperature,
                 "temperature of the soft routers [1]");
  app.add_option("--data", data,
                 "prefix of .bin/.idx token files [those of the run]");
  app.add_option("--sequences", options.sequences,
                 "held-out sequences; 0: all [as configured]")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40, "COUNT"));
  app.add_flag("--json", json, "print one JSON object");
  app.add_option("--threads", options.runtime.threads,
                 "threads; 0: one per core [0]")
      ->check(CLI::Range(0, 1 << 12, "COUNT"));
  app.add_option("--isa", options.runtime.isa,
                 "instruction set, v3 or v4 [the best here]");
  app.add_option("--device", options.runtime.device,
                 "cpu, or cuda: not yet verified on a device [cpu]");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  return softmoe::RunMain("evaluate", [&] {
    options.folder = softmoe::UserPath(run);
    if (!data.empty()) options.tokens = softmoe::UserPath(data);
    const auto report = softmoe::trainer::EvaluateRun(options);
    std::fputs(
        json ? EvaluationJson(report).c_str() : EvaluationText(report).c_str(),
        stdout);
    return ExitCode::kDone;
  });
}

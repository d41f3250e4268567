// SPDX-License-Identifier: Apache-2.0
//
// gpu_check - everything that can only be checked or measured on a device.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "core/code_version.h"
#include "core/errors.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "property_tests/gpu/stage_list.h"

namespace {

using softmoe::ExitCode;

constexpr char kDescription[] =
    "Checks and measures everything on a CUDA device, cheapest first, and "
    "writes what it finds to a record, line by line.";

constexpr char kExamples[] = R"(
Each stage is a process of its own with a time limit: one that fails, crashes or
hangs stops no other. `golden import-gpu-run` makes a golden of a record.

Exit codes: 0 all that can be run here passes; 1 something failed, and is named;
2 usage; 4 not enough time for all; 5 no device, driver or library, and what
is needed; 75 stopped by a signal.)";

struct Arguments {
  softmoe::gpu::RunOptions run;
  softmoe::gpu::StageOptions stages;
  std::string record = "gpu_record.jsonl", grid, grid_file, child;
  bool brief = false;
};

ExitCode RunChild(const Arguments& arguments) {
  softmoe::gpu::StageContext context;
  context.planted_nccl = arguments.run.planted == softmoe::gpu::kNcclStage;
  context.brief = arguments.brief;
  context.tell = [&](const softmoe::gpu::Line& line) {
    if (arguments.brief) return;  // the tool that it runs under reports
    const std::string text = softmoe::JsonLine(line) + "\n";
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  };
  return softmoe::gpu::RunBody(arguments.child, context) ? ExitCode::kDone
                                                         : ExitCode::kFailed;
}

ExitCode Run(int argc, char** argv) {
  CLI::App app(kDescription, "gpu_check");
  Arguments arguments;
  app.footer(kExamples);
  app.set_version_flag("--version", softmoe::CodeVersion());
  app.add_option("--minutes", arguments.run.minutes,
                 "for all stages together [9]");
  app.add_option("--record", arguments.record,
                 "file to write [gpu_record.jsonl]");
  app.add_option("--only", arguments.run.only,
                 "only stages whose names begin with this");
  app.add_option("--grid", arguments.grid,
                 "the program `grid`, which trains a grid from the beginning "
                 "in RECORD.grid");
  app.add_option("--grid-file", arguments.grid_file, "the file of that grid");
  app.add_option(
      "--plant", arguments.run.planted,
      "an operation, or nccl, to make wrong on purpose: it must be found");
  app.add_option("--child", arguments.child, "run one stage, here")->group("");
  app.add_flag("--brief", arguments.brief, "few cases")->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::kDone : ExitCode::kUsage;
  }
  if (!arguments.child.empty()) return RunChild(arguments);
  arguments.run.record =
      std::filesystem::absolute(softmoe::UserPath(arguments.record));
  arguments.stages.report = arguments.run.record.string() + ".report";
  arguments.stages.planted = arguments.run.planted;
  if (!arguments.grid.empty()) {
    arguments.stages.grid = softmoe::UserPath(arguments.grid);
  }
  if (!arguments.grid_file.empty()) {
    arguments.stages.grid_file = softmoe::UserPath(arguments.grid_file);
  }
  arguments.stages.grid_out = arguments.run.record.string() + ".grid";
  return softmoe::gpu::RunStages(softmoe::gpu::Stages(arguments.stages),
                                 arguments.run);
}

}  // namespace

int main(int argc, char** argv) {
  return softmoe::RunMain("gpu_check", [&] { return Run(argc, argv); });
}

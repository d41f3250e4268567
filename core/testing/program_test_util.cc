// SPDX-License-Identifier: Apache-2.0
#include "core/testing/program_test_util.h"

#include <cstdio>

#include "core/files/paths.h"
#include "core/process/process.h"

namespace softmoe {

ProgramResult RunTestProgram(const std::string& program,
                             const std::string& arguments,
                             const std::filesystem::path& folder) {
  const auto path = std::filesystem::absolute(RunfilePath(program));
  ProcessOptions options;
  options.arguments = {"sh", "-c", "'" + path.string() + "' " + arguments};
  options.folder = folder;
  options.output = ProcessOptions::Output::kApart;
  Process process(options);
  ProgramResult result;
  process.ListenToEnd([&](Process::Stream stream, std::string_view bytes) {
    if (stream == Process::Stream::kOutput) {
      result.output += bytes;
    } else {
      std::fwrite(bytes.data(), 1, bytes.size(), stderr);
    }
  });
  result.exit_status = process.ExitStatus();
  return result;
}

}  // namespace softmoe

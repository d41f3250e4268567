// SPDX-License-Identifier: Apache-2.0
#include "core/process/subprocess.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/process/process.h"

namespace softmoe {
namespace {

constexpr size_t kMaxOutput = 1 << 20;

// The environment of this process with messages in English.
std::vector<std::string> EnglishEnvironment() {
  std::vector<std::string> result = Environment();
  std::erase_if(result, [](std::string_view text) {
    return text.starts_with("LC_ALL=") || text.starts_with("LANGUAGE=");
  });
  result.emplace_back("LC_ALL=C");
  return result;
}

}  // namespace

bool HaveProgram(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (true) {
    const size_t colon = rest.find(':');
    const std::filesystem::path folder(rest.substr(0, colon));
    if (::access((folder / program).c_str(), X_OK) == 0) return true;
    if (colon == std::string_view::npos) return false;
    rest.remove_prefix(colon + 1);
  }
}

ProgramResult RunProgram(const std::vector<std::string>& arguments,
                         const std::filesystem::path& folder) {
  ProcessOptions options;
  options.arguments = arguments;
  options.folder = folder;
  options.environment = EnglishEnvironment();
  Process process(options);
  ProgramResult result;
  process.ListenToEnd([&](Process::Stream, std::string_view bytes) {
    result.output += bytes.substr(0, kMaxOutput - result.output.size());
  });
  result.exit_status = process.ExitStatus();
  return result;
}

}  // namespace softmoe

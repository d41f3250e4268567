// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/compile.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "core/errors.h"
#include "core/files/sha256.h"
#include "core/process/process.h"

namespace softmoe::mutation {
namespace {

namespace fs = std::filesystem;

constexpr char kSwitchHeader[] = "property_tests/mutation/switch.h";

// The path of the source for the compiler: in the overlay if it exists there.
std::string SourceOf(const Unit& unit, const fs::path& overlay) {
  const fs::path changed = overlay / unit.source;
  return fs::exists(changed) ? changed.string() : unit.source;
}

}  // namespace

std::vector<std::string> Compiler::Arguments(const Unit& unit) const {
  std::vector<std::string> arguments;
  if (unit.compiler.empty()) arguments = project_.flags;
  arguments.insert(arguments.end(), unit.flags.begin(), unit.flags.end());
  arguments.insert(arguments.end(), {"-g0", "-w", "-iquote", "."});
  return arguments;
}

ProgramResult Compiler::Run(const Unit& unit, const fs::path& overlay,
                            const std::vector<std::string>& flags,
                            const fs::path& object) const {
  std::vector<std::string> arguments = {
      unit.compiler.empty() ? project_.compiler : unit.compiler, "-iquote",
      overlay.string()};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), {"-c", SourceOf(unit, overlay)});
  if (object.empty()) {
    arguments.push_back("-fsyntax-only");
  } else {
    arguments.insert(arguments.end(), {"-o", object.string()});
  }
  return RunProgram(arguments, tree_.folder());
}

ProgramResult Compiler::Compile(const Unit& unit, const fs::path& overlay,
                                const fs::path& object) const {
  std::vector<std::string> flags = Arguments(unit);
  flags.insert(flags.end(), {"-include", kSwitchHeader});
  return Run(unit, overlay, flags, object);
}

ProgramResult Compiler::CompilePlain(const Unit& unit, const fs::path& overlay,
                                     const fs::path& object) const {
  std::vector<std::string> flags = Arguments(unit);
  if (unit.compiler.empty()) {
    // A unit's own flag comes later and wins.
    std::ranges::replace(flags, "-O1", "-O2");
  }
  return Run(unit, overlay, flags, object);
}

std::string Compiler::Key(const Unit& unit, const Overlay& overlay) const {
  std::string all = compilers_ + "\n" + unit.key + "\n" + unit.compiler + "\n";
  for (const std::string& argument : Arguments(unit)) all += argument + "\n";
  std::vector<std::string> files = {kSwitchHeader};
  const std::set<std::string>& closure = tree_.Closure(unit);
  files.insert(files.end(), closure.begin(), closure.end());
  for (const std::string& file : files) {
    const auto changed = overlay.find(file);
    const std::string* text =
        changed == overlay.end() ? tree_.Text(file) : &changed->second;
    all += file + "\n" + (text == nullptr ? "" : Sha256Hex(*text)) + "\n";
  }
  return Sha256Hex(all);
}

std::string Compiler::SyntaxTree(const Unit& unit,
                                 const std::string& filter) const {
  std::vector<std::string> arguments = {project_.clang};
  for (const std::string& flag : project_.flags) {
    // g++ has flags that clang does not know.
    if (flag.starts_with("-std=") || flag.starts_with("-march=") ||
        flag.starts_with("-D")) {
      arguments.push_back(flag);
    }
  }
  arguments.insert(arguments.end(), unit.flags.begin(), unit.flags.end());
  arguments.insert(
      arguments.end(),
      {"-w", "-iquote", ".", "-fsyntax-only", "-ferror-limit=0", "-Xclang",
       "-ast-dump=json", "-Xclang", "-ast-dump-filter=" + filter, unit.source});
  ProcessOptions options;
  options.arguments = arguments;
  options.folder = tree_.folder();
  options.output = ProcessOptions::Output::kApart;
  // Clang 14 crashes on one of some thousand units, but not twice on the same.
  for (int attempt = 1;; ++attempt) {
    Process process(options);
    std::string output, errors;
    process.ListenToEnd([&](Process::Stream stream, std::string_view text) {
      (stream == Process::Stream::kOutput ? output : errors) += text;
    });
    // Clang may reject what g++ accepts. If clang crashed, it is unknown which
    // places are missing.
    if (process.ExitStatus() <= 1) return output;
    if (attempt == kAttempts) {
      throw EnvironmentError(fmt::format(
          "{}: clang ended with {} on it {} times, so its syntax tree is "
          "incomplete; run the same command again to continue. Clang said: {}",
          unit.source, process.ExitStatus(), attempt,
          errors.substr(errors.size() -
                        std::min<size_t>(errors.size(), 2000))));
    }
  }
}

}  // namespace softmoe::mutation

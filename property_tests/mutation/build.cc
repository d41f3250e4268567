// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/build.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <set>
#include <utility>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "property_tests/mutation/for_all.h"

namespace softmoe::mutation {
namespace {

namespace fs = std::filesystem;

// Linked into every program.
constexpr char kSwitchUnit[] = "property_tests/mutation/switch/switch.cc.o";

// main() of programs that run the tests of one file
// (core/testing/test_main.cc).
constexpr char kTestMain[] = "core/testing/test_main/test_main.cc.o";

// The compiler's error message. Throws EnvironmentError if the source is not to
// blame, since nothing follows from such a failure.
std::string FirstError(const ProgramResult& run) {
  const auto says = [&](const char* text) {
    return run.output.find(text) != std::string::npos;
  };
  // (g++ and clang report that SIGKILL has ended one of their subprograms; only
  // the exit status tells that it has ended g++ or clang itself.)
  if (says("Killed signal") || says("unable to execute command: Killed") ||
      says("No space left") || run.exit_status == 128 + SIGKILL) {
    throw EnvironmentError(
        "a compiler had no memory or disk left: start "
        "again, with fewer --jobs\n" +
        run.output);
  }
  const size_t at = run.output.find("error: ");
  if (at == std::string::npos) {
    return fmt::format("exit code {}", run.exit_status);
  }
  return run.output.substr(at + 7, run.output.find('\n', at) - at - 7);
}

bool HasAny(const std::set<std::string>& files,
            const std::set<std::string>& wanted) {
  return std::ranges::any_of(
      wanted, [&](const std::string& file) { return files.contains(file); });
}

std::set<std::string> FilesOf(const std::vector<PlacedFault>& faults) {
  std::set<std::string> files;
  for (const PlacedFault& fault : faults) files.insert(fault.file);
  return files;
}

// The suites of a test program, each run in its own process: the tests of each
// file, if the program can tell them apart, or else all tests.
std::vector<Suite> SuitesOf(const Program& program) {
  Suite whole = {.name = program.path,
                 .program = program.path,
                 .arguments = program.arguments,
                 .failing_exit = kAnyFailingExit};
  if (std::ranges::count(program.units, kTestMain) == 0) return {whole};
  whole.arguments.push_back("--gtest_fail_fast");
  std::vector<Suite> suites;
  for (const std::string& unit : program.units) {
    if (!unit.starts_with(program.path + "/")) continue;
    const std::string file = fs::path(unit).stem().stem();
    Suite suite = whole;
    suite.name = (fs::path(program.path).parent_path() / file).string();
    suite.arguments.push_back("--file=" + file);
    suites.push_back(std::move(suite));
  }
  return suites.size() == 1 ? std::vector<Suite>{whole} : suites;
}

}  // namespace

Build::Build(const Project& project, SourceTree& tree, const Compiler& compiler,
             BuildOptions options)
    : project_(project),
      tree_(tree),
      compiler_(compiler),
      options_(std::move(options)) {
  MakeFolder(options_.folder / "objects");
  if (!project.units.contains(kSwitchUnit)) {
    throw InternalError(std::string("no unit ") + kSwitchUnit);
  }
}

std::vector<std::string> Build::Check(const std::vector<PlacedFault>& faults) {
  std::vector<const Unit*> units;
  for (const PlacedFault& fault : faults) {
    const Unit* first = nullptr;
    for (const auto& [key, unit] : project_.units) {
      const bool is_better =
          first == nullptr || (first->is_test && !unit.is_test);
      if (is_better && tree_.Closure(unit).contains(fault.file)) first = &unit;
    }
    units.push_back(first);
  }
  std::vector<std::string> problems(faults.size());
  ForAll(faults.size(), options_.jobs, options_.stop, [&](size_t i) {
    const fs::path own = options_.folder / "check" / faults[i].id;
    if (units[i] == nullptr) {
      problems[i] = "no unit includes this file";
      return;
    }
    try {
      // First without a switch, then behind it.
      WriteOverlay({{faults[i].file, PlainCopy(tree_, faults[i])}}, own);
      ProgramResult run = compiler_.Compile(*units[i], own, "");
      if (run.exit_status == 0) {
        WriteOverlay(SwitchedCopies(tree_.Reader(), {faults[i]}), own);
        run = compiler_.Compile(*units[i], own, "");
      }
      if (run.exit_status != 0) problems[i] = FirstError(run);
    } catch (const DataError& error) {
      problems[i] = error.what();
    }
    fs::remove_all(own);
  });
  return problems;
}

std::vector<std::string> Build::TestsThatReach(
    const std::vector<PlacedFault>& faults) {
  const std::set<std::string> files = FilesOf(faults);
  std::set<std::string> with;  // units
  for (const auto& [key, unit] : project_.units) {
    if (HasAny(tree_.Closure(unit), files)) with.insert(key);
  }
  const auto has_fault = [&](const std::string& path) {
    const auto found = project_.programs.find(path);
    return found != project_.programs.end() &&
           std::ranges::any_of(found->second.units, [&](const auto& unit) {
             return with.contains(unit);
           });
  };
  std::vector<std::string> paths;
  for (const auto& [path, program] : project_.programs) {
    if (program.is_test &&
        (has_fault(path) || std::ranges::any_of(program.programs, has_fault))) {
      paths.push_back(path);
    }
  }
  return paths;
}

std::map<std::string, std::string> Build::MakeObjects(
    const std::vector<const Unit*>& units, const Overlay& overlay) {
  const fs::path folder = options_.folder / "switched";
  WriteOverlay(overlay, folder);
  objects_.clear();
  for (const Unit* unit : units) {
    objects_[unit->key] =
        options_.folder / "objects" / (compiler_.Key(*unit, overlay) + ".o");
  }
  std::mutex mutex;
  size_t done = 0;
  std::map<std::string, std::string> errors;
  ForAll(units.size(), options_.jobs, options_.stop, [&](size_t i) {
    const Unit& unit = *units[i];
    const fs::path& object = objects_.at(unit.key);
    if (!fs::exists(object)) {
      const fs::path unfinished = object.string() + ".new";
      const ProgramResult run = compiler_.Compile(unit, folder, unfinished);
      if (run.exit_status == 0) {
        fs::rename(unfinished, object);
      } else {
        const std::lock_guard lock(mutex);
        errors[unit.key] = FirstError(run);
      }
    }
    const std::lock_guard lock(mutex);
    options_.on_unit(++done, units.size());
  });
  return errors;
}

// Finds, one after the other, the first remaining fault that breaks the unit.
std::map<std::string, std::string> Build::Culprits(
    const Unit& unit, std::vector<PlacedFault> faults) {
  const std::set<std::string>& closure = tree_.Closure(unit);
  std::erase_if(faults, [&](const PlacedFault& fault) {
    return !closure.contains(fault.file);
  });
  const fs::path folder = options_.folder / "bisected";
  const fs::path object = options_.folder / "bisected.o";
  const auto run_with = [&](size_t count) {
    WriteOverlay(SwitchedCopies(tree_.Reader(),
                                {faults.begin(), faults.begin() + count}),
                 folder);
    return compiler_.Compile(unit, folder, object);
  };
  std::map<std::string, std::string> culprits;
  while (true) {
    if (options_.stop()) return {};
    ProgramResult failed = run_with(faults.size());
    if (failed.exit_status == 0) return culprits;
    // The unit compiles with the first `good` faults and fails with the first
    // `bad`.
    size_t good = 0, bad = faults.size();
    if (bad == 0 || run_with(0).exit_status != 0) {
      throw EnvironmentError(unit.source +
                             " does not compile without faults (" +
                             FirstError(failed) + "): fix it, and start again");
    }
    while (bad - good > 1) {
      const size_t middle = good + (bad - good) / 2;
      ProgramResult run = run_with(middle);
      if (run.exit_status == 0) {
        good = middle;
      } else {
        bad = middle;
        failed = std::move(run);
      }
    }
    culprits[faults[good].id] = FirstError(failed);
    faults.erase(faults.begin() + good);
  }
}

std::map<std::string, std::string> Build::Make(
    const std::vector<PlacedFault>& faults,
    const std::vector<std::string>& wanted) {
  suites_.clear();
  std::set<std::string> paths;
  for (const std::string& path :
       wanted.empty() ? TestsThatReach(faults) : wanted) {
    const auto found = project_.programs.find(path);
    if (found == project_.programs.end()) {
      throw InternalError("Bazel does not say how " + path + " is made");
    }
    paths.insert(path);
    paths.insert(found->second.programs.begin(), found->second.programs.end());
  }
  std::vector<const Program*> programs;
  for (const std::string& path : paths) {
    const auto found = project_.programs.find(path);
    if (found != project_.programs.end()) programs.push_back(&found->second);
  }
  std::set<std::string> keys = {kSwitchUnit};
  for (const Program* program : programs) {
    keys.insert(program->units.begin(), program->units.end());
  }
  std::vector<const Unit*> units;
  for (const std::string& key : keys) {
    const auto found = project_.units.find(key);
    if (found == project_.units.end()) {
      throw InternalError("Bazel does not say how " + key + " is made");
    }
    units.push_back(&found->second);
  }
  const auto errors =
      MakeObjects(units, SwitchedCopies(tree_.Reader(), faults));
  if (options_.stop()) return {};
  if (!errors.empty()) {
    std::map<std::string, std::string> culprits;
    std::vector<PlacedFault> left = faults;
    for (const auto& [key, error] : errors) {
      for (const auto& [id, message] : Culprits(project_.units.at(key), left)) {
        culprits[id] = message;
        std::erase_if(left, [&id = id](const PlacedFault& fault) {
          return fault.id == id;
        });
      }
    }
    if (culprits.empty()) {
      throw EnvironmentError(fmt::format(
          "{} failed to compile ({}), but compiled when tried again: start "
          "again, with fewer --jobs if memory is short",
          errors.begin()->first, errors.begin()->second));
    }
    return culprits;
  }
  ForAll(programs.size(), options_.jobs, options_.stop,
         [&](size_t i) { Link(*programs[i]); });
  if (options_.stop()) return {};
  MakeRunfiles(programs);

  // An object that no build has used for a week will not be used again.
  const auto now = fs::file_time_type::clock::now();
  for (const auto& [key, object] : objects_) fs::last_write_time(object, now);
  for (const auto& entry :
       fs::directory_iterator(options_.folder / "objects")) {
    if (entry.last_write_time() < now - std::chrono::hours(7 * 24)) {
      fs::remove(entry.path());
    }
  }
  return {};
}

void Build::Link(const Program& program) {
  const fs::path output = options_.folder / "programs" / program.path;
  const std::string archive = output.string() + ".a";
  std::vector<std::string> arguments = {program.compiler, "-o",
                                        output.string() + ".new"};
  // "T": the archive refers to the objects instead of containing them.
  std::vector<std::string> archiving = {"ar", "rcsT", archive};
  for (const std::string& unit : program.units) {
    (project_.units.at(unit).always_linked ? arguments : archiving)
        .push_back(objects_.at(unit).string());
  }
  arguments.push_back(objects_.at(kSwitchUnit).string());
  arguments.push_back("-Wl,--start-group");
  arguments.push_back(archive);
  arguments.insert(arguments.end(), program.archives.begin(),
                   program.archives.end());
  arguments.insert(arguments.end(), program.linkopts.begin(),
                   program.linkopts.end());
  arguments.push_back("-Wl,--end-group");
  if (program.script.empty()) {
    arguments.insert(arguments.end(), project_.linkopts.begin(),
                     project_.linkopts.end());
  }
  // The names of objects identify their content; those of archives do not.
  std::string key;
  for (const std::string& archive : program.archives) {
    key += Sha256OfFile(archive) + "\n";
  }
  for (const auto* part : {&archiving, &arguments}) {
    for (const std::string& argument : *part) key += argument + "\n";
  }
  key = Sha256Hex(key);
  const fs::path key_file = output.string() + ".key";
  if (fs::exists(output) && fs::exists(key_file) &&
      ReadWholeFile(key_file) == key) {
    return;
  }
  MakeFolder(output.parent_path());
  fs::remove(archive);  // ar would add to it
  // If this ends before the new key is written, the old one must not vouch for
  // the new program.
  fs::remove(key_file);
  for (const auto* part : {&archiving, &arguments}) {
    const ProgramResult run = RunProgram(*part, tree_.folder());
    if (run.exit_status != 0) {
      throw EnvironmentError("cannot link " + program.path + ":\n" +
                             run.output);
    }
  }
  fs::rename(output.string() + ".new", output);
  WriteFileAtomically(key_file, key);
}

fs::path Build::Runfiles() const {
  return options_.folder / "runfiles" / "softmoe";
}

void Build::MakeRunfiles(const std::vector<const Program*>& programs) {
  const fs::path root = Runfiles();
  fs::remove_all(root);
  const auto place = [&](const std::string& path) {
    MakeFolder((root / path).parent_path());
    return root / path;
  };
  for (const Program* program : programs) {
    const fs::path output = options_.folder / "programs" / program->path;
    if (program->script.empty()) {
      fs::create_symlink(output, place(program->path));
    } else {
      fs::create_symlink(output, place(program->path + ".bin"));
      const fs::path script = place(program->path);
      WriteFileAtomically(script, program->script);
      fs::permissions(script, fs::perms::owner_all);
    }
    if (!program->is_test) continue;
    for (Suite& suite : SuitesOf(*program)) {
      suite.runfiles = root;
      suites_.push_back(std::move(suite));
    }
  }
  // Programs first, or a script that starts one could find the one without
  // faults. Files are copied, like sources: a test that fails because a file
  // was edited meanwhile would kill every fault.
  for (const Program* program : programs) {
    for (const auto& [path, file] : program->files) {
      if (fs::exists(fs::symlink_status(root / path))) continue;
      fs::copy(file, place(path), fs::copy_options::recursive);
    }
  }
}

bool Build::HasEqualObjects(const PlacedFault& fault) {
  std::vector<const Unit*> units;
  for (const auto& [key, unit] : project_.units) {
    if (tree_.Closure(unit).contains(fault.file)) units.push_back(&unit);
  }
  // The first difference decides, so start where one is likely.
  std::ranges::stable_sort(units, {}, &Unit::is_test);
  static std::atomic<int> number = 0;
  const fs::path folder = options_.folder / fmt::format("equal-{}", ++number);
  const Overlay original = {{fault.file, *tree_.Text(fault.file)}};
  const Overlay mutated = {{fault.file, PlainCopy(tree_, fault)}};
  bool equal = !units.empty();
  for (const Unit* unit : units) {
    std::vector<std::string> bytes;
    for (const Overlay& overlay : {original, mutated}) {
      WriteOverlay(overlay, folder);  // one path, since objects may hold it
      const fs::path object = folder.string() + ".o";
      const ProgramResult run = compiler_.CompilePlain(*unit, folder, object);
      if (run.exit_status != 0) {
        FirstError(run);  // throws if the source is not to blame
        break;
      }
      bytes.push_back(ReadWholeFile(object));
    }
    equal = bytes.size() == 2 && bytes[0] == bytes[1];
    if (!equal || options_.stop()) break;
  }
  fs::remove_all(folder);
  fs::remove(folder.string() + ".o");
  return equal && !options_.stop();
}

}  // namespace softmoe::mutation

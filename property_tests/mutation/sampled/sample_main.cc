// SPDX-License-Identifier: Apache-2.0
//
// `verify mutate --sampled N --seed S`: draws faults at random, so that nobody
// chooses what the tests are measured by.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/files/runfiles.h"
#include "core/files/sha256.h"
#include "core/process/stop_signal.h"
#include "property_tests/mutation/for_all.h"
#include "property_tests/mutation/run_suite.h"
#include "property_tests/mutation/sampled/build.h"
#include "property_tests/mutation/sampled/compile.h"
#include "property_tests/mutation/sampled/equivalents.h"
#include "property_tests/mutation/sampled/find_places.h"
#include "property_tests/mutation/sampled/part.h"
#include "property_tests/mutation/sampled/project.h"
#include "property_tests/mutation/sampled/sampled_list.h"
#include "property_tests/mutation/sampled/sampled_report.h"
#include "property_tests/mutation/sampled/sampled_run.h"
#include "property_tests/mutation/sampled/source_tree.h"

namespace {

using namespace softmoe;            // NOLINT: a main
using namespace softmoe::mutation;  // NOLINT
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kDescription[] =
    "Draws faults by chance, plants them one at a time, and counts which of "
    "them any test of the repository notices.";

constexpr char kExamples[] = R"(
Examples:
  verify mutate --sampled 300 --seed 1
      two to three hours of two cores; interrupted, the same command goes on
  verify mutate --sampled 300 --seed 1 --report
      what the list says so far; nothing is run
  verify mutate --sampled 300 --seed 3 --in kernels/cuda,optimized --list gpu.jsonl
      of these folders alone, each of their places with the same chance

Exit codes: 0 at least 95 % are killed, and the interval begins at 90 % or
more; 1 fewer are; 2 a number that is none, a damaged list, or one of other
sources; 4 too few faults to say, or not all of them yet; 5 the build, or
another compiler; 6 the tests fail without any fault; 75 stopped by a signal.
property_tests/mutation/sampled/README.md says what is drawn, and how.)";

// At most this share of the tests may fail in this build by themselves. They
// kill nothing, and with more of them the result would not measure the tests.
constexpr double kMostFailing = 0.05;

struct Options {
  int64_t faults = 0;
  uint64_t seed = 1;
  int jobs = 2;
  std::vector<std::string> in;
  std::string list;
  bool report = false;
};

void Say(const std::string& text) {
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

// Keeps a folder for a single run.
class Lock {
 public:
  explicit Lock(const fs::path& folder) {
    MakeFolder(folder);
    const fs::path file = folder / "lock";
    descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      if (descriptor_ >= 0) ::close(descriptor_);
      throw EnvironmentError(file.string() +
                             ": another `mutate --sampled` is running, or the "
                             "file cannot be opened; wait for it to end");
    }
  }
  ~Lock() { ::close(descriptor_); }

 private:
  int descriptor_ = -1;
};

fs::path Workspace() {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (workspace == nullptr) {
    throw EnvironmentError(
        "the sources are not known: start it as ./bazelw run //:verify -- "
        "mutate --sampled N --seed S");
  }
  return workspace;
}

class Sample {
 public:
  Sample(const Options& options, const StopSignal& signal)
      : options_(options),
        signal_(signal),
        workspace_(Workspace()),
        folder_(CacheFolder() / "mutants"),
        list_(options.list.empty()
                  ? workspace_ / "property_tests/mutation/sampled" /
                        fmt::format("seed{}.jsonl", options.seed)
                  : UserPath(options.list)),
        part_(options.in) {}

  ExitCode Run() {
    list_.RequireAskedFor(Asked());
    // A complete list is not measured again, even if the sources have changed.
    if (!options_.report && !list_.IsComplete()) Measure();
    const auto equivalents = ReadEquivalents(
        workspace_ / "property_tests/mutation/sampled/equivalent.toml");
    const SampledReport report(list_, equivalents);
    std::fputs(report.Text().c_str(), stdout);
    return report.exit_code();
  }

 private:
  SampledRun Asked() const {
    SampledRun run;
    run.seed = options_.seed;
    run.faults = options_.faults;
    run.part = part_.Text();
    return run;
  }

  std::function<bool()> Stop() const {
    return [this] { return signal_.requested(); };
  }
  void ThrowIfStopped() const {
    signal_.ThrowIfRequested("what is known is in " + list_.path().string() +
                             "; the same command goes on");
  }

  void Measure() {
    const Lock lock(folder_);
    Say("asking Bazel what the tests are made from ...");
    const Project project = ReadProject(
        workspace_, RunfilePath("property_tests/mutation/sampled/flags.json"));
    ThrowIfStopped();
    SourceTree tree(project, folder_ / "tree");
    SampledRun run = Asked();
    run.sources = tree.digest();
    run.clang = VersionOf(project.clang);
    run.compiler = VersionOf(project.compiler);
    if (list_.run()) {  // before anything that takes long
      run.places = list_.run()->places;
      run.units = list_.run()->units;
      run.left_out = list_.run()->left_out;
      list_.Begin(run);
    }
    const Compiler compiler(project, tree, run.clang + "\n" + run.compiler);
    const std::string key =
        Sha256Hex(run.sources + run.clang + run.compiler + run.part)
            .substr(0, 16);
    const FoundPlaces found = Places(project, tree, compiler, key);
    run.places = static_cast<int64_t>(found.places.size());
    run.units = found.units;
    run.left_out = found.left_out;
    if (options_.faults > run.places) {
      throw ConfigError(fmt::format("--sampled {}: there are only {} places",
                                    options_.faults, run.places));
    }
    list_.Begin(run);

    Build build(project, tree, compiler,
                {.folder = folder_,
                 .jobs = options_.jobs,
                 .stop = Stop(),
                 .on_unit = Progress("units compiled")});
    const std::vector<DrawnFault> faults =
        DrawAndBuild(found.places, tree, build, key);
    const std::map<std::string, CleanRun> clean =
        RunWithoutFaults(build.suites(), faults);
    Kill(faults, tree, build, clean);
  }

  // Reports progress about twenty times.
  std::function<void(size_t, size_t)> Progress(const std::string& what) const {
    return [what](size_t done, size_t all) {
      const size_t step = std::max<size_t>(1, all / 20);
      if (done % step == 0 || done == all) {
        Say(fmt::format("  {} of {} {}", done, all, what));
      }
    };
  }

  FoundPlaces Places(const Project& project, SourceTree& tree,
                     const Compiler& compiler, const std::string& key) {
    const fs::path file = folder_ / ("places-" + key + ".json");
    if (fs::exists(file)) return ReadPlaces(ReadWholeFile(file));
    Say("looking for places (clang) ...");
    FoundPlaces found =
        FindPlaces(project, tree, compiler, part_, options_.jobs, Stop(),
                   Progress("units read"));
    ThrowIfStopped();
    for (const std::string& path : found.unseen) {
      Say("  not seen, so nothing is drawn there: " + path);
    }
    WriteFileAtomically(file, PlacesText(found));
    return found;
  }

  static SampledFault Describe(const SourceTree& tree,
                               const DrawnFault& fault) {
    const std::string& text = *tree.Text(fault.file);
    SampledFault sampled;
    sampled.fault = fault;
    sampled.line = LineOf(text, fault.span.begin);
    sampled.original =
        text.substr(fault.span.begin, fault.span.end - fault.span.begin);
    return sampled;
  }

  std::vector<DrawnFault> DrawAndBuild(const std::vector<Place>& places,
                                       const SourceTree& tree, Build& build,
                                       const std::string& key) {
    // Faults known to compile are not checked again, neither when another fault
    // is replaced nor when a run resumes.
    const fs::path known_file =
        folder_ / fmt::format("compiles-{}-{}.jsonl", options_.seed, key);
    std::set<std::string> known;
    if (fs::exists(known_file)) {
      for (const Json& line : ReadJsonLines(known_file)) {
        known.insert(line.value("id", ""));
      }
    }
    JsonLinesWriter writer(known_file);
    const auto check = [&](const std::vector<DrawnFault>& faults) {
      std::vector<DrawnFault> unknown;
      for (const DrawnFault& fault : faults) {
        if (!known.contains(fault.id)) unknown.push_back(fault);
      }
      if (!unknown.empty()) {
        Say(fmt::format("checking the syntax of {} faults ...",
                        unknown.size()));
      }
      const std::vector<std::string> checked = build.Check(unknown);
      ThrowIfStopped();
      std::map<std::string, std::string> problems;
      for (size_t i = 0; i < unknown.size(); ++i) {
        problems[unknown[i].id] = checked[i];
        if (!checked[i].empty()) continue;
        known.insert(unknown[i].id);
        writer.Write({{"id", unknown[i].id}});
      }
      std::vector<std::string> result;
      for (const DrawnFault& fault : faults) {
        result.push_back(problems[fault.id]);
      }
      return result;
    };
    const auto stand_together = [&](const std::vector<DrawnFault>& faults) {
      std::vector<DrawnFault> beside;  // faults in the last one's file
      for (const DrawnFault& fault : faults) {
        if (fault.file == faults.back().file) beside.push_back(fault);
      }
      try {
        SwitchedCopies(tree, beside);
        return true;
      } catch (const DataError&) {
        return false;
      }
    };
    while (true) {
      std::vector<DrawnFault> faults = DrawFaults(
          places, options_.faults, list_, check, stand_together,
          [&](const DrawnFault& fault) { return Describe(tree, fault); });
      Say(fmt::format("building the tests with {} faults ...", faults.size()));
      const std::map<std::string, std::string> broken = build.Make(faults);
      ThrowIfStopped();
      if (broken.empty()) return faults;
      for (const DrawnFault& fault : faults) {
        const auto culprit = broken.find(fault.id);
        if (culprit == broken.end()) continue;
        Say("  breaks the build: " + fault.id + ": " + culprit->second);
        SampledFault sampled = Describe(tree, fault);
        sampled.fate = Fate::kBreaksTheBuild;
        sampled.reason = culprit->second;
        list_.Add(sampled);
      }
    }
  }

  // Each suite's result without faults, and the places it reaches; stored, so
  // that a resumed run need not repeat it.
  std::map<std::string, CleanRun> RunWithoutFaults(
      const std::vector<Suite>& suites, const std::vector<DrawnFault>& faults) {
    const std::string table = TableOfIds(faults);
    const std::string key = Sha256Hex(list_.run()->sources + table);
    const fs::path file = folder_ / ("clean-" + key.substr(0, 16) + ".jsonl");
    std::map<std::string, CleanRun> clean;
    if (fs::exists(file)) {
      for (const Json& line : ReadJsonLines(file)) {
        clean[line.at("suite")] = {
            line.at("passed"), line.at("seconds"),
            line.at("reached").get<std::set<std::string>>()};
      }
    }
    std::vector<const Suite*> unknown;
    for (const Suite& suite : suites) {
      if (!clean.contains(suite.name)) unknown.push_back(&suite);
    }
    Say(fmt::format("running {} suites without a fault ...", unknown.size()));
    JsonLinesWriter writer(file);
    const auto progress = Progress("suites run");
    std::mutex mutex;
    size_t done = 0;
    ForAll(unknown.size(), options_.jobs, Stop(), [&](size_t i) {
      const Suite& suite = *unknown[i];
      const fs::path reached = folder_ / fmt::format("reached-{}", i);
      WriteFileAtomically(reached, table);
      const SuiteRun run =
          RunSuite(suite, "", kFirstTimeout, folder_ / "scratch", reached);
      if (signal_.requested()) return;
      const CleanRun result = {
          run.end == SuiteRun::End::kExited && run.code == 0, run.seconds,
          TickedIds(ReadWholeFile(reached))};
      fs::remove(reached);
      const std::lock_guard lock(mutex);
      if (!result.passed) {
        Say(fmt::format("  FAILS BY ITSELF, so it kills nothing: {}\n{}",
                        suite.name, run.output));
      }
      writer.Write({{"suite", suite.name},
                    {"passed", result.passed},
                    {"seconds", result.seconds},
                    {"reached", result.reached}});
      clean[suite.name] = result;
      progress(++done, unknown.size());
    });
    ThrowIfStopped();
    size_t failing = 0;
    for (const auto& [name, run] : clean) failing += !run.passed;
    if (failing > kMostFailing * clean.size()) {
      throw Error(ExitCode::kSelfCheck,
                  fmt::format("{} of {} suites fail without any fault: run "
                              "`./bazelw test //...` first",
                              failing, clean.size()));
    }
    return clean;
  }

  void Kill(const std::vector<DrawnFault>& faults, const SourceTree& tree,
            Build& build, const std::map<std::string, CleanRun>& clean) {
    std::vector<const DrawnFault*> left;
    for (const DrawnFault& fault : faults) {
      if (list_.Find(fault.id) == nullptr) left.push_back(&fault);
    }
    Say(fmt::format("{} faults, {} of them known; {} suites", faults.size(),
                    faults.size() - left.size(), build.suites().size()));
    KillOptions kill;
    kill.stop = Stop();
    kill.run = [&](const Suite& suite, const std::string& id, double timeout) {
      return RunSuite(suite, id, timeout, folder_ / "scratch");
    };
    size_t done = faults.size() - left.size();
    std::mutex mutex;
    ForAll(left.size(), options_.jobs, Stop(), [&](size_t i) {
      const DrawnFault& fault = *left[i];
      std::optional<SampledFault> result =
          TryToKill(Describe(tree, fault),
                    SuitesFor(fault.id, build.suites(), clean), clean, kill);
      if (!result) return;
      if (!IsKilled(result->fate)) {
        result->equal_objects = build.HasEqualObjects(fault);
        if (signal_.requested()) return;
      }
      list_.Add(*result);
      const std::lock_guard lock(mutex);
      Say(fmt::format("[{}/{}] {:<11} {} {}:{} ({}{}, {:.1f} s)", ++done,
                      faults.size(), FateName(result->fate), fault.id,
                      fault.file, result->line, fault.kind,
                      result->suite.empty() ? "" : ", " + result->suite,
                      result->seconds));
    });
    ThrowIfStopped();
  }

  static constexpr double kFirstTimeout = 1800;

  const Options& options_;
  const StopSignal& signal_;
  fs::path workspace_, folder_;
  SampledList list_;
  Part part_;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kDescription, "verify mutate"};
  app.footer(kExamples);
  Options options;
  app.add_option("--sampled", options.faults, "how many faults")
      ->required()
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}, "N"));
  app.add_option("--seed", options.seed, "of the draw [1]")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 62, "SEED"));
  app.add_option("--jobs", options.jobs, "compilers or tests at a time [2]")
      ->check(CLI::Range(1, 256));
  app.add_option("--in", options.in,
                 "only in these folders or files (kernels/cuda,optimized), "
                 "with a --list of its own: what it says is of them alone")
      ->type_name("PATH,...");
  app.add_option("--list", options.list,
                 "where results go, and are taken from "
                 "[property_tests/mutation/sampled/seedS.jsonl]");
  app.add_flag("--report", options.report,
               "show what the list says, run nothing");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  return RunMain("verify mutate", [&] {
    if (!options.in.empty() && options.list.empty()) {
      throw ConfigError(
          "--in: the list of a seed is for all places; name another one "
          "with --list FILE");
    }
    const StopSignal signal;
    return Sample(options, signal).Run();
  });
}

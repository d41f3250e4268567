// SPDX-License-Identifier: Apache-2.0
#include "property_tests/mutation/sampled/sample.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/files/sha256.h"
#include "property_tests/mutation/build.h"
#include "property_tests/mutation/driver.h"
#include "property_tests/mutation/kill.h"
#include "property_tests/mutation/sampled/draw.h"
#include "property_tests/mutation/sampled/find_places.h"
#include "property_tests/mutation/sampled/sampled_list.h"
#include "property_tests/mutation/sampled/sampled_report.h"

namespace softmoe::mutation {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class Sample {
 public:
  Sample(const SampleOptions& options, const StopSignal& signal)
      : options_(options),
        signal_(signal),
        workspace_(Workspace()),
        list_(options.list.empty()
                  ? workspace_ / "property_tests/mutation/sampled" /
                        fmt::format("seed{}.jsonl", options.seed)
                  : UserPath(options.list)),
        part_(options.in) {}

  ExitCode Run() {
    list_.RequireAskedFor(Asked());
    // A complete list is not measured again, even if the sources have changed.
    if (!options_.report && list_.IsComplete()) {
      Say(fmt::format(
          "{} is complete: nothing is measured, and this is its report; to "
          "measure today's sources, choose another --seed",
          list_.path().string()));
    } else if (!options_.report) {
      Measure();
    }
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
    signal_.ThrowIfRequested("the results so far are in " +
                             list_.path().string() +
                             "; the same command continues");
  }

  void Measure() {
    const BuildFolder folder;
    folder_ = folder.path();
    scratch_ = folder.scratch();
    Say("asking Bazel what the tests are made from ...");
    const Project project = ReadProject(
        workspace_, RunfilePath("property_tests/mutation/flags.json"));
    ThrowIfStopped();
    SourceTree tree(project, folder_ / "tree", list_.path());
    SampledRun run = Asked();
    run.sources = tree.digest();
    run.clang = VersionOf(project.clang);
    run.compiler = VersionOf(project.compiler);
    if (list_.run()) {  // before anything that takes long
      run.places = list_.run()->places;
      run.units = list_.run()->units;
      run.left_out = list_.run()->left_out;
      run.unseen = list_.run()->unseen;
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
    run.unseen = found.unseen;
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
    const std::vector<PlacedFault> faults =
        DrawAndBuild(found.places, tree, build, key);
    const std::map<std::string, CleanRun> clean =
        CleanRuns(build.suites(), faults, tree.digest_with_documents());
    Kill(faults, tree, build, clean);
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

  std::vector<PlacedFault> DrawAndBuild(const std::vector<Place>& places,
                                        const SourceTree& tree, Build& build,
                                        const std::string& key) {
    // Faults known to compile are not checked again: neither when a fault is
    // drawn in place of another, nor when a run goes on.
    const fs::path known_file =
        folder_ / fmt::format("compiles-{}-{}.jsonl", options_.seed, key);
    std::set<std::string> known;
    if (fs::exists(known_file)) {
      for (const Json& line : ReadJsonLines(known_file)) {
        known.insert(line.value("id", ""));
      }
    }
    JsonLinesWriter writer(known_file);
    const auto check = [&](const std::vector<PlacedFault>& faults) {
      std::vector<PlacedFault> unknown;
      for (const PlacedFault& fault : faults) {
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
      for (const PlacedFault& fault : faults) {
        result.push_back(problems[fault.id]);
      }
      return result;
    };
    const auto stand_together = [&](const std::vector<PlacedFault>& faults) {
      std::vector<PlacedFault> beside;  // in the same file as the last
      for (const PlacedFault& fault : faults) {
        if (fault.file == faults.back().file) beside.push_back(fault);
      }
      try {
        SwitchedCopies(tree.Reader(), beside);
        return true;
      } catch (const DataError&) {
        return false;
      }
    };
    while (true) {
      std::vector<PlacedFault> faults = DrawFaults(
          places, options_.faults, list_, check, stand_together,
          [&](const PlacedFault& fault) { return Describe(tree, fault); });
      Say(fmt::format("building the tests with {} faults ...", faults.size()));
      const std::map<std::string, std::string> broken = build.Make(faults);
      ThrowIfStopped();
      if (broken.empty()) return faults;
      for (const PlacedFault& fault : faults) {
        const auto culprit = broken.find(fault.id);
        if (culprit == broken.end()) continue;
        Say("  breaks the build: " + fault.id + ": " + culprit->second);
        MeasuredFault sampled = Describe(tree, fault);
        sampled.fate = Fate::kBreaksTheBuild;
        sampled.reason = culprit->second;
        list_.Add(sampled);
      }
    }
  }

  // `ids`: the faults for which a run reports whether they are reached.
  KillOptions Kills(const std::vector<std::string>& ids) const {
    KillOptions options;
    options.jobs = options_.jobs;
    options.stop = Stop();
    options.run = [this, ids](const Suite& suite, const std::string& id,
                              double timeout) {
      return RunSuite(suite, id, timeout, scratch_, Stop(), ids);
    };
    return options;
  }

  // The result of each suite without any fault, and what it reaches; kept for a
  // run that goes on with the same `inputs`.
  std::map<std::string, CleanRun> CleanRuns(
      const std::vector<Suite>& suites, const std::vector<PlacedFault>& faults,
      const std::string& inputs) {
    std::vector<std::string> ids;
    std::string key = inputs;
    for (const PlacedFault& fault : faults) {
      ids.push_back(fault.id);
      key += fault.id + "\n";
    }
    const fs::path file =
        folder_ / ("clean-" + Sha256Hex(key).substr(0, 16) + ".jsonl");
    std::map<std::string, CleanRun> clean;
    if (fs::exists(file)) {
      for (const Json& line : ReadJsonLines(file)) {
        clean[line.at("suite")] = {
            .passed = true,
            .seconds = line.at("seconds"),
            .reached = line.at("reached").get<std::set<std::string>>()};
      }
    }
    std::vector<const Suite*> unknown;
    for (const Suite& suite : suites) {
      if (!clean.contains(suite.name)) unknown.push_back(&suite);
    }
    Say(fmt::format("running {} suites without a fault ...", unknown.size()));
    JsonLinesWriter writer(file);
    const auto progress = Progress("suites run");
    size_t done = 0;
    std::vector<std::string> failing;
    RunWithoutFaults(unknown, Kills(ids),
                     [&](const Suite& suite, const CleanRun& run,
                         const std::string& output) {
                       progress(++done, unknown.size());
                       if (!run.passed) {
                         Say(fmt::format("  FAILS WITHOUT A FAULT: {}\n{}",
                                         suite.name, output));
                         failing.push_back(suite.name);
                         return;
                       }
                       writer.Write({{"suite", suite.name},
                                     {"seconds", run.seconds},
                                     {"reached", run.reached}});
                       clean[suite.name] = run;
                     });
    ThrowIfStopped();
    if (!failing.empty()) {
      throw Error(
          ExitCode::kSelfCheck,
          fmt::format(
              "without any fault, {} of {} suites fail: {}. Run "
              "`./bazelw test //...`: what fails there must be mended first; "
              "what passes there is changed by a switch that is off, as where "
              "the two sides of a fault have different types",
              failing.size(), suites.size(), fmt::join(failing, ", ")));
    }
    return clean;
  }

  void Kill(const std::vector<PlacedFault>& faults, const SourceTree& tree,
            Build& build, const std::map<std::string, CleanRun>& clean) {
    std::vector<const PlacedFault*> left;
    for (const PlacedFault& fault : faults) {
      if (list_.Find(fault.id) == nullptr) left.push_back(&fault);
    }
    Say(fmt::format("{} faults, {} of them known; {} suites", faults.size(),
                    faults.size() - left.size(), build.suites().size()));
    size_t done = faults.size() - left.size();
    std::mutex mutex;
    ForAllAndThenAlone(
        left.size(), Kills({}), [&](size_t i, const KillOptions& kill) {
          const PlacedFault& fault = *left[i];
          std::optional<MeasuredFault> result = TryToKill(
              Describe(tree, fault), SuitesFor(fault.id, build.suites(), clean),
              clean, kill);
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

  const SampleOptions& options_;
  const StopSignal& signal_;
  fs::path workspace_;
  fs::path folder_, scratch_;  // of the build, once made
  SampledList list_;
  Part part_;
};

}  // namespace

ExitCode RunSample(const SampleOptions& options, const StopSignal& signal) {
  if (!options.in.empty() && options.list.empty()) {
    throw ConfigError(
        "--in: a seed's own list covers all places; name another list with "
        "--log FILE");
  }
  return Sample(options, signal).Run();
}

}  // namespace softmoe::mutation

// SPDX-License-Identifier: Apache-2.0
//
// run_record_file.cc - kind "run-record":
//
//   /            attrs: margins_sha256
//   /planned/id, key     strings, [planned runs]
//   /planned/diverged    strings: keys, if there are any
//   /corpora/NAME        attrs: json, as in NAME.json
//   /runs/{0000,...}     run_result_file.h; attrs besides: id, key,
//                        training_sha256, num_points
//   /curves/layersL/*    step_table.h: the points of all runs with L layers,
//                        one run after the other; long columns, since only
//                        those are compressed
//   /bench/json          u8: RunRecord::bench, if there is one
//   /miniature, /results recorded_results.h
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "experiments/run/run_record.h"
#include "golden/verdict/recorded_results.h"
#include "trainer/results/run_result_file.h"
#include "trainer/results/step_table.h"
#include "trainer/tokens/prepared_corpus.h"

namespace softmoe::experiments {
namespace {

namespace fs = std::filesystem;
using trainer::StepRecord;

constexpr char kBench[] = "/bench/json";
constexpr char kDiverged[] = "/planned/diverged";

std::string CurvesGroup(int64_t num_layers) {
  return fmt::format("/curves/layers{}", num_layers);
}

// Reads and checks the points of each run in the curves of all runs.
class CurveReader {
 public:
  explicit CurveReader(const Hdf5Reader& file) : file_(file) {}

  std::vector<StepRecord> Next(const RecordedRun& run, int64_t num_points) {
    const int64_t layers = run.result.config.model.num_layers;
    auto [entry, first] = curves_.try_emplace(layers);
    Curve& curve = entry->second;
    if (first) {
      curve.points = trainer::ReadSomeSteps(file_, CurvesGroup(layers), layers);
    }
    const auto left = static_cast<int64_t>(curve.points.size() - curve.next);
    if (num_points < 1 || num_points > left) {
      Refuse(run, fmt::format("{} points of {}", num_points, left));
    }
    const auto begin =
        curve.points.begin() + static_cast<std::ptrdiff_t>(curve.next);
    const std::vector<StepRecord> steps(begin, begin + num_points);
    curve.next += static_cast<size_t>(num_points);
    int64_t last = 0;
    for (const StepRecord& step : steps) {
      if (step.step <= last) {
        Refuse(run, fmt::format("step {} after {}", step.step, last));
      }
      last = step.step;
    }
    if (last != run.result.config.training.steps) {
      Refuse(run, fmt::format("a curve that ends at step {} of {}", last,
                              run.result.config.training.steps));
    }
    return steps;
  }

 private:
  struct Curve {
    std::vector<StepRecord> points;
    size_t next = 0;
  };

  [[noreturn]] void Refuse(const RecordedRun& run, const std::string& what) {
    throw DataError(
        fmt::format("{}: {} has {}", file_.path().string(), run.id, what));
  }

  const Hdf5Reader& file_;
  std::map<int64_t, Curve> curves_;
};

// What a run's group holds besides its result; `num_points` is the number of
// its steps.
template <typename File, typename Run>
void VisitRun(File& file, const std::string& group, Run& run,
              int64_t& num_points) {
  file.Attribute(group, "id", run.id);
  file.Attribute(group, "key", run.key);
  file.Attribute(group, "training_sha256", run.training_sha256);
  file.Attribute(group, "num_points", num_points);
}

RunRecord ReadFile(const fs::path& path) {
  const Hdf5Reader file(path, golden::RunRecordKind());
  RunRecord record;
  record.path = path;
  record.margins_sha256 = file.ReadString("/", "margins_sha256");
  const auto ids = file.ReadDataset<std::string>("/planned/id").values;
  const auto keys = file.ReadDataset<std::string>("/planned/key").values;
  if (ids.size() != keys.size()) {
    throw DataError(fmt::format("{}: /planned has {} ids and {} keys",
                                path.string(), ids.size(), keys.size()));
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    record.planned.push_back({.id = ids[i], .key = keys[i]});
  }
  if (file.Has(kDiverged)) {
    const auto diverged = file.ReadDataset<std::string>(kDiverged).values;
    record.diverged = {diverged.begin(), diverged.end()};
  }
  for (const std::string& name : file.Children("/corpora")) {
    record.corpora[name] = trainer::ParsePreparedCorpus(
        file.ReadString("/corpora/" + name, "json"), path);
  }
  if (file.Has(kBench)) file.Bytes(kBench, record.bench);
  CurveReader curves(file);
  for (const std::string& name : file.Children("/runs")) {
    const std::string group = "/runs/" + name;
    RecordedRun run;
    int64_t num_points = 0;
    VisitRun(file, group, run, num_points);
    run.result = trainer::ReadResultGroup(file, group);
    if (!run.key.ends_with("/" + ConfigHash(run.result.identity.config))) {
      throw DataError(fmt::format("{}: {} has another configuration than {}",
                                  path.string(), run.id, run.key));
    }
    run.result.steps = curves.Next(run, num_points);
    record.runs.push_back(std::move(run));
  }
  CheckRuns(record);
  return record;
}

}  // namespace

void WriteRunRecord(const RunRecord& record) {
  CheckRuns(record);
  Hdf5Writer file(record.path, golden::RunRecordKind());
  file.WriteAttribute("/", "margins_sha256", record.margins_sha256);
  std::vector<std::string> ids, keys;
  for (const PlannedRun& plan : record.planned) {
    ids.push_back(plan.id);
    keys.push_back(plan.key);
  }
  file.WriteDataset("/planned/id", ids);
  file.WriteDataset("/planned/key", keys);
  if (!record.diverged.empty()) {
    file.WriteDataset(kDiverged,
                      std::vector<std::string>(record.diverged.begin(),
                                               record.diverged.end()));
  }
  file.CreateGroup("/corpora");
  for (const auto& [name, corpus] : record.corpora) {
    file.CreateGroup("/corpora/" + name);
    file.WriteAttribute("/corpora/" + name, "json",
                        trainer::PreparedCorpusText(corpus));
  }
  file.CreateGroup("/runs");
  std::map<int64_t, std::vector<StepRecord>> curves;
  for (size_t i = 0; i < record.runs.size(); ++i) {
    const RecordedRun& run = record.runs[i];
    const std::string group = fmt::format("/runs/{:04}", i);
    trainer::WriteResultGroup(run.result, group, file);
    auto num_points = static_cast<int64_t>(run.result.steps.size());
    VisitRun(file, group, run, num_points);
    std::vector<StepRecord>& all = curves[run.result.config.model.num_layers];
    all.insert(all.end(), run.result.steps.begin(), run.result.steps.end());
  }
  for (const auto& [num_layers, points] : curves) {
    trainer::WriteStepTable(points, num_layers, CurvesGroup(num_layers), file);
  }
  if (!record.bench.empty()) file.Bytes(kBench, record.bench);
  if (!record.results.documents.empty()) {
    try {
      golden::WriteRecordedResults(record.results, file);
    } catch (const EnvironmentError& error) {  // from a temporary folder
      throw EnvironmentError(fmt::format("{}: not recorded: {}",
                                         record.path.string(), error.what()));
    }
  }
  file.Commit();
}

RunRecord ReadRunRecord(const fs::path& path) {
  try {
    return ReadFile(path);
  } catch (const DataError& error) {
    throw DataError(fmt::format(
        "{} (A record is never repaired: get it from version control again, or "
        "`record` the finished runs into another file.)",
        error.what()));
  }
}

RunRecord OpenRunRecord(const fs::path& path) {
  if (fs::exists(path)) return ReadRunRecord(path);
  RunRecord record;
  record.path = path;
  return record;
}

}  // namespace softmoe::experiments

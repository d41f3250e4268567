// SPDX-License-Identifier: Apache-2.0
//
//   /miniature/json   u8 [bytes]: MiniatureResults as JSON, with all digits
//   /results/NAME     u8 [bytes]: the file that WriteDocument writes
//
// Stored as bytes, because one long dataset is compressed.
#include "golden/verdict/recorded_results.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/temporary_folder.h"
#include "core/hdf5/hdf5_envelope.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kMiniature[] = "/miniature/json";
constexpr char kResults[] = "/results";

// Documents are files, also on their way into another one and out of it.
fs::path ScratchPlace() { return fs::temp_directory_path() / "softmoe-record"; }

void WriteBytes(const std::string& path, const std::string& bytes,
                Hdf5Writer& file) {
  file.WriteDataset(path, std::vector<uint8_t>(bytes.begin(), bytes.end()));
}

std::string ReadBytes(const Hdf5Reader& file, const std::string& path) {
  const auto bytes = file.ReadDataset<uint8_t>(path).values;
  return {bytes.begin(), bytes.end()};
}

Json RunJson(const MiniatureRun& run) {
  Json json = {{"row", run.row},
               {"corpus", run.corpus},
               {"seed", run.seed},
               {"loss", run.loss},
               {"infer_ae", run.infer_ae},
               {"mean_cap", run.mean_cap},
               {"train_ae", run.train_ae},
               {"load_variance", run.load_variance},
               {"load_balance", run.load_balance}};
  if (run.hellaswag) json["hellaswag"] = *run.hellaswag;
  for (const AllocationPoint& point : run.allocation) {
    json["allocation"].push_back(
        {point.step, point.allocation, point.learning_rate_sum});
  }
  for (const TauPoint& at : run.at_tau) {
    json["at_tau"].push_back({at.factor, at.infer_ae, at.loss});
  }
  return json;
}

MiniatureRun ParseRun(const Json& json) {
  MiniatureRun run;
  json.at("row").get_to(run.row);
  json.at("corpus").get_to(run.corpus);
  json.at("seed").get_to(run.seed);
  json.at("loss").get_to(run.loss);
  json.at("infer_ae").get_to(run.infer_ae);
  json.at("mean_cap").get_to(run.mean_cap);
  json.at("train_ae").get_to(run.train_ae);
  json.at("load_variance").get_to(run.load_variance);
  json.at("load_balance").get_to(run.load_balance);
  if (json.contains("hellaswag")) run.hellaswag = json["hellaswag"];
  for (const Json& point : json.value("allocation", Json::array())) {
    run.allocation.push_back({point.at(0), point.at(1), point.at(2)});
  }
  for (const Json& at : json.value("at_tau", Json::array())) {
    run.at_tau.push_back({at.at(0), at.at(1), at.at(2)});
  }
  return run;
}

std::string MiniatureText(const MiniatureResults& results) {
  Json json = {{"runs", Json::array()}, {"throughput", Json::array()}};
  for (const MiniatureRun& run : results.runs) {
    json["runs"].push_back(RunJson(run));
  }
  for (const ThroughputSamples& samples : results.throughput) {
    json["throughput"].push_back(
        {samples.active_experts, samples.tokens_per_second, samples.router});
  }
  return json.dump();
}

MiniatureResults ParseMiniature(const std::string& text, const fs::path& path) {
  try {
    const Json json = Json::parse(text);
    MiniatureResults results;
    for (const Json& run : json.at("runs")) {
      results.runs.push_back(ParseRun(run));
    }
    for (const Json& samples : json.at("throughput")) {
      results.throughput.push_back(
          {samples.at(0), samples.at(1), samples.at(2)});
    }
    return results;
  } catch (const Json::exception& error) {
    throw DataError(
        fmt::format("{}: '{}' is not what this program reads ({}); `record` "
                    "the runs anew",
                    path.string(), kMiniature, error.what()));
  }
}

}  // namespace

void WriteRecordedResults(const RecordedResults& results, Hdf5Writer& file) {
  WriteBytes(kMiniature, MiniatureText(results.miniature), file);
  file.CreateGroup(kResults);
  const TemporaryFolder folder(ScratchPlace());
  for (const auto& [name, document] : results.documents) {
    WriteDocument(document, folder.path() / name);
    WriteBytes(fmt::format("{}/{}", kResults, name),
               ReadWholeFile(folder.path() / name), file);
  }
}

bool IsRunRecord(const fs::path& path) {
  return SaysKind(path, RunRecordKind().name);
}

RecordedResults ReadRecordedResults(const fs::path& path) {
  const Hdf5Reader file(path, RunRecordKind());
  if (!file.Has(kResults) || file.version() < RunRecordKind().version) {
    throw DataError(fmt::format(
        "{}: lacks what is judged, as records before version {} do; `./bazelw "
        "run //:grid -- record GRID --renew --to {}` adds it",
        path.string(), RunRecordKind().version, path.string()));
  }
  RecordedResults results;
  results.margins_sha256 = file.ReadString("/", "margins_sha256");
  results.miniature = ParseMiniature(ReadBytes(file, kMiniature), path);
  const TemporaryFolder folder(ScratchPlace());
  for (const std::string& name : file.Children(kResults)) {
    WriteFileAtomically(folder.path() / name,
                        ReadBytes(file, fmt::format("{}/{}", kResults, name)));
    results.documents.emplace_back(name, ReadDocument(folder.path() / name));
  }
  return results;
}

}  // namespace softmoe::golden

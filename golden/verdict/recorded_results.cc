// SPDX-License-Identifier: Apache-2.0
//
//   /miniature/json   u8 [bytes]: MiniatureResults as JSON, with all digits
//   /results/NAME     u8 [bytes]: the file that WriteDocument writes
//
// Stored as bytes, because one long dataset is compressed.
#include "golden/verdict/recorded_results.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/files/temporary_folder.h"
#include "core/hdf5/hdf5_envelope.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr char kMiniature[] = "/miniature/json";
constexpr char kResults[] = "/results";

// Documents pass through files on their way into a record and out of it.
fs::path ScratchPlace() { return TemporaryParent() / "softmoe-record"; }

// Visits what the object of every run holds; `Run` may be const.
template <typename Run, typename Visit>
void VisitRun(Run& run, Visit visit) {
  visit("row", run.row);
  visit("corpus", run.corpus);
  visit("seed", run.seed);
  visit("loss", run.loss);
  visit("infer_ae", run.infer_ae);
  visit("mean_cap", run.mean_cap);
  visit("train_ae", run.train_ae);
  visit("load_variance", run.load_variance);
  visit("load_balance", run.load_balance);
}

// Points and samples are arrays of their members.
template <typename Point>
void Add(const std::vector<Point>& points, Json& list) {
  for (const auto& [first, second, third] : points) {
    list.push_back({first, second, third});
  }
}
template <typename Point>
void Take(const Json& list, std::vector<Point>& points) {
  for (const Json& array : list) {
    auto& [first, second, third] = points.emplace_back();
    array.at(0).get_to(first);
    array.at(1).get_to(second);
    array.at(2).get_to(third);
  }
}

Json RunJson(const MiniatureRun& run) {
  Json json;
  VisitRun(run,
           [&](const char* name, const auto& value) { json[name] = value; });
  if (run.hellaswag) json["hellaswag"] = *run.hellaswag;
  if (!run.allocation.empty()) Add(run.allocation, json["allocation"]);
  if (!run.at_tau.empty()) Add(run.at_tau, json["at_tau"]);
  return json;
}

MiniatureRun ParseRun(const Json& json) {
  MiniatureRun run;
  VisitRun(run,
           [&](const char* name, auto& value) { json.at(name).get_to(value); });
  if (json.contains("hellaswag")) run.hellaswag = json["hellaswag"];
  Take(json.value("allocation", Json::array()), run.allocation);
  Take(json.value("at_tau", Json::array()), run.at_tau);
  return run;
}

// A run that diverged has NaN, which JsonLine writes as a text.
std::string MiniatureText(const MiniatureResults& results) {
  Json json = {{"runs", Json::array()}, {"throughput", Json::array()}};
  for (const MiniatureRun& run : results.runs) {
    json["runs"].push_back(RunJson(run));
  }
  Add(results.throughput, json["throughput"]);
  return JsonLine(json);
}

MiniatureResults ParseMiniature(const std::string& text, const fs::path& path) {
  try {
    const Json json = WithNonFinite(ParseJsonObject(text));
    MiniatureResults results;
    for (const Json& run : json.at("runs")) {
      results.runs.push_back(ParseRun(run));
    }
    Take(json.at("throughput"), results.throughput);
    return results;
  } catch (const Json::exception& error) {
    throw DataError(
        fmt::format("{}: '{}' is not what this program reads ({}); `record` "
                    "the runs anew",
                    path.string(), kMiniature, error.what()));
  }
}

// Reads the document in these bytes of the record by way of a file at
// `scratch`, which messages do not name: it is gone by the time they are read.
Document ReadInner(const fs::path& scratch, const std::string& bytes,
                   const fs::path& record) {
  WriteFileAtomically(scratch, bytes);
  try {
    return ReadDocument(scratch);
  } catch (const DataError& error) {
    const std::string inner = fmt::format(
        "{}: {}/{}", record.string(), kResults, scratch.filename().string());
    std::string message = error.what();
    const size_t at = message.find(scratch.string());
    if (at == std::string::npos) throw DataError(inner + ": " + message);
    throw DataError(message.replace(at, scratch.string().size(), inner));
  }
}

}  // namespace

void WriteRecordedResults(const RecordedResults& results, Hdf5Writer& file) {
  file.Bytes(kMiniature, MiniatureText(results.miniature));
  file.CreateGroup(kResults);
  const TemporaryFolder folder(ScratchPlace());
  for (const auto& [name, document] : results.documents) {
    WriteDocument(document, folder.path() / name);
    file.Bytes(fmt::format("{}/{}", kResults, name),
               ReadWholeFile(folder.path() / name));
  }
}

bool IsRunRecord(const fs::path& path) {
  return SaysKind(path, RunRecordKind().name);
}

RecordedResults ReadRecordedResults(const fs::path& path) {
  const Hdf5Reader file(path, RunRecordKind());
  if (!file.Has(kResults)) {
    throw DataError(
        fmt::format("{}: lacks what is judged; `./bazelw run //:grid -- record "
                    "GRID --renew --to {}` adds it",
                    path.string(), path.string()));
  }
  RecordedResults results;
  results.margins_sha256 = file.ReadString("/", "margins_sha256");
  std::string bytes;
  file.Bytes(kMiniature, bytes);
  results.miniature = ParseMiniature(bytes, path);
  const TemporaryFolder folder(ScratchPlace());
  for (const std::string& name : file.Children(kResults)) {
    file.Bytes(fmt::format("{}/{}", kResults, name), bytes);
    results.documents.emplace_back(
        name, ReadInner(folder.path() / name, bytes, path));
  }
  return results;
}

}  // namespace softmoe::golden

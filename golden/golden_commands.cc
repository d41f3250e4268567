// SPDX-License-Identifier: Apache-2.0
#include "golden/golden_commands.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/comparator.h"
#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/file_error.h"
#include "core/files/json_lines.h"
#include "core/files/paths.h"
#include "core/files/replacing.h"
#include "core/text/markup.h"
#include "core/text/suggestion.h"
#include "golden/document/document.h"
#include "golden/document/imported_results.h"
#include "golden/gpu_runs/gpu_runs.h"
#include "golden/paper/document_report.h"
#include "golden/paper/paper_arithmetic.h"
#include "golden/paper/protocol_report.h"
#include "golden/verdict/miniature.h"
#include "golden/verdict/miniature_judge.h"
#include "golden/verdict/miniature_report.h"
#include "golden/verdict/recorded_results.h"
#include "golden/verdict/regime.h"
#include "golden/verdict/regime_judge.h"
#include "golden/verdict/regime_report.h"
#include "golden/verdict/verdict.h"
#include "golden/verdict/verdict_report.h"

namespace softmoe::golden {
namespace {

std::filesystem::path PathOf(const std::string& name) {
  return name == "paper" ? RunfilePath("golden/paper/paper.h5")
                         : UserPath(name);
}

Document Load(const std::string& name) { return ReadDocument(PathOf(name)); }

const Table* FindTable(const Document& document, const std::string& id) {
  if (id.empty()) return nullptr;
  const Table* table = document.FindTable(id);
  if (table != nullptr) return table;
  std::vector<std::string> known;
  for (const Table& candidate : document.tables) known.push_back(candidate.id);
  throw ConfigError("no table '" + id + "'; " + Suggestion(id, known));
}

std::set<Status> Allowed(const std::vector<std::string>& names) {
  std::set<Status> allowed;
  for (const std::string& name : names) {
    if (name == "inconclusive") {
      allowed.insert({Status::kInconclusive, Status::kUnsupported});
    } else if (name == "not_comparable") {
      allowed.insert(Status::kNotComparable);
    } else if (name == "mistrusted") {
      allowed.insert(Status::kMistrusted);
    }
  }
  return allowed;
}

// "of version 0123456789ab, on v3, v4": the program and instruction sets that
// trained the runs of a document of ours; "" if it does not say.
std::string TrainedBy(const Provenance& made) {
  if (made.git_commit.empty()) return "";
  const std::string text =
      "         of version " + made.git_commit + ", on " + made.isa + "\n";
  return made.git_commit.find(", ") == std::string::npos
             ? text
             : text +
                   "         more than one version, so rows may differ "
                   "(CHANGELOG.md)\n";
}

// A comparison: its text, its JSON, its most severe status, and the most severe
// one that is not allowed, which decides the exit code.
struct Comparison {
  std::string text;
  nlohmann::ordered_json json;
  Status overall = Status::kPass, status = Status::kPass;
};

Comparison CompareDocument(const Document& results, const Document& golden,
                           const std::set<Status>& allowed) {
  const Verdicts verdicts = Judge(results, golden);
  return {.text = "results  " + results.provenance.source + "\n" +
                  TrainedBy(results.provenance) + "golden   " +
                  golden.provenance.source + "\n" +
                  TrainedBy(golden.provenance) + "\n" +
                  DescribeVerdicts(verdicts, allowed),
          .json = VerdictsJson(verdicts, allowed),
          .overall = verdicts.overall(),
          .status = verdicts.overall(allowed)};
}

// A record of runs and its verdicts: on the experiment regime, or on the claims
// in miniature (by the present definitions, or by those in their history under
// which it was recorded); none for another grid.
struct JudgedRecord {
  RecordedResults recorded;
  std::optional<MiniatureVerdicts> verdicts;
  std::optional<RegimeVerdicts> regime;
};

JudgedRecord ReadAndJudge(const std::filesystem::path& path) {
  const RegimeDefinitions regime = LoadRegime();
  JudgedRecord judged{
      .recorded = ReadRecordedResults(path), .verdicts = {}, .regime = {}};
  const std::string& hash = judged.recorded.margins_sha256;
  const auto& runs = judged.recorded.miniature.runs;
  if (hash == regime.Hash() || HasRegimeRuns(regime, runs)) {
    RequireSameRegime(regime, hash, path.string());
    judged.regime = JudgeRegime(regime, runs);
    return judged;
  }
  const MiniatureClaims claims = LoadMiniatureClaims();
  const EarlierClaims* recorded_under =
      RecordedUnder(claims, hash, path.string());
  if (!runs.empty()) {
    judged.verdicts =
        JudgeMiniature(claims, judged.recorded.miniature, recorded_under);
  }
  return judged;
}

// Judges a record: its documents, then the claims in miniature or the
// experiment regime, which affect the exit code only if they are mistrusted.
Comparison CompareRecord(const std::filesystem::path& path,
                         const Document& golden,
                         const std::set<Status>& allowed) {
  const auto [recorded, verdicts, regime] = ReadAndJudge(path);
  Comparison all;
  const auto count = [&](Status status) {
    all.overall = Worse(all.overall, status);
    if (!allowed.contains(status)) all.status = Worse(all.status, status);
  };
  for (const auto& [name, document] : recorded.documents) {
    const Comparison one = CompareDocument(document, golden, allowed);
    all.text += one.text + "\n";
    all.overall = Worse(all.overall, one.overall);
    all.status = Worse(all.status, one.status);
    all.json["results"][name] = one.json;
  }
  bool mistrusted = false;
  if (regime) {
    mistrusted = regime->mistrusted();
    all.text += DescribeRegime(*regime);
    all.json["regime"] = RegimeJson(*regime);
  } else if (verdicts) {
    mistrusted = !verdicts->equal_seeds.empty();
    all.text += DescribeMiniature(*verdicts);
    all.json["claims_in_miniature"] = MiniatureJson(*verdicts);
  }
  if (recorded.documents.empty() && recorded.miniature.runs.empty()) {
    all.text += "The record holds no results: nothing to compare.\n";
    count(Status::kNotComparable);
  }
  if (mistrusted) count(Status::kMistrusted);
  all.json["overall"] = StatusName(all.overall);
  all.json["exit_code"] = static_cast<int>(ExitCodeOf(all.status));
  return all;
}

// Prints `tables` or, given `into`, replaces the part of that document that
// `command` writes.
void Publish(const std::string& tables, const std::string& command,
             const std::string& into) {
  if (into.empty()) {
    std::fputs(tables.c_str(), stdout);
    return;
  }
  const std::filesystem::path path = UserPath(into);
  WriteFileAtomically(
      path, WithGeneratedPart(ReadWholeFile(path),
                              "./bazelw run //:golden -- " + command, tables,
                              path.string()));
}

// Throws ConfigError if `into` is given and `record` is not golden/runs/`name`,
// whose tables that document holds.
void RequireOwnPart(const std::filesystem::path& record,
                    const std::string& name, const std::string& into) {
  const std::string own = "golden/runs/" + name;
  if (into.empty() ||
      std::filesystem::absolute(record).lexically_normal().string().ends_with(
          "/" + own)) {
    return;
  }
  throw ConfigError(record.string() + " is not " + own +
                    ", the record whose tables " + into +
                    " holds; leave out --into to print the tables instead");
}

// Writes both files to the given paths, which must be free, or prints them.
ExitCode WriteTemplates(const ImportOptions& options) {
  const Document golden = Load(options.golden);
  const ImportTemplate files =
      MakeImportTemplate(golden, *FindTable(golden, options.of_table));
  const std::pair<std::string, const std::string&> wanted[] = {
      {options.values, files.values}, {options.set_up, files.set_up}};
  if (!options.values.empty() && !options.set_up.empty() &&
      IsSameFile(UserPath(options.values), UserPath(options.set_up))) {
    throw ConfigError(options.values +
                      " cannot hold both files; give two names");
  }
  for (const auto& [name, text] : wanted) {
    if (!name.empty() && std::filesystem::exists(UserPath(name))) {
      throw ConfigError(name + " already exists; give another name");
    }
  }
  for (const auto& [name, text] : wanted) {
    if (name.empty()) {
      std::printf("%s\n", text.c_str());
    } else {
      WriteFileAtomically(UserPath(name), text);
      std::printf("wrote %s\n", name.c_str());
    }
  }
  return ExitCode::kDone;
}

AcceptedRuns Accepted(const GpuOptions& options) {
  return options.of_tests ? AcceptedRuns::kOfTests : AcceptedRuns::kOfDevices;
}

}  // namespace

ExitCode Show(const ShowOptions& options) {
  const Document document = Load(options.file);
  const Table* table = FindTable(document, options.table);
  std::string text;
  const bool parts = options.cells || options.notes || options.arithmetic ||
                     options.claims || options.protocol;
  if (table != nullptr) {
    text = DescribeTable(document, *table);
  } else if (!parts) {
    text = DescribeDocument(document);
    for (const Table& each : document.tables) {
      text += "\n" + DescribeTable(document, each);
    }
  }
  auto add = [&text](const std::string& part) {
    text += (text.empty() ? "" : "\n") + part;
  };
  if (options.cells) add(DescribeCells(document, table));
  if (options.notes) add(DescribeNotes(document, table));
  if (options.claims) add(DescribeClaims(document, table));
  if (options.arithmetic) add(DescribeArithmetic(CheckArithmetic(document)));
  if (options.protocol) add(DescribeProtocol(ReadProtocol(document)));
  std::fputs(text.c_str(), stdout);
  return ExitCode::kDone;
}

ExitCode Compare(const CompareOptions& options) {
  const std::filesystem::path path = UserPath(options.results);
  if (!options.json.empty()) {
    RefuseReplacing("--json", UserPath(options.json),
                    {PathOf(options.results), PathOf(options.golden)});
  }
  const Document golden = Load(options.golden);
  const std::set<Status> allowed = Allowed(options.allow);
  const Comparison comparison =
      IsRunRecord(path)
          ? CompareRecord(path, golden, allowed)
          : CompareDocument(Load(options.results), golden, allowed);
  std::fputs(comparison.text.c_str(), stdout);
  const ExitCode verdict = ExitCodeOf(comparison.status);
  if (options.json.empty()) return verdict;
  try {
    WriteFileAtomically(UserPath(options.json),
                        JsonText(comparison.json, 2) + "\n");
  } catch (const EnvironmentError& error) {
    // This error must not hide a worse verdict.
    if (verdict == ExitCode::kDone) throw;
    std::fflush(stdout);
    std::fprintf(stderr, "golden: error: %s\n", error.what());
  }
  return verdict;
}

ExitCode ShowClaimsTable(const ClaimsOptions& options) {
  const std::filesystem::path path = UserPath(options.record);
  const auto [recorded, verdicts, regime] = ReadAndJudge(path);
  if (regime) {
    // A separate part: a document may hold both.
    RequireOwnPart(path, "regime.h5", options.into);
    Publish(RegimeMarkdown(*regime), "claims-table golden/runs/regime.h5",
            options.into);
    return ExitCode::kDone;
  }
  if (!verdicts) {
    throw DataError(
        path.string() +
        ": holds no run of the mini grid, and the claims in miniature are "
        "judged on no other; give a record of `grid record mini`");
  }
  RequireOwnPart(path, "mini.h5", options.into);
  Publish(MiniatureMarkdown(*verdicts), "claims-table", options.into);
  return ExitCode::kDone;
}

ExitCode Import(const ImportOptions& options) {
  if (!options.of_table.empty()) return WriteTemplates(options);
  for (const auto& [name, value] :
       {std::pair{"THEIRS.csv", options.values},
        std::pair{"--set SETUP.toml", options.set_up},
        std::pair{"--out RESULTS.h5", options.out}}) {
    if (value.empty()) {
      throw ConfigError(
          std::string(name) +
          " is missing; `golden import --template TABLE` prints the files "
          "that are needed");
    }
  }
  RefuseReplacing("--out", UserPath(options.out),
                  {UserPath(options.values), UserPath(options.set_up),
                   PathOf(options.golden)});
  const auto read = [](const std::string& name) {
    return NamedText{name, ReadSmallText(UserPath(name))};
  };
  const Document results = ImportResults(
      read(options.values), read(options.set_up), Load(options.golden));
  WriteDocument(results, UserPath(options.out));
  std::printf("wrote %s: %zu rows of %s\n", options.out.c_str(),
              results.tables[0].rows.size(), results.tables[0].id.c_str());
  return ExitCode::kDone;
}

ExitCode ImportGpuRun(const GpuOptions& options) {
  const std::filesystem::path from = UserPath(options.record);
  if (!options.to.empty()) {
    RefuseReplacing("--to", UserPath(options.to), {from});
  }
  const GpuRecord record = ReadGpuRecord(from);
  RequireGolden(record, Accepted(options), from.string());
  std::filesystem::path to;
  const char* const workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (!options.to.empty()) {
    to = UserPath(options.to);
  } else if (workspace != nullptr && !options.of_tests) {
    to = std::filesystem::path(workspace) / "golden/gpu_runs" /
         (GpuRunName(record) + ".h5");
  } else {
    throw ConfigError(
        "no workspace to keep the record in; use ./bazelw run //:golden, or "
        "say with --to where it goes");
  }
  WriteGpuRun(to, record);
  std::printf("wrote %s\n", to.c_str());
  return ExitCode::kDone;
}

ExitCode ShowGpuTable(const GpuOptions& options) {
  const std::filesystem::path folder =
      options.runs.empty()
          ? RunfilePath("golden/gpu_runs/README.md").parent_path()
          : UserPath(options.runs);
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".h5") files.push_back(entry->path());
  }
  if (error) throw FileError("read", folder, error.value());
  std::ranges::sort(files);
  std::vector<GpuRecord> runs;
  std::map<std::string, std::filesystem::path> file_of;  // by their names
  for (const std::filesystem::path& file : files) {
    runs.push_back(ReadGpuRun(file));
    RequireGolden(runs.back(), Accepted(options), file.string());
    const auto [first, is_new] =
        file_of.try_emplace(GpuRunName(runs.back()), file);
    if (!is_new) {
      throw DataError(file.string() + ": the same record as " +
                      first->second.string() + "; remove one of them");
    }
  }
  const std::string table = GpuTable(
      runs, ParseOperationSources(
                ReadWholeFile(RunfilePath("bazel/operation_sources.txt"))));
  Publish(table, "gpu-table", options.into);
  return ExitCode::kDone;
}

}  // namespace softmoe::golden

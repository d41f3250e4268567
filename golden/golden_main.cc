// SPDX-License-Identifier: Apache-2.0
//
// //:golden - shows documents of golden numbers and judges results by them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
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
#include "golden/verdict/regime_report.h"
#include "golden/verdict/verdict.h"
#include "golden/verdict/verdict_report.h"

namespace {

using softmoe::ExitCode;
using softmoe::Status;
using softmoe::golden::Document;
using softmoe::golden::Table;

constexpr char kDescription[] =
    "Golden numbers: the paper's tables as intervals, with what is wrong with "
    "them, and verdicts on results of our own.";

constexpr char kExamples[] = R"(
Examples:
  golden show
      the paper's tables, as printed; '*' is bold, '!' an impossible percentage
  golden show --table tau_ablation --notes
      one table with the remarks on its cells
  golden show --arithmetic
      which of the paper's numbers disagree with others of its numbers
  golden show --protocol
      how many experts its routers would activate if scores kept the spread with
      which they are drawn, beside the numbers that it prints
  golden compare runs/paper/results.h5
      verdicts on what `grid run` measured, against the paper
  golden compare golden/runs/mini.h5
      of runs that `grid record` kept, with verdicts on the paper's claims in
      miniature: rows against each other, no reproduction
  golden compare golden/runs/regime.h5
      the same of the experiment regime: is soft routing better than sparse
      routing at equal active experts?
  golden compare new.h5 old.h5 --json verdicts.json
      against earlier results of our own
  golden claims-table golden/runs/mini.h5 --into golden/RESULTS.md
      the same claims as tables of a document
  golden import --template main_results theirs.csv --set setup.toml
      the two files in which to write somebody else's numbers and set-up
  golden import theirs.csv --set setup.toml --out results.h5
      makes of them what `golden compare results.h5` judges
  golden import-gpu-run gpu_record.jsonl
      keeps what run_all.sh found on a machine with a GPU, in golden/gpu_runs
  golden gpu-table --into property_tests/gpu/README.md
      which operations have been verified on a device, of these records

Conformance vectors (inputs, cotangents, expected outputs, gradients and bounds
of an operation, in HDF5, for other frameworks) need the reference, which
this program must not contain: ./bazelw run //:verify -- export-vectors,
check-vectors.

Verdicts:
  PASS            equivalent: the confidence interval of the difference lies
                  within the margin, which was fixed before any run
  FAIL            it is beyond the margin at 5 %, both tails counted, also
                  after Holm's correction; or a run diverged; or an exact
                  number is another, or differs between runs
  INCONCLUSIVE    the evidence does not decide; says how many runs would
  UNSUPPORTED     the results have no value for it; also whole rows of a golden
                  that is not the paper
  NOT_COMPARABLE  the set-up differs in something that the golden states, or
                  the column is defined otherwise, or in another unit
  MISTRUSTED      decided, but all runs gave the same bits: no evidence

Exit codes: 0 all PASS (of the paper's rows, those that the results have); 1 a
FAIL; 2 usage, or a file that is not ours, damaged, or of another version; 3
NOT_COMPARABLE; 4 INCONCLUSIVE or UNSUPPORTED; 5 a file is missing; 7
MISTRUSTED. The worst counts, in the order 1, 7, 3, 4, 0.
File format: golden/FORMAT.md.)";

struct ShowOptions {
  std::string file = "paper", table;
  bool cells = false, notes = false, arithmetic = false, claims = false;
  bool protocol = false;
};

struct CompareOptions {
  std::string results, golden = "paper", json;
  std::vector<std::string> allow;
};

Document Load(const std::string& name) {
  return softmoe::golden::ReadDocument(
      name == "paper" ? softmoe::RunfilePath("golden/paper/paper.h5")
                      : softmoe::UserPath(name));
}

const Table* FindTable(const Document& document, const std::string& id) {
  if (id.empty()) return nullptr;
  const Table* table = document.FindTable(id);
  if (table != nullptr) return table;
  std::vector<std::string> known;
  for (const Table& candidate : document.tables) known.push_back(candidate.id);
  throw softmoe::ConfigError("no table '" + id + "'; " +
                             softmoe::Suggestion(id, known));
}

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

// "of version 0123456789ab, on v3, v4": what trained the runs of a document of
// ours, and where; "" if it does not say.
std::string TrainedBy(const softmoe::golden::Provenance& made) {
  if (made.git_commit.empty()) return "";
  const std::string text =
      "         of version " + made.git_commit + ", on " + made.isa + "\n";
  return made.git_commit.find(", ") == std::string::npos
             ? text
             : text +
                   "         more than one version: rows may differ by it "
                   "(CHANGELOG.md)\n";
}

// A comparison: its text, its JSON, its most severe status, and that of what is
// not allowed, which decides the exit code.
struct Comparison {
  std::string text;
  nlohmann::ordered_json json;
  Status overall = Status::kPass, status = Status::kPass;
};

Comparison CompareDocument(const Document& results, const Document& golden,
                           const std::set<Status>& allowed) {
  const softmoe::golden::Verdicts verdicts =
      softmoe::golden::Judge(results, golden);
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
// in miniature, by these definitions or ones in their history; none for another
// grid.
struct JudgedRecord {
  softmoe::golden::RecordedResults recorded;
  std::optional<softmoe::golden::MiniatureVerdicts> verdicts;
  std::optional<softmoe::golden::RegimeVerdicts> regime;
};

JudgedRecord ReadRecord(const std::filesystem::path& path) {
  using namespace softmoe::golden;  // NOLINT: a main
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
// experiment regime, which affect the exit code only if they are not to be
// trusted.
Comparison CompareRecord(const std::filesystem::path& path,
                         const Document& golden,
                         const std::set<Status>& allowed) {
  using namespace softmoe::golden;  // NOLINT: a main
  const auto [recorded, verdicts, regime] = ReadRecord(path);
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

ExitCode Compare(const CompareOptions& options) {
  const std::filesystem::path path = softmoe::UserPath(options.results);
  const Document golden = Load(options.golden);
  const std::set<Status> allowed = Allowed(options.allow);
  const Comparison comparison =
      softmoe::golden::IsRunRecord(path)
          ? CompareRecord(path, golden, allowed)
          : CompareDocument(Load(options.results), golden, allowed);
  std::fputs(comparison.text.c_str(), stdout);
  if (!options.json.empty()) {
    softmoe::WriteFileAtomically(softmoe::UserPath(options.json),
                                 comparison.json.dump(2) + "\n");
  }
  return softmoe::golden::ExitCodeOf(comparison.status);
}

// Prints `tables` or, given `into`, replaces what `command` wrote into that
// document before.
void Publish(const std::string& tables, const std::string& command,
             const std::string& into) {
  if (into.empty()) {
    std::fputs(tables.c_str(), stdout);
    return;
  }
  const std::filesystem::path path = softmoe::UserPath(into);
  softmoe::WriteFileAtomically(
      path, softmoe::WithGeneratedPart(softmoe::ReadWholeFile(path),
                                       "./bazelw run //:golden -- " + command,
                                       tables, path.string()));
}

struct ClaimsOptions {
  std::string record, into;
};

// Throws ConfigError if the tables of `record` are to go into a document's part
// for those of another one, golden/runs/`name`.
void RequireOwnPart(const std::filesystem::path& record,
                    const std::string& name, const std::string& into) {
  const std::string own = "golden/runs/" + name;
  if (into.empty() ||
      std::filesystem::absolute(record).lexically_normal().string().ends_with(
          "/" + own)) {
    return;
  }
  throw softmoe::ConfigError(record.string() + " is not " + own +
                             ", whose tables " + into +
                             " has; leave out --into to print these");
}

ExitCode ShowClaimsTable(const ClaimsOptions& options) {
  using namespace softmoe::golden;  // NOLINT: a main
  const std::filesystem::path path = softmoe::UserPath(options.record);
  const auto [recorded, verdicts, regime] = ReadRecord(path);
  if (regime) {
    // A separate part: a document may hold both.
    RequireOwnPart(path, "regime.h5", options.into);
    Publish(RegimeMarkdown(*regime), "claims-table golden/runs/regime.h5",
            options.into);
    return ExitCode::kDone;
  }
  if (!verdicts) {
    throw softmoe::DataError(path.string() +
                             ": holds no run of the mini grid, on which alone "
                             "the claims are judged in miniature; give a "
                             "record of `grid record mini`");
  }
  RequireOwnPart(path, "mini.h5", options.into);
  Publish(MiniatureMarkdown(*verdicts), "claims-table", options.into);
  return ExitCode::kDone;
}

struct ImportOptions {
  std::string values, set_up, out, golden = "paper", of_table;
};

// Writes both files where they are wanted and nothing is yet, or prints them.
ExitCode WriteTemplates(const ImportOptions& options) {
  const Document golden = Load(options.golden);
  const softmoe::golden::ImportTemplate files =
      MakeImportTemplate(golden, *FindTable(golden, options.of_table));
  const std::pair<std::string, const std::string&> wanted[] = {
      {options.values, files.values}, {options.set_up, files.set_up}};
  if (!options.values.empty() && !options.set_up.empty() &&
      softmoe::UserPath(options.values) == softmoe::UserPath(options.set_up)) {
    throw softmoe::ConfigError(options.values +
                               " cannot hold both files; name two");
  }
  for (const auto& [name, text] : wanted) {
    if (!name.empty() && std::filesystem::exists(softmoe::UserPath(name))) {
      throw softmoe::ConfigError(name + " is there already; give another name");
    }
  }
  for (const auto& [name, text] : wanted) {
    if (name.empty()) {
      std::printf("%s\n", text.c_str());
    } else {
      softmoe::WriteFileAtomically(softmoe::UserPath(name), text);
      std::printf("wrote %s\n", name.c_str());
    }
  }
  return ExitCode::kDone;
}

ExitCode Import(const ImportOptions& options) {
  if (!options.of_table.empty()) return WriteTemplates(options);
  for (const auto& [name, value] :
       {std::pair{"THEIRS.csv", options.values},
        std::pair{"--set SETUP.toml", options.set_up},
        std::pair{"--out RESULTS.h5", options.out}}) {
    if (value.empty()) {
      throw softmoe::ConfigError(
          std::string(name) +
          " is missing; `golden import --template TABLE` prints the files "
          "that are needed");
    }
  }
  for (const std::string& name : {options.values, options.set_up}) {
    if (softmoe::UserPath(name) == softmoe::UserPath(options.out)) {
      throw softmoe::ConfigError(options.out +
                                 " is read; name another file with --out");
    }
  }
  const auto read = [](const std::string& name) {
    return softmoe::golden::NamedText{
        name, softmoe::ReadWholeFile(softmoe::UserPath(name))};
  };
  const Document results = softmoe::golden::ImportResults(
      read(options.values), read(options.set_up), Load(options.golden));
  WriteDocument(results, softmoe::UserPath(options.out));
  std::printf("wrote %s: %zu rows of %s\n", options.out.c_str(),
              results.tables[0].rows.size(), results.tables[0].id.c_str());
  return ExitCode::kDone;
}

struct GpuOptions {
  std::string record, to, runs, into;
  bool of_tests = false;

  softmoe::golden::AcceptedRuns accepted() const {
    return of_tests ? softmoe::golden::AcceptedRuns::kOfTests
                    : softmoe::golden::AcceptedRuns::kOfDevices;
  }
};

ExitCode ImportGpuRun(const GpuOptions& options) {
  const std::filesystem::path from = softmoe::UserPath(options.record);
  const softmoe::golden::GpuRecord record =
      softmoe::golden::ReadGpuRecord(from);
  RequireGolden(record, options.accepted(), from.string());
  std::filesystem::path to;
  const char* const workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (!options.to.empty()) {
    to = softmoe::UserPath(options.to);
  } else if (workspace != nullptr && !options.of_tests) {
    to = std::filesystem::path(workspace) / "golden/gpu_runs" /
         (GpuRunName(record) + ".h5");
  } else {
    throw softmoe::ConfigError(
        "no workspace to keep the record in; use ./bazelw run //:golden, or "
        "say with --to where it goes");
  }
  WriteGpuRun(to, record);
  std::printf("wrote %s\n", to.c_str());
  return ExitCode::kDone;
}

ExitCode ShowGpuTable(const GpuOptions& options) {
  using namespace softmoe::golden;  // NOLINT: a main
  const std::filesystem::path folder =
      options.runs.empty()
          ? softmoe::RunfilePath("golden/gpu_runs/README.md").parent_path()
          : softmoe::UserPath(options.runs);
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".h5") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<GpuRecord> runs;
  for (const std::filesystem::path& file : files) {
    runs.push_back(ReadGpuRun(file));
    RequireGolden(runs.back(), options.accepted(), file.string());
  }
  const std::string table =
      GpuTable(runs, ParseOperationSources(softmoe::ReadWholeFile(
                         softmoe::RunfilePath("bazel/operation_sources.txt"))));
  Publish(table, "gpu-table", options.into);
  return ExitCode::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kDescription, "golden"};
  app.footer(kExamples);
  app.require_subcommand(1);
  ShowOptions show_options;
  CLI::App* show = app.add_subcommand("show", "print tables, notes, claims");
  show->add_option("file", show_options.file,
                   "an HDF5 file of golden or measured tables [paper]");
  show->add_option("--table", show_options.table, "only this table");
  show->add_flag("--cells", show_options.cells,
                 "the interval and the counts that each number stands for");
  show->add_flag("--notes", show_options.notes, "remarks on its cells");
  show->add_flag("--claims", show_options.claims,
                 "claims, and what the printed numbers say of them");
  show->add_flag("--arithmetic", show_options.arithmetic,
                 "check the paper's numbers against each other");
  show->add_flag("--protocol", show_options.protocol,
                 "active experts of scores that keep their initial spread");
  CompareOptions compare_options;
  CLI::App* compare =
      app.add_subcommand("compare", "judge results against goldens");
  compare->add_option("results", compare_options.results, "what was measured")
      ->required();
  compare->add_option("golden", compare_options.golden,
                      "what to judge it by [paper]");
  compare->add_option("--json", compare_options.json,
                      "write the verdicts to this file, too");
  compare
      ->add_option("--allow", compare_options.allow,
                   "a class of verdicts that counts as PASS in the exit code; "
                   "may be repeated")
      ->check(CLI::IsMember({"inconclusive", "not_comparable", "mistrusted"}));
  ClaimsOptions claims_options;
  CLI::App* claims_table = app.add_subcommand(
      "claims-table", "the claims in miniature, as tables of a document");
  claims_table
      ->add_option("record", claims_options.record, "what `grid record` kept")
      ->required();
  claims_table->add_option("--into", claims_options.into,
                           "document whose tables are to be written again");
  ImportOptions import_options;
  CLI::App* import = app.add_subcommand(
      "import", "somebody else's numbers as results to compare");
  import->add_option("values", import_options.values,
                     "CSV table with the columns row, seed, column, value");
  import->add_option("--set", import_options.set_up,
                     "TOML file of the set-up: units and facts");
  import->add_option("--out", import_options.out, "HDF5 file to write");
  import->add_option("--golden", import_options.golden,
                     "whose rows, columns and facts they are [paper]");
  import
      ->add_option("--template", import_options.of_table,
                   "print both files for this table, with comments; write "
                   "those that are named")
      ->excludes("--out");
  GpuOptions gpu_options;
  CLI::App* import_run = app.add_subcommand(
      "import-gpu-run", "keep the record of a run on a device");
  import_run->add_option("record", gpu_options.record, "what run_all.sh wrote")
      ->required();
  import_run->add_option("--to", gpu_options.to,
                         "HDF5 file to write [one in golden/gpu_runs]");
  CLI::App* gpu_table = app.add_subcommand(
      "gpu-table", "which operations have been verified on a device");
  gpu_table->add_option("--runs", gpu_options.runs,
                        "folder of records [golden/gpu_runs]");
  gpu_table->add_option("--into", gpu_options.into,
                        "document whose table is to be written again");
  for (CLI::App* command : {import_run, gpu_table}) {
    // Hidden: its output is not a golden.
    command
        ->add_flag("--of-tests", gpu_options.of_tests,
                   "accept simulated devices")
        ->group("");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  return softmoe::RunMain("golden", [&] {
    if (claims_table->parsed()) return ShowClaimsTable(claims_options);
    if (import->parsed()) return Import(import_options);
    if (import_run->parsed()) return ImportGpuRun(gpu_options);
    if (gpu_table->parsed()) return ShowGpuTable(gpu_options);
    return show->parsed() ? Show(show_options) : Compare(compare_options);
  });
}

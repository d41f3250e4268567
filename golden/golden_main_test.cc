// SPDX-License-Identifier: Apache-2.0
//
// //:golden as a user meets it: output, messages, exit codes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/files/atomic_file.h"
#include "core/hdf5/hdf5_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "core/testing/program_test_util.h"
#include "golden/document/document.h"
#include "golden/document/document_format.h"
#include "golden/document/imported_results.h"
#include "golden/gpu_runs/gpu_record.h"
#include "golden/gpu_runs/gpu_runs.h"
#include "golden/testing/document_test_util.h"
#include "golden/testing/miniature_test_util.h"
#include "golden/verdict/recorded_results.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;

// Runs //:golden with `arguments`, split as a shell does; returns stdout and
// stderr.
ProgramResult RunGolden(const std::string& arguments,
                        const fs::path& folder = ".") {
  return RunTestProgram("golden/golden", arguments + " 2>&1", folder);
}

TEST(Golden, HelpTeaches) {
  const ProgramResult help = RunGolden("--help");
  EXPECT_TRUE(EndedWith(help, 0, "show", "compare", "Examples:", "Exit codes:",
                        "INCONCLUSIVE", "golden/FORMAT.md"));
  EXPECT_TRUE(Says(help.output,
                   "\n      verdicts on runs that `grid record` kept, and on ",
                   "\n      the same for the experiment regime: "));
  EXPECT_TRUE(Says(RunGolden("compare --help").output, "--allow"));
}

TEST(Golden, UsageErrorsEndWithTwo) {
  for (const char* arguments :
       {"", "shwo", "show --tabel x", "compare", "compare a.h5 --allow fail",
        "show --table", "show a b", "compare a.h5 --json ''"}) {
    EXPECT_EQ(RunGolden(arguments).exit_status, 2) << arguments;
  }
  EXPECT_TRUE(
      EndedWith(RunGolden("shwo"), 2,
                "golden: error: no command 'shwo'; did you mean 'show'?"));
  EXPECT_TRUE(EndedWith(RunGolden("diff a.h5"), 2, "no command 'diff'",
                        "known are 'show', 'compare', "));
  const ProgramResult table = RunGolden("show --table tau_ablations");
  EXPECT_TRUE(EndedWith(
      table, 2, "no table 'tau_ablations'; did you mean 'tau_ablation'?"));
}

// Conformance vectors need the reference, which is not linked into //:golden.
TEST(Golden, LeavesConformanceVectorsToTheVerifier) {
  EXPECT_TRUE(Says(RunGolden("--help").output, "//:verify -- export-vectors"));
  for (const char* command : {"export-vectors", "check-vectors"}) {
    EXPECT_EQ(RunGolden(command).exit_status, 2) << command;
  }
}

TEST(Golden, ShowsThePaper) {
  const ProgramResult all = RunGolden("show");
  EXPECT_TRUE(EndedWith(all, 0, "origin     paper\n",
                        "T1: SoftMoE and Sparse MoE on OWT and C4",
                        "c4/softmoe_star/k1/a4"));
  const ProgramResult tau =
      RunGolden("show paper --table tau_ablation --notes");
  EXPECT_TRUE(EndedWith(tau, 0, "62.63!", "62.63 is not c/1838"));
  EXPECT_FALSE(Says(tau.output, "T1: SoftMoE"));
  EXPECT_TRUE(Says(RunGolden("show --table main_results").output, "63.82*"));
  const ProgramResult protocol = RunGolden("show paper --protocol");
  EXPECT_TRUE(Says(protocol.output, "owt/softmoe_star/k1/a4"));
  EXPECT_FALSE(Says(protocol.output, "origin     paper"));
}

std::string OneSpaceBetweenWords(const std::string& text) {
  std::istringstream in(text);
  std::string words;
  for (std::string word; in >> word;) words += word + " ";
  return words;
}

TEST(Golden, ShowsWhatNumbersStandFor) {
  const ProgramResult cells =
      RunGolden("show --cells --table inference_tau_ablation");
  EXPECT_EQ(cells.exit_status, 0);
  const std::string words = OneSpaceBetweenWords(cells.output);
  // Truncated, either rule, rounded: 1157 of 1838 is 62.949 %.
  EXPECT_TRUE(
      Says(words, "infer_tau2.4/piqa 62.94 62.94 62.95 1157 1838 1 -",
           "c4/softmoe/k2/a2/infer_tau1.2/ae 3.75 3.745 3.76 - - 1 - N3",
           "infer_tau1.2/piqa 63.55 63.545 63.555 1168 1838 1 - N3"));
  EXPECT_FALSE(Says(cells.output, "jitter"));
  const ProgramResult tau = RunGolden("show --cells --table tau_ablation");
  EXPECT_TRUE(Says(tau.output, "GRIM_IMPOSSIBLE N2"));
  EXPECT_EQ(RunGolden("show --cells").exit_status, 0);
}

TEST(Golden, ShowsWhatIsInconsistent) {
  const ProgramResult arithmetic = RunGolden("show --arithmetic");
  EXPECT_TRUE(EndedWith(
      arithmetic, 0, "count tau_ablation/owt/softmoe_star/k1.5/a2/tau1.8/piqa",
      "139967"));
  const ProgramResult claims = RunGolden("show --claims");
  EXPECT_TRUE(Says(
      claims.output, "REFUTED                star_lower_loss.6",
      "soft_higher_hellaswag     10               10                    1\n",
      "resolved above 1.96 standard errors"));
  EXPECT_TRUE(claims.output.starts_with("published verdict"));
  const ProgramResult notes = RunGolden("show --notes");
  EXPECT_EQ(notes.exit_status, 0);
  for (const ProgramResult* part : {&arithmetic, &claims, &notes}) {
    EXPECT_FALSE(Says(part->output, "origin     paper"));
  }
}

Document OwnRuns(double loss) {
  Document document = ExampleDocument();
  Cell& cell = document.tables[0].rows[0].cells[0];
  cell.text = std::to_string(loss);
  cell.value = cell.low = cell.high = loss;
  cell.runs = 5;
  return document;
}

TEST(Golden, ComparesWithOwnGoldens) {
  const fs::path folder = FreshFolder("main_compare");
  WriteDocument(ExampleDocument(), folder / "golden.h5");
  WriteDocument(OwnRuns(2.845), folder / "good.h5");
  WriteDocument(OwnRuns(3.5), folder / "bad.h5");
  const ProgramResult good = RunGolden("compare good.h5 golden.h5", folder);
  // The items' sampling noise alone leaves PIQA undecided, and one cell has no
  // value.
  EXPECT_TRUE(EndedWith(good, 4, "OVERALL INCONCLUSIVE (exit code 4)",
                        "A1 training.aux: 0.01 in the golden, 0.01 here"));
  const ProgramResult allowed =
      RunGolden("compare good.h5 golden.h5 --allow inconclusive", folder);
  EXPECT_TRUE(EndedWith(allowed, 0, "allowed: INCONCLUSIVE, UNSUPPORTED"));
  const ProgramResult bad =
      RunGolden("compare bad.h5 golden.h5 --json verdicts.json", folder);
  EXPECT_TRUE(EndedWith(bad, 1, "FAIL"));
  const auto json =
      nlohmann::json::parse(ReadWholeFile(folder / "verdicts.json"));
  EXPECT_EQ(json["overall"], "FAIL");
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["cells"][0]["status"], "FAIL");
  EXPECT_EQ(json["cells"][0]["row"], "owt/sparse/k1");
  // Somebody else's file may hold any bytes.
  Document foreign = OwnRuns(3.5);
  foreign.fields[1].value = "caf\xE9";
  WriteDocument(foreign, folder / "foreign.h5");
  RunGolden("compare foreign.h5 golden.h5 --json foreign.json", folder);
  EXPECT_TRUE(Says(ReadWholeFile(folder / "foreign.json"),
                   "training.aux: 0.01 in the golden, caf\uFFFD here"));
}

TEST(Golden, AnUnwrittenReportHidesNoVerdict) {
  const fs::path folder = FreshFolder("main_unwritten");
  WriteDocument(ExampleDocument(), folder / "golden.h5");
  WriteDocument(OwnRuns(2.845), folder / "good.h5");
  WriteDocument(OwnRuns(3.5), folder / "bad.h5");
  const std::string nowhere = " golden.h5 --json /nonexistent/a.json";
  const ProgramResult bad = RunGolden("compare bad.h5" + nowhere, folder);
  EXPECT_TRUE(EndedWith(bad, 1, "OVERALL FAIL (exit code 1)",
                        "golden: error: cannot write '/nonexistent/a.json'"));
  EXPECT_EQ(RunGolden("compare good.h5" + nowhere, folder).exit_status, 4);
  EXPECT_EQ(
      RunGolden("compare good.h5" + nowhere + " --allow inconclusive", folder)
          .exit_status,
      5);
}

TEST(Golden, ItsReportReplacesNothingThatItReads) {
  const fs::path folder = FreshFolder("main_replacing");
  WriteDocument(ExampleDocument(), folder / "golden.h5");
  WriteDocument(OwnRuns(2.845), folder / "good.h5");
  fs::create_symlink("good.h5", folder / "link.h5");
  const std::string bytes = ReadWholeFile(folder / "good.h5");
  for (const char* json : {"good.h5", "./golden.h5", "link.h5"}) {
    EXPECT_TRUE(EndedWith(
        RunGolden(std::string("compare good.h5 golden.h5 --json ") + json,
                  folder),
        2, "--json ", "name another file"))
        << json;
  }
  EXPECT_TRUE(
      EndedWith(RunGolden("import-gpu-run good.h5 --to good.h5", folder), 2,
                "--to ", "name another file"));
  EXPECT_EQ(ReadWholeFile(folder / "good.h5"), bytes);
}

TEST(Golden, NothingInCommonIsNotComparable) {
  const fs::path folder = FreshFolder("main_nothing");
  WriteDocument(ExampleDocument(), folder / "other.h5");
  const ProgramResult result =
      RunGolden("compare other.h5", folder);  // with the paper
  EXPECT_TRUE(EndedWith(result, 3, "nothing to compare"));
  EXPECT_EQ(
      RunGolden("compare other.h5 --allow not_comparable", folder).exit_status,
      0);
}

TEST(Golden, ArithmeticNeedsThePaper) {
  const fs::path folder = FreshFolder("main_arithmetic");
  WriteDocument(ExampleDocument(), folder / "own.h5");
  for (const char* check : {"--arithmetic", "--protocol"}) {
    const ProgramResult result =
        RunGolden(std::string("show own.h5 ") + check, folder);
    EXPECT_TRUE(EndedWith(result, 2, "not of the paper", check));
  }
}

TEST(Golden, BadFilesEndWithTwoAndSayWhy) {
  const fs::path folder = FreshFolder("main_bad");
  std::ofstream(folder / "text.h5") << "these are words, not HDF5";
  WriteDocument(ExampleDocument(), folder / "whole.h5");
  std::string bytes = ReadWholeFile(folder / "whole.h5");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  WriteFileAtomically(folder / "flipped.h5", bytes);
  Hdf5Writer lacking(folder / "lacking.h5", GoldenKind());
  lacking.WriteAttribute("/", "schema", kSchemaName);
  lacking.WriteAttribute("/", "schema_version", kSchemaVersion);
  lacking.Commit();
  const std::pair<const char*, const char*> kBad[] = {
      {"text.h5", "text.h5"},
      {"flipped.h5", "flipped.h5"},
      {"lacking.h5", "'/' lacks the child 'provenance'"}};
  for (const auto& [file, message] : kBad) {
    for (const std::string command : {"show ", "compare "}) {
      const ProgramResult result = RunGolden(command + file, folder);
      EXPECT_TRUE(EndedWith(result, 2, "golden: error: ", file, message, "; "))
          << command << file;  // the remedy
    }
  }
  EXPECT_EQ(RunGolden("compare whole.h5 text.h5", folder).exit_status, 2);
}

TEST(Golden, MissingFilesEndWithFive) {
  const fs::path folder = FreshFolder("main_missing");
  for (const char* arguments :
       {"show none.h5", "compare none.h5", "compare paper none.h5"}) {
    const ProgramResult result = RunGolden(arguments, folder);
    EXPECT_TRUE(EndedWith(result, 5, "none.h5")) << arguments;
  }
  EXPECT_TRUE(EndedWith(RunGolden("gpu-table --runs none", folder), 5,
                        "golden: error: cannot read '",
                        "/none': No such file or directory; check the path"));
}

// The table would state everything twice.
TEST(Golden, TheTableOfDevicesRefusesACopyOfARecord) {
  const fs::path folder = FreshFolder("main_gpu_copy");
  const nlohmann::ordered_json run = {
      {"kind", "run"},     {"version", kGpuRecordVersion},
      {"backend", "cuda"}, {"program", "test"},
      {"minutes", 9},      {"planted", ""}};
  const nlohmann::ordered_json facts = {
      {"kind", "facts"},  {"model", "H100"},   {"architecture", "sm_90"},
      {"libraries", "x"}, {"memory_bytes", 1}, {"date", "2026-01-01"}};
  nlohmann::ordered_json end = {
      {"kind", "end"}, {"passed", true}, {"failed", ""}};
  WriteGpuRun(folder / "a.h5", GpuRecord{.lines = {run, facts, end}});
  end["passed"] = false;
  WriteGpuRun(folder / "b.h5", GpuRecord{.lines = {run, facts, end}});
  EXPECT_TRUE(EndedWith(RunGolden("gpu-table --runs .", folder), 0,
                        "not verified on a device"));
  fs::copy_file(folder / "a.h5", folder / "c.h5");
  EXPECT_TRUE(EndedWith(RunGolden("gpu-table --runs .", folder), 2,
                        "c.h5: the same record as ", "a.h5; remove one"));
  // Imported, a record is kept among the sources under its name.
  const fs::path kept = folder / "golden/gpu_runs";
  fs::create_directories(kept);
  GpuRecordWriter writer(folder / "record.jsonl");
  for (const auto& line : {run, facts, end}) writer.Write(line);
  setenv("BUILD_WORKSPACE_DIRECTORY", folder.c_str(), 1);
  const ProgramResult imported =
      RunGolden("import-gpu-run record.jsonl", folder);
  unsetenv("BUILD_WORKSPACE_DIRECTORY");
  EXPECT_TRUE(EndedWith(imported, 0, "wrote " + kept.string() + "/2026-01-01"));
}

// With one published run against itself nothing can pass or fail.
TEST(Golden, ThePaperDoesNotConfirmItself) {
  const ProgramResult result = RunGolden("compare paper");
  EXPECT_TRUE(EndedWith(result, 4, "seed noise is unknown"))
      << result.output.substr(0, 4000);
  EXPECT_FALSE(Says(result.output, "of version , on"));
}

TEST(Golden, ImportsNumbersOfOthers) {
  const fs::path folder = FreshFolder("main_import");
  const ProgramResult printed =
      RunGolden("import --template main_results", folder);
  EXPECT_TRUE(EndedWith(printed, 0, "row,seed,column,value\n",
                        "owt/sparse/k1,1,val_loss,\n",
                        "model.num_layers = \"\"  # in the golden: 10 "
                        "(stated)\n"));
  EXPECT_TRUE(EndedWith(
      RunGolden("import --template main_results a.txt --set ./a.txt", folder),
      2, "a.txt cannot hold both files; give two"));
  EXPECT_FALSE(fs::exists(folder / "a.txt"));
  const std::string both = " theirs.csv --set setup.toml";
  EXPECT_TRUE(
      EndedWith(RunGolden("import --template main_results" + both, folder), 0,
                "wrote theirs.csv\n", "wrote setup.toml\n"));
  const ImportTemplate empty =
      MakeImportTemplate(Paper(), *Paper().FindTable("main_results"));
  EXPECT_EQ(ReadWholeFile(folder / "theirs.csv"), empty.values);
  EXPECT_EQ(ReadWholeFile(folder / "setup.toml"), empty.set_up);
  EXPECT_EQ(printed.output, empty.values + "\n" + empty.set_up + "\n");
  EXPECT_FALSE(Says(empty.values, "owt/sparse/k1,1,expansion_factor"));
  // What somebody has filled in is not overwritten.
  EXPECT_TRUE(
      EndedWith(RunGolden("import --template main_results" + both, folder), 2,
                "theirs.csv already exists"));

  // The paper's own numbers, as if somebody else had measured them.
  const ImportTemplate filled =
      FilledIn(Paper(), *Paper().FindTable("main_results"));
  WriteFileAtomically(folder / "theirs.csv", filled.values);
  WriteFileAtomically(folder / "setup.toml", filled.set_up);
  EXPECT_TRUE(EndedWith(RunGolden("import --out out.h5" + both, folder), 0,
                        "wrote out.h5: 18 rows of main_results"));
  const ProgramResult compared =
      RunGolden("compare out.h5 --json v.json", folder);
  EXPECT_TRUE(EndedWith(compared, 4, "seed noise is unknown"));
  EXPECT_FALSE(Says(compared.output, "NOT_COMPARABLE"));
  const auto json = nlohmann::json::parse(ReadWholeFile(folder / "v.json"));
  size_t passed = 0;
  for (const auto& cell : json["cells"]) {
    passed += cell["status"] == "PASS" ? 1 : 0;
    EXPECT_NE(cell["status"], "FAIL");
  }
  EXPECT_GT(passed, 0u);

  for (const char* arguments :
       {"import", "import theirs.csv --out x.h5", "import --set setup.toml",
        "import theirs.csv --set setup.toml", "import --template main_result",
        "import --template model_size --out x",
        "import setup.toml --set theirs.csv --out x.h5",
        "import theirs.csv --set setup.toml --out ./theirs.csv",
        "import theirs.csv --set setup.toml --out setup.toml"}) {
    EXPECT_EQ(RunGolden(arguments, folder).exit_status, 2) << arguments;
  }
  EXPECT_TRUE(EndedWith(
      RunGolden("import none.csv --set setup.toml --out x.h5", folder), 5,
      "none.csv"));
  EXPECT_TRUE(EndedWith(
      RunGolden("import /dev/zero --set setup.toml --out x.h5", folder), 2,
      "/dev/zero: larger than 64 MiB"));
  EXPECT_FALSE(fs::exists(folder / "x.h5"));
}

TEST(Golden, PathsStartWhereTheUserStands) {
  const fs::path folder = FreshFolder("main_user");
  WriteDocument(ExampleDocument(), folder / "mine.h5");
  setenv("BUILD_WORKING_DIRECTORY", folder.c_str(), 1);
  EXPECT_EQ(RunGolden("show mine.h5", "/").exit_status, 0);
  unsetenv("BUILD_WORKING_DIRECTORY");
}

// A record with one document and the made-up runs of the mini grid.
void WriteRecordOf(const std::string& margins,
                   const MiniatureResults& miniature, const fs::path& path) {
  WriteRecord({.margins_sha256 = margins,
               .miniature = miniature,
               .documents = {{"results.h5", OwnRuns(2.845)}}},
              path);
}

TEST(Golden, ComparesARecordAndItsClaims) {
  const fs::path folder = FreshFolder("main_record");
  const std::string margins = FrozenClaims().Hash();
  WriteDocument(ExampleDocument(), folder / "golden.h5");
  WriteRecordOf(margins, MadeUpResults(FrozenClaims()), folder / "record.h5");
  // The cells decide the exit code, as they do alone.
  const ProgramResult result = RunGolden("compare record.h5 golden.h5", folder);
  EXPECT_TRUE(Says(result.output, "of version 0123abc, on v3\n"));
  EXPECT_FALSE(Says(result.output, "more than one version"));
  Document mixed = OwnRuns(2.845);
  mixed.provenance.git_commit = "0123abc, 4567def";
  mixed.provenance.isa = "v3, v4";
  WriteRecord({.margins_sha256 = margins,
               .miniature = MadeUpResults(FrozenClaims()),
               .documents = {{"results.h5", mixed}}},
              folder / "mixed.h5");
  EXPECT_TRUE(EndedWith(RunGolden("compare mixed.h5 golden.h5", folder), 4,
                        "of version 0123abc, 4567def, on v3, v4\n",
                        "more than one version, so rows may differ"));
  EXPECT_TRUE(EndedWith(result, 4, "OVERALL INCONCLUSIVE (exit code 4)",
                        "No reproduction of the paper",
                        "C1a    SHOWN         SoftMoE* has the lower loss"));
  for (const MiniatureClaim& claim : FrozenClaims().claims) {
    EXPECT_TRUE(Says(result.output, "\n" + claim.id + "  "));
  }
  ASSERT_EQ(RunGolden("compare record.h5 golden.h5 --json v.json", folder)
                .exit_status,
            4);
  const std::string text = ReadWholeFile(folder / "v.json");
  EXPECT_TRUE(text.starts_with("{\n  \"")) << text.substr(0, 40);
  EXPECT_TRUE(text.ends_with("\n}\n"));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json.at("claims_in_miniature").at("claims").size(), 10u);
  EXPECT_EQ(json.at("results").size(), 1u);
  EXPECT_EQ(json.at("overall"), "INCONCLUSIVE");
  EXPECT_EQ(json.at("exit_code"), 4);

  // Two seeds have the same bits.
  MiniatureResults twins = MadeUpResults(FrozenClaims());
  const int64_t seed = twins.runs[1].seed;
  twins.runs[1] = twins.runs[0];
  twins.runs[1].seed = seed;
  WriteRecordOf(margins, twins, folder / "twins.h5");
  EXPECT_EQ(RunGolden("compare twins.h5 golden.h5", folder).exit_status, 7);
  EXPECT_EQ(RunGolden("compare twins.h5 golden.h5 --allow mistrusted "
                      "--json twins.json",
                      folder)
                .exit_status,
            4);
  // As in a document's JSON, only "exit_code" depends on what is allowed.
  const auto of_twins =
      nlohmann::json::parse(ReadWholeFile(folder / "twins.json"));
  EXPECT_EQ(of_twins.at("overall"), "MISTRUSTED");
  EXPECT_EQ(of_twins.at("exit_code"), 4);

  WriteRecordOf(std::string(64, '0'), twins, folder / "margins.h5");
  const ProgramResult other = RunGolden("compare margins.h5 golden.h5", folder);
  EXPECT_TRUE(
      EndedWith(other, 2, "margins.h5 was recorded under other margins"));
  // Recorded under earlier definitions from the history: after the fact.
  WriteRecordOf(FrozenClaims().history[0].hash, MadeUpResults(FrozenClaims()),
                folder / "earlier.h5");
  const ProgramResult earlier =
      RunGolden("compare earlier.h5 golden.h5", folder);
  EXPECT_TRUE(EndedWith(earlier, 4, "\nC3     SHOWN, after the fact"));
  EXPECT_FALSE(Says(result.output, "after the fact"));
  std::string bytes = ReadWholeFile(folder / "record.h5");
  bytes[bytes.size() / 2] ^= 1;
  WriteFileAtomically(folder / "damaged.h5", bytes);
  const ProgramResult damaged = RunGolden("compare damaged.h5", folder);
  EXPECT_TRUE(EndedWith(damaged, 2, "is damaged"));
}

TEST(Golden, ARecordOfNothingIsNotComparable) {
  const fs::path folder = FreshFolder("main_empty_record");
  for (const std::string& hash :
       {FrozenClaims().Hash(), FrozenRegime().Hash()}) {
    WriteRecord({.margins_sha256 = hash, .miniature = {}, .documents = {}},
                folder / "empty.h5");
    EXPECT_TRUE(EndedWith(RunGolden("compare empty.h5", folder), 3,
                          "The record holds no results: nothing to compare"));
    EXPECT_EQ(RunGolden("compare empty.h5 --allow not_comparable", folder)
                  .exit_status,
              0);
  }
}

TEST(Golden, WritesTheClaimsOfARecordIntoADocument) {
  const fs::path folder = FreshFolder("main_claims");
  const std::string margins = FrozenClaims().Hash();
  fs::create_directories(folder / "golden/runs");
  WriteRecordOf(margins, MadeUpResults(FrozenClaims()),
                folder / "golden/runs/mini.h5");
  const ProgramResult printed =
      RunGolden("claims-table golden/runs/mini.h5", folder);
  EXPECT_TRUE(EndedWith(
      printed, 0, "76 of 76 planned runs.\n",
      "| C1a | SHOWN | SoftMoE* has the lower loss in all configurations |\n",
      "| C1a.group | SHOWN | "));
  const std::string begin =
      "<!-- begin: ./bazelw run //:golden -- claims-table -->\n";
  const std::string end = "<!-- end -->\n";
  WriteFileAtomically(folder / "README.md", "a\n" + begin + "old\n" + end);
  const ProgramResult written =
      RunGolden("claims-table golden/runs/mini.h5 --into README.md", folder);
  EXPECT_TRUE(EndedWith(written, 0));
  const std::string published =
      "a\n" + begin + "\n" + printed.output + "\n" + end;
  EXPECT_EQ(ReadWholeFile(folder / "README.md"), published);

  WriteFileAtomically(folder / "plain.md", "a\n");
  const ProgramResult placeless =
      RunGolden("claims-table golden/runs/mini.h5 --into plain.md", folder);
  EXPECT_TRUE(EndedWith(placeless, 2,
                        "plain.md: what this command writes goes between"));
  // The part is that record's, and no other's.
  WriteRecordOf(margins, MadeUpResults(FrozenClaims()), folder / "own.h5");
  EXPECT_EQ(RunGolden("claims-table own.h5", folder).exit_status, 0);
  EXPECT_TRUE(
      EndedWith(RunGolden("claims-table own.h5 --into README.md", folder), 2,
                "own.h5 is not golden/runs/mini.h5"));
  EXPECT_EQ(ReadWholeFile(folder / "README.md"), published);
  WriteRecordOf(margins, {}, folder / "other.h5");
  const ProgramResult other = RunGolden("claims-table other.h5", folder);
  EXPECT_TRUE(EndedWith(other, 2, "other.h5: holds no run of the mini grid"));
  EXPECT_FALSE(Says(RunGolden("compare other.h5", folder).output,
                    "The record holds no results"));
  WriteRecordOf(std::string(64, '0'), {}, folder / "margins.h5");
  EXPECT_EQ(RunGolden("claims-table margins.h5", folder).exit_status, 2);
}

TEST(Golden, ComparesARecordOfTheRegime) {
  const fs::path folder = FreshFolder("main_regime");
  const std::string hash = FrozenRegime().Hash();
  WriteDocument(ExampleDocument(), folder / "golden.h5");
  WriteRecordOf(hash, {.runs = MadeUpRegime(-0.02), .throughput = {}},
                folder / "record.h5");
  const ProgramResult result =
      RunGolden("compare record.h5 golden.h5 --json v.json", folder);
  EXPECT_TRUE(EndedWith(result, 4));  // as the cells do alone
  EXPECT_TRUE(Says(result.output, "OVERALL INCONCLUSIVE (exit code 4)",
                   "Bottom line: Soft routing ends with a lower loss"));
  EXPECT_FALSE(Says(result.output, "Claims in miniature"));
  const auto json = nlohmann::json::parse(ReadWholeFile(folder / "v.json"));
  EXPECT_EQ(json.at("regime").at("estimates")[0].at("status"), "SUPERIOR");

  // Two seeds have the same bits.
  std::vector<MiniatureRun> twins = MadeUpRegime(-0.02);
  RunOf(twins, "regime-1", 1235).loss = RunOf(twins, "regime-1", 1234).loss;
  WriteRecordOf(hash, {.runs = twins, .throughput = {}}, folder / "twins.h5");
  EXPECT_EQ(RunGolden("compare twins.h5 golden.h5", folder).exit_status, 7);
  EXPECT_EQ(RunGolden("compare twins.h5 golden.h5 --allow mistrusted", folder)
                .exit_status,
            4);

  // The rows belong to the regime experiment, so any other hash is refused.
  for (const std::string& other :
       {FrozenClaims().Hash(), std::string(64, '0')}) {
    WriteRecordOf(other, {.runs = MadeUpRegime(0), .throughput = {}},
                  folder / "other.h5");
    for (const char* command : {"compare", "claims-table"}) {
      const ProgramResult refused =
          RunGolden(std::string(command) + " other.h5", folder);
      EXPECT_TRUE(
          EndedWith(refused, 2,
                    "other.h5 was recorded under other definitions of the "
                    "experiment regime (hash " +
                        other));
    }
  }
  WriteRecordOf(hash, MadeUpResults(FrozenClaims()), folder / "mini.h5");
  const ProgramResult mini = RunGolden("compare mini.h5 golden.h5", folder);
  EXPECT_TRUE(EndedWith(mini, 2, "is not planned"));
}

TEST(Golden, WritesTheRegimeIntoItsOwnPartOfADocument) {
  const fs::path folder = FreshFolder("main_regime_table");
  const fs::path record = folder / "golden/runs/regime.h5";
  fs::create_directories(record.parent_path());
  WriteRecordOf(FrozenRegime().Hash(),
                {.runs = MadeUpRegime(-0.02), .throughput = {}}, record);
  const ProgramResult printed =
      RunGolden("claims-table golden/runs/regime.h5", folder);
  EXPECT_TRUE(EndedWith(printed, 0, "120 of 120 planned runs.\n",
                        "| primary | SUPERIOR | "));
  const std::string mini =
      "<!-- begin: ./bazelw run //:golden -- claims-table -->\nmini\n"
      "<!-- end -->\n";
  const std::string begin =
      "<!-- begin: ./bazelw run //:golden -- claims-table "
      "golden/runs/regime.h5 -->\n";
  const std::string end = "<!-- end -->\n";
  WriteFileAtomically(folder / "README.md", mini + begin + "old\n" + end);
  const ProgramResult written = RunGolden(
      "claims-table ./golden/runs/regime.h5 --into README.md", folder);
  EXPECT_TRUE(EndedWith(written, 0));
  EXPECT_EQ(ReadWholeFile(folder / "README.md"),
            mini + begin + "\n" + printed.output + "\n" + end);
  fs::rename(record, folder / "golden/runs/regime_h200.h5");
  EXPECT_TRUE(EndedWith(
      RunGolden("claims-table golden/runs/regime_h200.h5 --into README.md",
                folder),
      2, "regime_h200.h5 is not golden/runs/regime.h5"));
}

}  // namespace
}  // namespace softmoe::golden

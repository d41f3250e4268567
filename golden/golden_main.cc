// SPDX-License-Identifier: Apache-2.0
//
// //:golden - shows documents of golden numbers and judges results by them.
#include <CLI/CLI.hpp>
#include <string>

#include "core/errors.h"
#include "core/text/command_line.h"
#include "golden/golden_commands.h"

namespace softmoe::golden {
namespace {

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
      verdicts on runs that `grid record` kept, and on the paper's claims in
      miniature: rows against each other, no reproduction
  golden compare golden/runs/regime.h5
      the same for the experiment regime: is soft routing better than sparse
      routing at equal active experts?
  golden compare new.h5 old.h5 --json verdicts.json
      against earlier results of our own
  golden claims-table golden/runs/mini.h5 --into golden/RESULTS.md
      the same claims as tables of a document
  golden import --template main_results theirs.csv --set setup.toml
      the two files in which to write somebody else's numbers and set-up
  golden import theirs.csv --set setup.toml --out results.h5
      turns them into results for `golden compare results.h5`
  golden import-gpu-run gpu_record.jsonl
      keeps what run_all.sh found on a machine with a GPU, in golden/gpu_runs
  golden gpu-table --into property_tests/gpu/README.md
      which operations have been verified on a device, by these records

Conformance vectors (inputs, cotangents, expected outputs, gradients and bounds
of an operation, in HDF5, for other frameworks) need the reference, which
this program must not contain: ./bazelw run //:verify -- export-vectors,
check-vectors.

Verdicts:
  PASS            equivalent: the confidence interval of the difference lies
                  within the margin, which was fixed before any run
  FAIL            the difference is beyond the margin at 5 %, both tails
                  counted, also after Holm's correction; or a run diverged; or
                  an exact number is not the golden's, or differs between runs
  INCONCLUSIVE    the evidence does not decide; says how many runs would
  UNSUPPORTED     the results have no value for it, or values for too few
                  pairs of a claim on most pairs; also whole rows that they
                  lack, if the golden is not the paper
  NOT_COMPARABLE  the set-up differs in something that the golden states, or
                  the column is defined otherwise, or in another unit
  MISTRUSTED      decided, but all runs gave the same bits: no evidence

Exit codes: 0 all PASS (of the paper's rows, those that the results have); 1 a
FAIL; 2 usage, or a file that is not ours, damaged, or of another version; 3
NOT_COMPARABLE; 4 INCONCLUSIVE or UNSUPPORTED; 5 a file is missing; 7
MISTRUSTED. The worst counts, in the order 1, 7, 3, 4, 0.
File format: golden/FORMAT.md.)";

class CommandLine {
 public:
  CommandLine() : app_(kDescription, "golden") {
    app_.footer(kExamples);
    app_.require_subcommand(1);
    AddShow();
    AddCompare();
    AddClaimsTable();
    AddImport();
    AddImportGpuRun();
    AddGpuTable();
  }

  int Main(int argc, char** argv) {
    return RunMain("golden", [&]() -> ExitCode {
      const std::string unknown = UnknownCommand(app_, argc, argv);
      if (!unknown.empty()) throw ConfigError(unknown);
      try {
        app_.parse(argc, argv);
      } catch (const CLI::ParseError& error) {
        return app_.exit(error) == 0 ? ExitCode::kDone : ExitCode::kUsage;
      }
      RequireValues(app_);
      return Dispatch();
    });
  }

 private:
  void AddShow() {
    CLI::App* show = app_.add_subcommand("show", "print tables, notes, claims");
    show->add_option("file", show_.file,
                     "an HDF5 file of golden or measured tables [paper]");
    show->add_option("--table", show_.table, "only this table");
    show->add_flag("--cells", show_.cells,
                   "the interval and the counts that each number stands for");
    show->add_flag("--notes", show_.notes, "remarks on its cells");
    show->add_flag("--claims", show_.claims,
                   "claims, and what the printed numbers say of them");
    show->add_flag("--arithmetic", show_.arithmetic,
                   "check the paper's numbers against each other");
    show->add_flag("--protocol", show_.protocol,
                   "active experts of scores that keep their initial spread");
  }

  void AddCompare() {
    CLI::App* compare =
        app_.add_subcommand("compare", "judge results against goldens");
    compare->add_option("results", compare_.results, "what was measured")
        ->required();
    compare->add_option("golden", compare_.golden,
                        "what to judge it by [paper]");
    compare->add_option("--json", compare_.json,
                        "write the verdicts to this file, too");
    compare
        ->add_option("--allow", compare_.allow,
                     "a class of verdicts that counts as PASS in the exit "
                     "code; may be repeated")
        ->check(
            CLI::IsMember({"inconclusive", "not_comparable", "mistrusted"}));
  }

  void AddClaimsTable() {
    CLI::App* table = app_.add_subcommand(
        "claims-table", "the claims in miniature, as tables of a document");
    table->add_option("record", claims_.record, "what `grid record` kept")
        ->required();
    table->add_option("--into", claims_.into,
                      "document whose tables are to be written again");
  }

  void AddImport() {
    CLI::App* import = app_.add_subcommand(
        "import", "somebody else's numbers as results to compare");
    import->add_option("values", import_.values,
                       "CSV table with the columns row, seed, column, value");
    import->add_option("--set", import_.set_up,
                       "TOML file of the set-up: units and facts");
    import->add_option("--out", import_.out, "HDF5 file to write");
    import->add_option("--golden", import_.golden,
                       "whose rows, columns and facts they are [paper]");
    import
        ->add_option("--template", import_.of_table,
                     "print both files for this table, with comments; write "
                     "those that are named")
        ->excludes("--out");
  }

  void AddImportGpuRun() {
    CLI::App* import = app_.add_subcommand(
        "import-gpu-run", "keep the record of a run on a device");
    import->add_option("record", gpu_.record, "what run_all.sh wrote")
        ->required();
    import->add_option("--to", gpu_.to,
                       "HDF5 file to write [one in golden/gpu_runs]");
    OfTests(import);
  }

  void AddGpuTable() {
    CLI::App* table = app_.add_subcommand(
        "gpu-table", "which operations have been verified on a device");
    table->add_option("--runs", gpu_.runs,
                      "folder of records [golden/gpu_runs]");
    table->add_option("--into", gpu_.into,
                      "document whose table is to be written again");
    OfTests(table);
  }

  // Hidden: its output is not a golden.
  void OfTests(CLI::App* command) {
    command->add_flag("--of-tests", gpu_.of_tests, "accept simulated devices")
        ->group("");
  }

  ExitCode Dispatch() const {
    const std::string name = app_.get_subcommands().front()->get_name();
    if (name == "show") return Show(show_);
    if (name == "compare") return Compare(compare_);
    if (name == "claims-table") return ShowClaimsTable(claims_);
    if (name == "import") return Import(import_);
    if (name == "import-gpu-run") return ImportGpuRun(gpu_);
    return ShowGpuTable(gpu_);
  }

  CLI::App app_;
  ShowOptions show_;
  CompareOptions compare_;
  ClaimsOptions claims_;
  ImportOptions import_;
  GpuOptions gpu_;
};

}  // namespace
}  // namespace softmoe::golden

int main(int argc, char** argv) {
  return softmoe::golden::CommandLine().Main(argc, argv);
}

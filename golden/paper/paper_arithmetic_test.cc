// SPDX-License-Identifier: Apache-2.0
//
// Exactly these numbers of the paper are inconsistent.
#include "golden/paper/paper_arithmetic.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/files/paths.h"
#include "core/testing/message_test_util.h"
#include "golden/document/document.h"
#include "golden/paper/paper_lookup.h"
#include "golden/testing/document_test_util.h"

namespace softmoe::golden {
namespace {

using Strings = std::vector<std::string>;

const std::vector<ArithmeticCheck>& Checks() {
  static const std::vector<ArithmeticCheck> checks = CheckArithmetic(Paper());
  return checks;
}

Strings Inconsistent(const std::string& rule) {
  Strings places;
  for (const ArithmeticCheck& check : Checks()) {
    if (check.rule == rule && !check.consistent) {
      places.push_back(check.place + " " + check.note);
    }
  }
  return places;
}

const ArithmeticCheck& Find(const std::string& rule, const std::string& place) {
  for (const ArithmeticCheck& check : Checks()) {
    if (check.rule == rule && check.place == place) return check;
  }
  throw InternalError("no check " + rule + " of " + place);
}

TEST(CheckArithmetic, ActiveParamsAreNotTheTrueOnes) {
  EXPECT_EQ(Inconsistent("active_params_true").size(), 18u);
  // N1: 107.70/156.85/206.00/255.15 for k = 1..4.
  const Strings kTrue = {"107.70", "156.85", "206.00", "255.15"};
  for (int k = 1; k <= 4; ++k) {
    const ArithmeticCheck& check =
        Find("active_params_true",
             fmt::format("main_results/c4/sparse/k{}/active_params", k));
    EXPECT_EQ(check.computed, kTrue[static_cast<size_t>(k - 1)]);
    EXPECT_EQ(check.note, "N1");
  }
  EXPECT_EQ(Find("active_params_law",
                 "main_results/owt/softmoe/k1.5/a2/active_params")
                .explanation,
            "58.54464 + 49.2 x 1.96 = 154.97664");
  EXPECT_EQ(Find("total_params", "model_size/all/total_params").explanation,
            "1631409280 parameters with a vocabulary of 32768");
}

TEST(CheckArithmetic, TimesAndThroughput) {
  EXPECT_EQ(Inconsistent("iteration_gpu_hours"),
            (Strings{"throughput/owt/sparse/k2/gpu_hours N6",
                     "throughput/owt/softmoe_star/k1.5/a2/gpu_hours N6",
                     "throughput/owt/softmoe/k1.5/a2/gpu_hours N6"}));
  EXPECT_EQ(Inconsistent("throughput_nominal"),
            (Strings{"throughput/owt/sparse/k2/throughput N5",
                     "throughput/owt/softmoe_star/k1.5/a2/throughput N5",
                     "throughput/owt/softmoe/k1.5/a2/throughput N5"}));
  // N5's nominal rates.
  Strings nominal;
  for (const ArithmeticCheck& check : Checks()) {
    if (check.rule == "throughput_nominal") nominal.push_back(check.computed);
    if (check.rule == "throughput_factor") {
      EXPECT_EQ(check.computed, "1.0205");
    }
  }
  EXPECT_EQ(nominal, (Strings{"139967", "124011", "159613"}));
  EXPECT_EQ(Inconsistent("time_order"),
            Strings{"compute/owt/sparse/k1/gpu_hours N7"});
}

TEST(CheckArithmetic, ThreePercentagesAreNoCountsByTheirTablesRule) {
  EXPECT_EQ(
      Inconsistent("count"),
      (Strings{"tau_ablation/owt/softmoe_star/k1.5/a2/tau1.8/piqa N2",
               "inference_tau_ablation/owt/softmoe/k2/a2/infer_tau1.2/piqa N3",
               "jitter/unstated/sparse/k2/jitter0.05/piqa N10"}));
  EXPECT_EQ(Find("count", "tau_ablation/owt/softmoe_star/k1.5/a2/tau1.8/piqa")
                .computed,
            "no count of 1838");
  EXPECT_EQ(Find("count",
                 "inference_tau_ablation/owt/softmoe/k2/a2/infer_tau1.2/piqa")
                .computed,
            "1168 of 1838, by the other rule");
  // Counts that fit only truncation (SPEC.md 5.1).
  EXPECT_EQ(Find("count",
                 "inference_tau_ablation/owt/softmoe/k2/a2/infer_tau2.4/piqa")
                .computed,
            "1157 of 1838");
  EXPECT_EQ(
      Find("count", "jitter/unstated/sparse/k2/jitternone/arc_e").computed,
      "207 of 567");
}

// Soft minus sparse row of the same budget group (SPEC.md 6c), by hand.
TEST(CheckArithmetic, DifferencesToTheBaselinesAreThoseOfTheSpec) {
  const std::map<std::string, Strings> kDifferences = {
      {"owt/softmoe_star/k1.5/a2", {"+0.22", "+0.63", "+0.36", "-0.01"}},
      {"owt/softmoe/k1.5/a2", {"+0.17", "+0.62", "+0.71", "-0.03"}},
      {"owt/softmoe_star/k1/a4", {"+0.06", "+1.32", "-0.17", "-0.05"}},
      {"owt/softmoe_star/k2/a2", {"-0.05", "+0.14", "+0.53", "+0.00"}},
      {"owt/softmoe/k2/a2", {"-0.32", "+0.38", "+1.59", "-0.01"}},
      {"c4/softmoe_star/k1.5/a2", {"-0.92", "+0.08", "-1.59", "-0.01"}},
      {"c4/softmoe/k1.5/a2", {"-0.22", "+0.43", "+0.89", "+0.00"}},
      {"c4/softmoe_star/k1/a4", {"+1.31", "+1.25", "-0.35", "-0.01"}},
      {"c4/softmoe_star/k2/a2", {"+0.00", "+0.82", "-0.70", "+0.01"}},
      {"c4/softmoe/k2/a2", {"+0.43", "+0.25", "-1.41", "+0.00"}}};
  const Strings kColumns = {"piqa", "hellaswag", "arc_e", "val_loss"};
  for (const auto& [row, differences] : kDifferences) {
    for (size_t c = 0; c < kColumns.size(); ++c) {
      EXPECT_EQ(
          Find("bold", "main_results/" + row + "/" + kColumns[c]).computed,
          differences[c])
          << row << " " << kColumns[c];
    }
  }
}

TEST(CheckArithmetic, EveryInconsistencyHasItsNoteOnTheCell) {
  int inconsistent = 0;
  for (const ArithmeticCheck& check : Checks()) {
    if (check.consistent) {
      EXPECT_EQ(check.note, "");
      continue;
    }
    ++inconsistent;
    bool found = false;
    for (const Table& table : Paper().tables) {
      for (const Row& row : table.rows) {
        for (size_t c = 0; c < row.cells.size(); ++c) {
          const Strings& notes = row.cells[c].notes;
          found |= check.place ==
                       table.id + "/" + row.id + "/" + table.columns[c].id &&
                   std::count(notes.begin(), notes.end(), check.note) > 0;
        }
      }
    }
    EXPECT_TRUE(found) << check.place << " lacks " << check.note;
  }
  EXPECT_EQ(inconsistent, 18 + 3 + 3 + 1 + 3 + 2 + 1 + 7 + 4 + 10);
}

// The checker notices a changed digit.
TEST(CheckArithmetic, SeesAChangedDigit) {
  auto changed = [](const std::string& table_id, size_t row,
                    const std::string& column, const std::string& text) {
    Document document = Paper();
    for (Table& table : document.tables) {
      if (table.id != table_id) continue;
      const auto c = static_cast<size_t>(table.FindColumn(column));
      table.rows[row].cells[c].text = text;
    }
    std::set<std::string> rules;
    const std::vector<ArithmeticCheck> checks = CheckArithmetic(document);
    for (size_t i = 0; i < checks.size(); ++i) {
      if (!checks[i].consistent && Checks()[i].consistent) {
        rules.insert(checks[i].rule);
      }
    }
    return rules;
  };
  using Rules = std::set<std::string>;
  EXPECT_EQ(changed("main_results", 3, "active_params", "154.97"),
            Rules{"active_params_law"});
  EXPECT_EQ(changed("main_results", 0, "arc_e", "33.34"), Rules{"count"});
  EXPECT_EQ(changed("compute", 9, "gpu_hours", "365.1"), Rules{"hours"});
  EXPECT_EQ(changed("throughput", 0, "iteration_time", "451.00"),
            (Rules{"iteration_hours", "throughput_factor"}));
  EXPECT_EQ(changed("main_results", 2, "infer_ae", "2.01"),
            (Rules{"active_params_law", "expert_budget", "repeat"}));
  EXPECT_EQ(changed("main_results", 2, "train_ae", "3.01"),
            (Rules{"cap", "repeat"}));
  // The cap of a learned allocation is below 4.0.
  EXPECT_EQ(changed("main_results", 3, "train_ae", "4.0"),
            (Rules{"cap", "repeat"}));
  EXPECT_EQ(changed("compute", 0, "gpus", "1"), Rules{"hours"});
  EXPECT_EQ(changed("main_results", 2, "val_loss", "2.80"), Rules{"bold"});
  EXPECT_EQ(changed("compute", 7, "gpu_hours", "20.7"),
            (Rules{"hours", "soft_time"}));
  EXPECT_EQ(changed("load_variance", 2, "load_variance", "0.06"),
            Rules{"load_balance"});
  EXPECT_EQ(changed("tau_ablation", 0, "ae", "3.11"), Rules{"tau_order"});
  EXPECT_EQ(changed("model_size", 0, "d_ffn", "2048"), Rules{"total_params"});
}

// One line per check, consistent or not: what `show --arithmetic` would print
// if it failed.
TEST(CheckArithmetic, EveryCheckIsTheOneThatWasRead) {
  std::string text;
  for (const ArithmeticCheck& check : Checks()) {
    text += fmt::format("{} {}: {}, computed {}{}{} ({})\n", check.rule,
                        check.place, check.printed, check.computed,
                        check.consistent ? "" : " INCONSISTENT ", check.note,
                        check.explanation);
  }
  EXPECT_TRUE(EqualsFile(text, "golden/paper/testdata/checks.txt"));
}

TEST(CheckArithmetic, RefusesADocumentThatIsNotThePaper) {
  Document document = Paper();
  document.tables.erase(document.tables.begin());
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { CheckArithmetic(document); }),
                   "no table 'main_results'"));
  document = Paper();
  document.provenance.origin = Origin::kOtherImplementation;
  document.provenance.source = "a report";
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { CheckArithmetic(document); }),
                   "the document is of 'a report', not of the paper",
                   "golden show paper --arithmetic"));
  document = Paper();
  Table& table = document.tables.front();
  table.rows[2]
      .cells[static_cast<size_t>(table.FindColumn("hellaswag"))]
      .proportion.reset();
  EXPECT_TRUE(
      Says(MessageOf<DataError>([&] { CheckArithmetic(document); }),
           table.id + "/" + table.rows[2].id + "/hellaswag has no item count"));
  struct Bad {
    std::string field, value, message;
  };
  for (const Bad& bad : std::vector<Bad>{
           {"gpus", "many", "field gpus of row owt/sparse/k2 is no number"},
           {"gpus", "0.5", "row owt/sparse/k2 is 0.5; it must be at least 1"},
           {"gpus", "10000000", "tokens per GPU and step of row"},
           {"training.steps", "many", "field training.steps of row"},
           {"router.expansion_factor", "many",
            "field router.expansion_factor of row"},
           {"paper.expert_budget", "many",
            "no number in the expert budget 'many'"}}) {
    document = Paper();
    const auto change = [&](std::vector<Field>* fields) {
      for (Field& field : *fields) {
        if (field.name == bad.field) field.value = bad.value;
      }
    };
    change(&document.fields);
    for (Table& each : document.tables) {
      for (Row& row : each.rows) change(&row.fields);
    }
    EXPECT_TRUE(Says(MessageOf<DataError>([&] { CheckArithmetic(document); }),
                     bad.message));
  }
}

TEST(PaperLookup, NamesWhatIsMissing) {
  const Table& main = TableOf(Paper(), "main_results");
  const Row& row = RowOf(main, "owt/sparse/k1");
  EXPECT_EQ(ColumnOf(main, "mean_active_experts").id, "mean_active_experts");
  const std::pair<std::function<void()>, std::string> kMissing[] = {
      {[] { TableOf(Paper(), "main"); }, "table 'main'"},
      {[&] { RowOf(main, "owt"); }, "row 'main_results/owt'"},
      {[&] { ColumnOf(main, "arc_c"); }, "column 'main_results/arc_c'"},
      {[&] { CellOf(main, row, "arc_c"); }, "column 'main_results/arc_c'"},
      {[&] { NumberOf(main, row, "expansion_factor"); },
       "number 'main_results/owt/sparse/k1/expansion_factor'"},
      {[&] { FieldOf(Paper(), row, "gpu"); }, "field 'owt/sparse/k1/gpu'"}};
  for (const auto& [look_up, missing] : kMissing) {
    EXPECT_TRUE(Says(MessageOf<DataError>(look_up),
                     "the document has no " + missing + ": only the paper's"));
  }
}

}  // namespace
}  // namespace softmoe::golden

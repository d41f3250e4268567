// SPDX-License-Identifier: Apache-2.0
//
// Meaningless documents are refused with the place and the remedy. For files
// with a wrong structure see document_refuse_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "golden/document/decimal.h"
#include "golden/document/document.h"
#include "golden/testing/document_test_util.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct BadDocument {
  std::string name;
  std::function<void(Document*)> spoil;
  std::string place;   // the message must name this
  std::string remedy;  // and say this
};

Cell& LossCell(Document* document) {
  return document->tables[0].rows[0].cells[0];
}
Column& Loss(Document* document) { return document->tables[0].columns[0]; }

std::vector<BadDocument> BadDocuments() {
  const std::string loss = "'/tables/main/cells/loss";
  return {
      {"nan", [](Document* d) { LossCell(d).value = NAN; },
       loss + "/value[0]' is nan", "DIVERGED"},
      {"infinity", [](Document* d) { LossCell(d).high = kInfinity; },
       loss + "/value_hi[0]' is inf", "DIVERGED"},
      {"minus_infinity", [](Document* d) { LossCell(d).low = -kInfinity; },
       loss + "/value_lo[0]' is -inf", "DIVERGED"},
      {"nan_deviation", [](Document* d) { LossCell(d).deviation = NAN; },
       loss + "/sd[0]' is nan", "store what was measured"},
      {"nan_margin", [](Document* d) { Loss(d).margin = NAN; },
       loss + "@margin' is nan", "store what was measured"},
      {"placeholder_text", [](Document* d) { LossCell(d).text = "TBD"; },
       loss + "/text[0]' is the placeholder 'TBD'", "fill it in"},
      {"text_is_no_number", [](Document* d) { LossCell(d).text = "2.8 (3)"; },
       loss + "/text[0]' is '2.8 (3)'", "plain decimal number"},
      {"no_margin", [](Document* d) { Loss(d).margin.reset(); },
       loss + "@margin' is missing, but the lane is 'statistical'",
       "state the margin before any run"},
      {"no_margin_bound",
       [](Document* d) {
         Loss(d).lane = Lane::kBound;
         Loss(d).margin.reset();
       },
       loss + "@margin' is missing, but the lane is 'bound'",
       "state the margin"},
      {"zero_margin", [](Document* d) { Loss(d).margin = 0; },
       loss + "@margin' is 0", "greater than 0"},
      {"no_runs", [](Document* d) { LossCell(d).runs = 0; },
       loss + "/n_runs[0]' is 0", "at least one run"},
      {"nan_flips",
       [](Document* d) { d->tables[0].rows[1].cells[1].flip_share = NAN; },
       "'/tables/main/cells/piqa/flip_share[1]' is nan", "measured"},
      {"flips_of_one_run",
       [](Document* d) {
         Cell& cell = d->tables[0].rows[1].cells[1];
         cell.runs = 1;
         cell.deviation.reset();
       },
       "'/tables/main/cells/piqa/flip_share[1]' is 0.125 with 1 run(s)",
       "two runs"},
      {"flips_of_no_items", [](Document* d) { LossCell(d).flip_share = 0.5; },
       loss + "/flip_share[0]' is 0.5 with 3 run(s) and no number of items",
       "two runs"},
      {"ragged_row", [](Document* d) { d->tables[0].rows[0].cells.pop_back(); },
       "'/tables/main/rows[0]' (owt/sparse/k1) has 2 cells",
       "one cell per column"},
      {"column_id", [](Document* d) { d->tables[0].columns[1].id = "k/s"; },
       "'/tables/main/cells/k/s' has the id 'k/s'", "lower-case letters"},
      {"same_table", [](Document* d) { d->tables[1].id = "main"; },
       "'/tables/main' occurs twice", "rename"},
      {"same_column", [](Document* d) { d->tables[0].columns[1].id = "loss"; },
       loss + "' occurs twice", "rename"},
      {"same_row",
       [](Document* d) { d->tables[0].rows[1].id = "owt/sparse/k1"; },
       "'/tables/main/rows[1]' occurs twice", "rename"},
      {"same_field", [](Document* d) { d->fields[1].name = "model.d_model"; },
       "'/fields/name[1]' occurs twice", "rename"},
      {"claim_without_table", [](Document* d) { d->claims[0].scope = "x"; },
       "'/claims/scope[0]' names no table: 'x'", "id of a table"},
      {"claim_operator", [](Document* d) { d->claims[1].op = "!="; },
       "'/claims/op[1]' is '!='", "use <"},
      {"claim_verdict",
       [](Document* d) { d->claims[1].published_verdict = "TRUE"; },
       "'/claims/published_verdict[1]' is 'TRUE'", "HOLDS"},
      {"note_unknown", [](Document* d) { LossCell(d).notes = {"N99"}; },
       "'/tables/main/cells' refers in row owt/sparse/k1 to the note 'N99', "
       "which is not in /notes; ",
       "add the note"},
  };
}

// The problem of the example document after `spoil`.
std::string ProblemOf(const std::function<void(Document*)>& spoil) {
  Document document = ExampleDocument();
  spoil(&document);
  return FirstProblem(document);
}

// One text of a document, and whether it may be left empty.
struct TextPlace {
  std::string place;
  std::function<std::string*(Document*)> text;
  bool may_be_empty = false;
};

std::vector<TextPlace> TextPlaces() {
  using D = Document*;
  return {
      {"/provenance@source", [](D d) { return &d->provenance.source; }},
      {"/provenance@generator", [](D d) { return &d->provenance.generator; }},
      {"/provenance@created_utc",
       [](D d) { return &d->provenance.created_utc; }, true},
      {"/provenance@git_commit", [](D d) { return &d->provenance.git_commit; },
       true},
      {"/provenance@config_hash",
       [](D d) { return &d->provenance.config_hash; }, true},
      {"/provenance@compiler", [](D d) { return &d->provenance.compiler; },
       true},
      {"/provenance@cpu", [](D d) { return &d->provenance.cpu; }, true},
      {"/provenance@isa", [](D d) { return &d->provenance.isa; }, true},
      {"/provenance/name[0]", [](D d) { return &d->provenance.more[0].name; }},
      {"/fields/name[1]", [](D d) { return &d->fields[1].name; }},
      {"/tables/main@title", [](D d) { return &d->tables[0].title; }},
      {"/tables/main@caption", [](D d) { return &d->tables[0].caption; }, true},
      {"/tables/main/rows[0]", [](D d) { return &d->tables[0].rows[0].id; }},
      {"/tables/main/fields/name[0]",
       [](D d) { return &d->tables[0].rows[0].fields[0].name; }},
      {"/tables/main/cells/piqa@unit",
       [](D d) { return &d->tables[0].columns[1].unit; }},
      {"/tables/main/cells/piqa@metric_def",
       [](D d) { return &d->tables[0].columns[1].metric; }},
      {"/tables/main/cells/piqa@margin_basis",
       [](D d) { return &d->tables[0].columns[1].margin_basis; }},
      {"/tables/main/cells/params@margin_basis",  // without a margin
       [](D d) { return &d->tables[0].columns[2].margin_basis; }, true},
      {"/claims/id[0]", [](D d) { return &d->claims[0].id; }},
      {"/claims/text[1]", [](D d) { return &d->claims[1].text; }},
      {"/notes/id[0]", [](D d) { return &d->notes[0].id; }},
      {"/notes/text[1]", [](D d) { return &d->notes[1].text; }}};
}

TEST(FirstProblem, NamesEveryTextThatIsNotFilledIn) {
  for (const TextPlace& place : TextPlaces()) {
    auto problem_of = [&](const std::string& text) {
      return ProblemOf([&](Document* d) { *place.text(d) = text; });
    };
    EXPECT_EQ(problem_of("TBD"),
              "'" + place.place +
                  "' is the placeholder 'TBD'; fill it in where the file is "
                  "made: a number without it means nothing");
    EXPECT_EQ(problem_of(std::string("a\0b", 3)),
              "'" + place.place + "' contains a NUL character; remove it");
    const std::string of_empty = problem_of("");
    if (place.may_be_empty) {
      EXPECT_FALSE(Says(of_empty, "is empty"));
    } else {
      EXPECT_EQ(of_empty, "'" + place.place +
                              "' is empty; fill it in where the file is made: "
                              "a number without it means nothing");
    }
  }
}

// People choose the names of their rows and corpora.
TEST(FirstProblem, TakesAnyLabel) {
  const auto problem_of = [](const std::string& label) {
    return ProblemOf(
        [&](Document* d) { d->tables[0].rows[0].labels[1] = label; });
  };
  for (const char* label : {"", "dummy", "TODO", "?"}) {
    EXPECT_EQ(problem_of(label), "") << label;
  }
  EXPECT_EQ(problem_of(std::string("a\0b", 3)),
            "'/tables/main/labels' contains a NUL character; remove it");
}

TEST(FirstProblem, KnowsPlaceholdersInAnyCase) {
  auto problem_of = [](const std::string& title) {
    return ProblemOf([&](Document* d) { d->tables[0].title = title; });
  };
  for (const char* text :
       {"todo", "TBD", "FixMe", "xxx", "?", "??", "???", "NULL", "Placeholder",
        "dummy", "Lorem Ipsum", "TODO: title", "fixme: title"}) {
    EXPECT_EQ(problem_of(text).find("'/tables/main@title' is the placeholder"),
              0u)
        << text;
  }
  for (const char* text : {"todos", "a todo", "nullable", "????", "xxxx",
                           "dummy runs", "to do: nothing"}) {
    EXPECT_EQ(problem_of(text), "") << text;
  }
}

TEST(FirstProblem, KnowsNumbersThatStandForNone) {
  auto problem_of = [](double value) {
    return ProblemOf([&](Document* d) {
      LossCell(d).value = LossCell(d).low = LossCell(d).high = value;
      LossCell(d).text = std::to_string(static_cast<int64_t>(value));
    });
  };
  for (const double value : {-999.0, -9999.0, -99999.0, -999999.0}) {
    EXPECT_TRUE(Says(problem_of(value),
                     "'/tables/main/cells/loss/value[0]' is "
                     "the placeholder -999",
                     "; store what was measured"))
        << value;
    EXPECT_EQ(problem_of(-value), "") << value;
    EXPECT_EQ(problem_of(value + 1), "") << value;
  }
  auto margin_problem = [](double margin) {
    return ProblemOf([&](Document* d) { Loss(d).margin = margin; });
  };
  EXPECT_TRUE(Says(margin_problem(1e300), "is the placeholder 1e+300"));
  EXPECT_TRUE(Says(margin_problem(-1e300), "is the placeholder -1e+300"));
  EXPECT_EQ(margin_problem(std::nextafter(1e300, 0)), "");
}

// Tries every character in ids that references spell and in names of groups.
TEST(FirstProblem, KnowsEveryCharacterThatAnIdMayHave) {
  const std::string of_rows =
      "!\"#$%&()*+,-./0123456789;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"
      "abcdefghijklmnopqrstuvwxyz{|}~";
  const std::string of_tables = "0123456789_abcdefghijklmnopqrstuvwxyz";
  const auto expect = [](bool fits, const std::string& problem,
                         const std::string& refusal) {
    if (fits) {
      EXPECT_EQ(problem, "");
    } else {
      EXPECT_TRUE(Says(problem, refusal));
    }
  };
  for (int c = 0; c < 256; ++c) {
    const std::string character(1, static_cast<char>(c));
    const std::string id = "los" + character;  // "loss": as a column
    // A row that no claim and no note names.
    const std::string row = ProblemOf([&](Document* d) {
      Row third = d->tables[0].rows[1];
      third.id = id;
      d->tables[0].rows.push_back(third);
    });
    expect(of_rows.find(character) != std::string::npos, row,
           "'/tables/main/rows[2]' " +
               (c == 0 ? "contains a NUL character; remove it"
                       : "has the id '" + id +
                             "'; use printable ASCII without spaces"));
    const std::string table =
        ProblemOf([&](Document* d) { d->tables[1].id = id; });
    expect(of_tables.find(character) != std::string::npos, table,
           "has the id '" + id + "'; use lower-case letters");
    const std::string flag =
        ProblemOf([&](Document* d) { LossCell(d).flags = {"F" + character}; });
    expect((c >= 'A' && c <= 'Z') || c == '_', flag,
           "'/tables/main/cells/loss/flags[0]' has the flag 'F" + character +
               "'; flags are capital letters");
  }
  EXPECT_NE(ProblemOf([](Document* d) { d->tables[1].id = ""; }), "");
  EXPECT_TRUE(Says(ProblemOf([](Document* d) { d->tables[1].id = "dummy"; }),
                   "'/tables/dummy' is a placeholder"));
  EXPECT_NE(ProblemOf([](Document* d) { LossCell(d).flags = {""}; }), "");
}

TEST(FirstProblem, AcceptsTheLastOfEachRangeAndRefusesTheNext) {
  struct Range {
    std::function<void(Document*)> last, next;
    std::string problem;
  };
  // Counts of a number that is printed as `text`.
  auto items = [](int64_t total, const std::vector<int64_t>& counts,
                  const char* text = "61.53") {
    return [=](Document* d) {
      Cell& cell = d->tables[0].rows[0].cells[1];
      cell.text = text;
      cell.value = cell.low = cell.high = Decimal::Parse(text)->ToDouble();
      cell.proportion = Proportion{total, counts};
    };
  };
  auto percent = [](double value, const char* text) {
    return [=](Document* d) {
      Cell& cell = d->tables[0].rows[0].cells[1];
      cell.value = cell.low = cell.high = value;
      cell.text = text;
      cell.proportion->counts.clear();
    };
  };
  auto loss = [](double low, double value, double high, const char* text) {
    return [=](Document* d) {
      LossCell(d).low = low;
      LossCell(d).value = value;
      LossCell(d).high = high;
      LossCell(d).text = text;
    };
  };
  auto decimals = [](int count) {
    return [=](Document* d) { Loss(d).decimals = count; };
  };
  auto deviation = [](double value, int64_t runs) {
    return [=](Document* d) {
      LossCell(d).deviation = value;
      LossCell(d).runs = runs;
    };
  };
  auto flips = [](double share) {
    return
        [=](Document* d) { d->tables[0].rows[1].cells[1].flip_share = share; };
  };
  const std::string of_loss = "'/tables/main/cells/loss";
  const std::string of_piqa = "'/tables/main/cells/piqa";
  const std::string count = of_piqa + "/count_N[0]' has the count ";
  const std::string ascend = "; counts ascend and lie between 0 and the total";
  const std::string beside = of_piqa + "/count_N[0]' belongs to the value ";
  const std::string outside =
      of_loss + "/value[0]' 2.5 is outside its interval ";
  const std::string printed = of_loss + "/text[0]' is ";
  const std::string sd = of_loss + "/sd[0]' is ";
  const std::string share = of_piqa + "/flip_share[1]' is ";
  const Range kRanges[] = {
      {decimals(0), decimals(-1), of_loss + "@decimals' is -1; use 0 to 12"},
      {decimals(12), decimals(13), of_loss + "@decimals' is 13; use 0 to 12"},
      {items(1, {}), items(0, {}),
       of_piqa + "/count_N[0]' has 0 items; a proportion needs at least one"},
      {items(1, {}), items(-1, {}), "has -1 items"},
      {items(1838, {0, 1}, "0.0"), items(1838, {-1, 1}, "0.0"),
       count + "-1 of 1838" + ascend},
      {items(1838, {1837, 1838}, "100"), items(1838, {1838, 1839}, "100"),
       count + "1839 of 1838" + ascend},
      {items(1838, {7, 8}, "0.4"), items(1838, {8, 7}, "0.4"),
       count + "7 of 1838" + ascend},
      {items(1838, {7, 8}, "0.4"), items(1838, {7, 7}, "0.4"),
       count + "7 of 1838" + ascend},
      // 61.480, 61.425, 61.589 and 61.643 %: a unit and an item are 0.064.
      {items(1838, {1130}), items(1838, {1129}),
       count + "1129 of 1838, but the text is 61.53; give the counts whose"},
      {items(1838, {1132}), items(1838, {1133}), count + "1133 of 1838, but"},
      // A unit and an item: 50.1.
      {items(2, {0}, "50.0"), items(2, {0}, "50.3"),
       count + "0 of 2, but the text is 50.3"},
      {percent(0, "0.00"), percent(-1e-9, "0.00"),
       beside + "-1e-09; a proportion is given in percent, from 0 to 100"},
      {percent(100, "100.00"), percent(100.001, "100.00"),
       beside + "100.001; "},
      {loss(2.5, 2.5, 2.5, "2.50"), loss(2.625, 2.5, 2.75, "2.50"),
       outside + "[2.625, 2.75]; value_lo <= value <= value_hi must hold"},
      {loss(2, 2.5, 3, "2.50"), loss(2, 2.5, 2.25, "2.50"),
       outside + "[2, 2.25]; "},
      // One unit of the last digit: truncation can be off by almost as much.
      {loss(2, 2.5, 3, "2.4"), loss(2, 2.5, 3, "2.3"),
       printed + "'2.3', but the value is 2.5; print the value"},
      {loss(1, 2, 3, "1"), loss(1, 2, 3, "0"), "but the value is 2; "},
      {loss(-1, 0, 1, "1"), loss(-1, 0, 1, "2"), "but the value is 0; "},
      {deviation(0, 2), deviation(0, 1),
       sd + "0 with 1 run(s); a deviation is at least 0 and needs two runs"},
      {deviation(0, 2), deviation(-1e-9, 2), sd + "-1e-09 with 2 run(s); "},
      {flips(1), flips(1.001), share + "1.001 with 2 run(s)"},
      {flips(0), flips(-1e-9), share + "-1e-09 with 2 run(s)"}};
  for (const Range& range : kRanges) {
    EXPECT_EQ(ProblemOf(range.last), "") << range.problem;
    const std::string problem = ProblemOf(range.next);
    EXPECT_TRUE(Says(problem, range.problem));
  }
}

TEST(FirstProblem, ANumberIsOfNoRunThatDiverged) {
  const auto problem_of = [](const std::string& flag) {
    return ProblemOf([&](Document* d) { LossCell(d).flags = {"A", flag}; });
  };
  EXPECT_EQ(problem_of("DIVERGED"),
            "'/tables/main/cells/loss/flags[0]' has DIVERGED, but the text "
            "is 2.84; leave the cell of a run that gave no number empty");
  EXPECT_EQ(problem_of("DIVERGE"), "");
}

TEST(FirstProblem, AnEmptyCellHasNoNumberAtAll) {
  const std::function<void(Cell*)> kNumbers[] = {
      [](Cell* cell) { cell->value = 1; },
      [](Cell* cell) { cell->low = -1; },
      [](Cell* cell) { cell->high = 1; },
      [](Cell* cell) { cell->deviation = 0; },
      [](Cell* cell) {
        cell->proportion = Proportion{3, {}};
      },
      [](Cell* cell) { cell->flip_share = 0.5; },
      [](Cell* cell) { cell->bold = true; }};
  for (const auto& number : kNumbers) {
    EXPECT_TRUE(Says(
        ProblemOf([&](Document* d) { number(&d->tables[0].rows[1].cells[0]); }),
        "'/tables/main/cells/loss/text[1]' is empty, but the cell has a "
        "number; print the number"));
  }
}

TEST(FirstProblem, FieldsMayHaveAnyValueThatIsOne) {
  for (const char* value : {"none", "?", "todo"}) {
    EXPECT_EQ(ProblemOf([&](Document* d) { d->fields[0].value = value; }), "");
  }
  EXPECT_TRUE(Says(ProblemOf([](Document* d) {
                     d->fields[0].value = std::string("a\0b", 3);
                   }),
                   "'/fields/value[0] (model.d_model)' contains a NUL"));
  // Unknown values are empty; assumed ones are not.
  EXPECT_EQ(ProblemOf([](Document* d) {
              d->fields[0].known = Known::kUnknown;
              d->fields[0].value = "";
            }),
            "");
  EXPECT_TRUE(Says(ProblemOf([](Document* d) {
                     d->fields[0].known = Known::kAssumed;
                     d->fields[0].value = "";
                   }),
                   "'/fields/value[0] (model.d_model)' is empty although it "
                   "is not 'unknown'; fill it in"));
  EXPECT_TRUE(
      Says(ProblemOf([](Document* d) { d->provenance.more[0].value = ""; }),
           "'/provenance/value[0] (seed)' is empty"));
  EXPECT_TRUE(Says(
      ProblemOf([](Document* d) { d->tables[0].rows[0].fields[0].value = ""; }),
      "'/tables/main/fields/value[0] (router.tau)' is empty"));
}

TEST(FirstProblem, KnowsEveryPlaceThatANoteMayConcern) {
  auto problem_of = [](const std::string& place) {
    return ProblemOf([&](Document* d) { d->notes[0].concerns[0] = place; });
  };
  for (const char* place :
       {"main", "a_table_without_rows", "main/loss", "main/piqa",
        "main/owt/sparse/k2", "main/owt/sparse/k2/params", "claim/lower",
        "claim/at_most", "text/a"}) {
    EXPECT_EQ(problem_of(place), "") << place;
  }
  for (const char* place :
       {"", "mai", "mains", "main/", "main/piqas", "main/owt/sparse/k3",
        "main/owt/sparse/k2/", "main/owt/sparse/k2/piqas",
        "main/owt/sparse/k3/piqa", "a_table_without_rows/piqa", "claim/",
        "claim/lowers", "text/", "text", "other/piqa"}) {
    EXPECT_TRUE(Says(problem_of(place), "'/notes/concerns' of N1 is '" +
                                            std::string(place) +
                                            "', which is not here; write "
                                            "TABLE, TABLE/ROW, "))
        << place;
  }
}

TEST(FirstProblem, ClaimsCompareACellWithACellOrANumber) {
  for (const char* right : {"owt/sparse/k2:piqa", "3", "-0.25"}) {
    EXPECT_EQ(ProblemOf([&](Document* d) { d->claims[1].right = right; }), "")
        << right;
  }
  for (const std::string side :
       {"", "three", "owt/sparse/k1", ":loss",
        "owt/sparse/k1:", "owt/sparse/k3:loss", "owt/sparse/k1:losses"}) {
    EXPECT_TRUE(Says(ProblemOf([&](Document* d) { d->claims[1].right = side; }),
                     "'/claims/rhs[1]' is neither cell nor number: '" + side +
                         "'; write ROW:COLUMN of the table main, or a number"))
        << side;
    EXPECT_TRUE(Says(ProblemOf([&](Document* d) { d->claims[1].left = side; }),
                     "'/claims/lhs[1]' names no cell: '" + side +
                         "'; write ROW:COLUMN of the table main"))
        << side;
  }
  EXPECT_TRUE(Says(ProblemOf([](Document* d) { d->claims[1].left = "3"; }),
                   "names no cell: '3'"));
  for (const char* op : {"<", "<=", ">", ">=", ">~", "=="}) {
    EXPECT_EQ(ProblemOf([&](Document* d) { d->claims[1].op = op; }), "") << op;
  }
  for (const char* verdict :
       {"HOLDS", "REFUTED", "NOT_RESOLVED_BY_PAPER", "NO_DATA"}) {
    EXPECT_EQ(ProblemOf([&](Document* d) {
                d->claims[1].published_verdict = verdict;
              }),
              "")
        << verdict;
  }
  EXPECT_TRUE(Says(ProblemOf([](Document* d) { d->claims[1].id = "lower"; }),
                   "'/claims/id[1]' occurs twice: 'lower'"));
  EXPECT_TRUE(Says(ProblemOf([](Document* d) { d->notes[1].id = "N1"; }),
                   "'/notes/id[1]' occurs twice: 'N1'"));
}

TEST(FirstProblem, NamesClaimsOnMostThatAreNoSeveralPairs) {
  const auto problem_of = [](const std::string& first,
                             const std::string& second, bool both) {
    return ProblemOf([&](Document* d) {
      d->notes.clear();
      for (Row& row : d->tables[0].rows) {
        for (Cell& cell : row.cells) cell.notes.clear();
      }
      d->claims[0].id = first;
      d->claims[1].id = second;
      d->claims[0].of_cases = Quantifier::kMost;
      if (both) d->claims[1].of_cases = Quantifier::kMost;
    });
  };
  EXPECT_EQ(problem_of("a.1", "a.2", true), "");
  EXPECT_TRUE(Says(problem_of("a.1", "b.1", true),
                   "'/claims/of_cases[0]' is 'most', but a.1 is the only "
                   "pair; mark it as 'every'"));
  EXPECT_TRUE(Says(problem_of("a.1", "a.2", false),
                   "'/claims/of_cases[0]' is 'most', but a.2 is not marked "
                   "'most' or lacks a pair number; mark all pairs"));
  EXPECT_TRUE(
      Says(problem_of("a.1", "a", false), "but a is not marked 'most' or"));
  EXPECT_TRUE(
      Says(problem_of("a.1", "a", true), "but a is not marked 'most' or"));
}

TEST(FirstProblem, FindsNothingInAGoodDocument) {
  EXPECT_EQ(FirstProblem(ExampleDocument()), "");
}

TEST(FirstProblem, NamesPlaceAndRemedy) {
  for (const BadDocument& bad : BadDocuments()) {
    Document document = ExampleDocument();
    bad.spoil(&document);
    const std::string problem = FirstProblem(document);
    EXPECT_TRUE(Says(problem, bad.place, bad.remedy)) << bad.name;
  }
}

TEST(WriteDocument, RefusesWhatWouldNotBeRead) {
  const fs::path folder = FreshFolder("refuse_write");
  Document document = ExampleDocument();
  LossCell(&document).value = NAN;
  EXPECT_THROW(WriteDocument(document, folder / "a.h5"), InternalError);
  EXPECT_TRUE(FilesIn(folder).empty());
}

}  // namespace
}  // namespace softmoe::golden

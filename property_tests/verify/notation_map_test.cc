// SPDX-License-Identifier: Apache-2.0
//
// The links of reference/NOTATION.md's map lead where they say, and the map is
// complete; likewise the table of trainer/METRICS.md that explains a report's
// numbers. A function, constant or test is where a link says if the file's
// code, comments apart, declares it there. What the reference offers is read
// from the declarations of its headers; invariants and columns of a grid's
// report, which no test here may link, from its source.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/config/parameter_layout.h"
#include "core/files/paths.h"
#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {
namespace {

using Names = std::set<std::string>;

// [`text`](folder/file#anchor), relative to the document's folder.
struct Link {
  std::string text, path, anchor;
};

struct Row {
  std::string name;  // "F7"; for a quantity, its first cell
  std::vector<std::string> cells;
};

struct Map {
  std::vector<Row> quantities, formulas;
};

enum QuantityColumn { kName = 1, kQuantitySections = 4, kQuantityFormulas = 5 };
enum FormulaColumn {
  kSections = 2,
  kReference,
  kKernel,
  kProgram,
  kTests,
  kVerify,
  kClaims
};

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Where `word` begins in the text, as a whole word.
std::vector<size_t> PlacesOf(const std::string& word, const std::string& text) {
  std::vector<size_t> places;
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsWordCharacter(text[at - 1])) &&
        (end == text.size() || !IsWordCharacter(text[end]))) {
      places.push_back(at);
    }
  }
  return places;
}

bool HasWord(const std::string& text, const std::string& word) {
  return !PlacesOf(word, text).empty();
}

// The code without `//` comments and preprocessor lines.
std::string CodeOf(const std::string& text) {
  std::istringstream lines(text);
  std::string code;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) code += line.substr(0, line.find("//")) + '\n';
  }
  return code;
}

// Whether the code declares `name`: a type comes before it and a possible
// continuation after it, or it is inside a test macro.
bool Declares(const std::string& code, const std::string& name) {
  static const Names kNoTypes = {"return", "throw", "else", "new", "case"};
  for (const size_t at : PlacesOf(name, code)) {
    const size_t after = code.find_first_not_of(" \n", at + name.size());
    if (after == std::string::npos) continue;
    // A type may end with >, & or *; qualifiers may precede the name.
    static const std::regex kBefore(R"(\b(\w+)[>&*]*\s+[&*]?(?:\w+::)*$)");
    static const std::regex kTest(
        R"((?:TEST(?:_F|_P)?|RC_GTEST_PROP)\(\w+,\s*$)");
    const std::string before =
        code.substr(at - std::min<size_t>(at, 120), std::min<size_t>(at, 120));
    std::smatch match;
    if ((code[after] == ')' || code[after] == ',') &&
        std::regex_search(before, kTest)) {
      return true;
    }
    if (std::string("({[=;").find(code[after]) == std::string::npos) continue;
    if (std::regex_search(before, match, kBefore) &&
        !kNoTypes.contains(match[1])) {
      return true;
    }
  }
  return false;
}

// The text of a file of this repository; "" if there is none.
const std::string& TextOf(const std::filesystem::path& path_from_root) {
  static std::map<std::string, std::string> texts;
  const auto [found, is_new] = texts.try_emplace(path_from_root.string());
  if (is_new) {
    const auto root = RunfilePath("reference/NOTATION.md").parent_path() / "..";
    std::ifstream file(root / path_from_root);
    found->second.assign(std::istreambuf_iterator<char>(file), {});
  }
  return found->second;
}

std::vector<std::string> All(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> result;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end;
       ++it) {
    result.push_back((*it)[1]);
  }
  return result;
}

Names NamesIn(const std::string& text, const char* pattern) {
  const std::vector<std::string> all = All(text, pattern);
  return {all.begin(), all.end()};
}

std::vector<Link> LinksOf(const std::string& cell) {
  static const std::regex kLink(R"(\[`?([^\]`]*)`?\]\(([^)#]*)#?([^)]*)\))");
  std::vector<Link> links;
  for (std::sregex_iterator it(cell.begin(), cell.end(), kLink), end; it != end;
       ++it) {
    links.push_back({(*it)[1], (*it)[2], (*it)[3]});
  }
  return links;
}

// The target of a link in a document in `folder`.
std::filesystem::path FromRoot(const Link& link,
                               const char* folder = "reference") {
  return (folder / std::filesystem::path(link.path)).lexically_normal();
}

// The rows below the heading `title`, without the table's header.
std::vector<Row> TableUnder(const std::string& title, const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line) && line != "## " + title) {
  }
  std::vector<Row> rows;
  int seen = 0;
  while (std::getline(lines, line) && line[0] != '#') {
    if (line[0] != '|' || ++seen <= 2) continue;
    Row row;
    std::istringstream cells(line.substr(1));
    for (std::string cell; std::getline(cells, cell, '|');) {
      row.cells.push_back(std::regex_replace(cell, std::regex("^ +| +$"), ""));
    }
    row.name = std::regex_replace(row.cells[0], std::regex("<[^>]*>"), "");
    rows.push_back(row);
  }
  return rows;
}

Map ReadMap(const std::string& text) {
  return {TableUnder("Quantities", text), TableUnder("Formulas", text)};
}

// The functions that a header declares in namespace softmoe::reference itself:
// no members, operators or inner namespaces.
Names PublicFunctions(const std::string& header) {
  const std::string text =
      std::regex_replace(header, std::regex(R"(//[^\n]*|#[^\n]*)"), "");
  const std::regex kDeclared(R"([\w>&*]\s+[&*]?(\w+)\s*\()");
  Names names;
  std::vector<bool> is_public;  // one for each open brace
  std::string statement;
  for (const char c : text) {
    if (c != '{' && c != '}' && c != ';') {
      statement += c;
      continue;
    }
    std::smatch match;
    if (is_public == std::vector<bool>{true} && c != '}' &&
        statement.find("operator") == std::string::npos &&
        std::regex_search(statement, match, kDeclared)) {
      names.insert(match[1]);
    }
    if (c == '{') {
      is_public.push_back(HasWord(statement, "namespace") &&
                          statement.find("softmoe::reference") !=
                              std::string::npos);
    } else if (c == '}') {
      is_public.pop_back();
    }
    statement.clear();
  }
  return names;
}

// The anchor that code hosts generate for a heading.
std::string AnchorOf(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (IsWordCharacter(c) || c == '-') {
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

// Whether the document has a row "F7", or a heading, with the link's anchor.
bool HasPlace(const std::string& document, const Link& link) {
  if (document.find("<a id=\"" + link.anchor + "\"></a>" + link.text + " ") !=
      std::string::npos) {
    return true;
  }
  const std::vector<std::string> headings = All(document, "\n#+ ([^\n]+)");
  return std::any_of(headings.begin(), headings.end(),
                     [&](const std::string& heading) {
                       return AnchorOf(heading) == link.anchor;
                     });
}

// Whether this existing file declares `name`, in C++ or as a claim.
bool Has(const std::filesystem::path& path, const std::string& name) {
  static std::map<std::string, bool> known;
  const auto [found, is_new] = known.try_emplace(path.string() + " " + name);
  if (is_new) {
    const std::string& text = TextOf(path);
    found->second =
        path.extension() == ".toml"
            ? text.find("\nid = \"" + name + "\"\n") != std::string::npos
            : Declares(CodeOf(text), name);
  }
  return found->second;
}

// Why this link in this column leads nowhere; "" if it is valid.
std::string WhyNot(int column, const Link& link) {
  static const std::map<int, std::string> kFolders = {
      {kReference, "reference/[^/]*"},
      {kKernel, "kernels/.*"},
      {kProgram, "(core/config|optimized|trainer|experiments)/.*"},
      {kTests, ".*_test\\.cc"},
      {kVerify, "property_tests/verify/.*"},
      {kClaims, "golden/paper/.*"}};
  const std::filesystem::path path = FromRoot(link);
  if (!std::regex_match(path.string(), std::regex(kFolders.at(column)))) {
    return path.string() + " is not what the column is for";
  }
  const std::string& text = TextOf(path);
  if (text.empty()) return path.string() + " is not there";
  const auto is_named = [&](const Operation* operation) {
    return operation->name() == link.text;
  };
  const bool has =
      column == kVerify
          ? HasWord(text, link.text) &&
                std::any_of(Operations().begin(), Operations().end(), is_named)
          : Has(path, link.text);
  return has ? "" : path.string() + " has no " + link.text;
}

void CheckSections(const Row& row, int column, Names* problems) {
  const std::string& cell = row.cells[column];
  if (LinksOf(cell).empty()) problems->insert(row.name + ": no section");
  for (const Link& link : LinksOf(cell)) {
    const std::string text = TextOf(FromRoot(link));
    bool found = false;
    for (const std::string& heading : All(text, "\n#+ ([^\n]+)")) {
      found |= heading.rfind(link.text + " ", 0) == 0 &&
               AnchorOf(heading) == link.anchor;
    }
    if (!found) {
      problems->insert(row.name + ": no section " + link.text + " at " +
                       link.path + "#" + link.anchor);
    }
  }
}

void CheckQuantity(const Row& row, const std::vector<Row>& formulas,
                   Names* problems) {
  CheckSections(row, kQuantitySections, problems);
  std::string texts;
  for (const Link& link : LinksOf(row.cells[kQuantityFormulas])) {
    const auto formula =
        std::find_if(formulas.begin(), formulas.end(), [&](const Row& other) {
          return other.name == link.text &&
                 other.cells[0].find('"' + link.anchor + '"') !=
                     std::string::npos;
        });
    if (formula == formulas.end()) {
      problems->insert(row.name + ": no formula " + link.text);
      continue;
    }
    for (const int column : {kReference, kProgram}) {
      for (const Link& place : LinksOf(formula->cells[column])) {
        texts += TextOf(FromRoot(place));
      }
    }
  }
  for (const std::string& name :
       All(row.cells[kName], R"(`(?:\w+::)?(\w+)`)")) {
    if (!HasWord(texts, name)) {
      problems->insert(row.name + ": no " + name + " at its formulas");
    }
  }
}

// What is missing from `linked`, the places that the map leads to: "folder/file
// symbol", or only "folder/file".
void CheckComplete(const Names& linked, Names* problems) {
  Names wanted;
  const auto root = RunfilePath("reference/NOTATION.md").parent_path() / "..";
  for (const char* folder : {"reference", "kernels"}) {
    for (const auto& file :
         std::filesystem::directory_iterator(root / folder)) {
      const std::string name = file.path().filename().string();
      const std::string path = std::string(folder) + "/" + name;
      const bool is_header = name.size() > 2 && name.ends_with(".h");
      if (name.ends_with("_body.h")) {
        wanted.insert(path);
      } else if (is_header && folder == std::string("reference")) {
        for (const std::string& function : PublicFunctions(TextOf(path))) {
          wanted.insert(path + " " + function);
        }
      }
    }
  }
  for (const Operation* operation : Operations()) {
    wanted.insert("verify " + operation->name());
  }
  for (const char* name : {"claims.toml", "miniature.toml"}) {
    const std::string path = std::string("golden/paper/") + name;
    for (const std::string& id : All(TextOf(path), "\nid = \"([^\"]+)\"")) {
      wanted.insert(path + " " + id);
    }
  }
  for (const std::string& want : wanted) {
    if (!linked.contains(want)) problems->insert("not on the map: " + want);
  }
}

// All problems of this text of the map, one sentence each.
Names Problems(const std::string& text) {
  const Map map = ReadMap(text);
  Names problems, linked;
  for (const Row& row : map.formulas) {
    if (row.cells.size() != kClaims + 1) {
      problems.insert(row.name + ": not as many cells as columns");
      continue;
    }
    CheckSections(row, kSections, &problems);
    for (int column = kReference; column <= kClaims; ++column) {
      const std::vector<Link> links = LinksOf(row.cells[column]);
      if (links.empty() && row.cells[column] != "-") {
        problems.insert(row.name + ": neither links nor \"-\"");
      }
      for (const Link& link : links) {
        const std::string why = WhyNot(column, link);
        if (!why.empty()) problems.insert(row.name + ": " + why);
        linked.insert(FromRoot(link).string());
        linked.insert(FromRoot(link).string() + " " + link.text);
        if (column == kVerify) linked.insert("verify " + link.text);
      }
    }
  }
  for (const Row& row : map.quantities) {
    if (row.cells.size() != kQuantityFormulas + 1) {
      problems.insert(row.name + ": not as many cells as columns");
      continue;
    }
    CheckQuantity(row, map.formulas, &problems);
  }
  CheckComplete(linked, &problems);
  return problems;
}

const char kInvariants[] = "experiments/report/invariants.cc";

// The ids of the invariants of a grid's runs.
Names Invariants() {
  return NamesIn(
      TextOf(kInvariants),
      R"~((?:OverRuns\(\s*outcome,|Invariant invariant\{)\s*"(\w+)")~");
}

// The metrics that a grid's report shows for a run, and the titles of the
// table's other columns.
Names ReportColumns() {
  Names names = NamesIn(TextOf("experiments/report/report_tables.cc"),
                        R"~(header\.push_back\("(\w+)"\))~");
  for (const std::string& metric :
       NamesIn(TextOf("experiments/report/run_columns.cc"),
               R"(\{metrics::(\w+),)")) {
    const std::string name = "\\b" + metric + R"~( = \{\s*\.name = "(\w+)")~";
    names.merge(NamesIn(TextOf("trainer/results/metrics.h"), name.c_str()));
  }
  return names;
}

enum ReportColumn { kNumber, kComputed, kShown, kPinned, kJudged };

bool NamesInvariant(int column, const Link& link) {
  return column == kJudged && FromRoot(link, "trainer") == kInvariants;
}

// Why this link in METRICS.md's table leads nowhere; "" if it is valid.
std::string WhyNotInReport(int column, const Link& link) {
  const std::filesystem::path path = FromRoot(link, "trainer");
  if (TextOf(path).empty()) return path.string() + " is not there";
  const bool has = column == kNumber ? HasPlace(TextOf(path), link)
                   : NamesInvariant(column, link)
                       ? Invariants().contains(link.text)
                       : Has(path, link.text);
  if (!has) return path.string() + " has no " + link.text;
  const bool is_test = path.string().ends_with("_test.cc");
  return column == kPinned && !is_test ? path.string() + " is no test" : "";
}

// Does what Problems does, for METRICS.md's table.
Names ReportProblems(const std::string& text) {
  static const char* kTitle =
      "From the numbers of a report to code, test and verdict";
  const std::vector<Row> rows = TableUnder(kTitle, text);
  if (rows.empty()) return {"no table"};
  Names problems, numbers, judges;
  for (const Row& row : rows) {
    const std::string& number = row.cells[kNumber];
    const std::string title = number.substr(0, number.find_first_of(":;"));
    if (row.cells.size() != kJudged + 1) {
      problems.insert(title + ": not as many cells as columns");
      continue;
    }
    numbers.merge(NamesIn(number, "`(\\w+)`"));
    for (int column = kNumber; column <= kJudged; ++column) {
      const std::vector<Link> links = LinksOf(row.cells[column]);
      const bool may_be_empty =
          column == kNumber ||
          (column == kJudged && row.cells[column].starts_with('-'));
      if (links.empty() && !may_be_empty) {
        problems.insert(title + ": leads nowhere");
      }
      for (const Link& link : links) {
        const std::string why = WhyNotInReport(column, link);
        if (!why.empty()) problems.insert(title + ": " + why);
        if (NamesInvariant(column, link)) judges.insert(link.text);
      }
    }
  }
  for (const std::string& name : ReportColumns()) {
    if (!numbers.contains(name)) problems.insert("no row has " + name);
  }
  for (const std::string& id : Invariants()) {
    if (!judges.contains(id)) problems.insert("no row is judged by " + id);
  }
  return problems;
}

TEST(NotationMap, LeadsEverywhere) {
  EXPECT_EQ(Problems(TextOf("reference/NOTATION.md")), Names());
}

TEST(ReportMap, LeadsEverywhere) {
  const std::string& text = TextOf("trainer/METRICS.md");
  EXPECT_EQ(ReportProblems(text), Names());
  const auto planted = [&](const std::string& old, const char* instead) {
    std::string changed = text;
    const size_t at = changed.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return ReportProblems(changed.replace(at, old.size(), instead));
  };
  const auto one = [](const std::string& problem) { return Names{problem}; };
  EXPECT_EQ(planted("[`TokensASecond`]", "[`MakeCurves`]"),
            one("tokens/s of a run: experiments/report/report_tables.cc has no "
                "MakeCurves"));
  EXPECT_EQ(planted("(run/train_step.cc)", "(run/train_steps.cc)"),
            one("train loss: trainer/run/train_steps.cc is not there"));
  EXPECT_EQ(planted("[`H2.throughput`]", "[`H2.through`]"),
            one("tokens/s of the benchmark: golden/paper/miniature.toml has no "
                "H2.through"));
  EXPECT_EQ(planted("[`ReportsCapsAndTime`](run/train_step_test.cc)", "-"),
            one("largest cap, most experts of a token: leads nowhere"));
  EXPECT_EQ(planted("[F31](../reference/NOTATION.md#f31)",
                    "[F31](../reference/NOTATION.md#f30)"),
            one("active parameters: reference/NOTATION.md has no F31"));
  EXPECT_EQ(planted("[`cap`]", "[`Cap`]"),
            one("tokens by active experts and by expert: "
                "experiments/report/invariants.cc has no Cap"));
  EXPECT_EQ(planted("From the numbers", "The numbers"), one("no table"));
}

TEST(ReportMap, HasEveryInvariantOfAGrid) {
  const std::string& text = TextOf("trainer/METRICS.md");
  EXPECT_EQ(Invariants(), NamesIn(TextOf("experiments/report/invariants.h"),
                                  R"(\n// - (\w+):)"));
  for (const std::string& id : Invariants()) {
    const std::regex links(R"(\[`)" + id + R"(`\]\([^)]*\))");
    EXPECT_EQ(ReportProblems(std::regex_replace(text, links, "-")),
              Names{"no row is judged by " + id});
  }
}

TEST(ReportMap, HasEveryColumnOfAGrid) {
  const std::string& text = TextOf("trainer/METRICS.md");
  const Names columns = ReportColumns();
  // One for each function that reads a result, plus those two.
  EXPECT_EQ(columns.size(), All(TextOf("experiments/report/run_columns.cc"),
                                R"((\[\]\(const RunResult& r\)))")
                                    .size() +
                                2);
  EXPECT_TRUE(columns.contains("sd") && columns.contains("seeds"));
  for (const std::string& name : columns) {
    const std::regex named("`" + name + "`");
    EXPECT_EQ(ReportProblems(std::regex_replace(text, named, "`gone`")),
              Names{"no row has " + name});
  }
}

TEST(Declares, NeedsMoreThanAWordOrACall) {
  const std::string code = CodeOf(R"(
// void Comment(int x);
Settings Plain(int x) {
  return Called(x) + a * Product(x);
}
const std::vector<double>& Reference();
StepOutcome Class::Member(int64_t a) { Statement(a); }
std::vector<double>
Wrapped(double x);
inline constexpr Metric kConstant = {};
struct Type {
TEST_P(Suite, Tested) {
RC_GTEST_PROP(Suite, Drawn, ()) {
)");
  for (const char* name : {"Plain", "Reference", "Member", "Wrapped",
                           "kConstant", "Type", "Tested", "Drawn"}) {
    EXPECT_TRUE(Declares(code, name)) << name;
  }
  for (const char* name : {"Comment", "Called", "Product", "Statement", "Class",
                           "Suite", "Settings", "Plai"}) {
    EXPECT_FALSE(Declares(code, name)) << name;
  }
}

struct Planted {
  const char *text, *instead, *problem;
};

class NotationMapFault : public ::testing::TestWithParam<Planted> {};

TEST_P(NotationMapFault, IsFound) {
  std::string text = TextOf("reference/NOTATION.md");
  const size_t at = text.find(GetParam().text);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string(GetParam().text).size(), GetParam().instead);
  const Names problems = Problems(text);
  EXPECT_TRUE(std::any_of(problems.begin(), problems.end(),
                          [](const std::string& problem) {
                            return problem.find(GetParam().problem) !=
                                   std::string::npos;
                          }))
      << ::testing::PrintToString(problems);
}

INSTANTIATE_TEST_SUITE_P(
    All, NotationMapFault,
    ::testing::Values(
        Planted{"[`LaplacePdf`]", "[`LaplacePd`]",
                "reference/laplace.h has no LaplacePd"},
        Planted{"[`LaplacePdf`]", "[`LaplaceCdf`]",
                "not on the map: reference/laplace.h LaplacePdf"},
        Planted{"(laplace.h)", "(laplac.h)", "reference/laplac.h is not there"},
        Planted{"(laplace.h)", "(../kernels/isa.h)",
                "kernels/isa.h is not what the column is for"},
        Planted{"[`RmsNormForwardRow`]", "[`RmsNormForward`]",
                "kernels/rmsnorm_body.h has no RmsNormForward"},
        Planted{"[1.2](SPEC.md#12-closed-form) |",
                "[1.9](SPEC.md#12-closed-form) |", "no section 1.9"},
        Planted{"[1.2](SPEC.md#12-closed-form) |",
                "[1.2](SPEC.md#12-closed-forms) |", "no section 1.2"},
        Planted{"[`budget`](../property", "[`budgets`](../property",
                "has no budgets"},
        Planted{"[`embedding`](../property", "[`Embedding`](../property",
                "not on the map: verify embedding"},
        Planted{"[`C4.balance`]", "[`C4.balances`]", "has no C4.balances"},
        Planted{"[`H2`]", "[`H1`]",
                "not on the map: golden/paper/miniature.toml H2"},
        Planted{"[`top3_share`]", "[`top3`]", "claims.toml has no top3"},
        Planted{"`gates`:", "`gate_values`:", "no gate_values at"},
        Planted{"[F2](#f2)", "[F99](#f99)", "no formula F99"},
        Planted{"[F2](#f2)", "[F2](#f3)", "no formula F2"}));

TEST(PublicFunctions, AreThoseOfTheNamespaceItself) {
  EXPECT_EQ(PublicFunctions(R"(
// double InAComment(int x);
#include "a.h"
namespace softmoe::reference {
struct Settings {
  int Member() const { return 1; }
};
template <typename N>
N Root(const N& k) {
  if (k < 0) Inner(k);
  return k;
}
inline double* Pointer(double x) { return nullptr; }
Settings operator+(Settings a, Settings b);
Matrix Forward(const Matrix& x,
               std::span<const int> replay = {});
namespace formula {
double Detail(double x);
}  // namespace formula
double Last(int x);
}  // namespace softmoe::reference
namespace softmoe::other {
double Elsewhere(int x);
}  // namespace softmoe::other
)"),
            (Names{"Forward", "Last", "Pointer", "Root"}));
}

// "[num_experts, d_model, 2 d_ffn]" of a model.
std::vector<int64_t> ShapeOf(const std::string& text, const ModelConfig& m) {
  const std::map<std::string, int64_t> sizes = {{"vocab_size", m.vocab_size},
                                                {"d_model", m.d_model},
                                                {"num_experts", m.num_experts},
                                                {"d_ffn", m.d_ffn},
                                                {"num_layers", m.num_layers}};
  std::vector<int64_t> shape;
  static const std::regex kExtent(R"((?:(\d+) )?(\w+)[,\]])");
  for (std::sregex_iterator at(text.begin(), text.end(), kExtent), end;
       at != end; ++at) {
    shape.push_back((at->str(1).empty() ? 1 : std::stoll(at->str(1))) *
                    sizes.at(at->str(2)));
  }
  return shape;
}

// In this order, by these names and in these shapes others get them.
TEST(NotationMap, ListsTheParameters) {
  Config config;
  config.router.kind = RouterKind::kSoftLearned;
  config.model = {.num_layers = 1,
                  .d_model = 6,
                  .num_heads = 1,
                  .d_ffn = 7,
                  .num_experts = 5,
                  .vocab_size = 11};
  const std::vector<ParameterTensor> tensors = ParameterLayout(config).tensors;
  const std::vector<Row> rows =
      TableUnder("Parameters", TextOf("reference/NOTATION.md"));
  ASSERT_EQ(rows.size(), tensors.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string& name = tensors[i].name;
    EXPECT_EQ(
        rows[i].cells[0],
        "`" + std::regex_replace(name, std::regex("\\.0\\."), ".L.") + "`");
    EXPECT_EQ(ShapeOf(rows[i].cells[1], config.model), tensors[i].shape)
        << name;
  }
}

}  // namespace
}  // namespace softmoe::verify

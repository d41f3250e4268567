// SPDX-License-Identifier: Apache-2.0
//
// The map of reference/NOTATION.md leads where it says, and lacks nothing that
// it should show. A symbol counts as found if it is a whole word of the file's
// text, even in a comment. What the reference offers is read from the
// declarations in its headers.
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

#include "core/files/runfiles.h"
#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {
namespace {

using Names = std::set<std::string>;

// [`text`](folder/file#anchor), as seen from the folder of the map.
struct Link {
  std::string text, path, anchor;
};

struct Row {
  std::string name;  // "F7"; a quantity's is its first cell
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

bool HasWord(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !IsWordCharacter(text[at - 1])) &&
        (end == text.size() || !IsWordCharacter(text[end]))) {
      return true;
    }
  }
  return false;
}

// The text of a file of this repository, "" if there is none.
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

std::vector<Link> LinksOf(const std::string& cell) {
  static const std::regex kLink(R"(\[`?([^\]`]*)`?\]\(([^)#]*)#?([^)]*)\))");
  std::vector<Link> links;
  for (std::sregex_iterator it(cell.begin(), cell.end(), kLink), end; it != end;
       ++it) {
    links.push_back({(*it)[1], (*it)[2], (*it)[3]});
  }
  return links;
}

std::filesystem::path FromRoot(const Link& link) {
  return ("reference" / std::filesystem::path(link.path)).lexically_normal();
}

// The rows below the heading `title`, without those of the table's own head.
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

// The names of the functions that a header declares in namespace
// softmoe::reference itself: neither members, operators nor inner namespaces.
Names PublicFunctions(const std::string& header) {
  const std::string text =
      std::regex_replace(header, std::regex(R"(//[^\n]*|#[^\n]*)"), "");
  const std::regex kDeclared(R"([\w>&*]\s+[&*]?(\w+)\s*\()");
  Names names;
  std::vector<bool> is_public;  // of each open brace
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

// The anchor that code hosts give a heading.
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

// Why this link in this column leads nowhere; "" if it leads somewhere.
std::string WhyNot(int column, const Link& link) {
  static const std::map<int, std::string> kFolders = {
      {kReference, "reference/[^/]*"},
      {kKernel, "kernels/.*"},
      {kProgram, "(optimized|trainer|experiments)/.*"},
      {kTests, ".*_test\\.cc"},
      {kVerify, "property_tests/verify/.*"},
      {kClaims, "golden/paper/.*"}};
  const std::filesystem::path path = FromRoot(link);
  if (!std::regex_match(path.string(), std::regex(kFolders.at(column)))) {
    return path.string() + " is not what the column is for";
  }
  const std::string& text = TextOf(path);
  if (text.empty()) return path.string() + " is not there";
  if (column == kReference && link.text == path.filename()) return "";
  bool has = HasWord(text, link.text);
  if (column == kVerify) {
    has = has &&
          std::any_of(Operations().begin(), Operations().end(),
                      [&](const auto* op) { return op->name() == link.text; });
  } else if (column == kClaims) {
    has = text.find("\nid = \"" + link.text + "\"\n") != std::string::npos;
  }
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
      if (name.ends_with("_formula.h") || name.ends_with("_body.h")) {
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

// One sentence with everything that is wrong with this text of the map.
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

TEST(NotationMap, LeadsEverywhere) {
  EXPECT_EQ(Problems(TextOf("reference/NOTATION.md")), Names());
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
        Planted{"[`C9`]", "[`C8`]",
                "not on the map: golden/paper/miniature.toml C9"},
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

}  // namespace
}  // namespace softmoe::verify

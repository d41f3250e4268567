// SPDX-License-Identifier: Apache-2.0
//
// The links of reference/NOTATION.md's map lead where they say, and the map is
// complete. What the reference offers is read from the declarations of its
// headers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/config/parameter_layout.h"
#include "core/files/paths.h"
#include "property_tests/verify/document_map.h"
#include "property_tests/verify/engine/operation.h"

namespace softmoe::verify {
namespace {

using document_map::All;
using document_map::AnchorOf;
using document_map::FromRoot;
using document_map::Has;
using document_map::HasWord;
using document_map::Link;
using document_map::LinksOf;
using document_map::Names;
using document_map::Row;
using document_map::TableUnder;
using document_map::TextOf;

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

// Reports what is missing from `linked`, the places to which the map leads:
// "folder/file symbol", or only "folder/file".
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

// The shape "[num_experts, d_model, 2 d_ffn]" for a model.
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

// Others get the parameters in this order, by these names, in these shapes.
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

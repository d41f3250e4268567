// SPDX-License-Identifier: Apache-2.0
#include "golden/document/imported_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/config/config_fields.h"
#include "core/config/config_text.h"
#include "core/config/config_toml.h"
#include "core/config/toml_reader.h"
#include "core/errors.h"
#include "core/files/sha256.h"
#include "core/text/ascii.h"
#include "core/text/suggestion.h"
#include "golden/document/decimal.h"
#include "golden/document/document_format.h"
#include "golden/document/fingerprint.h"

namespace softmoe::golden {
namespace {

using Strings = std::vector<std::string>;

// A fact whose value nobody knows; and the value of a run that gave no number.
constexpr char kUnknown[] = "unknown";
constexpr char kDiverged[] = "diverged";

const Table& FindTable(const Document& golden, TomlReader* reader) {
  const std::string id = reader->Text("table");
  const Table* table = golden.FindTable(id);
  if (table != nullptr) return *table;
  Strings known;
  for (const Table& candidate : golden.tables) known.push_back(candidate.id);
  reader->FailAt("table", fmt::format("is '{}', which the golden lacks; {}", id,
                                      Suggestion(id, known)));
}

Strings RowIds(const Table& table) {
  Strings ids;
  for (const Row& row : table.rows) ids.push_back(row.id);
  return ids;
}

// Throws DataError, "NAME: ...", for whatever golden documents may not hold.
void RequireValid(const Document& document, const std::string& name) {
  const std::string problem = FirstProblem(document);
  if (!problem.empty()) {
    throw DataError(fmt::format("{}: {}", name, problem));
  }
}

// ---- The set-up.

struct SetUp {
  const Table* table = nullptr;  // of the golden
  Document document;             // without rows
  std::vector<int64_t> seeds;
  std::map<std::string, std::vector<Field>> row_fields;
  std::string facts_place;  // FILE:LINE:COLUMN
};

class SetUpReader {
 public:
  SetUpReader(const NamedText& file, const Document& golden)
      : file_(file), golden_(golden), source_(ParseToml(file.text, file.name)) {
    VisitConfig(config_, [&](const std::string& section, const std::string& key,
                             const auto&, const AllowedRange&) {
      classes_[section + "." + key] = FieldClass::kMustMatch;
    });
  }

  SetUp Read() {
    TomlReader reader(&source_);
    Provenance& provenance = set_up_.document.provenance;
    provenance.origin = Origin::kOtherImplementation;
    provenance.source = Filled(&reader, "source");
    provenance.generator = Filled(&reader, "program");
    set_up_.table = &FindTable(golden_, &reader);
    for (const Row& row : set_up_.table->rows) {
      for (const Field& field : FieldsOf(golden_, row)) {
        classes_[field.name] = field.field_class;
      }
    }
    ReadSeeds(&reader);
    ReadColumns(&reader);
    set_up_.facts_place = file_.name + ":1";
    if (const toml::table* facts = reader.Table("facts")) {
      set_up_.facts_place = TomlPosition(*facts);
      for (const Fact& fact : ReadFacts(*facts, "")) {
        set_up_.document.fields.push_back(fact.field);
        of_all_rows_[fact.field.name] = fact.place;
      }
    }
    for (const toml::table* block : reader.Tables("rows")) ReadRows(*block);
    reader.Finish();
    RequireValid(set_up_.document, file_.name);
    return std::move(set_up_);
  }

 private:
  // Reads a text that the user had to fill in.
  static std::string Filled(TomlReader* reader, const std::string& key) {
    const std::string text = reader->Text(key);
    if (text.empty()) reader->FailAt(key, "is empty; fill it in");
    return text;
  }

  void ReadSeeds(TomlReader* reader) {
    set_up_.seeds = reader->Integers("seeds");
    const std::set<int64_t> distinct(set_up_.seeds.begin(),
                                     set_up_.seeds.end());
    if (distinct.empty() || distinct.size() != set_up_.seeds.size() ||
        *distinct.begin() < 0) {
      reader->FailAt(
          "seeds",
          "must list each seed once, none below 0; if the seeds are not "
          "known, number the runs: [1, 2, 3]");
    }
  }

  void ReadColumns(TomlReader* reader) {
    const Table& golden = *set_up_.table;
    Table& table = set_up_.document.tables.emplace_back(golden);
    table.rows.clear();
    table.columns.clear();
    table.rounding = Rounding::kNearest;
    const toml::table* columns = reader->Table("columns");
    if (columns == nullptr) {
      reader->FailAt("columns", "say the unit of each column with values");
    }
    TomlReader all(columns);
    for (const Column& column : golden.columns) {
      const toml::table* entry = all.Table(column.id);
      if (entry == nullptr) continue;
      TomlReader one(entry);
      const std::string unit = one.Text("unit");
      if (unit != column.unit) {
        one.FailAt("unit", fmt::format("is '{}', but the golden's {} is in "
                                       "'{}'; convert the values, then change "
                                       "the unit",
                                       unit, column.id, column.unit));
      }
      Column& own = table.columns.emplace_back(column);
      own.metric = one.TextOr("metric", column.metric);
      if (own.metric.empty()) one.FailAt("metric", "is empty; fill it in");
      one.Finish();
    }
    all.Finish();
  }

  struct Fact {
    Field field;
    std::string place;  // FILE:LINE:COLUMN
  };

  // The facts of a table: KEY = VALUE, and those of its sections, however deep:
  // [SECTION] KEY = VALUE.
  std::vector<Fact> ReadFacts(const toml::table& table,
                              const std::string& but) const {
    std::vector<Fact> facts;
    AddFacts(table, "", but, &facts);
    return facts;
  }

  void AddFacts(const toml::table& table, const std::string& section,
                const std::string& but, std::vector<Fact>* facts) const {
    for (const auto& [key, node] : table) {
      const std::string name = section + std::string(key);
      if (name == but) continue;
      if (const toml::table* inner = node.as_table()) {
        AddFacts(*inner, name + ".", but, facts);
        continue;
      }
      // a.b = 1 and "a.b" = 1 are two keys, but one fact.
      const bool twice = std::ranges::any_of(
          *facts, [&](const Fact& fact) { return fact.field.name == name; });
      if (twice) {
        throw DataError(
            fmt::format("{}: the fact '{}' is given twice; remove one",
                        TomlPosition(node), name));
      }
      facts->push_back({ReadFact(name, node), TomlPosition(node)});
    }
  }

  Field ReadFact(const std::string& name, const toml::node& node) const {
    const auto refuse = [&](const std::string& problem) {
      throw DataError(fmt::format("{}: the fact '{}' {}", TomlPosition(node),
                                  name, problem));
    };
    const auto known = classes_.find(name);
    if (known == classes_.end()) {
      Strings names;
      for (const auto& [candidate, unused] : classes_) {
        names.push_back(candidate);
      }
      refuse("is not known; " + Suggestion(name, names));
    }
    Field fact{.name = name, .value = {}, .field_class = known->second};
    if (const auto* text = node.as_string()) {
      fact.value = text->get();
    } else if (const auto* integer = node.as_integer()) {
      fact.value = TomlText(integer->get());
    } else if (const auto* number = node.as_floating_point()) {
      fact.value = TomlText(number->get());
    } else {
      refuse("must be a text or a number");
    }
    if (fact.value.empty()) {
      refuse("is empty; fill it in, or write \"unknown\"");
    }
    if (fact.value.find('\0') != std::string::npos) {
      refuse("contains a NUL character; remove it");
    }
    if (fact.value == kUnknown) {
      fact.value.clear();
      fact.known = Known::kUnknown;
    } else if (name == kBytesField) {
      const auto bytes = Decimal::Parse(fact.value);
      if (!bytes || !(bytes->ToDouble() > 0)) {
        refuse(
            fmt::format("is '{}', not a number above 0 such as 4.40, nor "
                        "\"unknown\"",
                        fact.value));
      }
    }
    return fact;
  }

  void ReadRows(const toml::table& block) {
    TomlReader reader(&block);
    const Strings rows = reader.Texts("rows");
    if (rows.empty()) reader.FailAt("rows", "must list the ids of rows");
    const std::vector<Fact> facts = ReadFacts(block, "rows");
    for (const Fact& fact : facts) {
      const auto shared = of_all_rows_.find(fact.field.name);
      if (shared == of_all_rows_.end()) continue;
      throw DataError(fmt::format(
          "{}: the fact '{}' is also given for all rows, under [facts] ({}); "
          "remove one of them, or give it only in [[rows]] blocks",
          fact.place, fact.field.name, shared->second));
    }
    for (const std::string& row : rows) {
      if (set_up_.table->FindRow(row) == nullptr) {
        reader.FailAt("rows",
                      fmt::format("names '{}', which the golden's {} "
                                  "lacks; {}",
                                  row, set_up_.table->id,
                                  Suggestion(row, RowIds(*set_up_.table))));
      }
      std::vector<Field>& fields = set_up_.row_fields[row];
      for (const auto& [fact, place] : facts) {
        if (std::ranges::count(fields, fact.name, &Field::name) > 0) {
          reader.FailAt("rows",
                        fmt::format("lists {}, for which an earlier block "
                                    "already gives '{}'; remove one of them",
                                    row, fact.name));
        }
        fields.push_back(fact);
      }
    }
  }

  const NamedText& file_;
  const Document& golden_;
  const toml::table source_;
  const Config config_;
  std::map<std::string, FieldClass> classes_;  // of all facts that there are
  std::map<std::string, std::string> of_all_rows_;  // facts -> FILE:LINE:COLUMN
  SetUp set_up_;
};

// ---- The values.

// One line with a value, in the order of the file.
struct ValueLine {
  int64_t line = 0;  // 1, 2, ...
  std::string row, seed, column, value;
};

class ValuesReader {
 public:
  explicit ValuesReader(const NamedText& file) : file_(file) {}

  std::vector<ValueLine> Read() {
    std::string_view rest = file_.text;
    if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
    std::vector<ValueLine> lines;
    for (line_ = 1; !rest.empty(); ++line_) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view text = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (text.ends_with('\r')) text.remove_suffix(1);
      if (text.empty() || text.starts_with('#')) continue;
      const Strings fields = Split(text);
      if (order_.empty()) {
        ReadHead(fields);
        continue;
      }
      if (fields.size() != order_.size()) {
        Fail(fmt::format(
            "{} fields, but 4 are needed: ROW,SEED,COLUMN,VALUE; write "
            "numbers with a decimal point",
            fields.size()));
      }
      ValueLine line{
          .line = line_, .row = {}, .seed = {}, .column = {}, .value = {}};
      for (size_t i = 0; i < fields.size(); ++i) line.*order_[i] = fields[i];
      lines.push_back(std::move(line));
    }
    if (order_.empty())
      Fail("the line row,seed,column,value is missing; write it first");
    return lines;
  }

 private:
  using Member = std::string ValueLine::*;

  [[noreturn]] void Fail(const std::string& problem) const {
    throw DataError(fmt::format("{}:{}: {}", file_.name, line_, problem));
  }

  // The fields between commas, without the blanks around them; those in quotes
  // without the quotes.
  Strings Split(std::string_view text) const {
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    Strings fields(1);
    bool quoted = false;
    size_t kept = 0;  // of the last field, up to the last quote
    const auto trim = [&] {
      std::string& field = fields.back();
      while (field.size() > kept && is_blank(field.back())) field.pop_back();
    };
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"' && quoted && text.substr(i + 1).starts_with('"')) {
        fields.back() += text[i++];
      } else if (text[i] == '"') {
        quoted = !quoted;
        kept = fields.back().size();
      } else if (text[i] == ',' && !quoted) {
        trim();
        fields.emplace_back();
        kept = 0;
      } else if (quoted || !fields.back().empty() || !is_blank(text[i])) {
        fields.back() += text[i];
      }
    }
    trim();
    if (quoted) Fail("a quotation mark is not closed on this line; close it");
    return fields;
  }

  void ReadHead(const Strings& names) {
    static const std::pair<const char*, Member> kMembers[] = {
        {"row", &ValueLine::row},
        {"seed", &ValueLine::seed},
        {"column", &ValueLine::column},
        {"value", &ValueLine::value}};
    for (const std::string& name : names) {
      for (const auto& [known, member] : kMembers) {
        if (name == known && std::ranges::count(order_, member) == 0) {
          order_.push_back(member);
        }
      }
    }
    if (order_.size() != std::size(kMembers) || names.size() != order_.size()) {
      Fail(
          "the first line must name the columns row,seed,column,value, "
          "separated by commas");
    }
  }

  const NamedText& file_;
  int64_t line_ = 0;
  std::vector<Member> order_;  // of the fields of a line
};

// ---- The document.

class Importer {
 public:
  Importer(const NamedText& values, const NamedText& set_up,
           const Document& golden)
      : values_(values),
        golden_(golden),
        set_up_(SetUpReader(set_up, golden).Read()),
        table_(set_up_.document.tables.front()) {}

  Document Import() {
    for (const ValueLine& line : ValuesReader(values_).Read()) Add(line);
    for (const int64_t seed : set_up_.seeds) {
      if (!seen_seeds_.contains(seed)) {
        throw DataError(
            fmt::format("{}: no values for the seed {}, which the set-up "
                        "lists; add them, or remove the seed there",
                        values_.name, seed));
      }
    }
    for (const auto& [column, accuracies] : accuracies_) {
      RequirePercentages(column, accuracies);
    }
    for (const Row& golden_row : set_up_.table->rows) {
      if (!cells_.contains(golden_row.id)) continue;
      RequireDistinctRuns(golden_row);
      AddRow(golden_row);
    }
    RequireValid(set_up_.document, values_.name);
    return std::move(set_up_.document);
  }

 private:
  // The numbers of one cell by seed; nullopt: that run diverged.
  struct Runs {
    std::map<int64_t, std::optional<double>> of_seed;
    std::string text;  // of the last value
  };

  // The numbers of a column of percentages.
  struct Accuracies {
    ValueLine first;
    double largest = 0;
  };

  [[noreturn]] void Fail(const ValueLine& line,
                         const std::string& problem) const {
    throw DataError(fmt::format("{}:{}: {}", values_.name, line.line, problem));
  }

  void Add(const ValueLine& line) {
    if (set_up_.table->FindRow(line.row) == nullptr) {
      Fail(line, fmt::format("no row '{}' in the golden's {}; {}", line.row,
                             set_up_.table->id,
                             Suggestion(line.row, RowIds(*set_up_.table))));
    }
    if (table_.FindColumn(line.column) < 0) {
      if (set_up_.table->FindColumn(line.column) >= 0) {
        Fail(line,
             fmt::format(
                 "the set-up states no unit for '{}'; add [columns.{}] there",
                 line.column, line.column));
      }
      Strings known;
      for (const Column& column : set_up_.table->columns) {
        known.push_back(column.id);
      }
      Fail(line,
           fmt::format("no column '{}' in the golden's {}; {}", line.column,
                       set_up_.table->id, Suggestion(line.column, known)));
    }
    const int64_t seed = Seed(line);
    if (line.value.empty()) return;  // not measured
    const auto [first, once] =
        lines_.try_emplace({line.row, line.column, seed}, line.line);
    if (!once) {
      Fail(line, fmt::format("{}, seed {}, {} has a value in line {}, too; "
                             "remove one of them",
                             line.row, seed, line.column, first->second));
    }
    seen_seeds_.insert(seed);
    Runs& runs = cells_[line.row][line.column];
    const std::optional<double> value = Value(line);
    runs.of_seed[seed] = value;
    runs.text = line.value;
    if (!value || ItemsOf(line.row, line.column) == 0) return;
    Accuracies& accuracies =
        accuracies_.try_emplace(line.column, Accuracies{line}).first->second;
    accuracies.largest = std::max(accuracies.largest, *value);
  }

  // 0.6153 could be a percentage, but only of a model that answers next to
  // nothing where all of the golden's answer more than 1 %.
  void RequirePercentages(const std::string& column,
                          const Accuracies& accuracies) const {
    const Table& golden = *set_up_.table;
    const auto index = static_cast<size_t>(golden.FindColumn(column));
    const bool golden_above =
        std::ranges::all_of(golden.rows, [index](const Row& row) {
          return row.cells[index].empty() || row.cells[index].value > 1;
        });
    // 0 is the same as a fraction and as a percentage.
    if (accuracies.largest > 1 || accuracies.largest == 0 || !golden_above) {
      return;
    }
    Fail(accuracies.first,
         fmt::format("the values of '{}' begin here, and none is above {:g}: "
                     "these look like fractions; multiply them by 100",
                     column, accuracies.largest));
  }

  // Refuses two seeds of a row whose numbers all agree: probably one run that
  // was pasted twice. Rounded numbers also agree by chance: seed noise reaches
  // at least the third digit, so each measured digit after it agrees in one of
  // ten pairs. Four such digits, over all columns, count as proof.
  void RequireDistinctRuns(const Row& golden_row) const {
    const std::string& row = golden_row.id;
    const std::vector<int64_t>& seeds = set_up_.seeds;
    for (size_t i = 0; i < seeds.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (DigitsInCommon(golden_row, seeds[i], seeds[j]) < 4) continue;
        const auto line = [&](int64_t seed) {
          int64_t first = std::numeric_limits<int64_t>::max();
          for (const auto& [place, number] : lines_) {
            const auto& [of_row, column, of_seed] = place;
            if (of_row == row && of_seed == seed) {
              first = std::min(first, number);
            }
          }
          return first;
        };
        throw DataError(fmt::format(
            "{}:{}: {}, seed {} has the same numbers as seed {} (line {}), "
            "probably one run entered twice; remove one of them, or give more "
            "digits if they are two runs",
            values_.name, line(seeds[i]), row, seeds[i], seeds[j],
            line(seeds[j])));
      }
    }
  }

  // Number of digits after the third in all measured numbers of a row, if these
  // are the same for both seeds; else 0.
  size_t DigitsInCommon(const Row& golden_row, int64_t one,
                        int64_t other) const {
    size_t digits = 0;
    for (const auto& [column, runs] : cells_.at(golden_row.id)) {
      const auto mine = runs.of_seed.find(one);
      const auto theirs = runs.of_seed.find(other);
      const bool has_one = mine != runs.of_seed.end();
      if (has_one != (theirs != runs.of_seed.end())) return 0;
      if (!has_one) continue;
      if (mine->second != theirs->second) return 0;
      if (!mine->second || IsFixed(golden_row, column)) continue;
      size_t own = DigitsOf(*mine->second);
      // A percentage of N items has no more digits than N.
      if (const int64_t items = ItemsOf(golden_row.id, column); items > 0) {
        own = std::min(own, std::to_string(items).size());
      }
      if (own > 3) digits += own - 3;
    }
    return digits;
  }

  // Digits in the shortest text of `value`, without zeros at either end.
  static size_t DigitsOf(double value) {
    std::string text = fmt::format("{}", value);
    text.resize(std::min(text.find('e'), text.size()));
    std::erase_if(text, [](char c) { return c == '-' || c == '.'; });
    text.erase(0, text.find_first_not_of('0'));
    return text.find_last_not_of('0') + 1;
  }

  // Whether seeds cannot change the number.
  bool IsFixed(const Row& golden_row, const std::string& column) const {
    const auto index = static_cast<size_t>(set_up_.table->FindColumn(column));
    return set_up_.table->columns[index].lane == Lane::kExact ||
           IsSetting(golden_, golden_row.cells[index]);
  }

  int64_t Seed(const ValueLine& line) const {
    const std::optional<int64_t> seed = ParseNumber<int64_t>(line.seed);
    if (!seed) {
      Fail(line, fmt::format("the seed '{}' is not a whole number; number the "
                             "runs if their seeds are not known",
                             line.seed));
    }
    if (std::ranges::count(set_up_.seeds, *seed) == 0) {
      Fail(line, fmt::format("the seed {} is not among the set-up's [{}]; add "
                             "it there, or correct it",
                             *seed, fmt::join(set_up_.seeds, ", ")));
    }
    return *seed;
  }

  std::optional<double> Value(const ValueLine& line) const {
    if (line.value == kDiverged) return std::nullopt;
    const std::optional<double> value = ParseNumber<double>(line.value);
    if (!value || !(std::fabs(*value) <= kLargestMeasured)) {
      Fail(line,
           fmt::format(
               "the value '{}' is not a number up to {:g}; leave it empty if "
               "nothing was measured, and write '{}' for a run that gave no "
               "number",
               line.value, kLargestMeasured, kDiverged));
    }
    if (ItemsOf(line.row, line.column) > 0 && !(*value >= 0 && *value <= 100)) {
      Fail(line, fmt::format("the value '{}' is no percentage of items; write "
                             "a number from 0 to 100",
                             line.value));
    }
    if (*value < 0 && !HasNegatives(line.column)) {
      Fail(line, fmt::format("the value '{}' is negative, and no number of the "
                             "golden's column {} is; correct it",
                             line.value, line.column));
    }
    return value;
  }

  bool HasNegatives(const std::string& column) const {
    const Table& golden = *set_up_.table;
    const auto index = static_cast<size_t>(golden.FindColumn(column));
    return std::ranges::any_of(golden.rows, [index](const Row& row) {
      return row.cells[index].value < 0;
    });
  }

  // The number of items of which the golden's number, or another one in its
  // column, is a percentage; 0 if none is.
  int64_t ItemsOf(const std::string& row, const std::string& column) const {
    const Table& golden = *set_up_.table;
    const auto index = static_cast<size_t>(golden.FindColumn(column));
    int64_t items = 0;
    for (const Row& golden_row : golden.rows) {
      const auto& proportion = golden_row.cells[index].proportion;
      if (proportion && (items == 0 || golden_row.id == row)) {
        items = proportion->total;
      }
    }
    return items;
  }

  void AddRow(const Row& golden_row) {
    Row row{.id = golden_row.id,
            .labels = golden_row.labels,
            .fields = set_up_.row_fields[golden_row.id],
            .cells = {}};
    std::set<int64_t> seeds;
    // A seed that diverged in one column diverged in all, and the mean of the
    // others is not the row's. Settings remain, as in the results of a grid.
    const auto& columns = cells_.at(row.id);
    const bool diverged = std::ranges::any_of(columns, [](const auto& cells) {
      return std::ranges::any_of(cells.second.of_seed, [](const auto& run) {
        return !run.second.has_value();
      });
    });
    for (const Column& column : table_.columns) {
      const auto found = columns.find(column.id);
      if (found == columns.end()) {
        row.cells.emplace_back();
        continue;
      }
      for (const auto& [seed, value] : found->second.of_seed) {
        seeds.insert(seed);
      }
      Cell cell = diverged && column.lane != Lane::kExact
                      ? DivergedCell()
                      : MakeCell(found->second);
      const int64_t items = ItemsOf(row.id, column.id);
      if (items > 0 && !cell.empty()) cell.proportion = Proportion{items, {}};
      row.cells.push_back(std::move(cell));
    }
    std::erase_if(row.fields, [](const Field& field) {
      return field.name == "training.seed";
    });
    row.fields.push_back({"training.seed",
                          fmt::format("{}", fmt::join(seeds, ", ")),
                          FieldClass::kIgnore, Known::kStated});
    RequireFacts(golden_row, row);
    table_.rows.push_back(std::move(row));
  }

  // Every field that must match must be stated, if only as unknown.
  void RequireFacts(const Row& golden_row, const Row& row) const {
    const std::vector<Field> said = FieldsOf(set_up_.document, row);
    Strings missing;
    for (const Field& field : FieldsOf(golden_, golden_row)) {
      if (field.field_class == FieldClass::kMustMatch &&
          std::ranges::count(said, field.name, &Field::name) == 0) {
        missing.push_back(field.name);
      }
    }
    if (missing.empty()) return;
    throw DataError(fmt::format(
        "{}: the row {} does not state {}; add it to [facts] or to a [[rows]] "
        "block, as \"unknown\" if nobody knows",
        set_up_.facts_place, row.id, fmt::join(missing, ", ")));
  }

  static Cell DivergedCell() {
    Cell cell;
    cell.flags = {"DIVERGED"};
    return cell;
  }

  static Cell MakeCell(const Runs& runs) {
    Cell cell;
    double sum = 0, squares = 0;
    for (const auto& [seed, value] : runs.of_seed) {
      if (!value) return DivergedCell();
      sum += *value;
    }
    cell.runs = static_cast<int64_t>(runs.of_seed.size());
    const auto count = static_cast<double>(cell.runs);
    cell.value = cell.low = cell.high = sum / count;
    for (const auto& [seed, value] : runs.of_seed) {
      squares += (*value - cell.value) * (*value - cell.value);
    }
    if (cell.runs > 1) cell.deviation = std::sqrt(squares / (count - 1));
    cell.text = cell.runs == 1 && Decimal::Parse(runs.text)
                    ? runs.text
                    : fmt::format("{:.{}f}", cell.value, kMeasuredDecimals);
    return cell;
  }

  const NamedText& values_;
  const Document& golden_;
  SetUp set_up_;
  Table& table_;                                              // of set_up_
  std::map<std::string, std::map<std::string, Runs>> cells_;  // row, column
  std::map<std::tuple<std::string, std::string, int64_t>, int64_t> lines_;
  std::set<int64_t> seen_seeds_;
  std::map<std::string, Accuracies> accuracies_;  // by column
};

// ---- Templates.

// A fact of the golden and the rows that have it.
struct SharedFact {
  Field field;
  Strings rows;
};

std::vector<SharedFact> SharedFacts(const Document& golden,
                                    const Table& table) {
  std::vector<SharedFact> facts;
  for (const Row& row : table.rows) {
    for (const Field& field : FieldsOf(golden, row)) {
      if (field.field_class == FieldClass::kIgnore) continue;
      const auto found = std::ranges::find(facts, field, &SharedFact::field);
      if (found == facts.end()) {
        facts.push_back({field, {row.id}});
      } else {
        found->rows.push_back(row.id);
      }
    }
  }
  return facts;
}

// `router.tau = ""  # in the golden: 1.8 (stated)`. Facts that are only
// reported may be left out.
std::string FactLine(const Field& field) {
  return fmt::format("{}{} = \"\"  # in the golden: {} ({})\n",
                     field.field_class == FieldClass::kReport ? "# " : "",
                     field.name, field.value.empty() ? "nothing" : field.value,
                     EnumName(field.known));
}

}  // namespace

Document ImportResults(const NamedText& values, const NamedText& set_up,
                       const Document& golden) {
  Document document = Importer(values, set_up, golden).Import();
  for (const auto& [name, file] :
       {std::pair{"import.values_sha256", &values},
        std::pair{"import.set_up_sha256", &set_up}}) {
    document.provenance.more.push_back(
        {name, Sha256Hex(file->text), FieldClass::kIgnore, Known::kStated});
  }
  return document;
}

ImportTemplate MakeImportTemplate(const Document& golden, const Table& table) {
  ImportTemplate files;
  files.values = fmt::format(
      "# Values of {}: one line for each row, seed and column, all digits.\n"
      "# Write what was measured after the last comma, or \"{}\" for a run\n"
      "# that gave no number; then its row has none. Lines without a value\n"
      "# may stay or be deleted. Repeat the lines for each seed: a number is\n"
      "# the mean over the seeds that have a line for it, even if not all do.\n"
      "row,seed,column,value\n",
      table.id, kDiverged);
  for (const Row& row : table.rows) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (row.cells[c].empty()) continue;
      files.values += fmt::format("{},1,{},\n", row.id, table.columns[c].id);
    }
  }

  std::string& text = files.set_up;
  text = fmt::format(
      "# The set-up of the values of {}. Fill in every \"\" with your own\n"
      "# fact, not with the golden's, or with \"{}\" if nobody knows it.\n"
      "# Lines that begin with # may stay as they are; rows without values,\n"
      "# and blocks without rows, may be deleted.\n"
      "source = \"\"   # whose numbers: paper or report, with its version\n"
      "program = \"\"  # what computed them, with its version\n"
      "table = {}\n"
      "# The seeds of the values; if they are not known, number the runs.\n"
      "seeds = [1]\n",
      table.id, kUnknown, TomlText(table.id));
  text +=
      "\n# Values must be in these units. `metric` is how they were measured;\n"
      "# change it if yours differs. If the paper's then says \"not stated\" "
      "or\n"
      "# \"read as\", all of yours is ASSUMED, and verdicts name it; else the\n"
      "# column is NOT_COMPARABLE.\n";
  for (const Column& column : table.columns) {
    text += fmt::format("[columns.{}]\nunit = {}\nmetric = {}\n", column.id,
                        TomlText(column.unit), TomlText(column.metric));
  }

  text += "\n# Facts of all rows.\n[facts]\n";
  const std::vector<SharedFact> facts = SharedFacts(golden, table);
  for (const SharedFact& fact : facts) {
    if (fact.rows.size() == table.rows.size()) text += FactLine(fact.field);
  }
  std::set<Strings> done;
  for (const SharedFact& fact : facts) {
    if (fact.rows.size() == table.rows.size() ||
        !done.insert(fact.rows).second) {
      continue;
    }
    text += "\n[[rows]]\nrows = [\n";
    for (const std::string& row : fact.rows) {
      text += fmt::format("  {},\n", TomlText(row));
    }
    text += "]\n";
    for (const SharedFact& other : facts) {
      if (other.rows == fact.rows) text += FactLine(other.field);
    }
  }
  return files;
}

}  // namespace softmoe::golden

// SPDX-License-Identifier: Apache-2.0
//
// The envelope is checked by core/hdf5/hdf5_file; here every group, attribute
// and dataset is accounted for, and FirstProblem judges what they mean.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "core/text/suggestion.h"
#include "golden/document/document.h"
#include "golden/document/document_format.h"

namespace softmoe::golden {
namespace {

using Strings = std::vector<std::string>;
using Integers = std::vector<int64_t>;

constexpr const char* kRemake =
    "make the file anew with this version of the program that wrote it";

class DocumentReader {
 public:
  explicit DocumentReader(const Hdf5Reader* file) : file_(*file) {}

  Document Read() {
    CheckGroup("/", {"schema", "schema_version"},
               {"claims", "fields", "notes", "provenance", "tables"});
    const std::string schema = file_.ReadString("/", "schema");
    if (schema != kSchemaName) {
      Fail("/@schema", fmt::format("is '{}', not '{}'", schema, kSchemaName));
    }
    const int64_t version = file_.ReadInt("/", "schema_version");
    if (version != kSchemaVersion) {
      Fail("/@schema_version", fmt::format("is {}, but this program reads {}",
                                           version, kSchemaVersion));
    }
    Document document;
    document.provenance = ReadProvenance();
    CheckGroup("/fields", {}, kFieldNames);
    document.fields = ReadFields("/fields");
    const Strings tables = file_.Children("/tables");
    document.tables.resize(tables.size());
    std::vector<bool> taken(tables.size());
    CheckGroup("/tables", {}, tables);
    for (const std::string& id : tables) {
      const std::string group = "/tables/" + id;
      CheckGroup(group, {"position", "title", "caption", "rounding_rule"},
                 {"rows", "labels", "fields", "cells"});
      Table table = ReadTable(group);
      table.id = id;
      document.tables[Position(group, &taken)] = std::move(table);
    }
    document.notes = ReadNotes();
    document.claims = ReadClaims();
    return document;
  }

 private:
  inline static const Strings kFieldNames = {"name", "value", "class", "known"};

  [[noreturn]] void Fail(const std::string& place,
                         const std::string& problem) const {
    throw DataError(fmt::format("'{}': '{}' {}; {}", file_.path().string(),
                                place, problem, kRemake));
  }

  void CheckNames(const std::string& owner, const std::string& what,
                  const Strings& found, const Strings& known,
                  const Strings& optional) const {
    for (const std::string& name : found) {
      if (std::count(known.begin(), known.end(), name) +
              std::count(optional.begin(), optional.end(), name) ==
          0) {
        Strings all = known;
        all.insert(all.end(), optional.begin(), optional.end());
        Fail(owner, fmt::format("has the unknown {} '{}' ({})", what, name,
                                all.empty() ? "none is known here"
                                            : Suggestion(name, all)));
      }
    }
    for (const std::string& name : known) {
      if (std::find(found.begin(), found.end(), name) == found.end()) {
        Fail(owner, fmt::format("lacks the {} '{}'", what, name));
      }
    }
  }

  // Checks that a group has exactly the known attributes and children.
  void CheckGroup(const std::string& group, const Strings& attributes,
                  const Strings& children, const Strings& optional = {}) const {
    CheckNames(group, "child", file_.Children(group), children, {});
    CheckNames(group, "attribute", file_.Attributes(group), attributes,
               optional);
  }

  // A rank-1 dataset without attributes, of `count` entries if not negative.
  template <typename T>
  std::vector<T> List(const std::string& path, int64_t count = -1) const {
    Hdf5Array<T> array = file_.ReadDataset<T>(path);
    CheckNames(path, "attribute", file_.Attributes(path), {}, {});
    if (array.shape.size() != 1) {
      Fail(path, fmt::format("has {} dimensions, not 1", array.shape.size()));
    }
    if (count >= 0 && array.shape[0] != count) {
      Fail(path, fmt::format("has {} entries, but {} are needed: one for each "
                             "row or entry of its group",
                             array.shape[0], count));
    }
    return std::move(array.values);
  }

  // The place of a table or column in its document or table.
  size_t Position(const std::string& object, std::vector<bool>* taken) const {
    const int64_t position = file_.ReadInt(object, "position");
    const int64_t count = static_cast<int64_t>(taken->size());
    if (position < 0 || position >= count ||
        (*taken)[static_cast<size_t>(position)]) {
      Fail(object + "@position",
           fmt::format("is {}, but each of 0..{} is needed once", position,
                       count - 1));
    }
    (*taken)[static_cast<size_t>(position)] = true;
    return static_cast<size_t>(position);
  }

  template <typename E>
  E Named(const std::string& place, const std::string& name) const {
    E value;
    if (!ParseName(name, &value)) {
      Fail(place, fmt::format("is '{}', but {} is needed", name, Choices<E>()));
    }
    return value;
  }
  template <typename E>
  E NamedAttribute(const std::string& object, const std::string& name) const {
    return Named<E>(object + "@" + name, file_.ReadString(object, name));
  }

  std::vector<Field> ReadFields(const std::string& group,
                                int64_t count = -1) const {
    const Strings names = List<std::string>(group + "/name", count);
    count = static_cast<int64_t>(names.size());
    const Strings values = List<std::string>(group + "/value", count);
    const Strings classes = List<std::string>(group + "/class", count);
    const Strings known = List<std::string>(group + "/known", count);
    std::vector<Field> fields(names.size());
    for (size_t i = 0; i < fields.size(); ++i) {
      fields[i].name = names[i];
      fields[i].value = values[i];
      fields[i].field_class =
          Named<FieldClass>(fmt::format("{}/class[{}]", group, i), classes[i]);
      fields[i].known =
          Named<Known>(fmt::format("{}/known[{}]", group, i), known[i]);
    }
    return fields;
  }

  Provenance ReadProvenance() const {
    const std::string group = "/provenance";
    CheckGroup(group,
               {"origin", "source", "generator", "created_utc", "git_commit",
                "config_hash", "compiler", "cpu", "isa"},
               kFieldNames);
    Provenance provenance;
    provenance.origin = NamedAttribute<Origin>(group, "origin");
    provenance.source = file_.ReadString(group, "source");
    provenance.generator = file_.ReadString(group, "generator");
    provenance.created_utc = file_.ReadString(group, "created_utc");
    provenance.git_commit = file_.ReadString(group, "git_commit");
    provenance.config_hash = file_.ReadString(group, "config_hash");
    provenance.compiler = file_.ReadString(group, "compiler");
    provenance.cpu = file_.ReadString(group, "cpu");
    provenance.isa = file_.ReadString(group, "isa");
    provenance.more = ReadFields(group);
    return provenance;
  }

  // The owner of every entry of a list of lists: in order, in range.
  Integers ReadOwners(const std::string& group, size_t num_owners) const {
    const Integers owners = List<int64_t>(group + "/row");
    int64_t previous = 0;
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] < previous ||
          owners[i] >= static_cast<int64_t>(num_owners)) {
        Fail(fmt::format("{}/row[{}]", group, i),
             fmt::format("is {}, but the rows are 0..{}, in ascending order",
                         owners[i], static_cast<int64_t>(num_owners) - 1));
      }
      previous = owners[i];
    }
    return owners;
  }

  std::vector<Strings> ReadTexts(const std::string& group,
                                 size_t num_owners) const {
    CheckGroup(group, {}, {"row", "text"});
    const Integers owners = ReadOwners(group, num_owners);
    const Strings texts =
        List<std::string>(group + "/text", static_cast<int64_t>(owners.size()));
    std::vector<Strings> lists(num_owners);
    for (size_t i = 0; i < owners.size(); ++i) {
      lists[static_cast<size_t>(owners[i])].push_back(texts[i]);
    }
    return lists;
  }

  Table ReadTable(const std::string& group) const {
    Table table;
    table.title = file_.ReadString(group, "title");
    table.caption = file_.ReadString(group, "caption");
    table.rounding = NamedAttribute<Rounding>(group, "rounding_rule");
    const Strings ids = List<std::string>(group + "/rows");
    const std::vector<Strings> labels =
        ReadTexts(group + "/labels", ids.size());
    table.rows.resize(ids.size());
    for (size_t r = 0; r < ids.size(); ++r) {
      table.rows[r].id = ids[r];
      table.rows[r].labels = labels[r];
    }
    CheckGroup(group + "/fields", {},
               {"row", "name", "value", "class", "known"});
    const Integers owners = ReadOwners(group + "/fields", ids.size());
    const std::vector<Field> fields =
        ReadFields(group + "/fields", static_cast<int64_t>(owners.size()));
    for (size_t i = 0; i < fields.size(); ++i) {
      table.rows[static_cast<size_t>(owners[i])].fields.push_back(fields[i]);
    }
    ReadColumns(group + "/cells", &table);
    return table;
  }

  void ReadColumns(const std::string& group, Table* table) const {
    const Strings columns = file_.Children(group);
    CheckGroup(group, {}, columns);
    table->columns.resize(columns.size());
    for (Row& row : table->rows) row.cells.resize(columns.size());
    std::vector<bool> taken(columns.size());
    for (const std::string& id : columns) {
      const std::string path = group + "/" + id;
      CheckGroup(path,
                 {"position", "unit", "metric_def", "direction", "lane",
                  "decimals", "margin_basis"},
                 {"text", "value", "value_lo", "value_hi", "bold", "n_runs",
                  "sd", "sd_known", "count_N", "counts", "flags", "notes"},
                 {"margin"});
      const size_t position = Position(path, &taken);
      table->columns[position] = ReadColumn(path, id);
      std::vector<Cell> cells = ReadCells(path, table->rows.size());
      for (size_t r = 0; r < cells.size(); ++r) {
        table->rows[r].cells[position] = std::move(cells[r]);
      }
    }
  }

  Column ReadColumn(const std::string& path, const std::string& id) const {
    Column column;
    column.id = id;
    column.unit = file_.ReadString(path, "unit");
    column.metric = file_.ReadString(path, "metric_def");
    column.direction = NamedAttribute<Direction>(path, "direction");
    column.lane = NamedAttribute<Lane>(path, "lane");
    const int64_t decimals = file_.ReadInt(path, "decimals");
    // Clamped to the range of int; FirstProblem checks the real range.
    column.decimals = static_cast<int>(std::clamp<int64_t>(decimals, -1, 1000));
    if (file_.HasAttribute(path, "margin")) {
      column.margin = file_.ReadDouble(path, "margin");
    }
    column.margin_basis = file_.ReadString(path, "margin_basis");
    return column;
  }

  bool Bit(const std::string& path, const std::vector<uint8_t>& bits,
           size_t index) const {
    if (bits[index] > 1) {
      Fail(fmt::format("{}[{}]", path, index),
           fmt::format("is {}, but 0 or 1 is needed", bits[index]));
    }
    return bits[index] == 1;
  }

  std::vector<Cell> ReadCells(const std::string& path, size_t rows) const {
    const auto count = static_cast<int64_t>(rows);
    const auto text = List<std::string>(path + "/text", count);
    const auto value = List<double>(path + "/value", count);
    const auto low = List<double>(path + "/value_lo", count);
    const auto high = List<double>(path + "/value_hi", count);
    const auto bold = List<uint8_t>(path + "/bold", count);
    const auto runs = List<int64_t>(path + "/n_runs", count);
    const auto deviation = List<double>(path + "/sd", count);
    const auto deviation_known = List<uint8_t>(path + "/sd_known", count);
    const auto total = List<int64_t>(path + "/count_N", count);
    const std::vector<Strings> flags = ReadTexts(path + "/flags", rows);
    const std::vector<Strings> notes = ReadTexts(path + "/notes", rows);
    std::vector<Cell> cells(rows);
    for (size_t r = 0; r < rows; ++r) {
      Cell& cell = cells[r];
      cell.text = text[r];
      cell.value = value[r];
      cell.low = low[r];
      cell.high = high[r];
      cell.bold = Bit(path + "/bold", bold, r);
      cell.runs = runs[r];
      if (Bit(path + "/sd_known", deviation_known, r)) {
        cell.deviation = deviation[r];
      } else if (!(deviation[r] == 0)) {
        Fail(fmt::format("{}/sd[{}]", path, r),
             fmt::format("is {} although sd_known is 0", deviation[r]));
      }
      if (total[r] != 0) cell.proportion = Proportion{total[r], {}};
      cell.flags = flags[r];
      cell.notes = notes[r];
    }
    ReadCounts(path + "/counts", &cells);
    return cells;
  }

  void ReadCounts(const std::string& group, std::vector<Cell>* cells) const {
    CheckGroup(group, {}, {"row", "count_k"});
    const Integers owners = ReadOwners(group, cells->size());
    const Integers counts =
        List<int64_t>(group + "/count_k", static_cast<int64_t>(owners.size()));
    for (size_t i = 0; i < owners.size(); ++i) {
      Cell& cell = (*cells)[static_cast<size_t>(owners[i])];
      if (!cell.proportion) {
        Fail(fmt::format("{}/row[{}]", group, i),
             fmt::format("gives a count for row {}, whose count_N is 0",
                         owners[i]));
      }
      cell.proportion->counts.push_back(counts[i]);
    }
  }

  std::vector<Note> ReadNotes() const {
    CheckGroup("/notes", {}, {"id", "text", "concerns"});
    const Strings ids = List<std::string>("/notes/id");
    const Strings texts =
        List<std::string>("/notes/text", static_cast<int64_t>(ids.size()));
    const std::vector<Strings> concerns =
        ReadTexts("/notes/concerns", ids.size());
    std::vector<Note> notes;
    for (size_t i = 0; i < ids.size(); ++i) {
      notes.push_back({ids[i], texts[i], concerns[i]});
    }
    return notes;
  }

  std::vector<Claim> ReadClaims() const {
    const std::string group = "/claims";
    CheckGroup(
        group, {},
        {"id", "text", "lhs", "op", "rhs", "scope", "published_verdict"});
    std::vector<Claim> claims(List<std::string>(group + "/id").size());
    auto read = [&](const char* name, std::string Claim::*member) {
      const Strings values = List<std::string>(
          group + "/" + name, static_cast<int64_t>(claims.size()));
      for (size_t i = 0; i < values.size(); ++i) claims[i].*member = values[i];
    };
    read("id", &Claim::id);
    read("text", &Claim::text);
    read("lhs", &Claim::left);
    read("op", &Claim::op);
    read("rhs", &Claim::right);
    read("scope", &Claim::scope);
    read("published_verdict", &Claim::published_verdict);
    return claims;
  }

  const Hdf5Reader& file_;
};

}  // namespace

Document ReadDocument(const std::filesystem::path& path) {
  const Hdf5Reader file(path, GoldenKind());
  Document document = DocumentReader(&file).Read();
  const std::string problem = FirstProblem(document);
  if (!problem.empty()) {
    throw DataError(fmt::format("'{}': {}", path.string(), problem));
  }
  return document;
}

}  // namespace softmoe::golden

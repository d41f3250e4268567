// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "golden/document/document.h"
#include "golden/document/document_format.h"

namespace softmoe::golden {
namespace {

using Strings = std::vector<std::string>;
using Integers = std::vector<int64_t>;

class DocumentWriter {
 public:
  explicit DocumentWriter(Hdf5Writer* file) : file_(*file) {}

  void Write(const Document& document) {
    file_.WriteAttribute("/", "schema", kSchemaName);
    file_.WriteAttribute("/", "schema_version", kSchemaVersion);
    WriteProvenance(document.provenance);
    file_.CreateGroup("/fields");
    WriteFields("/fields", document.fields);
    file_.CreateGroup("/tables");
    for (size_t t = 0; t < document.tables.size(); ++t) {
      WriteTable(document.tables[t], static_cast<int64_t>(t));
    }
    WriteNotes(document.notes);
    WriteClaims(document.claims);
  }

 private:
  // One column of a list of structs.
  template <typename Item>
  void WriteStrings(const std::string& path, const std::vector<Item>& items,
                    const std::function<std::string(const Item&)>& get) {
    Strings values;
    for (const Item& item : items) values.push_back(get(item));
    file_.WriteDataset(path, values);
  }

  void WriteFields(const std::string& group, const std::vector<Field>& fields) {
    WriteStrings<Field>(group + "/name", fields,
                        [](const Field& f) { return f.name; });
    WriteStrings<Field>(group + "/value", fields,
                        [](const Field& f) { return f.value; });
    WriteStrings<Field>(group + "/class", fields,
                        [](const Field& f) { return NameOf(f.field_class); });
    WriteStrings<Field>(group + "/known", fields,
                        [](const Field& f) { return NameOf(f.known); });
  }

  void WriteProvenance(const Provenance& provenance) {
    const std::string group = "/provenance";
    file_.CreateGroup(group);
    file_.WriteAttribute(group, "origin", NameOf(provenance.origin));
    file_.WriteAttribute(group, "source", provenance.source);
    file_.WriteAttribute(group, "generator", provenance.generator);
    file_.WriteAttribute(group, "created_utc", provenance.created_utc);
    file_.WriteAttribute(group, "git_commit", provenance.git_commit);
    file_.WriteAttribute(group, "config_hash", provenance.config_hash);
    file_.WriteAttribute(group, "compiler", provenance.compiler);
    file_.WriteAttribute(group, "cpu", provenance.cpu);
    file_.WriteAttribute(group, "isa", provenance.isa);
    WriteFields(group, provenance.more);
  }

  // The lists that each row has, end to end, with the row of every entry.
  template <typename Item, typename Owner>
  Integers WriteOwners(
      const std::string& group, const std::vector<Owner>& owners,
      std::vector<Item>* items,
      const std::function<std::vector<Item>(const Owner&)>& get) {
    Integers indices;
    for (size_t i = 0; i < owners.size(); ++i) {
      for (const Item& item : get(owners[i])) {
        indices.push_back(static_cast<int64_t>(i));
        items->push_back(item);
      }
    }
    file_.CreateGroup(group);
    file_.WriteDataset(group + "/row", indices);
    return indices;
  }

  template <typename Owner>
  void WriteTexts(const std::string& group, const std::vector<Owner>& owners,
                  const std::function<Strings(const Owner&)>& get) {
    Strings texts;
    WriteOwners<std::string, Owner>(group, owners, &texts, get);
    file_.WriteDataset(group + "/text", texts);
  }

  void WriteTable(const Table& table, int64_t position) {
    const std::string group = "/tables/" + table.id;
    file_.CreateGroup(group);
    file_.WriteAttribute(group, "position", position);
    file_.WriteAttribute(group, "title", table.title);
    file_.WriteAttribute(group, "caption", table.caption);
    file_.WriteAttribute(group, "rounding_rule", NameOf(table.rounding));
    WriteStrings<Row>(group + "/rows", table.rows,
                      [](const Row& row) { return row.id; });
    WriteTexts<Row>(group + "/labels", table.rows,
                    [](const Row& row) { return row.labels; });
    std::vector<Field> fields;
    WriteOwners<Field, Row>(group + "/fields", table.rows, &fields,
                            [](const Row& row) { return row.fields; });
    WriteFields(group + "/fields", fields);
    file_.CreateGroup(group + "/cells");
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const std::string column = group + "/cells/" + table.columns[c].id;
      file_.CreateGroup(column);
      file_.WriteAttribute(column, "position", static_cast<int64_t>(c));
      WriteColumn(column, table.columns[c]);
      std::vector<Cell> cells;
      for (const Row& row : table.rows) cells.push_back(row.cells[c]);
      WriteCells(column, cells);
    }
  }

  void WriteColumn(const std::string& group, const Column& column) {
    file_.WriteAttribute(group, "unit", column.unit);
    file_.WriteAttribute(group, "metric_def", column.metric);
    file_.WriteAttribute(group, "direction", NameOf(column.direction));
    file_.WriteAttribute(group, "lane", NameOf(column.lane));
    file_.WriteAttribute(group, "decimals",
                         static_cast<int64_t>(column.decimals));
    if (column.margin) file_.WriteAttribute(group, "margin", *column.margin);
    file_.WriteAttribute(group, "margin_basis", column.margin_basis);
  }

  void WriteCells(const std::string& group, const std::vector<Cell>& cells) {
    WriteStrings<Cell>(group + "/text", cells,
                       [](const Cell& cell) { return cell.text; });
    std::vector<double> value, low, high, deviation;
    std::vector<uint8_t> bold, deviation_known;
    Integers runs, total;
    for (const Cell& cell : cells) {
      value.push_back(cell.value);
      low.push_back(cell.low);
      high.push_back(cell.high);
      bold.push_back(cell.bold ? 1 : 0);
      runs.push_back(cell.runs);
      deviation.push_back(cell.deviation.value_or(0.0));
      deviation_known.push_back(cell.deviation ? 1 : 0);
      total.push_back(cell.proportion ? cell.proportion->total : 0);
    }
    file_.WriteDataset(group + "/value", value);
    file_.WriteDataset(group + "/value_lo", low);
    file_.WriteDataset(group + "/value_hi", high);
    file_.WriteDataset(group + "/bold", bold);
    file_.WriteDataset(group + "/n_runs", runs);
    file_.WriteDataset(group + "/sd", deviation);
    file_.WriteDataset(group + "/sd_known", deviation_known);
    file_.WriteDataset(group + "/count_N", total);
    Integers counts;
    WriteOwners<int64_t, Cell>(
        group + "/counts", cells, &counts, [](const Cell& cell) {
          return cell.proportion ? cell.proportion->counts : Integers();
        });
    file_.WriteDataset(group + "/counts/count_k", counts);
    WriteTexts<Cell>(group + "/flags", cells,
                     [](const Cell& cell) { return cell.flags; });
    WriteTexts<Cell>(group + "/notes", cells,
                     [](const Cell& cell) { return cell.notes; });
  }

  void WriteNotes(const std::vector<Note>& notes) {
    file_.CreateGroup("/notes");
    WriteStrings<Note>("/notes/id", notes, [](const Note& n) { return n.id; });
    WriteStrings<Note>("/notes/text", notes,
                       [](const Note& n) { return n.text; });
    WriteTexts<Note>("/notes/concerns", notes,
                     [](const Note& n) { return n.concerns; });
  }

  void WriteClaims(const std::vector<Claim>& claims) {
    const std::string group = "/claims";
    file_.CreateGroup(group);
    auto write = [&](const char* name, std::string Claim::*member) {
      WriteStrings<Claim>(group + "/" + name, claims,
                          [member](const Claim& c) { return c.*member; });
    };
    write("id", &Claim::id);
    write("text", &Claim::text);
    write("lhs", &Claim::left);
    write("op", &Claim::op);
    write("rhs", &Claim::right);
    write("scope", &Claim::scope);
    write("published_verdict", &Claim::published_verdict);
  }

  Hdf5Writer& file_;
};

}  // namespace

void WriteDocument(const Document& document,
                   const std::filesystem::path& path) {
  const std::string problem = FirstProblem(document);
  SOFTMOE_CHECK(problem.empty())
      << "a document for '" << path.string() << "': " << problem;
  Hdf5Writer file(path, GoldenKind());
  DocumentWriter(&file).Write(document);
  file.Commit();
}

}  // namespace softmoe::golden

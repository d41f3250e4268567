// SPDX-License-Identifier: Apache-2.0
//
// Everything that a reader must refuse, with the place and the remedy in the
// message: first meanings (FirstProblem), then structure (ReadDocument).
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "core/errors.h"
#include "core/file_test_util.h"
#include "core/hdf5_file.h"
#include "golden/document.h"
#include "golden/document_format.h"
#include "golden/document_test_util.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct BadDocument {
  std::string name;
  std::function<void(Document*)> spoil;
  std::string place;   // what the message must name
  std::string remedy;  // and say
};

Cell& LossCell(Document* document) {
  return document->tables[0].rows[0].cells[0];
}
Column& Loss(Document* document) { return document->tables[0].columns[0]; }

std::vector<BadDocument> BadDocuments() {
  const std::string loss = "'/tables/main/cells/loss";
  return {
      {"nan", [](Document* d) { LossCell(d).value = kNan; },
       loss + "/value[0]' is nan", "DIVERGED"},
      {"infinity", [](Document* d) { LossCell(d).high = kInfinity; },
       loss + "/value_hi[0]' is inf", "DIVERGED"},
      {"minus_infinity", [](Document* d) { LossCell(d).low = -kInfinity; },
       loss + "/value_lo[0]' is -inf", "DIVERGED"},
      {"nan_deviation", [](Document* d) { LossCell(d).deviation = kNan; },
       loss + "/sd[0]' is nan", "store what was measured"},
      {"nan_margin", [](Document* d) { Loss(d).margin = kNan; },
       loss + "@margin' is nan", "store what was measured"},
      {"sentinel",
       [](Document* d) {
         LossCell(d) = {
             .text = "-999", .value = -999, .low = -999, .high = -999};
       },
       loss + "/value[0]' is the placeholder -999", "store what was measured"},
      {"placeholder_text", [](Document* d) { LossCell(d).text = "TBD"; },
       loss + "/text[0]' is the placeholder 'TBD'", "fill it in"},
      {"placeholder_unit", [](Document* d) { Loss(d).unit = "todo: unit"; },
       loss + "@unit' is the placeholder", "fill it in"},
      {"placeholder_source", [](Document* d) { d->provenance.source = "???"; },
       "'/provenance@source'", "fill it in"},
      {"text_is_no_number", [](Document* d) { LossCell(d).text = "2.8 (3)"; },
       loss + "/text[0]' is '2.8 (3)'", "plain decimal number"},
      {"text_of_another_value", [](Document* d) { LossCell(d).text = "2.86"; },
       loss + "/text[0]' is '2.86', but the value is 2.84", "print the value"},
      {"no_unit", [](Document* d) { Loss(d).unit = ""; },
       loss + "@unit' is empty", "fill it in"},
      {"no_metric", [](Document* d) { Loss(d).metric = ""; },
       loss + "@metric_def' is empty", "fill it in"},
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
      {"no_margin_basis", [](Document* d) { Loss(d).margin_basis = ""; },
       loss + "@margin_basis' is empty", "fill it in"},
      {"decimals", [](Document* d) { Loss(d).decimals = -1; },
       loss + "@decimals' is -1", "use 0 to 12"},
      {"outside_interval", [](Document* d) { LossCell(d).high = 2.836; },
       loss + "/value[0]' 2.84 is outside", "value_lo <= value"},
      {"empty_with_value",
       [](Document* d) { d->tables[0].rows[1].cells[0].value = 1; },
       loss + "/text[1]' is empty, but", "print the number"},
      {"no_runs", [](Document* d) { LossCell(d).runs = 0; },
       loss + "/n_runs[0]' is 0", "at least one run"},
      {"deviation_of_one_run", [](Document* d) { LossCell(d).runs = 1; },
       loss + "/sd[0]'", "needs two runs"},
      {"negative_deviation", [](Document* d) { LossCell(d).deviation = -0.1; },
       loss + "/sd[0]'", "at least 0"},
      {"count_too_large",
       [](Document* d) {
         d->tables[0].rows[0].cells[1].proportion->counts = {1839};
       },
       "'/tables/main/cells/piqa/count_N[0]'", "between 0 and the total"},
      {"counts_not_ascending",
       [](Document* d) {
         d->tables[0].rows[0].cells[1].proportion->counts = {7, 7};
       },
       "'/tables/main/cells/piqa/count_N[0]'", "counts ascend"},
      {"no_items",
       [](Document* d) {
         d->tables[0].rows[0].cells[1].proportion = Proportion{-1, {}};
       },
       "'/tables/main/cells/piqa/count_N[0]' has -1 items", "at least one"},
      {"flag", [](Document* d) { LossCell(d).flags = {"odd flag"}; },
       loss + "/flags[0]'", "capital letters"},
      {"ragged_row", [](Document* d) { d->tables[0].rows[0].cells.pop_back(); },
       "'/tables/main/rows[0]' (owt/sparse/k1) has 2 cells",
       "one cell per column"},
      {"table_id", [](Document* d) { d->tables[0].id = "main/x"; },
       "has the id 'main/x'", "lower-case letters"},
      {"same_table", [](Document* d) { d->tables[1].id = "main"; },
       "'/tables/main' occurs twice", "rename"},
      {"same_column", [](Document* d) { d->tables[0].columns[1].id = "loss"; },
       loss + "' occurs twice", "rename"},
      {"same_row",
       [](Document* d) { d->tables[0].rows[1].id = "owt/sparse/k1"; },
       "'/tables/main/rows[1]' occurs twice", "rename"},
      {"row_id", [](Document* d) { d->tables[0].rows[1].id = "k: 2"; },
       "'/tables/main/rows[1]' has the id 'k: 2'", "without spaces"},
      {"no_title", [](Document* d) { d->tables[0].title = ""; },
       "'/tables/main@title' is empty", "fill it in"},
      {"field_without_value", [](Document* d) { d->fields[0].value = ""; },
       "'/fields/value[0] (model.d_model)' is empty", "fill it in"},
      {"same_field", [](Document* d) { d->fields[1].name = "model.d_model"; },
       "'/fields/name[1]' occurs twice", "rename"},
      {"enumeration", [](Document* d) { Loss(d).lane = static_cast<Lane>(17); },
       loss + "@lane'", "'exact', 'bound', 'statistical' or 'report'"},
      {"claim_without_table", [](Document* d) { d->claims[0].scope = "x"; },
       "'/claims/scope[0]' names no table: 'x'", "id of a table"},
      {"claim_about_no_cell",
       [](Document* d) { d->claims[0].left = "owt/sparse/k1:nothing"; },
       "'/claims/lhs[0]' names no cell", "ROW:COLUMN"},
      {"claim_against_nothing",
       [](Document* d) { d->claims[1].right = "three"; },
       "'/claims/rhs[1]' is neither cell nor number", "ROW:COLUMN"},
      {"claim_operator", [](Document* d) { d->claims[1].op = "!="; },
       "'/claims/op[1]' is '!='", "use <"},
      {"claim_verdict",
       [](Document* d) { d->claims[1].published_verdict = "TRUE"; },
       "'/claims/published_verdict[1]' is 'TRUE'", "HOLDS"},
      {"note_about_nothing",
       [](Document* d) { d->notes[0].concerns[0] = "main/owt/sparse/k9"; },
       "'/notes/concerns' of N1 is 'main/owt/sparse/k9'", "TABLE/ROW"},
      {"note_unknown", [](Document* d) { LossCell(d).notes = {"N99"}; },
       "refers in row owt/sparse/k1 to the note 'N99'", "add the note"},
      {"note_without_text", [](Document* d) { d->notes[1].text = ""; },
       "'/notes/text[1]' is empty", "fill it in"},
      {"nul",
       [](Document* d) { d->tables[0].caption = std::string("a\0b", 3); },
       "'/tables/main@caption' contains a NUL", "remove it"},
  };
}

TEST(FirstProblem, FindsNothingInAGoodDocument) {
  EXPECT_EQ(FirstProblem(ExampleDocument()), "");
}

TEST(FirstProblem, NamesPlaceAndRemedy) {
  for (const BadDocument& bad : BadDocuments()) {
    Document document = ExampleDocument();
    bad.spoil(&document);
    const std::string problem = FirstProblem(document);
    EXPECT_NE(problem.find(bad.place), std::string::npos)
        << bad.name << ": " << problem;
    EXPECT_NE(problem.find(bad.remedy), std::string::npos)
        << bad.name << ": " << problem;
  }
}

TEST(WriteDocument, RefusesWhatWouldNotBeRead) {
  const fs::path folder = FreshFolder("refuse_write");
  for (const BadDocument& bad : BadDocuments()) {
    Document document = ExampleDocument();
    bad.spoil(&document);
    EXPECT_THROW(WriteDocument(document, folder / "a.h5"), InternalError)
        << bad.name;
  }
  EXPECT_TRUE(FilesIn(folder).empty());
}

// --- Structure ---------------------------------------------------------------

// Writes a document as the schema says but for one object: `skip` is left out,
// and `extra` adds to the file.
class FileMaker {
 public:
  explicit FileMaker(fs::path path) : file_(std::move(path), GoldenKind()) {}

  std::string skip;
  std::function<void(Hdf5Writer*)> extra = [](Hdf5Writer*) {};
  std::vector<double> values = {2.5, 3.5};
  std::vector<std::string> texts = {"2.5", "3.5"};
  std::string lane = "report";
  std::string schema = "softmoe-golden";
  int64_t version = 1;
  int64_t position = 0;

  void Write() {
    Attribute("/", "schema", schema);
    Attribute("/", "schema_version", version);
    Group("/provenance");
    Attribute("/provenance", "origin", std::string("our_run"));
    for (const char* name : {"source", "generator"}) {
      Attribute("/provenance", name, std::string("a test"));
    }
    for (const char* name : {"created_utc", "git_commit", "config_hash",
                             "compiler", "cpu", "isa"}) {
      Attribute("/provenance", name, std::string());
    }
    Fields("/provenance");
    Group("/fields");
    Fields("/fields");
    Group("/tables");
    WriteTable();
    Group("/notes");
    Texts("/notes/id");
    Texts("/notes/text");
    List("/notes/concerns");
    Group("/claims");
    for (const char* name :
         {"id", "text", "lhs", "op", "rhs", "scope", "published_verdict"}) {
      Texts(std::string("/claims/") + name);
    }
    extra(&file_);
    file_.Commit();
  }

 private:
  void WriteTable() {
    const std::string table = "/tables/t";
    Group(table);
    Attribute(table, "position", position);
    Attribute(table, "title", std::string("T"));
    Attribute(table, "caption", std::string());
    Attribute(table, "rounding_rule", std::string("nearest"));
    Dataset(table + "/rows", std::vector<std::string>{"a", "b"});
    List(table + "/labels");
    Group(table + "/fields");
    Dataset(table + "/fields/row", std::vector<int64_t>());
    Fields(table + "/fields");
    Group(table + "/cells");
    const std::string c = table + "/cells/c";
    Group(c);
    Attribute(c, "position", int64_t{0});
    Attribute(c, "unit", std::string("1"));
    Attribute(c, "metric_def", std::string("a number"));
    Attribute(c, "direction", std::string("none"));
    Attribute(c, "lane", lane);
    Attribute(c, "decimals", int64_t{1});
    Attribute(c, "margin_basis", std::string());
    Dataset(c + "/text", texts);
    for (const char* name : {"value", "value_lo", "value_hi"}) {
      Dataset(c + "/" + name, values);
    }
    Dataset(c + "/sd", std::vector<double>{0, 0});
    Dataset(c + "/bold", std::vector<uint8_t>{0, 0});
    Dataset(c + "/sd_known", std::vector<uint8_t>{0, 0});
    Dataset(c + "/n_runs", std::vector<int64_t>{1, 1});
    Dataset(c + "/count_N", std::vector<int64_t>{0, 0});
    Group(c + "/counts");
    Dataset(c + "/counts/row", std::vector<int64_t>());
    Dataset(c + "/counts/count_k", std::vector<int64_t>());
    List(c + "/flags");
    List(c + "/notes");
  }

  bool Skipped(const std::string& path) const {
    return !skip.empty() && (path == skip || path.starts_with(skip + "/") ||
                             path.starts_with(skip + "@"));
  }
  void Group(const std::string& path) {
    if (!Skipped(path)) file_.CreateGroup(path);
  }
  template <typename T>
  void Dataset(const std::string& path, const std::vector<T>& data) {
    if (!Skipped(path)) file_.WriteDataset(path, data);
  }
  template <typename T>
  void Attribute(const std::string& object, const std::string& name,
                 const T& value) {
    if (!Skipped(object + "@" + name)) {
      file_.WriteAttribute(object, name, value);
    }
  }
  void Texts(const std::string& path) {
    Dataset(path, std::vector<std::string>());
  }
  void List(const std::string& group) {
    Group(group);
    Dataset(group + "/row", std::vector<int64_t>());
    Texts(group + "/text");
  }
  void Fields(const std::string& group) {
    for (const char* name : {"name", "value", "class", "known"}) {
      Texts(group + "/" + name);
    }
  }

  Hdf5Writer file_;
};

void ExpectRefused(const std::string& name,
                   const std::function<void(FileMaker*)>& spoil,
                   const std::string& place, const std::string& problem) {
  const fs::path path = FreshFolder("refuse_" + name) / "bad.h5";
  FileMaker maker(path);
  spoil(&maker);
  maker.Write();
  try {
    ReadDocument(path);
    ADD_FAILURE() << name << " was read";
  } catch (const DataError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("'" + path.string() + "'"), std::string::npos)
        << name << ": " << message;
    EXPECT_NE(message.find(place), std::string::npos)
        << name << ": " << message;
    EXPECT_NE(message.find(problem), std::string::npos)
        << name << ": " << message;
    EXPECT_NE(message.find("; "), std::string::npos)
        << "no remedy: " << message;
  }
}

TEST(ReadDocument, ReadsTheFileThatTheseTestsSpoil) {
  const fs::path path = FreshFolder("good") / "good.h5";
  FileMaker(path).Write();
  const Document document = ReadDocument(path);
  ASSERT_EQ(document.tables.size(), 1u);
  EXPECT_EQ(document.tables[0].rows[1].cells[0].value, 3.5);
}

TEST(ReadDocument, RefusesWhatIsMissing) {
  const std::string c = "/tables/t/cells/c";
  for (const std::string& skip : {std::string("/provenance"),
                                  std::string("/fields"),
                                  std::string("/notes"),
                                  std::string("/claims"),
                                  std::string("/tables/t/rows"),
                                  std::string("/tables/t/labels"),
                                  std::string("/tables/t@rounding_rule"),
                                  c + "@unit",
                                  c + "@metric_def",
                                  c + "@lane",
                                  c + "@position",
                                  c + "/value",
                                  c + "/value_lo",
                                  c + "/count_N",
                                  c + "/counts",
                                  c + "/counts/count_k",
                                  c + "/flags/row",
                                  c + "/notes",
                                  std::string("/claims/op"),
                                  std::string("/fields/known"),
                                  std::string("/provenance@origin"),
                                  std::string("/@schema")}) {
    const size_t cut = skip.find_last_of("/@");
    const std::string owner =
        cut == 0 || skip[1] == '@' ? "/" : skip.substr(0, cut);
    const std::string missing = skip.substr(cut + 1);
    ExpectRefused(
        "missing", [&](FileMaker* m) { m->skip = skip; },
        "'" + owner + "' lacks the",
        (skip[cut] == '@' ? "attribute '" : "child '") + missing + "'");
  }
}

TEST(ReadDocument, RefusesWhatItDoesNotKnow) {
  ExpectRefused(
      "group",
      [](FileMaker* m) {
        m->extra = [](Hdf5Writer* f) { f->CreateGroup("/curves"); };
      },
      "'/' has the unknown child 'curves'", "make the file anew");
  ExpectRefused(
      "attribute",
      [](FileMaker* m) {
        m->extra = [](Hdf5Writer* f) {
          f->WriteAttribute("/tables/t/cells/c", "units", "1");
        };
      },
      "unknown attribute 'units'", "did you mean 'unit'?");
  ExpectRefused(
      "dataset",
      [](FileMaker* m) {
        m->extra = [](Hdf5Writer* f) {
          f->WriteDataset("/notes/author", std::vector<std::string>{"x"});
        };
      },
      "'/notes' has the unknown child 'author'", "make the file anew");
  ExpectRefused(
      "attribute_of_dataset",
      [](FileMaker* m) {
        m->extra = [](Hdf5Writer* f) {
          f->WriteAttribute("/tables/t/rows", "note", "x");
        };
      },
      "'/tables/t/rows' has the unknown attribute 'note'",
      "none is known here");
}

TEST(ReadDocument, RefusesWrongTypes) {
  ExpectRefused(
      "float",
      [](FileMaker* m) {
        m->skip = "/tables/t/cells/c/value";
        m->extra = [](Hdf5Writer* f) {
          f->WriteDataset("/tables/t/cells/c/value",
                          std::vector<float>{2.5f, 3.5f});
        };
      },
      "/tables/t/cells/c/value", "has type float32, but float64 is needed");
  ExpectRefused(
      "text_position",
      [](FileMaker* m) {
        m->skip = "/tables/t@position";
        m->extra = [](Hdf5Writer* f) {
          f->WriteAttribute("/tables/t", "position", "0");
        };
      },
      "/tables/t@position", "has type string, but int64 is needed");
  ExpectRefused(
      "matrix",
      [](FileMaker* m) {
        m->skip = "/tables/t/cells/c/value";
        m->extra = [](Hdf5Writer* f) {
          const std::vector<double> two = {2.5, 3.5};
          f->WriteDataset<double>("/tables/t/cells/c/value", two, {2, 1});
        };
      },
      "/tables/t/cells/c/value", "has 2 dimensions, not 1");
  ExpectRefused(
      "group_for_dataset",
      [](FileMaker* m) {
        m->skip = "/tables/t/rows";
        m->extra = [](Hdf5Writer* f) { f->CreateGroup("/tables/t/rows"); };
      },
      "/tables/t/rows", "is a group, but a dataset is needed");
}

TEST(ReadDocument, RefusesRaggedColumns) {
  ExpectRefused(
      "ragged", [](FileMaker* m) { m->values = {2.5}; },
      "/tables/t/cells/c/value", "has 1 entries, but 2 are needed");
  ExpectRefused(
      "ragged_text",
      [](FileMaker* m) {
        m->texts = {"2.5", "3.5", "4"};
      },
      "/tables/t/cells/c/text", "has 3 entries, but 2 are needed");
}

TEST(ReadDocument, RefusesNanInTheFile) {
  ExpectRefused(
      "nan_value",
      [](FileMaker* m) {
        m->values = {2.5, kNan};
      },
      "'/tables/t/cells/c/value[1]' is nan", "DIVERGED");
}

TEST(ReadDocument, RefusesAStatisticalColumnWithoutMargin) {
  ExpectRefused(
      "margin", [](FileMaker* m) { m->lane = "statistical"; },
      "'/tables/t/cells/c@margin' is missing", "state the margin");
}

TEST(ReadDocument, RefusesNamesAndVersionsItDoesNotKnow) {
  ExpectRefused(
      "lane", [](FileMaker* m) { m->lane = "statistics"; },
      "'/tables/t/cells/c@lane' is 'statistics'", "or 'report' is needed");
  ExpectRefused(
      "schema", [](FileMaker* m) { m->schema = "other"; },
      "'/@schema' is 'other'", "make the file anew");
  ExpectRefused(
      "version", [](FileMaker* m) { m->version = 2; },
      "'/@schema_version' is 2, but this program reads 1",
      "make the file anew");
  ExpectRefused(
      "position", [](FileMaker* m) { m->position = 1; },
      "'/tables/t@position' is 1", "is needed once");
}

TEST(ReadDocument, RefusesIndicesOutOfRange) {
  const std::string group = "/tables/t/cells/c/flags";
  auto with_rows = [&](std::vector<int64_t> rows) {
    return [=](FileMaker* m) {
      m->skip = group;
      m->extra = [=](Hdf5Writer* f) {
        f->CreateGroup(group);
        f->WriteDataset(group + "/row", rows);
        f->WriteDataset(group + "/text",
                        std::vector<std::string>(rows.size(), "FLAG"));
      };
    };
  };
  ExpectRefused("row_high", with_rows({2}), group + "/row[0]' is 2",
                "the rows are 0..1");
  ExpectRefused("row_negative", with_rows({-1}), group + "/row[0]' is -1",
                "the rows are 0..1");
  ExpectRefused("row_order", with_rows({1, 0}), group + "/row[1]' is 0",
                "ascending");
}

TEST(ReadDocument, RefusesBitsThatAreNone) {
  const std::string path = "/tables/t/cells/c/bold";
  ExpectRefused(
      "bit",
      [&](FileMaker* m) {
        m->skip = path;
        m->extra = [&](Hdf5Writer* f) {
          f->WriteDataset(path, std::vector<uint8_t>{0, 2});
        };
      },
      path + "[1]' is 2", "0 or 1 is needed");
}

TEST(ReadDocument, SaysWhichFileIsMissing) {
  const fs::path path = FreshFolder("absent") / "none.h5";
  try {
    ReadDocument(path);
    FAIL() << "read";
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
  }
}

}  // namespace
}  // namespace softmoe::golden

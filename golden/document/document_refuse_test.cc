// SPDX-License-Identifier: Apache-2.0
//
// Files that differ from FORMAT.md are refused, with file, place and remedy in
// the message. For meaningless documents see document_problem_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/errors.h"
#include "core/hdf5/hdf5_file.h"
#include "core/testing/file_test_util.h"
#include "core/testing/message_test_util.h"
#include "golden/document/document.h"
#include "golden/document/document_format.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;

// Writes a document as the schema says, except for one object: `skip` is left
// out, and `extra` adds to the file.
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
  const std::string message = MessageOf<DataError>([&] { ReadDocument(path); });
  EXPECT_TRUE(Says(message, "'" + path.string() + "'", place, problem)) << name;
  EXPECT_TRUE(Says(message, "; "));
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

TEST(ReadDocument, RefusesTwoSharesOfFlipsForOneCell) {
  ExpectRefused(
      "flips",
      [](FileMaker* m) {
        m->extra = [](Hdf5Writer* f) {
          const std::string group = "/tables/t/cells/c/flip_share";
          f->CreateGroup(group);
          f->WriteDataset(group + "/row", std::vector<int64_t>{1, 1});
          f->WriteDataset(group + "/share", std::vector<double>{0.5, 0.5});
        };
      },
      "/tables/t/cells/c/flip_share/row", "has row 1 more than once");
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
        m->values = {2.5, NAN};
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

TEST(ReadDocument, RefusesTwoTablesInOnePlace) {
  ExpectRefused(
      "same_position",
      [](FileMaker* m) {
        m->extra = [](Hdf5Writer* f) {
          const std::vector<std::string> texts;
          const std::vector<int64_t> numbers;
          f->CreateGroup("/tables/u");
          f->WriteAttribute("/tables/u", "position", int64_t{0});
          f->WriteAttribute("/tables/u", "title", "U");
          f->WriteAttribute("/tables/u", "caption", "");
          f->WriteAttribute("/tables/u", "rounding_rule", "nearest");
          f->WriteDataset("/tables/u/rows", texts);
          f->WriteDataset("/tables/u/labels/row", numbers);
          f->WriteDataset("/tables/u/labels/text", texts);
          f->WriteDataset("/tables/u/fields/row", numbers);
          for (const char* name : {"name", "value", "class", "known"}) {
            f->WriteDataset(std::string("/tables/u/fields/") + name, texts);
          }
          f->CreateGroup("/tables/u/cells");
        };
      },
      "'/tables/u@position' is 0", "each of 0..1 is needed once");
}

TEST(ReadDocument, RefusesIndicesOutOfRange) {
  const std::string group = "/tables/t/cells/c/flags";
  auto with_rows = [&](const std::vector<int64_t>& rows) {
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
  EXPECT_TRUE(Says(MessageOf<EnvironmentError>([&] { ReadDocument(path); }),
                   path.string()));
}

}  // namespace
}  // namespace softmoe::golden

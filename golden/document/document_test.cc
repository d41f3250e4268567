// SPDX-License-Identifier: Apache-2.0
//
// Documents survive writing and reading, and equal ones give equal bytes. For
// refused files see document_refuse_test.cc.
#include "golden/document/document.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/errors.h"
#include "core/files/atomic_file.h"
#include "core/hdf5/hdf5_file.h"
#include "core/testing/file_test_util.h"
#include "golden/document/document_format.h"
#include "golden/testing/document_test_util.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;

TEST(Document, ReadsBackEverything) {
  const fs::path path = FreshFolder("everything") / "a.h5";
  const Document document = ExampleDocument();
  WriteDocument(document, path);
  EXPECT_EQ(ReadDocument(path), document);
}

// Files without a known share thus keep the same bytes.
TEST(Document, SharesOfFlipsAreInTheFileOnlyWhereOneIsKnown) {
  const fs::path folder = FreshFolder("flips");
  Document document = ExampleDocument();
  const auto written = [&](const char* name) {
    WriteDocument(document, folder / name);
    return Hdf5Reader(folder / name, GoldenKind())
        .Has("/tables/main/cells/piqa/flip_share");
  };
  EXPECT_TRUE(written("known.h5"));
  EXPECT_EQ(
      ReadDocument(folder / "known.h5").tables[0].rows[1].cells[1].flip_share,
      0.125);
  document.tables[0].rows[1].cells[1].flip_share.reset();
  EXPECT_FALSE(written("unknown.h5"));
  EXPECT_EQ(ReadDocument(folder / "unknown.h5"), document);
}

TEST(Document, QuantifiersAreInTheFileOnlyWhereOneIsMost) {
  const fs::path folder = FreshFolder("quantifiers");
  Document document = ExampleDocument();
  const auto written = [&](const char* name) {
    WriteDocument(document, folder / name);
    return Hdf5Reader(folder / name, GoldenKind()).Has("/claims/of_cases");
  };
  EXPECT_FALSE(written("every.h5"));
  Claim pair = document.claims[0];
  pair.of_cases = Quantifier::kMost;
  for (const char* id : {"most.1", "most.2"}) {
    pair.id = id;
    document.claims.push_back(pair);
  }
  EXPECT_TRUE(written("most.h5"));
  EXPECT_EQ(ReadDocument(folder / "most.h5"), document);
}

TEST(Document, EmptyDocumentReadsBack) {
  const fs::path path = FreshFolder("empty") / "a.h5";
  Document document;
  document.provenance.source = "nowhere";
  document.provenance.generator = "document_test";
  WriteDocument(document, path);
  EXPECT_EQ(ReadDocument(path), document);
}

TEST(Document, FindsTablesRowsAndColumns) {
  const Document document = ExampleDocument();
  const Table* table = document.FindTable("main");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(document.FindTable("other"), nullptr);
  EXPECT_EQ(table->FindColumn("piqa"), 1);
  EXPECT_EQ(table->FindColumn("arc"), -1);
  ASSERT_NE(table->FindRow("owt/sparse/k2"), nullptr);
  EXPECT_EQ(table->FindRow("owt/sparse/k2")->cells[2].text, "156.94");
  EXPECT_EQ(table->FindRow("owt/sparse/k9"), nullptr);
}

// --- Random documents -------------------------------------------------------

std::string RandomText() {
  static const std::vector<std::string> kTexts = {
      "plain", "with spaces ", "Łódź", "a\nb", "\"quoted\"", "1.5", "*"};
  return *rc::gen::elementOf(kTexts);
}

template <typename T>
T OneOf(const std::vector<T>& values) {
  return *rc::gen::elementOf(values);
}

std::vector<Field> RandomFields(const std::string& prefix) {
  std::vector<Field> fields;
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) {
    fields.push_back(
        {prefix + std::to_string(i), RandomText(),
         OneOf<FieldClass>({FieldClass::kMustMatch, FieldClass::kReport,
                            FieldClass::kIgnore}),
         OneOf<Known>({Known::kStated, Known::kAssumed, Known::kUnknown})});
  }
  return fields;
}

Cell RandomCell() {
  Cell cell;
  cell.runs = *rc::gen::inRange<int64_t>(1, 9);
  if (*rc::gen::inRange(0, 5) == 0) {
    cell.flags = {"DIVERGED"};
    return cell;
  }
  // Proportions are in percent.
  const bool proportional = *rc::gen::arbitrary<bool>();
  const int64_t units = proportional
                            ? *rc::gen::inRange<int64_t>(0, 101)
                            : *rc::gen::inRange<int64_t>(-1'000'000, 1'000'000);
  RC_PRE(units != -999 && units != -9999 && units != -99999 &&
         units != -999999);
  cell.text = std::to_string(units);
  cell.value = static_cast<double>(units);
  cell.low = cell.value - *rc::gen::inRange(0, 100) / 7.0;
  cell.high = cell.value + *rc::gen::inRange(0, 100) / 7.0;
  cell.bold = *rc::gen::arbitrary<bool>();
  if (cell.runs > 1) cell.deviation = *rc::gen::inRange(0, 100) / 3.0;
  if (proportional) {
    Proportion proportion;
    proportion.total = *rc::gen::inRange<int64_t>(1, 5000);
    // Counts that print so, or nearly so.
    const int64_t least = units * proportion.total / 100;
    for (int64_t k = 0; k < *rc::gen::inRange<int64_t>(0, 3); ++k) {
      const int64_t count = least + k;
      const bool fits = 100 * count <= (units + 1) * proportion.total;
      if (count <= proportion.total && fits) proportion.counts.push_back(count);
    }
    cell.proportion = proportion;
    if (cell.runs > 1) cell.flip_share = *rc::gen::inRange(0, 9) / 8.0;
  }
  return cell;
}

Document RandomDocument() {
  Document document;
  document.provenance.origin = OneOf<Origin>(
      {Origin::kPaper, Origin::kOurRun, Origin::kOtherImplementation});
  document.provenance.source = RandomText();
  document.provenance.generator = RandomText();
  document.provenance.more = RandomFields("m");
  document.fields = RandomFields("f");
  const int num_tables = *rc::gen::inRange(0, 3);
  for (int t = 0; t < num_tables; ++t) {
    Table table;
    // Alphabetical order differs from the order of the tables.
    table.id = "t" + std::to_string(9 - t);
    table.title = RandomText();
    table.caption = RandomText();
    table.rounding = OneOf<Rounding>(
        {Rounding::kNearest, Rounding::kTruncate, Rounding::kUnknown});
    const int num_columns = *rc::gen::inRange(0, 4);
    for (int c = 0; c < num_columns; ++c) {
      Column column;
      column.id = "c" + std::to_string(9 - c);
      column.unit = RandomText();
      column.metric = RandomText();
      column.direction =
          OneOf<Direction>({Direction::kLowerIsBetter,
                            Direction::kHigherIsBetter, Direction::kNone});
      column.lane = OneOf<Lane>(
          {Lane::kExact, Lane::kBound, Lane::kStatistical, Lane::kReportOnly});
      column.decimals = *rc::gen::inRange(0, 13);
      column.margin = *rc::gen::inRange(1, 100) / 9.0;
      column.margin_basis = RandomText();
      table.columns.push_back(column);
    }
    const int num_rows = *rc::gen::inRange(0, 5);
    for (int r = 0; r < num_rows; ++r) {
      Row row;
      row.id = "r/" + std::to_string(r);
      const int num_labels = *rc::gen::inRange(0, 3);
      for (int l = 0; l < num_labels; ++l) row.labels.push_back(RandomText());
      row.fields = RandomFields("r");
      for (int c = 0; c < num_columns; ++c) row.cells.push_back(RandomCell());
      table.rows.push_back(row);
    }
    document.tables.push_back(table);
    document.notes.push_back({"N" + std::to_string(t),
                              RandomText(),
                              {table.id, "text/" + RandomText()}});
  }
  return document;
}

RC_GTEST_PROP(DocumentProperty, ReadsBackEqualAndWritesEqualBytes, ()) {
  static const fs::path folder = FreshFolder("property");
  const Document document = RandomDocument();
  RC_ASSERT(FirstProblem(document) == "");
  WriteDocument(document, folder / "a.h5");
  const Document read = ReadDocument(folder / "a.h5");
  RC_ASSERT(read == document);
  WriteDocument(read, folder / "b.h5");
  RC_ASSERT(ReadWholeFile(folder / "a.h5") == ReadWholeFile(folder / "b.h5"));
}

}  // namespace
}  // namespace softmoe::golden

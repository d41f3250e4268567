// SPDX-License-Identifier: Apache-2.0
//
// Files that differ from FORMAT.md are refused, with file, place and remedy in
// the message. For meaningless documents see document_problem_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.h"
#include "core/testing/file_test_util.h"
#include "core/testing/hdf5_test_util.h"
#include "core/testing/message_test_util.h"
#include "golden/document/document.h"
#include "golden/document/document_format.h"
#include "golden/testing/document_test_util.h"

namespace softmoe::golden {
namespace {

namespace fs = std::filesystem;

using Integers = std::vector<int64_t>;
using Numbers = std::vector<double>;
using Strings = std::vector<std::string>;

const std::string kTable = "/tables/main";
const std::string kLoss = kTable + "/cells/loss";

// The file of the example document, changed by `spoil`.
fs::path Spoilt(const std::function<void(hid_t file)>& spoil) {
  const fs::path path = FreshFolder("refuse") / "bad.h5";
  WriteDocument(ExampleDocument(), path);
  ChangeHdf5(path, GoldenKind(), spoil);
  return path;
}

void ExpectRefused(const std::function<void(hid_t file)>& spoil,
                   const std::string& place, const std::string& problem) {
  const fs::path path = Spoilt(spoil);
  EXPECT_TRUE(Says(MessageOf<DataError>([&] { ReadDocument(path); }),
                   "'" + path.string() + "'", place, problem, "; "));
}

TEST(ReadDocument, ReadsTheFileThatTheseTestsSpoil) {
  EXPECT_EQ(ReadDocument(Spoilt([](hid_t) {})), ExampleDocument());
}

TEST(ReadDocument, RefusesWhatIsMissing) {
  for (const std::string& missing : {std::string("/provenance"),
                                     std::string("/fields"),
                                     std::string("/notes"),
                                     std::string("/claims"),
                                     kTable + "/rows",
                                     kTable + "/labels",
                                     kTable + "@rounding_rule",
                                     kLoss + "@unit",
                                     kLoss + "@metric_def",
                                     kLoss + "@lane",
                                     kLoss + "@position",
                                     kLoss + "/value",
                                     kLoss + "/value_lo",
                                     kLoss + "/count_N",
                                     kLoss + "/counts",
                                     kLoss + "/counts/count_k",
                                     kLoss + "/flags/row",
                                     kLoss + "/notes",
                                     std::string("/claims/op"),
                                     std::string("/fields/known"),
                                     std::string("/provenance@origin"),
                                     std::string("@schema")}) {
    const size_t cut = missing.find_last_of("/@");
    ExpectRefused(
        [&](hid_t file) { DeleteHdf5(file, missing); },
        "'" + (cut == 0 ? "/" : missing.substr(0, cut)) + "' lacks the",
        (missing[cut] == '@' ? "attribute '" : "child '") +
            missing.substr(cut + 1) + "'");
  }
}

TEST(ReadDocument, RefusesWhatItDoesNotKnow) {
  ExpectRefused([](hid_t file) { PutGroup(file, "/curves"); },
                "'/' has the unknown child 'curves'", "write the file again");
  ExpectRefused(
      [](hid_t file) { PutAttribute<std::string>(file, kLoss, "units", "1"); },
      "unknown attribute 'units'", "did you mean 'unit'?");
  ExpectRefused(
      [](hid_t file) { PutDataset(file, "/notes/author", Strings{"x"}); },
      "'/notes' has the unknown child 'author'", "write the file again");
  ExpectRefused(
      [](hid_t file) {
        PutAttribute<std::string>(file, kTable + "/rows", "note", "x");
      },
      "'/tables/main/rows' has the unknown attribute 'note'",
      "there should be none");
}

TEST(ReadDocument, RefusesTwoSharesOfFlipsForOneCell) {
  const std::string group = kTable + "/cells/piqa/flip_share";
  ExpectRefused(
      [&](hid_t file) {
        PutDataset(file, group + "/row", Integers{1, 1});
        PutDataset(file, group + "/share", Numbers{0.5, 0.5});
      },
      group + "/row' has row 1 more than once", "write the file again");
}

// A single place in the file says whether a cell has an optional number.
TEST(ReadDocument, RefusesWhatIsThereAndIsNot) {
  ExpectRefused(
      [](hid_t file) {
        PutDataset(file, kLoss + "/sd_known", std::vector<uint8_t>{0, 0});
      },
      kLoss + "/sd[0]' is 0.004 although sd_known is 0",
      "write the file again");
  ExpectRefused(
      [](hid_t file) {
        PutDataset(file, kTable + "/cells/piqa/count_N", Integers{0, 1838});
      },
      kTable + "/cells/piqa/counts/row' gives a count for row 0, whose",
      "count_N is 0");
}

TEST(ReadDocument, RefusesWrongTypes) {
  const std::string value = kLoss + "/value";
  ExpectRefused(
      [&](hid_t file) {
        PutDataset(file, value, std::vector<float>{2.5f, 3.5f});
      },
      value, "has type float32, but float64 is needed");
  ExpectRefused(
      [](hid_t file) {
        PutAttribute<std::string>(file, kTable, "position", "0");
      },
      kTable + "@position", "has type string, but int64 is needed");
  ExpectRefused(
      [&](hid_t file) {
        PutDataset(file, value, Numbers{2.5, 3.5}, {2, 1});
      },
      value + "' has 2 dimensions, not 1", "write the file again");
  ExpectRefused([](hid_t file) { PutGroup(file, kTable + "/rows"); },
                kTable + "/rows", "is a group, but a dataset is needed");
}

TEST(ReadDocument, RefusesRaggedColumns) {
  ExpectRefused(
      [](hid_t file) { PutDataset(file, kLoss + "/value", Numbers{2.5}); },
      kLoss + "/value' has 1 entries, but 2 are needed", "one for each row");
  ExpectRefused(
      [](hid_t file) {
        PutDataset(file, kLoss + "/text", Strings{"2.5", "3.5", "4"});
      },
      kLoss + "/text' has 3 entries, but 2 are needed", "one for each row");
}

TEST(ReadDocument, RefusesNanInTheFile) {
  ExpectRefused(
      [](hid_t file) {
        PutDataset(file, kLoss + "/value", Numbers{2.84, NAN});
      },
      "'" + kLoss + "/value[1]' is nan", "DIVERGED");
}

TEST(ReadDocument, RefusesAStatisticalColumnWithoutMargin) {
  ExpectRefused([](hid_t file) { DeleteHdf5(file, kLoss + "@margin"); },
                "'" + kLoss + "@margin' is missing", "state the margin");
}

TEST(ReadDocument, RefusesNamesAndVersionsItDoesNotKnow) {
  ExpectRefused(
      [](hid_t file) {
        PutAttribute<std::string>(file, kLoss, "lane", "statistics");
      },
      "'" + kLoss + "@lane' is 'statistics'", "or 'report' is needed");
  ExpectRefused(
      [](hid_t file) {
        PutAttribute<std::string>(file, "/", "schema", "other");
      },
      "'/@schema' is 'other'", "write the file again");
  ExpectRefused(
      [](hid_t file) { PutAttribute<int64_t>(file, "/", "schema_version", 2); },
      "'/@schema_version' is 2, but this program reads 1",
      "write the file again");
  for (const int64_t position : {-1, 2}) {
    ExpectRefused(
        [&](hid_t file) {
          PutAttribute<int64_t>(file, kTable, "position", position);
        },
        "'" + kTable + "@position' is " + std::to_string(position),
        "each of 0..1 is needed once");
  }
  // The second would be 2 in 32 bits.
  const std::pair<int64_t, const char*> kDecimals[] = {
      {-5, "-1"}, {(int64_t{1} << 32) + 2, "1000"}};
  for (const auto& [decimals, clamped] : kDecimals) {
    ExpectRefused(
        [stored = decimals](hid_t file) {
          PutAttribute<int64_t>(file, kLoss, "decimals", stored);
        },
        "'" + kLoss + "@decimals' is " + clamped, "use 0 to 12");
  }
}

TEST(ReadDocument, RefusesTwoTablesInOnePlace) {
  ExpectRefused(
      [](hid_t file) {
        PutAttribute<int64_t>(file, "/tables/a_table_without_rows", "position",
                              0);
      },
      "'" + kTable + "@position' is 0", "each of 0..1 is needed once");
}

TEST(ReadDocument, RefusesIndicesOutOfRange) {
  const std::string group = kLoss + "/flags";
  const auto with_rows = [&](const Integers& rows) {
    return [&group, rows](hid_t file) {
      PutDataset(file, group + "/row", rows);
      PutDataset(file, group + "/text", Strings(rows.size(), "FLAG"));
    };
  };
  ExpectRefused(with_rows({2}), group + "/row[0]' is 2", "the rows are 0..1");
  ExpectRefused(with_rows({-1}), group + "/row[0]' is -1", "the rows are 0..1");
  ExpectRefused(with_rows({1, 0}), group + "/row[1]' is 0", "ascending");
}

TEST(ReadDocument, RefusesBitsThatAreNone) {
  const std::string path = kLoss + "/bold";
  ExpectRefused(
      [&](hid_t file) {
        PutDataset(file, path, std::vector<uint8_t>{0, 2});
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

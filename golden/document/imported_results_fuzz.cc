// SPDX-License-Identifier: Apache-2.0
//
// Imports any bytes as others' values and, after the line "====", their set-up.
#include "core/fuzzing/fuzz_support.h"
#include "golden/document/imported_results.h"

namespace softmoe::fuzz {
namespace {

// A table with two rows, a column of each of two lanes, facts of every class.
golden::Document Golden() {
  using namespace golden;  // NOLINT: a fuzzer
  Table table;
  table.id = "main";
  table.title = "Main results";
  table.columns = {{.id = "loss", .unit = "nat/token", .metric = "a mean"},
                   {.id = "ae", .unit = "1", .metric = "a count"}};
  for (const char* id : {"owt/k1", "c4/k1"}) {
    table.rows.push_back(
        {.id = id,
         .labels = {},
         .fields = {{"router.tau", "1.1", FieldClass::kMustMatch}},
         .cells = {{.text = "2.84", .value = 2.84, .low = 2.84, .high = 2.84},
                   {}}});
  }
  Document document;
  document.fields = {{"model.d_model", "640", FieldClass::kMustMatch},
                     {"gpus", "8", FieldClass::kReport}};
  document.tables = {table};
  return document;
}

constexpr std::string_view kBorder = "====\n";

}  // namespace

void FuzzOne(std::string_view input) {
  const size_t border = std::min(input.find(kBorder), input.size());
  const std::string values(input.substr(0, border));
  input.remove_prefix(std::min(border + kBorder.size(), input.size()));
  golden::Document document;
  if (!Accepts([&] {
        document =
            golden::ImportResults({"theirs.csv", values},
                                  {"setup.toml", std::string(input)}, Golden());
      })) {
    return;
  }
  Require(golden::FirstProblem(document).empty(),
          golden::FirstProblem(document));
  for (const golden::Row& row : document.tables.at(0).rows) {
    Require(Golden().tables[0].FindRow(row.id) != nullptr, row.id);
  }
}

std::vector<std::string> Seeds() {
  const golden::Document golden = Golden();
  const golden::ImportTemplate files =
      MakeImportTemplate(golden, golden.tables[0]);
  const std::string set_up =
      "source = \"s\"\nprogram = \"p\"\ntable = \"main\"\nseeds = [1, 2]\n"
      "columns.loss.unit = \"nat/token\"\ncolumns.ae.unit = \"1\"\n"
      "facts.model.d_model = 64\n[[rows]]\nrows = [\"owt/k1\", \"c4/k1\"]\n"
      "router.tau = \"unknown\"\n";
  const std::string head = "row,seed,column,value\n";
  return {
      files.values + std::string(kBorder) + files.set_up,
      head + "owt/k1,1,loss,2.85\nowt/k1,2,loss,-1e-3\n" +
          std::string(kBorder) + set_up,
      head + "\"c4/k1\",1,\"ae\",9999999999.99\r\nowt/k1,2,loss,diverged\r\n" +
          std::string(kBorder) + set_up,
      "# \xef\xbb\xbf\n" + head + "owt/k1,01,loss,.5\nowt/k1,2,ae,1e-300\n" +
          std::string(kBorder) + set_up,
  };
}

}  // namespace softmoe::fuzz

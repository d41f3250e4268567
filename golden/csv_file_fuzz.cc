// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a CSV file, and its fields as decimal numbers and the intervals
// that print so.
#include "core/fuzz_support.h"
#include "golden/csv_file.h"
#include "golden/decimal.h"

namespace softmoe::fuzz {
namespace {

void CheckNumber(const std::string& text) {
  const auto number = golden::Decimal::Parse(text);
  if (!number) return;
  const std::string printed = number->Text();
  const auto again = golden::Decimal::Parse(printed);
  Require(again && *again == *number && again->decimals() == number->decimals(),
          text + " prints as " + printed);
  for (const auto rule :
       {golden::Rounding::kNearest, golden::Rounding::kTruncate,
        golden::Rounding::kUnknown}) {
    if (printed.size() > 17) continue;  // digits and point
    const golden::Interval interval = golden::PrintedInterval(*number, rule);
    Require(interval.low <= number->ToDouble() &&
                number->ToDouble() <= interval.high,
            text + " is outside its interval");
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  const auto path = ScratchFolder() / "table.csv";
  WriteScratch(path, input);
  golden::CsvFile file;
  if (!Accepts([&] { file = golden::ReadCsv(path); })) return;
  std::string text;
  const auto add = [&](const std::vector<std::string>& fields) {
    for (size_t i = 0; i < fields.size(); ++i) {
      text += (i == 0 ? "" : ",") + fields[i];
    }
    text += "\n";
  };
  add(file.names);
  for (const auto& row : file.rows) {
    Require(row.size() == file.names.size(), "a row of another length");
    for (const std::string& field : row) CheckNumber(field);
    add(row);
  }
  Accepts([&] { file.Get(0, "loss"); });
  Require(text == input || text == std::string(input) + "\n",
          "prints otherwise:\n" + text);
}

std::vector<std::string> Seeds() {
  return {"row,loss\nowt/sparse/k1,2.84\nowt/sparse/k2,-0.50\n",
          "a\n999999999999999999\n0.000000000000000001\n.5\n5.\n-\n",
          "a,b\n1\n",
          "a\n\"1\"\n",
          "a\r\n1\r\n",
          "",
          "\n\n",
          "a,a\n,\n"};
}

}  // namespace softmoe::fuzz

// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a file of JSON lines, which is read, written line by line, read
// again, and reopened for writing.
#include <nlohmann/json.hpp>

#include "core/files/json_lines.h"
#include "core/fuzzing/fuzz_support.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  const auto path = ScratchFolder() / "metrics.jsonl";
  WriteScratch(path, input);
  std::vector<nlohmann::ordered_json> records;
  if (!Accepts([&] { records = ReadJsonLines(path); })) {
    Require(!Accepts([&] { JsonLinesWriter writer(path); }),
            "reopening accepts what reading refuses");
    return;
  }
  std::string text;
  for (const auto& record : records) {
    const std::string line = JsonLine(record);
    Require(line.find('\n') == line.npos, "a record of two lines: " + line);
    text += line + "\n";
    Accepts([&] { JsonNumber(record, "step", "fuzz:1"); });
  }
  WriteScratch(path, text);
  std::string again;
  Require(Accepts([&] {
            for (const auto& record : ReadJsonLines(path)) {
              again += JsonLine(record) + "\n";
            }
          }),
          "cannot read back: " + text);
  Require(again == text, "reads back otherwise: " + text + again);

  WriteScratch(path, input);
  const std::string_view last = input.substr(input.rfind('\n') + 1);
  const bool is_zeros = last.find_first_not_of('\0') == last.npos;
  const bool is_whole =
      !is_zeros && nlohmann::ordered_json::accept(last.begin(), last.end());
  const bool is_ours = is_whole ? ParseJsonObject(last).is_object() &&
                                      last.front() == '{' && !records.empty()
                                : is_zeros || last.front() == '{';
  if (!is_ours) {
    Require(!Accepts([&] { JsonLinesWriter writer(path); }),
            "reopening removes what is no record");
    return;
  }
  {
    JsonLinesWriter writer(path);
    writer.Write({{"step", 3}, {"loss", 0.5}});
  }
  const auto reopened = ReadJsonLines(path);
  Require(reopened.size() == records.size() + (is_whole ? 2 : 1) &&
              reopened.back()["step"] == 3,
          "the record written after reopening is not the last");
}

std::vector<std::string> Seeds() {
  return {
      "{\"step\":1,\"loss\":2.5,\"allocation\":[1.0,2.0]}\n"
      "{\"step\":2,\"loss\":\"nan\"}\n{\"step\":3,\"loss\":\"-inf\"}\n",
      "{\"step\":2}\n{\"step\":3}\n{\"torn\":",
      "{\"step\":2}\n{\"step\":3}",
      "{\"only\":\"object\"}",
      "{}\n{\"a\":{\"b\":[null,true,false,-0.0,1e-300,"
      "12345678901234567890,-9223372036854775808]}}\n",
      "{\"\\u00e9\\ud83d\\ude00\":\"\xc3\xa9\\n\\\\\",\"a\":1,\"a\":2}\n",
      "[1]\n",
      "{\"step\":18446744073709551615}\n{\"step\":\"1\"}\n",
  };
}

}  // namespace softmoe::fuzz

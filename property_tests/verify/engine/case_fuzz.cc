// SPDX-License-Identifier: Apache-2.0
//
// Reads any text as a case or a REPRO line. An accepted text prints as a case
// and as a REPRO line, both of which read back as the same case.
#include "core/fuzzing/fuzz_support.h"
#include "property_tests/verify/engine/check.h"
#include "property_tests/verify/engine/draw.h"
#include "property_tests/verify/engine/replay.h"

namespace softmoe::fuzz {

using verify::Case;
using verify::ParseCase;

void FuzzOne(std::string_view input) {
  Case c;
  const std::string text(input);
  if (!Accepts([&] { c = ParseCase(verify::StripRepro(text)); })) return;
  const std::string printed = CaseText(c);
  Case again;
  Require(Accepts([&] { again = ParseCase(printed); }),
          "cannot read back: " + printed);
  Require(again == c, "reads back otherwise: " + printed);

  verify::CaseResult result;
  result.c = c;
  result.status = Status::kFail;
  result.output = text;  // the remark may be any text
  const std::string line = ReproLine(result);
  Require(line.find('\n') == line.npos, "a REPRO line of two lines: " + line);
  Require(Accepts([&] { again = ParseCase(verify::StripRepro(line)); }),
          "cannot read back: " + line);
  Require(again == c, "reads back otherwise: " + line);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = {
      "REPRO v" + std::to_string(verify::kReproVersion) +
          " verify run op=lapsum impl=cpu:v4 rows=1@5 seed=0x5eed case=417 "
          "# FAIL d_scores[3, 5] got=1 expected=2",
      "verify run op=lapsum fill=near_ties:3 simplify=scores:bits3",
      "REPRO v0 verify run op=lapsum",
      "op=lapsum op=lapsum",
      "op=lapsum rows=9223372036854775807@9223372036854775807",
      "op=lapsum mean_active=nan temperature=1e999 spread=-0",
      "op=router dtype=bf16 fill=generic:1",
  };
  for (const verify::Operation* operation : verify::Operations()) {
    seeds.push_back("op=" + operation->name());
    for (const std::string& fill : operation->fills()) {
      seeds.push_back(
          CaseText(ParseCase("op=" + operation->name() + " fill=" + fill)));
    }
    const Case c = ParseCase("op=" + operation->name() + " case=1");
    std::string simplified = CaseText(c) + " simplify=";
    for (const auto& [name, tensor] : operation->Inputs(c)) {
      seeds.push_back(simplified + name + ":zero," + name + ":only0");
    }
  }
  return seeds;
}

}  // namespace softmoe::fuzz

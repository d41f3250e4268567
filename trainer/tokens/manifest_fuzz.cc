// SPDX-License-Identifier: Apache-2.0
//
// Reads any bytes as PREFIX.manifest, and as a line of it. What is accepted
// reads back after writing.
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.h"
#include "core/files/json_lines.h"
#include "core/fuzzing/fuzz_support.h"
#include "trainer/tokens/manifest.h"

namespace softmoe::fuzz {

void FuzzOne(std::string_view input) {
  const auto path = ScratchFolder() / "manifest";
  WriteScratch(path, input);
  trainer::Manifest manifest;
  if (!Accepts([&] { manifest = trainer::ReadManifest(path); })) {
    // Gets past the seal, which arbitrary bytes hardly ever do.
    if (!Accepts([&] {
          manifest.shards = {
              trainer::ParseShardRecord(ParseJsonObject(input), "line")};
        })) {
      return;
    }
  }
  trainer::WriteManifest(path, manifest);
  const std::string text = ReadWholeFile(path);
  Require(Accepts([&] { manifest = trainer::ReadManifest(path); }),
          "cannot read back: " + text);
  trainer::WriteManifest(path, manifest);
  Require(ReadWholeFile(path) == text, "reads back otherwise: " + text);
}

std::vector<std::string> Seeds() {
  trainer::ShardRecord record;
  record.name = "a.json.gz";
  record.documents = 3;
  record.documents_sum = std::string(64, 'f');
  record.first = {"a.json.gz:2: no JSON"};
  const auto path = ScratchFolder() / "seed";
  trainer::WriteManifest(path, {{record, record}, 1});
  return {ReadWholeFile(path), JsonLine(trainer::ToJson(record)), "{}", ""};
}

}  // namespace softmoe::fuzz

// SPDX-License-Identifier: Apache-2.0
//
// What a record has for the judges, with hostile contents; an input that begins
// with a brace is the JSON of a good one. An accepted record gives equal bytes
// when it is written, read and written again.
#include "core/files/atomic_file.h"
#include "core/fuzzing/fuzz_support.h"
#include "core/fuzzing/hdf5_hostile.h"
#include "core/hdf5/hdf5_file.h"
#include "golden/testing/document_test_util.h"
#include "golden/verdict/recorded_results.h"

namespace softmoe::fuzz {
namespace {

namespace fs = std::filesystem;
using golden::RecordedResults;

fs::path GoodFile() {
  RecordedResults results;
  results.margins_sha256 = "0123456789abcdef";
  results.miniature.runs = {{.row = "softmoe-2",
                             .corpus = "gcide",
                             .seed = 1234,
                             .loss = 3.5,
                             .infer_ae = 2.25,
                             .hellaswag = 0.25,
                             .allocation = {{.step = 10}},
                             .at_tau = {{.factor = 1}}}};
  results.miniature.throughput = {{1.5, {1e4, 2e4}, "soft"}};
  results.documents = {{"results.h5", golden::ExampleDocument()}};
  const fs::path path = ScratchFolder() / "good.h5";
  golden::WriteRecord(results, path);
  return path;
}

// A record without documents whose JSON is `text`.
fs::path FileOf(std::string_view text) {
  const fs::path path = ScratchFolder() / "json.h5";
  Hdf5Writer file(path, golden::RunRecordKind());
  file.WriteAttribute("/", "margins_sha256", std::string("0123456789abcdef"));
  file.Bytes("/miniature/json", std::string(text));
  file.CreateGroup("/results");
  file.Commit();
  return path;
}

}  // namespace

void FuzzOne(std::string_view input) {
  static const HostileHdf5 hostile(GoodFile());
  RecordedResults results;
  const auto read = [&](const fs::path& path) {
    results = golden::ReadRecordedResults(path);
  };
  const bool accepted = input.starts_with('{')
                            ? Accepts([&] { read(FileOf(input)); })
                            : FuzzHostileFile(hostile, input, read);
  if (!accepted) return;
  const fs::path first = ScratchFolder() / "first.h5";
  const fs::path second = ScratchFolder() / "second.h5";
  golden::WriteRecord(results, first);
  golden::WriteRecord(golden::ReadRecordedResults(first), second);
  Require(ReadWholeFile(first) == ReadWholeFile(second),
          "reads back otherwise");
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds = HostileSeeds();
  seeds.push_back(
      R"({"runs":[{"row":"a","corpus":"b","seed":1,"loss":"nan",)"
      R"("infer_ae":1,"mean_cap":1,"train_ae":1,"load_variance":0,)"
      R"("load_balance":"soft","hellaswag":0.5,"allocation":[[1,[1.5],0.5]],)"
      R"("at_tau":[[1,3,2]]}],"throughput":[[1,[100],"soft"]]})");
  return seeds;
}

}  // namespace softmoe::fuzz
